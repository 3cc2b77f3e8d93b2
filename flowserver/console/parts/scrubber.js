/** A slider over the events of an execution: the page as it was after the event that it is at. */
import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { stylesheet } from "../css.js";
import { Time } from "./basics.js";

stylesheet(new URL("./scrubber.css", import.meta.url));

/** So long it rests at an event before that is asked for; a click or a release asks at once. */
const SETTLE_MS = 80;
/** Marks that are drawn: one for each place that can be told from the next. */
const MARKS_MAX = 200;

/**
 * @param {{last: number, value: number | null, time?: string | number | null, onChange: (value: number | null) => void, live?: boolean,
 *   isBehind?: boolean, marks?: {id: number, label: string}[]}} props
 *   `last`: the last event; `value`: the event that the page shows, null at the end. `time`: its instant. `live`: more events will come.
 *   `isBehind`: the page still shows another event. `marks`: events to find, such as failures, in order. `onChange` gets null for the end.
 */
export function Scrubber({ last, value, time = null, onChange, live = false, isBehind = false, marks = [] }) {
  const [dragged, setDragged] = useState(/** @type {number | null} */ (null));
  const timer = useRef(0);
  const at = dragged ?? value ?? last;
  useEffect(() => () => clearTimeout(timer.current), []);
  // An event that was left meanwhile must not pull the slider back.
  useEffect(() => setDragged((before) => (value === null || before === value ? null : before)), [value]);

  const settle = (/** @type {number} */ event) => {
    clearTimeout(timer.current);
    timer.current = 0;
    const next = event >= last ? null : Math.max(1, event);
    if (next === value) setDragged(null);
    else onChange(next);
  };
  const drag = (/** @type {number} */ event) => {
    setDragged(event);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => settle(event), SETTLE_MS);
  };
  const step = (/** @type {number} */ by) => {
    const next = Math.min(Math.max(at + by, 1), last);
    setDragged(next);
    settle(next);
  };
  const ids = useMemo(() => marks.map((mark) => mark.id).sort((a, b) => a - b), [marks]);
  const before = ids.findLast((id) => id < at);
  const after = ids.find((id) => id > at);
  const isEnd = at >= last;
  const text = `event ${at.toLocaleString()} of ${last.toLocaleString()}`;
  return html`<div class=${`scrubber${value === null ? "" : " paused"}`} role="group" aria-label="Scrubber">
    <div class="scrubber-buttons">
      <button type="button" class="quiet" aria-label="One event back" title="One event back" disabled=${at <= 1} onClick=${() => step(-1)}>◂</button>
      <button type="button" class="quiet" aria-label="One event on" title="One event on" disabled=${isEnd} onClick=${() => step(1)}>▸</button>
      ${ids.length > 0 && html`
        <button type="button" class="quiet tone-fail" aria-label="Failure before" title="Failure before" disabled=${before === undefined} onClick=${() => before && settle(before)}>◂✕</button>
        <button type="button" class="quiet tone-fail" aria-label="Next failure" title="Next failure" disabled=${after === undefined} onClick=${() => after && settle(after)}>✕▸</button>`}
    </div>
    <div class="scrubber-slider">
      <div class="scrubber-marks" aria-hidden="true">${drawn(marks, last).map((mark) => html`<i key=${mark.id} style=${{ left: `${mark.part * 100}%` }}></i>`)}</div>
      <input type="range" min="1" max=${Math.max(1, last)} step="1" value=${at} disabled=${last < 2} aria-label="Event" aria-valuetext=${text}
        onInput=${(/** @type {Event} */ event) => drag(Number(/** @type {HTMLInputElement} */ (event.currentTarget).value))}
        onChange=${(/** @type {Event} */ event) => settle(Number(/** @type {HTMLInputElement} */ (event.currentTarget).value))} />
    </div>
    <span class="scrubber-place number">${text}${dragged === null && !isBehind && time !== null ? html` · <${Time} at=${time} />` : html` · <span class="muted">…</span>`}</span>
    <button type="button" class="quiet" disabled=${value === null && dragged === null} aria-label=${live ? "To the live present" : "To the last event"}
      title=${live ? "To the live present" : "To the last event"} onClick=${() => settle(last)}>${live && value === null ? html`<span class="scrubber-live">live</span>` : "▸|"}</button>
  </div>`;
}

/** @param {{id: number, label: string}[]} marks @param {number} last @returns {{id: number, part: number}[]} */
function drawn(marks, last) {
  /** @type {Map<number, {id: number, part: number}>} */
  const found = new Map();
  for (const { id } of marks) {
    const part = last > 1 ? (id - 1) / (last - 1) : 0;
    found.set(Math.round(part * MARKS_MAX), { id, part });
  }
  return [...found.values()];
}
