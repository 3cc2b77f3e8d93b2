/**
 * The events of an execution: rows of 24 px, loaded where they are looked at. `j k` and the arrows move, Home and End go
 * to the ends, Enter opens the step of an event.
 */
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { stylesheet } from "../css.js";
import { localTime } from "./basics.js";
import { seen } from "./json-values.js";
import { useVirtualRows } from "./virtual-list.js";

stylesheet(new URL("./events.css", import.meta.url));

/**
 * @typedef {{id: number, type: string, path: string, at: number, text: string, tone: string}} EventRow
 * @typedef {{count: number, isWhole: boolean, loading: boolean, error: any, rowAt: (index: number) => EventRow | undefined,
 *   indexOf: (id: number) => number, need: (first: number, last: number) => void, loaded: () => Iterable<EventRow>}} EventRows  events of an execution, as far as they were loaded
 * @typedef {{source: EventRows, search: string, selected: number | null, onSelect: (row: EventRow) => void,
 *   onOpen: (row: EventRow) => void, startAtEnd?: boolean}} EventListProps
 *   `startAtEnd`: the list is first shown at its end, and stays there while it grows
 */

export const EVENT_ROW_PX = 24;
const SCROLL_SPARE = 2;

/** @param {EventListProps} props */
export function EventList({ source, search, selected, onSelect, onOpen, startAtEnd = false }) {
  const view = useRef(/** @type {HTMLDivElement | null} */ (null));
  const wanted = search.trim().toLowerCase();
  const found = wanted ? [...source.loaded()].filter((row) => matches(row, wanted)) : null;
  const count = found ? found.length : source.count;
  const rowAt = (/** @type {number} */ index) => (found ? found[index] : source.rowAt(index));
  const { items, height, show } = useVirtualRows({ count, rowPx: EVENT_ROW_PX, view });
  const isAtEnd = useRef(startAtEnd);
  const isUnderPointer = useRef(false);
  const isByHand = useRef(false);

  const first = items[0]?.index ?? 0;
  const last = items[items.length - 1]?.index ?? -1;
  useEffect(() => {
    const isOnItsWay = isAtEnd.current && !isUnderPointer.current && last < count - 1;
    if (!found && last >= 0 && !isOnItsWay) source.need(first, last);
  });
  useLayoutEffect(() => {
    const index = selected === null || found ? -1 : source.indexOf(selected);
    if (index >= 0 && index < count) {
      if (!isByHand.current) show(index, "center");
      isByHand.current = false;
      isAtEnd.current = false;
    } else if (isAtEnd.current && !isUnderPointer.current && count) show(count - 1, "end");
  }, [selected, source, isAtEnd.current || selected !== null ? count > 0 && (isAtEnd.current ? count : true) : 0]);

  const selectedIndex = () => (selected === null ? -1 : found ? found.findIndex((row) => row.id === selected) : source.indexOf(selected));
  const move = (/** @type {number} */ index) => {
    const next = Math.max(0, Math.min(count - 1, index));
    const row = rowAt(next);
    show(next);
    if (!row) return;
    isByHand.current = true;
    onSelect(row);
  };
  const pageRows = () => Math.max(1, Math.floor((view.current?.clientHeight ?? 240) / EVENT_ROW_PX) - SCROLL_SPARE);
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = selectedIndex();
    const row = at < 0 ? undefined : rowAt(at);
    if (event.key === "ArrowDown" || event.key === "j") move(at < 0 ? first : at + 1);
    else if (event.key === "ArrowUp" || event.key === "k") move(at < 0 ? last : at - 1);
    else if (event.key === "PageDown") move(Math.max(at, first) + pageRows());
    else if (event.key === "PageUp") move((at < 0 ? first : at) - pageRows());
    else if (event.key === "Home") show(0);
    else if (event.key === "End") show(count - 1, "end");
    else if (event.key === "Enter" && row) onOpen(row);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const onScroll = () => {
    const box = view.current;
    if (box) isAtEnd.current = startAtEnd && selected === null && box.scrollTop + box.clientHeight >= box.scrollHeight - EVENT_ROW_PX;
  };
  const isPointed = (/** @type {boolean} */ value) => () => void (isUnderPointer.current = value);
  if (!count && !source.loading) return html`<div class="empty"><p>${found ? "No event that is loaded matches." : "No event matches."}</p></div>`;
  const chosen = selectedIndex();
  return html`<div class="events" role="listbox" aria-label="Events" tabindex="0" ref=${view} onKeyDown=${onKey} onScroll=${onScroll}
    onPointerEnter=${isPointed(true)} onPointerLeave=${isPointed(false)} aria-activedescendant=${chosen >= 0 ? `event-${selected}` : undefined}>
    <div role="presentation" style=${{ height: `${height}px`, position: "relative" }}>
      ${items.map(({ index, start }) => {
        const row = rowAt(index);
        return html`<${Row} key=${row?.id ?? `at ${index}`} row=${row} index=${index} start=${start} count=${count} isSelected=${row?.id === selected}
          onSelect=${(/** @type {EventRow} */ each) => {
            isByHand.current = true;
            onSelect(each);
          }} onOpen=${onOpen} />`;
      })}
    </div>
  </div>`;
}

