/** The server at a glance: counts that lead to lists, what was started and failed, and what needs a look. */
import { html } from "../vendor/preact.js";
import { stylesheet } from "../css.js";
import { onThisServer } from "../commands.js";
import { Copy, Loading, Panel, Problem, Status, Time } from "../parts/basics.js";
import { Icon } from "../parts/icons.js";
import { causeText } from "../parts/json-values.js";
import { Sparkline, spanOf } from "../parts/sparkline.js";
import { Table } from "../parts/table.js";
import { Link, go, path } from "../routes.js";
import { useQuery } from "../store.js";

stylesheet(new URL("./overview.css", import.meta.url));

const EVERY_SECONDS = 5;

/** @typedef {{count: number, atLeast: boolean}} Count */
/** @typedef {[field: string, label: string, status: string, to: string, query: Record<string, string>]} Tile */

/** @type {Tile[]} */
const TILES = [
  ["running", "Running", "Running", "/executions", { status: "running" }],
  ["failed", "Failed today", "Failed", "/executions", { status: "failed", ended: "today" }],
  ["timedOut", "Timed out today", "TimedOut", "/executions", { status: "timedout", ended: "today" }],
  ["waitingTasks", "Waiting for people", "WaitingForToken", "/waiting", {}],
  ["waitingForRedrive", "For a redrive", "WaitingForRedrive", "/executions", { status: "redrive" }],
  ["late", "Late", "Waiting", "/executions", { status: "running" }],
  ["parked", "Parked", "Parked", "/executions", { status: "parked" }],
  ["parkedInvocations", "Parked invocations", "Parked", "/server", {}],
  ["overdueSchedules", "Overdue schedules", "Waiting", "/schedules", {}],
  ["flows", "Flows", "", "/flows", {}],
];

/** What each kind of item is called, and the status that has its shape. @type {Record<string, [string, string]>} */
const KINDS = {
  parked: ["Parked", "Parked"],
  late: ["Late", "Waiting"],
  overdueSchedule: ["Overdue schedule", "Waiting"],
  missedRun: ["Missed run", "Failed"],
  parkedInvocation: ["Parked invocation", "Parked"],
  waitingForRedrive: ["For redrive", "WaitingForRedrive"],
  failed: ["Failed", "Failed"],
  timedOut: ["Timed out", "TimedOut"],
  waitingTask: ["Waits for a report", "WaitingForToken"],
};

/** The browser's midnight. */
const midnight = () => new Date(new Date().setHours(0, 0, 0, 0)).toISOString();

/** @param {Count} count */
export const shown = ({ count, atLeast }) => `${atLeast ? "≥ " : ""}${count.toLocaleString()}`;

export default function Overview() {
  const { data, error, reload } = useQuery("v1/overview", { failedSince: midnight() }, { everySeconds: EVERY_SECONDS, keep: true });
  if (!data) return html`<div class="page"><h1 class="hidden">Overview</h1>${error ? html`<${Problem} error=${error} onRetry=${reload} />` : html`<${Loading} />`}</div>`;
  const isFresh = data.flows.count === 0 && data.throughput.started.every((/** @type {number} */ count) => !count) && !data.attention.length;
  return html`<div class="page overview">
    <h1 class="hidden">Overview</h1>
    <${Problem} error=${error} onRetry=${reload} />
    ${data.newWorkRefused && html`<p class="notice" role="alert"><b>New work is refused</b>: ${data.newWorkRefused}.</p>`}
    ${data.deletionsPaused && html`<p class="notice" role="alert"><b>Deletions by age pause</b>: ${data.deletionsPaused}.</p>`}
    ${isFresh ? html`<${FirstSteps} />` : html`<${Counts} data=${data} /><${Throughput} series=${data.throughput} /><${NeedsALook} items=${data.attention} />`}
    <p class="muted as-of">As of <${Time} at=${data.time} />. ${isFresh ? "" : "Counts end at 10,000."}</p>
  </div>`;
}

