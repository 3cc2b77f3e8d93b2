/** Two runs beside each other: the path that each took, timing, results, inputs and outputs. The URL names both. */
import { stylesheet } from "../css.js";
import { Empty, Loading } from "../parts/basics.js";
import { Icon } from "../parts/icons.js";
import { Link, setQuery } from "../routes.js";
import { useGraph, useQuery } from "../store.js";
import { useKeys } from "../keys.js";
import { html, useEffect, useMemo } from "../vendor/preact.js";
import { hasSameDocuments, withDocuments } from "./execution/documents.js";
import { RunDocuments, StepDocuments } from "./compare/documents.js";
import { rowsOf } from "./compare/rows.js";
import { SecondRun, SideCard, sideOf } from "./compare/sides.js";
import { Steps } from "./compare/steps.js";

stylesheet(new URL("./compare.css", import.meta.url));

/** @typedef {import("./compare/documents.js").Side} Side */

const STEPS_MAX = 1_000;
const LIVE_SECONDS = 2;

/** @param {import("../routes.js").PageProps} props */
export default function Compare({ query }) {
  const [a, b] = [sideOf(query.left), sideOf(query.right)];
  const [left, right] = [useSide(a), useSide(b)];
  const swap = () => setQuery({ left: query.right ?? null, right: query.left ?? null });
  useKeys("Compare", [{ keys: "s", label: "Swap the runs", run: () => (a && b ? swap() : false) }]);
  if (!a) {
    return html`<div class="page"><h1 class="hidden">Compare</h1>
      <${Empty}>Open <${Link} to="/executions">an execution<//> and press Compare, then choose the second one.<//></div>`;
  }
  const to = (/** @type {"left" | "right"} */ side, /** @type {string} */ flow) => (/** @type {string} */ name) => setQuery({ [side]: `${flow}/${name}`, step: null });
  return html`<div class="page compare">
    <h1 class="hidden">Compare ${query.left}${b && ` with ${query.right}`}</h1>
    <div class="compare-sides">
      <${SideCard} letter="A" side=${a} execution=${left.execution} error=${left.error} onChange=${to("left", a.flow)} />
      <button type="button" class="swap" disabled=${!b} onClick=${swap} title="Swap (s)" aria-label="Swap the runs"><${Icon} name="swap" /></button>
      ${b && html`<${SideCard} letter="B" side=${b} execution=${right.execution} error=${right.error} onChange=${to("right", b.flow)} />`}
    </div>
    ${!b && html`<${SecondRun} side=${a} onChoose=${to("right", a.flow)} />`}
    ${b && html`<${Both} a=${a} b=${b} left=${left} right=${right} query=${query} />`}
  </div>`;
}

/** @typedef {{execution: any, steps: any, graph: any, error: any}} Read */

/** What is known of a run; read again while it runs. @param {Side | null} side @returns {Read} */
function useSide(side) {
  const whole = useQuery(side && side.apiPath);
  const isRunning = whole.data?.status === "Running";
  const live = { everySeconds: isRunning ? LIVE_SECONDS : 0 };
  const state = useQuery(side && isRunning ? side.apiPath : null, { documents: false }, live);
  const isSame = !whole.data || !state.data || hasSameDocuments(whole.data, state.data);
  useEffect(() => {
    if (!isSame && !whole.loading) void whole.reload();
  }, [isSame, state.data]);
  const execution = isSame && state.data && whole.data ? withDocuments(state.data, whole.data) : whole.data;
  const steps = useQuery(side && `${side.apiPath}/steps`, { limit: STEPS_MAX }, live);
  const graph = useGraph(whole.data?.definition ?? null);
  return { execution, steps: steps.data, graph: graph.data, error: whole.error ?? state.error ?? steps.error };
}

/** @param {{a: Side, b: Side, left: Read, right: Read, query: Record<string, string>}} props */
function Both({ a, b, left, right, query }) {
  const rows = useMemo(() => {
    if (!left.steps || !right.steps) return null;
    const now = Date.now();
    return rowsOf({ steps: left.steps.steps, graph: left.graph, now }, { steps: right.steps.steps, graph: right.graph, now });
  }, [left.steps, right.steps, left.graph, right.graph]);
  if (left.error || right.error) return null;
  if (!rows || !left.execution || !right.execution) return html`<${Loading} />`;
  const step = query.step ?? null;
  return html`
    <${Steps} rows=${rows} chosen=${step} onChoose=${(/** @type {string | null} */ path) => setQuery({ step: path })}
      isOnlyDifferent=${query.only === "differences"} onOnlyDifferent=${(/** @type {boolean} */ only) => setQuery({ only: only ? "differences" : null })}
      isCut=${Boolean(left.steps.nextToken || right.steps.nextToken)} />
    ${step && html`<${StepDocuments} key=${step} path=${step} a=${a} b=${b} onClose=${() => setQuery({ step: null })} />`}
    <${RunDocuments} a=${left.execution} b=${right.execution} tab=${query.tab ?? "input"} onTab=${(/** @type {string} */ tab) => setQuery({ tab })} />
  `;
}
