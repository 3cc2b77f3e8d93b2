/**
 * Where a cursor is in the YAML of a definition, from the indentation: the text around it need not be valid.
 * Documents in block style; an object in braces is understood if it begins on the line of the cursor.
 */

/**
 * @typedef {{indent: number, dashes: number[], key: string, value: string, number: number}} Line
 *   `indent`: column of the key, behind the dashes, counted from 0; `dashes`: columns of the dashes before it
 * @typedef {{key: string, isEntry: boolean, fields: Map<string, string>, names: string[]}} Level
 *   an object around the cursor: the attribute that holds it ("" for the definition itself), whether it is an entry of
 *   that attribute's list, its own attributes, and the names of all steps in that list
 * @typedef {{levels: Level[], key: string | null, typed: string, from: number, inBraces: boolean}} CursorContext
 *   `key`: the attribute whose value is being typed, null while an attribute's name is; `typed` begins at offset `from`
 */

const KEY = /^(?:"([^"]*)"|'([^']*)'|([A-Za-z_][\w-]*))\s*:(?:\s+|$)(.*)$/;
const WORD = /(?:[\w$:./*-][\w$:./[\]*-]*)?$/;

/** @param {string} text @param {number} offset @returns {CursorContext} */
export function contextAt(text, offset) {
  const before = text.slice(0, offset).split("\n");
  const own = before.length - 1;
  const lines = text.split("\n").map(readLine);
  const start = before[own];
  const typed = (WORD.exec(start) ?? [""])[0];
  const at = { typed, from: offset - typed.length };
  const braces = insideBraces(start);
  if (braces !== null) return { ...inBraces(lines, own, braces), ...at, inBraces: true };
  const { indent, dashes, key } = readLine(start, own);
  const column = key || start.trim() ? indent : start.length;
  const isListItem = !key && dashes.length > 0 && keyOfList(lines, own, dashes[0]);
  const levels = levelsAround(lines, own, column, dashes);
  if (key) return { levels, key, ...at, inBraces: false };
  const holder = isListItem && isScalarList(isListItem) ? isListItem : null;
  return { levels: holder ? levels.slice(0, -1) : levels, key: holder, ...at, inBraces: false };
}

/** @param {string} text @param {number} number @returns {Line} */
function readLine(text, number) {
  let indent = text.length - text.trimStart().length;
  let rest = text.slice(indent);
  const dashes = [];
  while (/^-(\s|$)/.test(rest)) {
    dashes.push(indent);
    const trimmed = rest.slice(1).trimStart();
    indent += rest.length - trimmed.length;
    rest = trimmed;
  }
  if (rest.startsWith("#")) rest = "";
  const found = KEY.exec(rest);
  const key = found ? (found[1] ?? found[2] ?? found[3]) : "";
  return { indent, dashes, key, value: found ? found[4] : rest, number };
}

/**
 * The objects around a line, from the definition itself inwards.
 * @param {Line[]} lines @param {number} own @param {number} column @param {number[]} dashes @returns {Level[]}
 */
function levelsAround(lines, own, column, dashes) {
  /** @type {Level[]} */
  const levels = [];
  let [at, indent, dash] = [own, column, dashes.length ? dashes[dashes.length - 1] : -1];
  for (let depth = 0; depth < 200; depth++) {
    if (dash < 0) dash = dashOf(lines, at, indent);
    const parent = parentOf(lines, at, dash >= 0 ? dash : indent - 1);
    const fields = fieldsOf(lines, at, indent, dash);
    const names = dash >= 0 ? namesOf(lines, parent?.number ?? -1, indent, dash) : [];
    levels.unshift({ key: parent?.key ?? "", isEntry: dash >= 0, fields, names });
    if (!parent) break;
    [at, indent, dash] = [parent.number, parent.indent, parent.dashes.length ? parent.dashes[parent.dashes.length - 1] : -1];
  }
  return levels;
}

/**
 * The dash that begins the entry which the object at this indentation is; -1 if it is none.
 * @param {Line[]} lines @param {number} at @param {number} indent
 */
function dashOf(lines, at, indent) {
  for (let number = at - 1; number >= 0; number--) {
    const line = lines[number];
    if (isBlank(line)) continue;
    const begins = line.dashes.length ? line.dashes[0] : line.indent;
    if (line.indent === indent && line.dashes.length) return line.dashes[line.dashes.length - 1];
    if (begins < indent) return -1;
  }
  return -1;
}

/**
 * The nearest line above with an attribute at this column or before it, which is no entry of the same list.
 * @param {Line[]} lines @param {number} at @param {number} column
 */
function parentOf(lines, at, column) {
  for (let number = at - 1; number >= 0; number--) {
    const line = lines[number];
    if (!isBlank(line) && line.key && line.indent <= column && !line.dashes.includes(column)) return line;
  }
  return null;
}

/**
 * The attributes of the object that a line belongs to.
 * @param {Line[]} lines @param {number} at @param {number} indent @param {number} dash
 */
function fieldsOf(lines, at, indent, dash) {
  const fields = new Map();
  const take = (/** @type {Line} */ line) => {
    if (line.indent === indent && line.key && !fields.has(line.key)) fields.set(line.key, plain(line.value));
  };
  for (let number = at; number >= 0; number--) {
    const line = lines[number];
    if (isBlank(line)) continue;
    const begins = line.dashes.length ? line.dashes[0] : line.indent;
    if (line.indent < indent && number !== at) break;
    take(line);
    if (dash >= 0 && line.dashes.includes(dash)) break;
    if (begins < indent && number !== at) break;
  }
  for (let number = at + 1; number < lines.length; number++) {
    const line = lines[number];
    if (isBlank(line)) continue;
    if ((line.dashes.length ? line.dashes[0] : line.indent) < indent) break;
    take(line);
  }
  return fields;
}

/**
 * The names of the entries of a list.
 * @param {Line[]} lines @param {number} parent @param {number} indent @param {number} dash
 */
function namesOf(lines, parent, indent, dash) {
  const names = [];
  for (let number = parent + 1; number < lines.length; number++) {
    const line = lines[number];
    if (isBlank(line)) continue;
    const begins = line.dashes.length ? line.dashes[0] : line.indent;
    if (begins < dash || (begins === dash && !line.dashes.length)) break;
    if (line.indent === indent && line.key === "name") names.push(plain(line.value));
    const inline = line.dashes.includes(dash) && line.value.startsWith("{") ? /\bname:\s*([\w-]+)/.exec(line.value) : null;
    if (inline) names.push(inline[1]);
  }
  return names;
}

/**
 * The part of a line from its last open brace on; null if none is open.
 * @param {string} start
 */
function insideBraces(start) {
  const open = [];
  for (const [index, letter] of [...start].entries()) {
    if (letter === "{") open.push(index);
    if (letter === "}") open.pop();
  }
  return open.length ? { all: start, open } : null;
}

/** @param {Line[]} lines @param {number} own @param {{all: string, open: number[]}} braces */
function inBraces(lines, own, { all, open }) {
  const outer = readLine(all.slice(0, open[0]), own);
  const levels = levelsAround(lines, own, outer.indent, outer.dashes);
  let before = all.slice(0, open[0]);
  open.forEach((from, index) => {
    const inner = all.slice(from + 1, open[index + 1]);
    const holder = /([\w-]+):\s*\[?\s*$/.exec(before)?.[1] ?? /([\w-]+):\s*\[[^\]]*$/.exec(before)?.[1];
    const fields = new Map([...inner.matchAll(/([\w-]+):\s*([^,{}[\]]*)/g)].map((found) => [found[1], plain(found[2])]));
    const last = levels[levels.length - 1];
    if (holder) levels.push({ key: holder, isEntry: /\[[^\]]*$/.test(before), fields, names: [] });
    else if (last) fields.forEach((value, key) => last.fields.set(key, value));
    before = inner;
  });
  const part = before.slice(before.lastIndexOf(",") + 1);
  return { levels, key: /^\s*([\w-]+):\s/.exec(part)?.[1] ?? null };
}

/**
 * The attribute whose list a dash begins an entry of.
 * @param {Line[]} lines @param {number} own @param {number} dash
 */
function keyOfList(lines, own, dash) {
  return parentOf(lines, own, dash)?.key ?? null;
}

/** @param {string} key */
const isScalarList = (key) => key === "errors";
/** @param {Line} line */
const isBlank = (line) => !line.key && !line.value && !line.dashes.length;
/** @param {string} value */
const plain = (value) => value.replace(/\s+#.*$/, "").trim().replace(/^(["'])(.*)\1$/, "$2");
