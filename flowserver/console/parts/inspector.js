/** The step that is selected: what it got, what it did in each attempt, what it gave, why it failed, and where it is defined. */
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { stylesheet } from "../css.js";
import { ofBrowser } from "../memory.js";
import { Copy, Loading, Problem, Status, Time, Took } from "./basics.js";
import { Icon } from "./icons.js";
import { Attempts } from "./inspector-attempts.js";
import { Documents } from "./inspector-documents.js";
import { Cause } from "./inspector-cause.js";
import { JsonTree } from "./json-tree.js";
import { causeText } from "./json-values.js";
import { isMany } from "./step-story.js";

stylesheet(new URL("./inspector.css", import.meta.url));

/** @typedef {import("./step-story.js").Entry} Entry */
/**
 * @typedef {{path: string, error: string | null, cause: string | null, eventId: number}} FailedEntry
 * @typedef {{path: string, summary: any, current: any, node: any, entries: Entry[] | null, failures: FailedEntry[] | null,
 *   event: any, hasOlder: boolean, error: any, until: string | null}} Inspected
 *   `summary`: of the step in all iterations, null if it was not reached; `current`: what it waits for, if it is under way;
 *   `node`: the step in the graph of the definition; `until`: the instant that is shown, null for the present;
 *   `event`: the event that is shown, if it is one of this step
 * @typedef {{step: Inspected, onClose: () => void, onSelect: (path: string) => void, onEvent: (id: number) => void,
 *   onLine: (line: number, end: number) => void, onEvents: (path: string) => void, childLink: (child: string) => any,
 *   actions?: any}} InspectorProps
 */

const WIDTH_KEY = "flowserver.inspector";
const WIDTH_PX = 420;
const WIDTH_MIN = 280;
const WIDTH_STEP = 20;

/** @param {InspectorProps} props */
export function Inspector(props) {
  const { step, onClose, onSelect } = props;
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [width, setWidth] = useState(Number(ofBrowser.get(WIDTH_KEY)) || WIDTH_PX);
  const [at, setAt] = useState(0);
  useEffect(() => setAt(0), [step.path]);
  const resize = (/** @type {number} */ wanted) => {
    const next = Math.round(Math.max(WIDTH_MIN, Math.min(wanted, window.innerWidth * 0.7)));
    setWidth(next);
    ofBrowser.set(WIDTH_KEY, String(next));
  };
  const many = isMany(step.path);
  const entries = step.entries ?? [];
  const entry = entries[entries.length - 1 - at];
  return html`<aside class="inspector panel" aria-label=${`Step ${step.path}`} ref=${box} style=${{ "--width": `${width}px` }}
    onKeyDown=${(/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      event.preventDefault();
      event.stopPropagation();
      onClose();
    }}>
    <${Splitter} width=${width} resize=${resize} box=${box} />
    <header>
      <h2 class="mono" tabindex="-1"><bdi>${step.path}</bdi></h2>
      <${Copy} text=${step.path} />
      <button type="button" class="quiet" aria-label="Close the inspector" title="Close (Esc)" onClick=${onClose}><${Icon} name="close" size=${16} /></button>
    </header>
    <div class="inspector-body">
      <${Problem} error=${step.error} />
      ${many ? html`<${Many} step=${step} onSelect=${onSelect} />` : html`<${Iteration} path=${step.path} onSelect=${onSelect} />`}
      ${!many && !step.entries && !step.error && html`<${Loading} label="Loading the step…" />`}
      ${!many && step.entries && !entry && html`<p class="muted">This step was not reached.</p>`}
      ${!many && entry && html`<${Entered} ...${props} entry=${entry} previous=${entries[entries.length - 2 - at]} at=${at} setAt=${setAt} />`}
      <${DefinedAt} ...${props} />
    </div>
  </aside>`;
}

