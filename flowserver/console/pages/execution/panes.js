/** Graph, timeline and scrubber as the page uses them. */
import { html, useCallback, useEffect, useMemo, useState } from "../../vendor/preact.js";
import { Graph } from "../../parts/graph.js";
import { Scrubber } from "../../parts/scrubber.js";
import { Timeline } from "../../parts/timeline.js";
import { api, mayRead, useQuery } from "../../store.js";
import { go, href, path } from "../../routes.js";
import { Empty, Loading, Problem } from "../../parts/basics.js";

/** @typedef {import("./run.js").Run} Run */
/** @typedef {import("./run.js").StepSummary} StepSummary */

/**
 * @param {{graph: {data: any, error: any}, states: Map<string, StepSummary> | null, selected: string | null, onSelect: (path: string) => void}} props
 */
export function GraphPane({ graph, states, selected, onSelect }) {
  if (!mayRead("v1/definitions/graph")) return html`<p class="muted">The graph needs a key with the permission <code>flows.read</code>.</p>`;
  if (graph.error) return html`<${Problem} error=${graph.error} />`;
  if (!graph.data) return html`<${Loading} />`;
  const hrefOf = (/** @type {any} */ node) => (node.call?.flow ? href(path`/flows/${node.call.flow}`) : null);
  const open = (/** @type {any} */ node) => (node.call?.flow ? go(path`/flows/${node.call.flow}`) : onSelect(node.path));
  return html`<${Graph} graph=${graph.data} states=${states} selected=${selected} onSelect=${onSelect} onOpen=${open} hrefOf=${hrefOf} />`;
}

/**
 * @param {{run: Run, summary: import("./run.js").Summary | null, execution: any, at: number | null, graph: any, selected: string | null,
 *   onSelect: (path: string) => void}} props
 */
export function TimelinePane({ run, summary, execution, at, graph, selected, onSelect }) {
  const load = useCallback(
    /** @type {import("../../parts/timeline.js").LoadIterations} */
    ((step, query, signal) => api(`${run.apiPath}/iterations`, { query: { step, at, ...query }, signal })),
    [run, at],
  );
  if (!summary) return html`<${Loading} />`;
  if (!summary.steps.length) return html`<${Empty}>No step was entered yet.<//>`;
  return html`<${Timeline} steps=${summary.steps} nodes=${graph?.nodes} from=${execution.startedTime} to=${execution.stoppedTime}
    now=${at === null ? null : summary.lastEventTime} selected=${selected} onSelect=${onSelect} loadIterations=${load} revision=${summary.lastEventId}
    allSteps=${run.now.value?.steps} />`;
}

const FAILURES = ["StepFailed", "TaskFailed", "TaskTimedOut", "TaskSubmitFailed", "ExecutionFailed"];
const MARKS_MAX = 1_000;

/**
 * @param {{run: Run, at: number | null, summary: import("./run.js").Summary | null, isBehind: boolean,
 *   onChange: (at: number | null) => void}} props
 */
export function ScrubberPane({ run, at, summary, isBehind, onChange }) {
  const failures = useQuery(`${run.apiPath}/events`, { type: FAILURES, order: "desc", limit: 200 });
  const [later, setLater] = useState(/** @type {{id: number, label: string}[]} */ ([]));
  useEffect(() => {
    const listen = (/** @type {any[]} */ events) => {
      const found = events.filter((event) => FAILURES.includes(event.type));
      if (found.length) setLater((before) => [...before, ...found.map(markOf)].slice(-MARKS_MAX));
    };
    run.listeners.add(listen);
    return () => void run.listeners.delete(listen);
  }, [run]);
  const marks = useMemo(() => {
    const all = [...(failures.data?.events ?? []).map(markOf), ...later];
    return [...new Map(all.map((mark) => [mark.id, mark])).values()];
  }, [failures.data, later]);
  return html`<${Scrubber} last=${run.lastEventId.value} value=${at} time=${summary?.lastEventTime} isBehind=${isBehind} marks=${marks}
    live=${run.execution.value?.status === "Running"} onChange=${onChange} />`;
}

/** @param {any} event */
const markOf = (event) => ({ id: event.eventId, label: event.stepName });
