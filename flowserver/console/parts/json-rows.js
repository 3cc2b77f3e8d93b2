/** A JSON value as rows of a tree: which are shown, and where a text is found. No page, no component. */

export const LEVELS_OPEN = 3;
export const ROWS_OPEN_MAX = 80;
/** Children of a list inside that are shown at first. */
const FIRST_CHILDREN = 20;
/** Children of one value that are shown at a time. */
export const CHILDREN_AT_ONCE = 100;
export const MATCHES_MAX = 1000;
const PLAIN_KEY = /^[\p{L}_][\p{L}\p{N}_]*$/u;
const SLICE_MS = 8;

/**
 * One row: a value, or (`more`) the place of children that are not shown.
 * @typedef {{path: string, parent: string|null, depth: number, key: string|number|null, value: any, size: number,
 *   isOpen: boolean, position: number, siblings: number, more?: undefined}} ValueRow
 * @typedef {{path: string, parent: string, depth: number, more: {from: number, to: number, count: number, isBefore: boolean}}} MoreRow
 * @typedef {{isOpen?: boolean, from?: number, to?: number}} Opened what is shown of a value: children `from` up to `to`
 */

/** @param {any} value */
export const isContainer = (value) => value !== null && typeof value === "object";

/** @type {WeakMap<object, string[]>} */
const keysOfObject = new WeakMap();

/** @param {any} value an object */
function keysOf(value) {
  let keys = keysOfObject.get(value);
  if (!keys) keysOfObject.set(value, (keys = Object.keys(value)));
  return keys;
}

/** How many children a value has. @param {any} value */
export function sizeOf(value) {
  if (!isContainer(value)) return 0;
  return Array.isArray(value) ? value.length : keysOf(value).length;
}

/**
 * The child at an index.
 * @param {any} value
 * @param {number} index
 * @returns {[string|number, any]} its key and itself
 */
function childAt(value, index) {
  if (Array.isArray(value)) return [index, value[index]];
  const key = keysOf(value)[index];
  return [key, value[key]];
}

/**
 * The path of a child, as mappings write it: `$input.a["b c"][0]`.
 * @param {string} path
 * @param {string|number} key
 */
export function pathOf(path, key) {
  if (typeof key === "number") return `${path}[${key}]`;
  return PLAIN_KEY.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
}

/**
 * Paths that are open at first: three levels, but no more rows than a person can look at.
 * @param {any} value
 * @param {string} root
 * @returns {Map<string, Opened>}
 */
export function openedAtFirst(value, root) {
  const opened = new Map();
  let rows = 1;
  let level = /** @type {[string, any][]} */ ([[root, value]]);
  for (let depth = 0; depth < LEVELS_OPEN; depth += 1) {
    /** @type {[string, any][]} */
    const below = [];
    for (const [path, each] of level) {
      const size = sizeOf(each);
      const shown = Math.min(size, depth === 0 ? CHILDREN_AT_ONCE : FIRST_CHILDREN);
      if (size === 0 || (depth > 0 && rows + shown > ROWS_OPEN_MAX)) continue;
      opened.set(path, { isOpen: true, to: shown });
      rows += shown;
      for (let index = 0; index < shown; index += 1) {
        const [key, child] = childAt(each, index);
        if (isContainer(child)) below.push([pathOf(path, key), child]);
      }
    }
    level = below;
  }
  return opened;
}

/**
 * The rows of a value.
 * @param {any} value
 * @param {string} root
 * @param {Map<string, Opened>} opened
 * @returns {(ValueRow|MoreRow)[]}
 */
export function rowsOf(value, root, opened) {
  /** @type {(ValueRow|MoreRow)[]} */
  const rows = [];
  /** @type {(path: string, parent: string|null, key: string|number|null, each: any, depth: number, at: number, of: number) => void} */
  const add = (path, parent, key, each, depth, at, of) => {
    const size = sizeOf(each);
    const state = opened.get(path);
    const isOpen = size > 0 && state?.isOpen === true;
    rows.push({ path, parent, depth, key, value: each, size, isOpen, position: at + 1, siblings: of });
    if (!isOpen) return;
    const from = Math.min(state?.from ?? 0, size - 1);
    const to = Math.min(state?.to ?? from + CHILDREN_AT_ONCE, size);
    if (from > 0) rows.push(moreRow(path, depth, { from: Math.max(0, from - CHILDREN_AT_ONCE), to, count: from, isBefore: true }));
    for (let index = from; index < to; index += 1) {
      const [childKey, child] = childAt(each, index);
      add(pathOf(path, childKey), path, childKey, child, depth + 1, index, size);
    }
    if (to < size) rows.push(moreRow(path, depth, { from, to: Math.min(size, to + CHILDREN_AT_ONCE), count: size - to, isBefore: false }));
  };
  add(root, null, null, value, 0, 0, 1);
  return rows;
}

/**
 * @param {string} path of the value whose children are not shown
 * @param {number} depth
 * @param {MoreRow["more"]} more
 * @returns {MoreRow}
 */
function moreRow(path, depth, more) {
  return { path: `${path} ${more.isBefore ? "before" : "after"}`, parent: path, depth: depth + 1, more };
}

/**
 * Where a text is found in keys, texts, numbers and words: the indexes that lead there. Hands the thread back
 * every few milliseconds, so that a value of megabytes does not stop the page.
 * @param {any} value
 * @param {string} wanted
 * @param {AbortSignal} signal
 * @returns {Promise<number[][]>} at most MATCHES_MAX
 */
export async function findText(value, wanted, signal) {
  const needle = wanted.toLowerCase();
  /** @type {number[][]} */
  const found = [];
  /** @type {{value: any, at: number[], next: number}[]} */
  const open = [{ value, at: [], next: 0 }];
  let pauseAt = performance.now() + SLICE_MS;
  while (open.length > 0 && found.length < MATCHES_MAX) {
    const top = open[open.length - 1];
    if (top.next >= sizeOf(top.value)) {
      open.pop();
      continue;
    }
    const [key, child] = childAt(top.value, top.next);
    const at = [...top.at, top.next];
    top.next += 1;
    const isInKey = typeof key === "string" && key.toLowerCase().includes(needle);
    if (isInKey || (!isContainer(child) && String(child).toLowerCase().includes(needle))) found.push(at);
    if (isContainer(child)) open.push({ value: child, at, next: 0 });
    if (performance.now() > pauseAt) {
      await new Promise((resolve) => setTimeout(resolve));
      if (signal.aborted) return [];
      pauseAt = performance.now() + SLICE_MS;
    }
  }
  return found;
}

/**
 * Opens what is around a match.
 * @param {any} value
 * @param {string} root
 * @param {Map<string, Opened>} opened
 * @param {number[]} indexes
 * @returns {{opened: Map<string, Opened>, path: string}} also the path of the match
 */
export function openTo(value, root, opened, indexes) {
  const next = new Map(opened);
  let path = root;
  let each = value;
  for (const index of indexes) {
    const state = next.get(path);
    const from = state?.from ?? 0;
    const isShown = index >= from && index < (state?.to ?? from + CHILDREN_AT_ONCE);
    const page = Math.floor(index / CHILDREN_AT_ONCE) * CHILDREN_AT_ONCE;
    next.set(path, isShown ? { ...state, isOpen: true } : { isOpen: true, from: page });
    const [key, child] = childAt(each, index);
    path = pathOf(path, key);
    each = child;
  }
  return { opened: next, path };
}