/** @param {EventRow} row @param {string} wanted lower case */
function matches(row, wanted) {
  return row.path.toLowerCase().includes(wanted) || row.type.toLowerCase().includes(wanted) || row.text.toLowerCase().includes(wanted) || String(row.id) === wanted;
}

/** @param {{row: EventRow | undefined, index: number, start: number, count: number, isSelected: boolean, onSelect: (row: EventRow) => void, onOpen: (row: EventRow) => void}} props */
function Row({ row, index, start, count, isSelected, onSelect, onOpen }) {
  const style = { transform: `translateY(${start}px)` };
  if (!row) return html`<div class="event waiting" role="option" aria-selected="false" aria-setsize=${count} aria-posinset=${index + 1} style=${style}>…</div>`;
  const click = () => !String(getSelection()) && onSelect(row);
  return html`<div class=${isSelected ? "event selected" : "event"} id=${`event-${row.id}`} role="option" aria-selected=${String(isSelected)}
    aria-setsize=${count} aria-posinset=${index + 1} style=${style} onClick=${click} onDblClick=${() => onOpen(row)}>
    <span class="event-id">${row.id}</span>
    <span class="event-time" title=${isNaN(row.at) ? "" : new Date(row.at).toISOString()}>${isNaN(row.at) ? "" : clock(row.at)}</span>
    <span class=${`event-type tone-${row.tone}`}>${row.type}</span>
    <bdi class="event-path" title=${row.path}>${row.path}</bdi>
    <bdi class="event-text" title=${row.text}>${seen(row.text)}</bdi>
  </div>`;
}

/** @param {number} at */
const clock = (at) => localTime(at).replace(/^.*, /, "");

/**
 * What stands over the list: search, filters, order.
 * @param {{count: string, search: string, onSearch: (text: string) => void, steps: string[], step: string, type: string,
 *   types: Record<string, {label: string, types: string[]}>, onFilter: (change: {step?: string, type?: string}) => void,
 *   isNewestFirst: boolean, onOrder: () => void}} props
 */
export function EventTools({ count, search, onSearch, steps, step, type, types, onFilter, isNewestFirst, onOrder }) {
  const names = useMemo(() => (step && !steps.includes(step) ? [step, ...steps] : steps), [steps, step]);
  const all = useMemo(() => [...new Set(Object.values(types).flatMap((group) => group.types))].sort(), [types]);
  const [typed, setTyped] = useState(search);
  useEffect(() => setTyped(search), [search]);
  const value = (/** @type {any} */ event) => event.currentTarget.value;
  return html`<div class="event-tools">
    <span class="event-count" role="status">${count}</span>
    <input type="search" placeholder="Search" aria-label="Search the events that are loaded" value=${typed}
      onInput=${(/** @type {any} */ event) => (setTyped(value(event)), onSearch(value(event)))} />
    <select aria-label="Step" value=${step} onChange=${(/** @type {any} */ event) => onFilter({ step: value(event) })}>
      <option value="">All steps</option>
      ${names.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
    </select>
    <select aria-label="Type" value=${type} onChange=${(/** @type {any} */ event) => onFilter({ type: value(event) })}>
      <option value="">All types</option>
      ${Object.entries(types).map(([key, group]) => html`<option key=${key} value=${key}>${group.label}</option>`)}
      <optgroup label="One type">${all.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</optgroup>
    </select>
    <button type="button" class="quiet" onClick=${onOrder} aria-label=${isNewestFirst ? "Newest first" : "Oldest first"} title=${isNewestFirst ? "Newest first" : "Oldest first"}>${isNewestFirst ? "↑" : "↓"}</button>
  </div>`;
}
