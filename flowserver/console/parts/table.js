/**
 * A list of rows of 32 px, of which only those on screen exist. `j k` and the arrows move, Enter opens, `x` selects.
 * The table fills the height that its parent leaves, or is as high as its rows if these need less.
 */
import { Component, html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { stylesheet } from "../css.js";
import { useKeys } from "../keys.js";

stylesheet(new URL("./table.css", import.meta.url));

/**
 * @typedef {{key: string, title: any, width?: string, render: (row: any) => any, narrow?: string | false, align?: "right"}} Column
 *   `width`: as in grid-template-columns; `narrow`: that below 700 px, false: left out there
 * @typedef {{columns: Column[], rows: any[], keyOf: (row: any) => string, label?: string,
 *   onOpen?: (row: any) => void, selected?: Set<string>, onSelect?: (selected: Set<string>) => void,
 *   more?: () => void, done?: boolean, empty?: any, loading?: boolean, isDim?: (row: any) => boolean,
 *   onVisible?: (first: number, last: number) => void, onCursor?: (row: any) => void, current?: string | null, foot?: any}} TableProps
 *   `more` is called when the end comes into view and not `done`; `onCursor` gets the row that the keys are at; `current`: key of the row that is
 *   shown beside the list, where the keys go on; `foot` is shown below the last row
 */

/**
 * @typedef {{toggle: (index: number, isRange?: boolean) => void, open: (row: any) => void, moveTo: (key: string) => void}} Acts
 * @typedef {{id: string, row: any, index: number, columns: Column[], isAt: boolean, isSelected: boolean, isDim: boolean,
 *   hasBox: boolean, acts: Acts}} RowProps
 */

export const ROW_PX = 32;
const HEAD_PX = 28;
const SPARE_ROWS = 8;

/** @param {TableProps} props */
export function Table(props) {
  const { columns, rows, keyOf, label = "List", onOpen, selected, onSelect, empty, loading = false, isDim, foot } = props;
  const view = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [span, setSpan] = useState({ first: 0, last: 40 });
  const [cursor, setCursor] = useState(/** @type {string | null} */ (null));
  const anchor = useRef(/** @type {string | null} */ (null));
  const isEmpty = !rows.length && !loading;
  const at = cursor === null ? -1 : rows.findIndex((row) => keyOf(row) === cursor);

  const measure = () => {
    const box = view.current;
    if (!box) return;
    const [top, bottom] = [Math.floor(box.scrollTop / ROW_PX), Math.ceil((box.scrollTop + box.clientHeight) / ROW_PX)];
    const [first, last] = [Math.max(0, top - SPARE_ROWS), bottom + SPARE_ROWS];
    if (first !== span.first || last !== span.last) setSpan({ first, last });
    props.onVisible?.(top, bottom);
    if (!props.done && !loading && last >= rows.length && rows.length) props.more?.();
  };
  useLayoutEffect(measure);
  useEffect(() => {
    if (!view.current) return;
    const observer = new ResizeObserver(() => measure());
    observer.observe(view.current);
    return () => observer.disconnect();
  }, [isEmpty]);

  const moveTo = (/** @type {number} */ index) => {
    const wanted = Math.max(0, Math.min(rows.length - 1, index));
    const box = view.current;
    if (!rows.length || !box) return;
    setCursor(keyOf(rows[wanted]));
    props.onCursor?.(rows[wanted]);
    const top = wanted * ROW_PX;
    const space = box.clientHeight - HEAD_PX;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + 2 * ROW_PX > box.scrollTop + space) box.scrollTop = top + 2 * ROW_PX - space;
  };
  const toggle = (/** @type {number} */ index, isRange = false) => {
    if (!selected || !onSelect || index < 0) return;
    const next = new Set(selected);
    const key = keyOf(rows[index]);
    const from = isRange ? rows.findIndex((row) => keyOf(row) === anchor.current) : -1;
    const [low, high] = from < 0 ? [index, index] : [Math.min(from, index), Math.max(from, index)];
    const isOn = !selected.has(key);
    for (const row of rows.slice(low, high + 1)) isOn ? next.add(keyOf(row)) : next.delete(keyOf(row));
    anchor.current = key;
    onSelect(next);
  };
  useEffect(() => {
    if (!props.current || props.current === cursor) return;
    const index = rows.findIndex((row) => keyOf(row) === props.current);
    if (index >= 0) moveTo(index);
  }, [props.current, rows.length > 0]);
  const page = () => Math.max(1, Math.floor((view.current?.clientHeight ?? 320) / ROW_PX) - 2);
  const isElsewhere = (/** @type {KeyboardEvent} */ event) => {
    const target = event.target;
    if (!(target instanceof Element) || view.current?.contains(target)) return false;
    const isCharacter = event.key.length === 1; // the other keys scroll what has the focus
    return isCharacter ? target.closest("[role=listbox], [role=grid], [role=tree], [role=treegrid]") !== null : !target.matches("html, body, #page");
  };
  const move = (/** @type {(at: number) => number} */ to) => (/** @type {KeyboardEvent} */ event) => {
    if (isElsewhere(event) || !rows.length) return false;
    moveTo(to(at));
  };
  useKeys("List", [
    { keys: "j|ArrowDown", label: "Next row", run: move((now) => now + 1) },
    { keys: "k|ArrowUp", label: "Row before", run: move((now) => (now < 0 ? 0 : now - 1)) },
    { keys: "PageDown", label: "Rows further down", run: move((now) => now + page()) },
    { keys: "PageUp", label: "Rows further up", run: move((now) => now - page()) },
    { keys: "Home|g g", label: "First row", run: move(() => 0) },
    { keys: "End|G", label: "Last row that is loaded", run: move(() => rows.length - 1) },
    ...(onOpen ? [{ keys: "Enter|o", label: "Open the row", run: () => (at < 0 ? false : onOpen(rows[at])) }] : []),
    ...(onSelect ? [{ keys: "x", label: "Select the row", run: () => (at < 0 ? false : toggle(at)) }] : []),
    ...(onSelect ? [{ keys: "X", label: "Select from the last selected row to here", run: () => (at < 0 ? false : toggle(at, true)) }] : []),
  ]);

  const acts = useRef(/** @type {Acts} */ ({ toggle, open: () => {}, moveTo: setCursor })).current;
  Object.assign(acts, { toggle, open: onOpen ?? (() => {}), moveTo: setCursor });

  if (isEmpty) return html`<div class="table-empty">${empty}</div>`;
  const template = [...(onSelect ? ["28px"] : []), ...columns.map((column) => column.width ?? "minmax(0, 1fr)")].join(" ");
  const narrow = columns.filter((column) => column.narrow !== false);
  const narrowTemplate = [...(onSelect ? ["28px"] : []), ...narrow.map((column) => column.narrow || column.width || "minmax(0, 1fr)")].join(" ");
  const shown = rows.slice(span.first, span.last);
  const isAll = selected !== undefined && rows.length > 0 && rows.every((row) => selected.has(keyOf(row)));
  return html`<div class="table" role="grid" aria-label=${label} aria-rowcount=${props.done ? rows.length + 1 : -1}
    ref=${view} tabindex="0" onScroll=${measure} aria-activedescendant=${at >= 0 ? `row-${cursor}` : undefined}
    aria-multiselectable=${onSelect ? "true" : undefined} style=${{ "--columns": template, "--narrow": narrowTemplate }}>
    <div class="table-head" role="row" aria-rowindex="1">
      ${onSelect && html`<span role="columnheader" class="cell"><input type="checkbox" aria-label="Select all rows that are loaded"
        checked=${isAll} onChange=${() => onSelect(isAll ? new Set() : new Set(rows.map(keyOf)))} /></span>`}
      ${columns.map((column) => html`<span role="columnheader" key=${column.key} class=${cell(column)}>${column.title}</span>`)}
    </div>
    <div role="rowgroup" class="table-rows" style=${{ height: `${rows.length * ROW_PX}px` }}>
      ${shown.map((row, offset) => {
        const key = keyOf(row);
        const index = span.first + offset;
        return html`<${Row} key=${key} id=${key} row=${row} index=${index} columns=${columns} isAt=${index === at} isSelected=${selected?.has(key) ?? false}
          isDim=${isDim?.(row) ?? false} hasBox=${Boolean(onSelect)} acts=${acts} />`;
      })}
    </div>
    ${foot}
  </div>`;
}