/** @param {{width: number, resize: (width: number) => void, box: {current: HTMLElement | null}}} props */
function Splitter({ width, resize, box }) {
  const drag = (/** @type {PointerEvent} */ event) => {
    const handle = /** @type {HTMLElement} */ (event.currentTarget);
    if (!handle.hasPointerCapture(event.pointerId)) return;
    resize((box.current?.getBoundingClientRect().right ?? 0) - event.clientX);
  };
  const key = (/** @type {KeyboardEvent} */ event) => {
    const by = { ArrowLeft: WIDTH_STEP, ArrowRight: -WIDTH_STEP }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    resize(width + by);
  };
  return html`<div class="inspector-splitter" role="separator" aria-orientation="vertical" aria-label="Width of the inspector" tabindex="0"
    aria-valuenow=${width} aria-valuemin=${WIDTH_MIN} aria-valuemax="2000" onKeyDown=${key} onPointerMove=${drag} onDblClick=${() => resize(WIDTH_PX)}
    onPointerDown=${(/** @type {PointerEvent} */ event) => /** @type {HTMLElement} */ (event.currentTarget).setPointerCapture(event.pointerId)}></div>`;
}

/** One run through the step. @param {InspectorProps & {entry: Entry, previous: Entry | undefined, at: number, setAt: (at: number) => void}} props */
function Entered(props) {
  const { step, entry, previous, at, setAt, onEvent, childLink, actions } = props;
  const count = step.entries?.length ?? 0;
  const isOpen = entry.status === "Running" || entry.status === "WaitingForRedrive";
  const status = isOpen && at === 0 && step.current ? step.current.status : entry.status;
  const child = [...entry.attempts].reverse().find((each) => each.child)?.child ?? (at === 0 ? step.current?.child : null);
  const isWaiting = isOpen && at === 0 && step.current?.until;
  return html`
    <p class="inspector-status">
      <${Status} status=${status} />
      <span class="muted">${entry.enteredAt && html`<${Time} at=${entry.enteredAt} /> · `}<${Took} from=${entry.enteredAt} to=${entry.endedAt ?? step.until} /></span>
      ${isWaiting && html`<span class="muted">until <${Time} at=${step.current.until} /></span>`}
      ${(count > 1 || step.hasOlder) && html`<${Pager} at=${at} count=${count} hasOlder=${step.hasOlder} setAt=${setAt} />`}
    </p>
    ${entry.error && html`<${Cause} error=${entry.error} cause=${entry.cause} />`}
    ${actions}
    <${Failures} step=${step} onSelect=${props.onSelect} />
    ${child && html`<p>Sub-flow ${childLink(child)}</p>`}
    <${Shown} event=${step.event} />
    <${Attempts} attempts=${entry.attempts} until=${step.until} onEvent=${onEvent} />
    <${Documents} entry=${entry} previous=${previous} />
    <p class="muted"><button type="button" class="quiet link" onClick=${() => onEvent(entry.eventId)}>Event ${entry.eventId}</button>
      ${entry.lastEventId !== entry.eventId && html` to <button type="button" class="quiet link" onClick=${() => onEvent(entry.lastEventId)}>${entry.lastEventId}</button>`}</p>`;
}

let isEventOpen = false;

/** The event that the page is at. @param {{event: any}} props */
function Shown({ event }) {
  if (!event) return null;
  return html`<details class="inspector-event" open=${isEventOpen} onToggle=${(/** @type {any} */ toggled) => void (isEventOpen = toggled.currentTarget.open)}>
    <summary>Event ${event.eventId} <span class="mono">${event.type}</span></summary>
    <${JsonTree} value=${event.detail} root="detail" label=${`Event ${event.eventId}`} />
  </details>`;
}

