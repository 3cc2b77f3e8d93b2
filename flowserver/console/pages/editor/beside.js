/** What is beside the text: the graph of the last text without errors, and the place for tests. */
import { Empty, Loading, Tabs } from "../../parts/basics.js";
import { html, useEffect, useState } from "../../vendor/preact.js";

/** @typedef {{id: number, path: string, line: number, endLine: number}} Node */

const TABS = [
  { value: "graph", label: "Graph" },
  { value: "tests", label: "Tests" },
];

/**
 * @param {{graph: any, isOld: boolean, at: number | null, onLine: (line: number) => void}} props
 *   `at`: the step that the cursor is in; `onLine`: a step of the graph was chosen
 */
export function Beside({ graph, isOld, at, onLine }) {
  const [tab, setTab] = useState("graph");
  return html`<section class="panel beside" aria-label="Beside the text">
    <${Tabs} tabs=${TABS} value=${tab} onChange=${setTab} label="Beside the text" />
    <div class="shown" role="tabpanel" aria-label=${tab === "graph" ? "Graph" : "Tests"}>
      ${tab === "tests" ? html`<${Tests} />` : html`<${LiveGraph} graph=${graph} isOld=${isOld} at=${at} onLine=${onLine} />`}
    </div>
  </section>`;
}

/** @param {{graph: any, isOld: boolean, at: number | null, onLine: (line: number) => void}} props */
function LiveGraph({ graph, isOld, at, onLine }) {
  const [Graph, setGraph] = useState(/** @type {any} */ (null));
  const [failed, setFailed] = useState(false);
  useEffect(() => void import("../../parts/graph.js").then((module) => setGraph(() => module.Graph), () => setFailed(true)), []);
  if (!graph) return html`<${Empty}>The graph appears once the text has no errors.<//>`;
  if (failed) return html`<${Empty}>The graph could not be loaded.<//>`;
  if (!Graph) return html`<${Loading} />`;
  return html`
    ${isOld && html`<p class="old" role="status">The text has errors. This is the graph from before.</p>`}
    <div class=${isOld ? "graph faded" : "graph"}>
      <${Graph} graph=${graph} selected=${at} onSelect=${(/** @type {string} */ _path, /** @type {Node} */ node) => onLine(node.line)} />
    </div>
  `;
}

/** The innermost step around a line. @param {{nodes: Node[]} | null} graph @param {number} line @returns {number | null} its id */
export function stepAt(graph, line) {
  return graph?.nodes.findLast((node) => node.line <= line && line <= node.endLine)?.id ?? null;
}

function Tests() {
  return html`<${Empty} command="flowserver validate flow.yaml">
    Tests that run a flow with mocked functions come later. Until then the server checks the text as you type; in CI the same
    check is a command.
  <//>`;
}
