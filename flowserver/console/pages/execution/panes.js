/** Graph, timeline and scrubber as the page uses them. */
import { html } from "../../vendor/preact.js";
import { Graph } from "../../parts/graph.js";
import { go, href, path } from "../../routes.js";
import { Empty, Loading, Problem, Status, Time, Took } from "../../parts/basics.js";

/** @typedef {import("./run.js").Run} Run */
/** @typedef {import("./run.js").StepSummary} StepSummary */

/**
 * @param {{graph: {data: any, error: any}, states: Map<string, StepSummary>, selected: string | null, onSelect: (path: string) => void}} props
 */
export function GraphPane({ graph, states, selected, onSelect }) {
  if (graph.error) return html`<${Problem} error=${graph.error} />`;
  if (!graph.data) return html`<${Loading} />`;
  const hrefOf = (/** @type {any} */ node) => (node.call?.flow ? href(path`/flows/${node.call.flow}`) : null);
  const open = (/** @type {any} */ node) => (node.call?.flow ? go(path`/flows/${node.call.flow}`) : onSelect(node.path));
  return html`<${Graph} graph=${graph.data} states=${states} selected=${selected} onSelect=${onSelect} onOpen=${open} hrefOf=${hrefOf} />`;
}

/** @param {{run: Run, summary: import("./run.js").Summary | null, execution: any, at: number | null, selected: string | null, onSelect: (path: string) => void}} props */
export function TimelinePane({ summary, selected, onSelect }) {
  if (!summary) return html`<${Loading} />`;
  if (!summary.steps.length) return html`<${Empty}>No step was entered yet.<//>`;
  return html`<ul class="pane-scroll steps">${summary.steps.map((step) => html`<li key=${step.path}>
    <button type="button" class="quiet" aria-pressed=${String(selected === step.path)} onClick=${() => onSelect(step.path)}>
      <${Status} status=${step.status} label="" /><span class="mono">${step.path}</span>
      <span class="muted"><${Time} at=${step.first} /> · <${Took} from=${step.first} to=${step.running ? null : step.last} />${step.attempts > step.entered ? ` ×${step.attempts}` : ""}</span>
    </button></li>`)}</ul>`;
}

/** @param {{run: Run, at: number | null, summary: import("./run.js").Summary | null, onChange: (at: number | null) => void}} props */
export function ScrubberPane({ run, at, summary, onChange }) {
  const last = run.lastEventId.value;
  const shown = at ?? last;
  return html`<div class="execution-scrubber" role="group" aria-label="Scrubber">
    <button type="button" aria-label="One event back" disabled=${shown <= 1} onClick=${() => onChange(shown - 1)}>◂</button>
    <button type="button" aria-label="One event on" disabled=${at === null} onClick=${() => onChange(shown + 1)}>▸</button>
    <input type="range" class="grow" aria-label="Event" min="1" max=${Math.max(1, last)} value=${shown} onInput=${(/** @type {any} */ event) => onChange(Number(event.currentTarget.value))} />
    <span class="number">event ${shown.toLocaleString()} of ${last.toLocaleString()} · <${Time} at=${summary?.lastEventTime} /></span>
  </div>`;
}