/** A step that was entered more than once: which time is shown. @param {{at: number, count: number, hasOlder: boolean, setAt: (at: number) => void}} props */
function Pager({ at, count, hasOlder, setAt }) {
  const text = at === 0 ? "last time" : `${at} before the last`;
  return html`<span class="inspector-pager" role="group" aria-label="Which time it was entered">
    <button type="button" class="quiet" aria-label="The time before" disabled=${at >= count - 1} onClick=${() => setAt(at + 1)}>‹</button>
    <span>${text}${hasOlder ? ` of more than ${count}` : ` of ${count}`}</span>
    <button type="button" class="quiet" aria-label="The time after" disabled=${at === 0} onClick=${() => setAt(at - 1)}>›</button>
  </span>`;
}

/** A step in all iterations. @param {{step: Inspected, onSelect: (path: string) => void}} props */
function Many({ step, onSelect }) {
  const [index, setIndex] = useState("0");
  const summary = step.summary;
  const go = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (/^\d{1,9}$/.test(index)) onSelect(step.path.replace(/\[\](?!.*\[\])/, `[${index}]`).replaceAll("[]", "[0]"));
  };
  return html`
    ${summary && html`<p class="inspector-status"><${Status} status=${summary.status} /><span class="muted">entered ${summary.entered.toLocaleString()} times</span></p>
      <p>${countsOf(summary)}</p>`}
    <form class="inspector-iteration" onSubmit=${go}>
      <label>Iteration <input type="number" min="0" value=${index} onInput=${(/** @type {any} */ event) => setIndex(event.currentTarget.value)} /></label>
      <button type="submit">Show</button>
    </form>
    <${Failures} step=${step} onSelect=${onSelect} />`;
}

/** The last failures in the iterations of a step. @param {{step: Inspected, onSelect: (path: string) => void}} props */
function Failures({ step, onSelect }) {
  if (!step.failures?.length) return null;
  return html`<section aria-label="Failed iterations"><h3>Failed</h3><ul class="inspector-list">
    ${step.failures.map((each) => html`<li key=${each.eventId}><button type="button" class="quiet link mono" onClick=${() => onSelect(each.path)}>${each.path}</button>
      <span class="muted cut" title=${causeText(each.cause)}>${each.error}</span></li>`)}
  </ul></section>`;
}

/** @param {any} summary */
function countsOf(summary) {
  const shown = [];
  for (const [name, word] of [["succeeded", "succeeded"], ["failed", "failed"], ["running", "running"], ["waiting", "wait for a redrive"]]) {
    if (summary[name]) shown.push(`${summary[name].toLocaleString()} ${word}`);
  }
  if (summary.attempts > summary.entered) shown.push(`${summary.attempts.toLocaleString()} attempts`);
  return shown.join(" · ");
}

/** Steps to the iterations beside this one. @param {{path: string, onSelect: (path: string) => void}} props */
function Iteration({ path, onSelect }) {
  const found = /^(.*)\[(\d+)\]((?:\.[^[\]]*)*)$/.exec(path);
  if (!found) return null;
  const [, before, number, after] = found;
  const to = (/** @type {number} */ index) => () => onSelect(`${before}[${index}]${after}`);
  return html`<p class="inspector-pager"><button type="button" class="quiet" aria-label="The one before" disabled=${number === "0"} onClick=${to(Number(number) - 1)}>‹</button>
    <span>${before.split(".").pop()} <b class="mono">${number}</b></span>
    <button type="button" class="quiet" aria-label="The next one" onClick=${to(Number(number) + 1)}>›</button></p>`;
}

/** Where it is defined, and its events. @param {InspectorProps} props */
function DefinedAt({ step, onLine, onEvents }) {
  const { node } = step;
  return html`<footer class="inspector-foot">
    ${node && html`<button type="button" class="quiet link" onClick=${() => onLine(node.line, node.endLine)}>Definition line ${node.line}</button>`}
    ${node?.call && html`<code class="cut" title=${node.call.name}>${node.call.name}</code>`}
    <button type="button" class="quiet link" onClick=${() => onEvents(step.path)}>Events of this step</button>
  </footer>`;
}
