/** A JSON value as a tree: search, raw text, copy of paths and values, all of it by keyboard. */

import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { stylesheet } from "../css.js";
import { stringifyJson } from "../exact-json.js";
import { NO_COPY, copyText } from "../clipboard.js";
import { isContainer, openedAtFirst, rowsOf, sizeOf } from "./json-rows.js";
import { CutText, ClosedValue, Scalar } from "./json-values.js";
import { useFind } from "./json-find.js";

stylesheet(new URL("./json-tree.css", import.meta.url));

/** @typedef {import("./json-rows.js").ValueRow} ValueRow */
/** @typedef {import("./json-rows.js").MoreRow} MoreRow */

const ROWS_WITHOUT_TOOLS = 6;

/**
 * A tree that opens three levels. Keys: arrows, Enter, Home, End, `c` copies the value, `p` its path, `/` searches.
 * @param {{value: any, root?: string, label?: string}} given
 */
export function JsonTree({ value, root = "$input", label = root }) {
  const first = useMemo(() => openedAtFirst(value, root), [value, root]);
  const [changed, setChanged] = useState(/** @type {Map<string, import("./json-rows.js").Opened>} */ (new Map()));
  const [isRaw, setRaw] = useState(false);
  const [focused, setFocused] = useState(/** @type {string} */ (root));
  const [said, say] = useState("");
  const list = useRef(/** @type {HTMLElement|null} */ (null));
  const opened = useMemo(() => new Map([...first, ...changed]), [first, changed]);
  const rows = useMemo(() => rowsOf(value, root, opened), [value, root, opened]);
  const tools = useRef(/** @type {HTMLInputElement|null} */ (null));
  const active = rows.some((row) => row.path === focused) ? focused : root;

  /** @param {string} path @param {boolean} [isByHand] */
  function focus(path, isByHand = true) {
    setFocused(path);
    if (isByHand) requestAnimationFrame(() => rowElement(list.current, path)?.focus());
    else requestAnimationFrame(() => rowElement(list.current, path)?.scrollIntoView({ block: "nearest" }));
  }
  const find = useFind({ value, root, opened, setOpened: setChanged, show: (path) => focus(path, false) });

  /** @param {string} path @param {import("./json-rows.js").Opened} change */
  const change = (path, change) => setChanged(new Map([...changed, [path, { ...opened.get(path), ...change }]]));
  /** @param {ValueRow} row */
  const toggle = (row) => row.size > 0 && change(row.path, { isOpen: !row.isOpen });
  /** @param {MoreRow} row */
  function showMore(row) {
    change(row.parent, { from: row.more.from, to: row.more.to });
    if (row.more.to >= row.more.count) focus(row.parent);
  }
  /** @param {string} text @param {string} what */
  async function copy(text, what) {
    say((await copyText(text)) ? `Copied ${what}` : NO_COPY);
  }
  useEffect(() => {
    const timer = said ? setTimeout(() => say(""), 2000) : undefined;
    return () => clearTimeout(timer);
  }, [said]);

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !isRow(event.target)) return;
    const at = rows.findIndex((row) => row.path === active);
    const row = rows[at];
    const done = keyAction(event.key, { rows, at, row, focus, toggle, showMore, copy, tools });
    if (done) {
      event.preventDefault();
      event.stopPropagation();
    }
  }
  const hasTools = rows.length > ROWS_WITHOUT_TOOLS || isRaw || !isContainer(value);
  return html`<div class="json" role="group" aria-label=${label}>
    <div class="json-tools">
      ${!isRaw && hasTools && html`<${find.Field} inputRef=${tools} />`}
      <span class="json-said" role="status">${said}</span>
      <button class="quiet" aria-pressed=${isRaw} onClick=${() => setRaw(!isRaw)}>Raw</button>
      <button class="quiet" onClick=${() => copy(stringifyJson(value, 2), label)}>Copy</button>
    </div>
    ${isRaw
      ? html`<pre class="json-raw" tabindex="0"><${CutText} text=${stringifyJson(value, 2)} cut=${20000} /></pre>`
      : html`<div class="json-rows" role="tree" aria-label=${label} ref=${list} onKeyDown=${onKey}>
          ${rows.map((row) =>
            row.more
              ? html`<${More} key=${row.path} row=${row} isFocused=${row.path === active} showMore=${showMore} focus=${setFocused} />`
              : html`<${Row} key=${row.path} row=${row} isFocused=${row.path === active} isFound=${row.path === find.path}
                  toggle=${toggle} copy=${copy} focus=${setFocused} />`,
          )}
        </div>`}
  </div>`;
}