/** @param {Column} column */
function cell(column) {
  return `cell${column.narrow === false ? " wide" : ""}${column.align ? " right" : ""}`;
}

/** A row that is drawn again only if something of it has changed: a list is drawn at every key and every news. */
class Row extends Component {
  /** @param {RowProps} next */
  shouldComponentUpdate(next) {
    const now = /** @type {Record<string, unknown>} */ (this.props);
    return Object.entries(next).some(([name, value]) => now[name] !== value);
  }

  /** @param {RowProps} props */
  render({ id, row, index, columns, isAt, isSelected, isDim, hasBox, acts }) {
    const names = `table-row${isAt ? " at" : ""}${isSelected ? " selected" : ""}${isDim ? " dim" : ""}`;
    const onClick = (/** @type {MouseEvent} */ event) => {
      if (event.defaultPrevented || (event.target instanceof Element && event.target.closest("a, button, input, label"))) return;
      if (String(getSelection())) return;
      acts.moveTo(id);
      if (event.ctrlKey || event.metaKey || event.shiftKey) acts.toggle(index, event.shiftKey);
      else acts.open(row);
    };
    const onBox = (/** @type {MouseEvent} */ event) => {
      acts.moveTo(id);
      acts.toggle(index, event.shiftKey);
    };
    return html`<div role="row" id=${`row-${id}`} class=${names} aria-rowindex=${index + 2} aria-selected=${hasBox ? String(isSelected) : undefined}
      style=${{ transform: `translateY(${index * ROW_PX}px)` }} onClick=${onClick}>
      ${hasBox && html`<span role="gridcell" class="cell"><input type="checkbox" tabindex="-1" aria-label="Select" checked=${isSelected} onClick=${onBox} /></span>`}
      ${columns.map((column) => html`<span role="gridcell" key=${column.key} class=${cell(column)}>${column.render(row)}</span>`)}
    </div>`;
  }
}