/** @param {{data: any}} props */
function Counts({ data }) {
  return html`<nav class="tiles" aria-label="Counts">
    ${TILES.map(([field, label, status, to, query]) => {
      const count = /** @type {Count} */ (data[field]);
      const some = count.count > 0 || count.atLeast;
      return html`<${Link} key=${field} to=${to} query=${query} class=${some ? "tile" : "tile none"}>
        <span class="count number">${shown(count)}</span>
        <span class="what">${status ? html`<${Status} status=${some ? status : "NotReached"} label="" />` : html`<${Icon} name=${field} size=${16} />`}<span>${label}</span></span>
      <//>`;
    })}
  </nav>`;
}

/** @param {{series: import("../parts/sparkline.js").Series}} props */
function Throughput({ series }) {
  const total = (/** @type {number[]} */ counts) => counts.reduce((sum, count) => sum + count, 0);
  const since = { since: series.fromTime };
  const isCut = Date.parse(series.completeFrom) > Date.parse(series.fromTime);
  const actions = html`<span class="legend"><${Link} class="key-started" to="/executions" query=${since}>${total(series.started).toLocaleString()} started<//>
    <${Link} class="key-failed" to="/executions" query=${{ status: "failed", ended: series.fromTime }}>${total(series.failed).toLocaleString()} failed<//></span>`;
  return html`<${Panel} title=${`Started and failed, ${spanOf(series)}`} actions=${actions}>
    <div class="body">
      <${Sparkline} series=${series} onOpen=${(/** @type {string} */ from, /** @type {string} */ to) => go("/executions", { since: from, until: to })} />
      ${isCut && html`<p class="muted">More was started than is counted here: the bars are complete from <${Time} at=${series.completeFrom} /> on.</p>`}
    </div>
  <//>`;
}

/** Where an item is looked at. @param {any} item @returns {[string, Record<string, string>?]} */
function linkOf(item) {
  if (item.kind === "waitingTask") return ["/waiting", { flow: item.flowName, execution: item.name }];
  if (item.kind === "overdueSchedule" || item.kind === "missedRun") return ["/schedules", { schedule: `${item.flowName}/${item.name}` }];
  if (item.kind === "parkedInvocation") return ["/server"];
  return [path`/executions/${item.flowName}/${item.name}`];
}

/** @param {any} item */
const titleOf = (item) => (item.kind === "parkedInvocation" ? `${item.function} ${item.name}` : `${item.flowName}/${item.name}`);

/** @param {{item: any}} props */
function Why({ item }) {
  const why = [item.error, causeText(item.text)].filter(Boolean).join(" · ");
  return html`<span title=${why}>${item.step && html`<code>${item.step}</code> `}<bdi class="muted">${why}</bdi></span>`;
}

const COLUMNS = [
  { key: "kind", title: html`<span class="narrow-hidden">What</span>`, width: "156px", narrow: "24px", render: (/** @type {any} */ item) => html`<${Status} status=${KINDS[item.kind]?.[1] ?? item.kind} label=${KINDS[item.kind]?.[0] ?? item.kind} />` },
  { key: "name", title: "Where", width: "minmax(120px, 1.2fr)", render: (/** @type {any} */ item) => {
    const [to, query] = linkOf(item);
    return html`<${Link} to=${to} query=${query} class="mono" title=${titleOf(item)} tabindex="-1">${titleOf(item)}<//>`;
  } },
  { key: "why", title: "Why", width: "minmax(0, 2fr)", narrow: false, render: (/** @type {any} */ item) => html`<${Why} item=${item} />` },
  { key: "since", title: "Since", width: "132px", narrow: "104px", align: /** @type {const} */ ("right"), render: (/** @type {any} */ item) => html`<${Time} at=${item.since} />` },
];

/** @param {{items: any[]}} props */
function NeedsALook({ items }) {
  const keyed = items.map((item, index) => ({ ...item, key: `${item.kind}-${index}` }));
  return html`<${Panel} title="Needs a look">
    <${Table} label="Needs a look" columns=${COLUMNS} rows=${keyed} keyOf=${(/** @type {any} */ item) => item.key} done=${true}
      onOpen=${(/** @type {any} */ item) => go(...linkOf(item))} empty=${html`<p class="empty">Nothing failed in the last 24 hours, and nothing is late, parked or waiting for people.</p>`} />
  <//>`;
}

/** What to do first on a fresh server. @type {[string, string][]} */
const STEPS = [
  ["Check a definition", "flowserver validate flow.yaml"],
  ["Host its functions", onThisServer("flowserver functions serve functions.yaml")],
  ["Deploy the flow", onThisServer("flowserver apply flow.yaml")],
  ["Start it, and watch its steps", onThisServer("flowserver start FLOW --input '{}' --wait")],
];

function FirstSteps() {
  return html`<${Panel} title="This server has no flows yet">
    <div class="body">
      <ol class="first-steps">
        ${STEPS.map(([what, command]) => html`<li key=${command}><span>${what}</span><span class="command"><code>${command}</code><${Copy} text=${command} /></span></li>`)}
      </ol>
      <p>Or <${Link} to="/flows/-/new">write a flow here<//>: it is checked as you type.</p>
    </div>
  <//>`;
}