/** @param {EventTarget|null} target */
const isRow = (target) => target instanceof HTMLElement && target.role === "treeitem";

/** @param {HTMLElement|null} list @param {string} path */
function rowElement(list, path) {
  const found = list?.querySelector(`[data-path=${CSS.escape(path)}]`);
  return /** @type {HTMLElement|undefined} */ (found ?? undefined);
}

/**
 * What a key does on a row; false if nothing.
 * @param {string} key
 * @param {any} on
 */
function keyAction(key, { rows, at, row, focus, toggle, showMore, copy, tools }) {
  const isValue = !row.more;
  if (key === "ArrowDown") focus(rows[Math.min(at + 1, rows.length - 1)].path);
  else if (key === "ArrowUp") focus(rows[Math.max(at - 1, 0)].path);
  else if (key === "Home") focus(rows[0].path);
  else if (key === "End") focus(rows[rows.length - 1].path);
  else if (key === "ArrowRight" && isValue && row.size > 0) row.isOpen ? focus(rows[at + 1].path) : toggle(row);
  else if (key === "ArrowLeft") isValue && row.isOpen ? toggle(row) : row.parent !== null && focus(row.parent);
  else if (key === "Enter" || key === " ") isValue ? toggle(row) : showMore(row);
  else if (key === "c" && isValue) copy(textOf(row.value), "the value");
  else if (key === "p" && isValue) copy(row.path, row.path);
  else if (key === "/" && tools.current) tools.current.focus();
  else return false;
  return true;
}

/** A text as it is, anything else as JSON. @param {any} value */
const textOf = (value) => (typeof value === "string" ? value : stringifyJson(value, 2));

/** @param {{row: ValueRow, isFocused: boolean, isFound: boolean, toggle: any, copy: any, focus: any}} given */
function Row({ row, isFocused, isFound, toggle, copy, focus }) {
  const hasChildren = row.size > 0;
  return html`<div class=${isFound ? "json-row found" : "json-row"} role="treeitem" data-path=${row.path}
    aria-level=${row.depth + 1} aria-setsize=${row.siblings} aria-posinset=${row.position}
    aria-expanded=${hasChildren ? row.isOpen : undefined} tabindex=${isFocused ? 0 : -1}
    style=${{ "--depth": row.depth }} onFocus=${() => focus(row.path)} onClick=${() => hasChildren && !hasSelection() && toggle(row)}>
    <span class="json-twisty" aria-hidden="true">${hasChildren ? (row.isOpen ? "▾" : "▸") : ""}</span>
    <span class="json-line">
      ${row.key !== null && html`<bdi class="json-key">${row.key}</bdi><span class="json-colon">: </span>`}
      ${isContainer(row.value)
        ? row.isOpen
          ? html`<span class="json-size">${countOf(row.value)}</span>`
          : html`<${ClosedValue} value=${row.value} />`
        : html`<${Scalar} value=${row.value} />`}
    </span>
    <span class="json-acts">
      <button class="quiet" tabindex="-1" title="Copy the path (p)" aria-label=${`Copy the path ${row.path}`}
        onClick=${stopped(() => copy(row.path, row.path))}>path</button>
      <button class="quiet" tabindex="-1" title="Copy the value (c)" aria-label=${`Copy the value of ${row.path}`}
        onClick=${stopped(() => copy(textOf(row.value), "the value"))}>value</button>
    </span>
  </div>`;
}

/** @param {() => void} act */
const stopped = (act) => (/** @type {Event} */ event) => {
  event.stopPropagation();
  act();
};

const hasSelection = () => String(getSelection() ?? "") !== "";

/** @param {any} value */
function countOf(value) {
  const size = sizeOf(value);
  if (Array.isArray(value)) return size === 1 ? "1 item" : `${size.toLocaleString("en")} items`;
  return size === 1 ? "1 key" : `${size.toLocaleString("en")} keys`;
}

/** @param {{row: MoreRow, isFocused: boolean, showMore: any, focus: any}} given */
function More({ row, isFocused, showMore, focus }) {
  const where = row.more.isBefore ? "before" : "more";
  return html`<div class="json-row json-more" role="treeitem" data-path=${row.path} aria-level=${row.depth + 1}
    tabindex=${isFocused ? 0 : -1} style=${{ "--depth": row.depth }} onFocus=${() => focus(row.path)} onClick=${() => showMore(row)}>
    <span class="json-twisty" aria-hidden="true">…</span>
    <span class="json-line">${row.more.count.toLocaleString("en")} ${where}, show ${shownNext(row)}</span>
  </div>`;
}

/** @param {MoreRow} row */
const shownNext = (row) => (row.more.count > 100 ? "100" : "them");
