/** One execution: its graph, timeline and events beside each other, the step that is selected, and any moment of its past. */
import { useGraph } from "../store.js";
import { html, useCallback, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { stylesheet } from "../css.js";
import { useKeys } from "../keys.js";
import { Boundary, Loading, Problem, Tabs } from "../parts/basics.js";
import { Inspector } from "../parts/inspector.js";
import { JsonTree } from "../parts/json-tree.js";
import { setQuery } from "../routes.js";
import { Definition } from "./execution/definition.js";
import { EventPane } from "./execution/event-pane.js";
import { ExecutionLink } from "./execution/execution-link.js";
import { Header } from "./execution/header.js";
import { useRun } from "./execution/run.js";
import { useSummary } from "./execution/summary-at.js";
import { useInspected } from "./execution/inspected.js";
import { GraphPane, ScrubberPane, TimelinePane } from "./execution/panes.js";
import { WaitingTask } from "./execution/waiting-task.js";

stylesheet(new URL("./execution.css", import.meta.url));

const WIDE = "(min-width: 1000px)";
const TABS = [
  { value: "graph", label: "Graph" },
  { value: "definition", label: "Definition" },
  { value: "input", label: "Input" },
  { value: "output", label: "Output" },
];
const NARROW_TABS = [TABS[0], { value: "timeline", label: "Timeline" }, { value: "events", label: "Events" }, ...TABS.slice(1)];

/** @param {import("../routes.js").PageProps} props */
export default function ExecutionPage({ params, query }) {
  const { flow, execution: name } = params;
  const run = useRun(flow, name);
  const at = /^[1-9]\d{0,8}$/.test(query.event ?? "") ? Number(query.event) : null;
  const step = query.step || null;
  const execution = run.execution.value;
  const { summary, isBehind } = useSummary(run, at);
  const graph = useGraph(execution?.definition ?? null);
  const states = useMemo(() => summary && new Map(summary.steps.map((each) => [each.path, each])), [summary]);
  const inspected = useInspected(run, step, at, { states, graph: graph.data, execution, until: (at === null ? execution?.stoppedTime : summary?.lastEventTime) ?? null });
  const isWide = useMedia(WIDE);
  const [mark, setMark] = useState(/** @type {[number, number] | null} */ (null));
  const opener = useRef(/** @type {Element | null} */ (null));

  const select = useCallback((/** @type {string} */ path) => {
    if (!document.activeElement?.closest(".inspector")) opener.current = document.activeElement;
    setQuery({ step: path }, { replace: false });
  }, []);
  const close = () => {
    setQuery({ step: null });
    if (opener.current instanceof HTMLElement && opener.current.isConnected) opener.current.focus();
  };
  const goTo = useCallback((/** @type {number | null} */ id) => {
    const isEnd = id !== null && id >= run.lastEventId.peek();
    setQuery({ event: isEnd ? null : id }, { replace: at !== null || isEnd });
  }, [run, at === null]);
  const showEvent = useCallback((/** @type {number} */ id, /** @type {string} */ path) => {
    const isEnd = id >= run.lastEventId.peek();
    setQuery({ event: isEnd ? null : id, ...(path && isWide ? { step: path } : {}) }, { replace: at !== null });
  }, [run, at === null, isWide]);
  const tabs = isWide ? TABS : NARROW_TABS;
  const tab = tabs.some((each) => each.value === query.tab) ? /** @type {string} */ (query.tab) : "graph";
  const setTab = (/** @type {string} */ value) => setQuery({ tab: value === "graph" ? null : value }, { replace: false });
  const showLine = (/** @type {number} */ line, /** @type {number} */ end) => {
    setMark([line, end]);
    if (!isWide) setQuery({ step: null });
    setTab("definition");
  };
  const showEvents = (/** @type {string} */ path) => setQuery({ events: path, ...(isWide ? {} : { tab: "events", step: null }) }, { replace: false });

  const failed = execution?.failedStep ?? null;
  useKeys("Execution", [
    { keys: "f", label: "Go to the step that failed", run: () => (failed ? focusInspector(select, failed) : false) },
    { keys: "i", label: "Go to the inspector", run: () => (step ? focusInspector(select, step) : false) },
    { keys: "l", label: "Back to the end, live", run: () => (at === null ? false : goTo(null)) },
    { keys: ",|<", label: "One event back", run: () => goTo(Math.max(1, (at ?? run.lastEventId.peek()) - 1)) },
    { keys: ".|>", label: "One event on", run: () => (at === null ? false : goTo(at + 1)) },
    { keys: "Escape", label: "Close the inspector", run: () => (step ? close() : false) },
  ]);
  const lastEventId = run.lastEventId.value;
  useEffect(() => {
    if (at !== null && lastEventId > 0 && at > lastEventId) setQuery({ event: null }); // there is no such event
  }, [at, lastEventId]);
  useEffect(() => {
    if (query.tab === "definition" && inspected?.node && !mark) setMark([inspected.node.line, inspected.node.endLine]);
  }, [query.tab, inspected?.node]);

  if (!execution) return html`<div class="page"><${Problem} error=${run.error.value} onRetry=${run.reload} />${!run.error.value && html`<${Loading} />`}</div>`;
  const panes = {
    graph: html`<${GraphPane} graph=${graph} states=${states} selected=${step} onSelect=${select} />`,
    timeline: html`<${TimelinePane} run=${run} summary=${summary} execution=${execution} at=${at} graph=${graph.data} selected=${step} onSelect=${select} />`,
    events: html`<${EventPane} run=${run} step=${query.events ?? ""} type=${query.types ?? ""} at=${at} isNewestFirst=${query.order === "desc"} onEvent=${showEvent} onSelect=${select} summary=${summary} />`,
    definition: html`<${Definition} text=${execution.definition} mark=${mark} />`,
    input: html`<div class="pane-scroll"><${JsonTree} value=${execution.input} root="$input" /></div>`,
    output: html`<div class="pane-scroll">${execution.output === null ? html`<p class="muted">It has given no output.</p>` : html`<${JsonTree} value=${execution.output} root="$" label="Output" />`}</div>`,
  };
  const shown = /** @type {Record<string, any>} */ (panes)[tab];
  const childLink = (/** @type {string} */ child) => html`<${ExecutionLink} of=${child} />`;
  return html`<div class="page fills execution" data-live=${String(at === null && execution.status === "Running")}>
    <${Header} run=${run} execution=${execution} summary=${summary} at=${at} onSelect=${select} onTab=${setTab} graph=${graph.data} onLive=${() => goTo(null)} />
    <${Problem} error=${run.error.value} onRetry=${run.reload} />
    <div class="execution-body">
      <section class="panel execution-main" aria-label="Execution">
        <${Tabs} tabs=${tabs} value=${tab} onChange=${setTab} label="Views of the execution" />
        <div class="pane" role="tabpanel" aria-label=${tab}><${Boundary}>${shown}<//></div>
      </section>
      ${isWide && html`<div class="execution-middle">
        <section class="panel execution-timeline" aria-label="Timeline"><${Boundary}>${panes.timeline}<//></section>
        <section class="panel execution-events" aria-label="Events"><${Boundary}>${panes.events}<//></section>
      </div>`}
      ${inspected && html`<${Boundary}><${Inspector} step=${inspected} onClose=${close} onSelect=${select} onEvent=${goTo} onLine=${showLine} onEvents=${showEvents}
        childLink=${childLink} actions=${at === null && html`<${WaitingTask} run=${run} execution=${execution} step=${inspected} />`} /><//>`}
    </div>
    <${ScrubberPane} run=${run} at=${at} summary=${summary} isBehind=${isBehind} onChange=${goTo} />
  </div>`;
}

/** @param {(path: string) => void} select @param {string} path */
function focusInspector(select, path) {
  select(path);
  requestAnimationFrame(() => requestAnimationFrame(() => /** @type {HTMLElement | null} */ (document.querySelector(".inspector h2"))?.focus()));
}

/** @param {string} wanted a media query @returns {boolean} */
function useMedia(wanted) {
  const list = useMemo(() => matchMedia(wanted), [wanted]);
  const [matches, setMatches] = useState(list.matches);
  useEffect(() => {
    const change = () => setMatches(list.matches);
    list.addEventListener("change", change);
    return () => list.removeEventListener("change", change);
  }, [list]);
  return matches;
}
