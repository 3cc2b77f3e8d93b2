/** What is beside the text: the graph of the last text without errors, perhaps with the path of a test; and the tests. */
import { Empty, Loading, Status, Tabs } from "../../parts/basics.js";
import { html, useEffect, useMemo, useRef, useState } from "../../vendor/preact.js";
import { useTesting } from "./testing.js";
import { Tests } from "./tests.js";

/** @typedef {{id: number, path: string, line: number, endLine: number}} Node */
/** @typedef {import("./testing.js").TestResult} TestResult */
/** @typedef {import("./testing.js").Testing} Testing */

const TABS = [
  { value: "graph", label: "Graph" },
  { value: "tests", label: "Tests" },
];

/** Failures of a test that are shown above its path. */
const FAILURES_SHOWN = 3;

/**
 * @param {{flow: string | null, text: string, graph: any, isOld: boolean, at: number | null, onLine: (line: number) => void}} props
 *   `at`: the step that the cursor is in; `onLine`: a step of the graph, or a line, was chosen
 */
export function Beside({ flow, text, graph, isOld, at, onLine }) {
  const [tab, setTab] = useState("graph");
  const [leads, setLeads] = useState(false); // whether the focus goes to what the tab shows
  const testing = useTesting(flow, text);
  const lead = (/** @type {string} */ to) => {
    setLeads(true);
    setTab(to);
  };
  const show = (/** @type {TestResult} */ test) => {
    testing.choose(test.name);
    lead("graph");
  };
  const led = () => setLeads(false);
  return html`<section class="panel beside" aria-label="Beside the text">
    <${Tabs} tabs=${TABS} value=${tab} onChange=${setTab} label="Beside the text" />
    <div class="shown" role="tabpanel" aria-label=${tab === "graph" ? "Graph" : "Tests"}>
      ${
        tab === "tests"
          ? html`<${Tests} testing=${testing} flow=${flow} graph=${graph} isBack=${leads} onFocused=${led} onLine=${onLine} onTest=${show} />`
          : html`
              ${testing.test && html`<${PathOf} key=${testing.test.name} testing=${testing} isNew=${leads} onFocused=${led} onBack=${() => lead("tests")} />`}
              <${LiveGraph} graph=${graph} isOld=${isOld} at=${at} test=${testing.isOld ? null : testing.test} onLine=${onLine} />
            `
      }
    </div>
  </section>`;
}

/** Whose path the graph shows, and what differed. @param {{testing: Testing, isNew: boolean, onFocused: () => void, onBack: () => void}} props */
function PathOf({ testing: { test, isOld, choose }, isNew, onFocused, onBack }) {
  const back = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useEffect(() => {
    if (isNew) back.current?.focus();
    onFocused();
  }, []);
  if (!test) return null;
  const failures = test.failures.slice(0, FAILURES_SHOWN);
  return html`<div class="path-of">
    <p class="row">
      <span role="status" class="grow">${isOld ? "The text has changed since this test ran: " : "The path of the test "}<strong>${test.name}</strong>, which ${test.outcome}. Its execution:</span>
      <${Status} status=${test.status} />
      <button type="button" ref=${back} onClick=${onBack}>Back to the tests</button>
      <button type="button" onClick=${() => choose(null)}>Clear</button>
    </p>
    ${failures.map((found) => html`<p class="tone-fail">${found.message}</p>`)}
    ${test.steps === null && html`<p class="muted">The tests have made so much data that the server left this path out.</p>`}
  </div>`;
}

/** @param {{graph: any, isOld: boolean, at: number | null, test: TestResult | null, onLine: (line: number) => void}} props */
function LiveGraph({ graph, isOld, at, test, onLine }) {
  const [Graph, setGraph] = useState(/** @type {any} */ (null));
  const [failed, setFailed] = useState(false);
  useEffect(() => void import("../../parts/graph.js").then((module) => setGraph(() => module.Graph), () => setFailed(true)), []);
  const states = useMemo(() => (test?.steps ? new Map(test.steps.map((step) => [step.path, step])) : null), [test]);
  if (!graph) return html`<${Empty}>The graph appears once the text has no errors.<//>`;
  if (failed) return html`<${Empty}>The graph could not be loaded.<//>`;
  if (!Graph) return html`<${Loading} />`;
  return html`
    ${isOld && html`<p class="old" role="status">The text has errors. This is the graph from before.</p>`}
    <div class=${isOld ? "graph faded" : "graph"}>
      <${Graph} graph=${graph} states=${isOld ? null : states} selected=${at} onSelect=${(/** @type {string} */ _path, /** @type {Node} */ node) => onLine(node.line)} />
    </div>
  `;
}

/** The innermost step around a line. @param {{nodes: Node[]} | null} graph @param {number} line @returns {number | null} its id */
export function stepAt(graph, line) {
  return graph?.nodes.findLast((node) => node.line <= line && line <= node.endLine)?.id ?? null;
}
