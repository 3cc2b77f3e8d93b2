/** The two runs at the top of the page, and the choice of others. */
import { onThisServer } from "../../commands.js";
import { Empty, Loading, localTime, Panel, Problem, Time, Took } from "../../parts/basics.js";
import { ExecutionStatus } from "../../parts/execution-status.js";
import { Table } from "../../parts/table.js";
import { Link, path } from "../../routes.js";
import { useQuery } from "../../store.js";
import { causeText } from "../../parts/json-values.js";
import { html, useMemo } from "../../vendor/preact.js";

/** @typedef {import("./documents.js").Side} Side */

const LISTED = 50;

/** A run as the URL names it. @param {string | undefined} given `flow/execution` @returns {Side | null} */
export function sideOf(given) {
  const [, flow, name] = /^([^/]+)\/([^/]+)$/.exec(given ?? "") ?? [];
  return flow ? { flow, name, apiPath: path`v1/flows/${flow}/executions/${name}` } : null;
}

/** @param {{letter: "A" | "B", side: Side, execution: any, error: any, onChange: (name: string) => void}} props */
export function SideCard({ letter, side, execution, error, onChange }) {
  const runs = useQuery(path`v1/flows/${side.flow}/executions`, { limit: LISTED }).data?.executions ?? [];
  const isListed = runs.some((/** @type {any} */ run) => run.name === side.name);
  return html`<section class="panel compare-side" aria-label=${`Run ${letter}`}>
    <header>
      <span class="letter letter-${letter}" aria-hidden="true">${letter}</span>
      <h2 class="mono cut"><${Link} to=${path`/executions/${side.flow}/${side.name}`} title=${`${side.flow}/${side.name}`}><bdi>${side.flow}/${side.name}</bdi><//></h2>
      <select aria-label=${`Other run for ${letter}`} value=${side.name} onChange=${(/** @type {any} */ event) => onChange(event.currentTarget.value)}>
        ${!isListed && html`<option value=${side.name}>${side.name}</option>`}
        ${runs.map((/** @type {any} */ run) => html`<option key=${run.id} value=${run.name}>${run.name} · ${run.status} · ${localTime(run.startedTime)}</option>`)}
      </select>
    </header>
    <div class="body">
      <${Problem} error=${error} />
      ${!execution ? !error && html`<${Loading} />` : html`<${Facts} execution=${execution} />`}
    </div>
  </section>`;
}

/** @param {{execution: any}} props */
function Facts({ execution }) {
  const { version, alias, error, cause, failedStep } = execution;
  return html`<div class="facts">
      <${ExecutionStatus} row=${execution} />
      <span>took <${Took} from=${execution.startedTime} to=${execution.stoppedTime} /></span>
      <span>started <${Time} at=${execution.startedTime} /></span>
      <span>${version === null ? "no version" : `version ${version}`}${alias && ` (${alias})`}</span>
      ${execution.redriveCount > 0 && html`<span>redriven ×${execution.redriveCount}</span>`}
    </div>
    ${error && html`<p class="failure">${failedStep && html`at <code>${failedStep}</code>: `}<code>${error}</code>${cause && html` <bdi class="muted">${causeText(cause).slice(0, 300)}</bdi>`}</p>`}`;
}

/** The flow's last runs, to choose the second one from. @param {{side: Side, onChoose: (name: string) => void}} props */
export function SecondRun({ side, onChoose }) {
  const { data, error, reload } = useQuery(path`v1/flows/${side.flow}/executions`, { limit: LISTED });
  const rows = useMemo(() => (data?.executions ?? []).filter((/** @type {any} */ run) => run.name !== side.name), [data, side.name]);
  const columns = useMemo(() => columnsOf(), []);
  const choose = (/** @type {any} */ run) => onChoose(run.name);
  return html`<${Panel} title="Choose the run to compare with" class="list-panel grow">
    <${Problem} error=${error} onRetry=${reload} />
    <${Table} label="Runs of the flow" columns=${columns} rows=${rows} keyOf=${(/** @type {any} */ run) => run.id} loading=${!data && !error} done=${true}
      onOpen=${choose} empty=${data && html`<${Empty} command=${onThisServer(`flowserver start ${side.flow}`)}>This flow has no other run yet.<//>`} />
  <//>`;
}

function columnsOf() {
  return [
    { key: "status", title: "Status", width: "150px", narrow: "110px", render: (/** @type {any} */ run) => html`<${ExecutionStatus} row=${run} />` },
    { key: "name", title: "Name", width: "minmax(140px, 2fr)", narrow: "minmax(0, 1fr)", render: (/** @type {any} */ run) => html`<span class="mono">${run.name}</span>` },
    { key: "started", title: "Started", width: "150px", narrow: /** @type {const} */ (false), render: (/** @type {any} */ run) => html`<${Time} at=${run.startedTime} />` },
    { key: "took", title: "Took", width: "100px", render: (/** @type {any} */ run) => html`<${Took} from=${run.startedTime} to=${run.stoppedTime} />` },
    { key: "error", title: "Error", width: "minmax(0, 1fr)", narrow: /** @type {const} */ (false), render: (/** @type {any} */ run) => html`<span class="mono muted">${run.error ?? ""}</span>` },
  ];
}
