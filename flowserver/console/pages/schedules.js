/** The schedules of all flows: when they start next, what they started last, and what a person may do with them. */
import { html, useState } from "../vendor/preact.js";
import { stylesheet } from "../css.js";
import { useKeys } from "../keys.js";
import { onThisServer } from "../commands.js";
import { Confirm, Copy, Empty, Loading, Problem, Status, Time } from "../parts/basics.js";
import { JsonTree } from "../parts/json-tree.js";
import { BackfillDialog, NoteDialog } from "../parts/schedule-dialogs.js";
import { Facts, Side, Split } from "../parts/side.js";
import { Table } from "../parts/table.js";
import { Link, go, path, setQuery } from "../routes.js";
import { api, may, usePages, useQuery } from "../store.js";

stylesheet(new URL("./schedules.css", import.meta.url));

const EVERY_SECONDS = 10;
/** A tick that is due for longer has started nothing. */
const LATE_MS = 10_000;

/** @param {any} row */
const nameOf = (row) => `${row.flowName}/${row.name}`;
/** @param {string} name FLOW/NAME */
const apiPathOf = (name) => {
  const [flow, schedule] = name.split("/");
  return path`v1/flows/${flow}/schedules/${schedule ?? ""}`;
};

/** @param {any} row @returns {[status: string, label: string]} */
function stateOf(row) {
  if (!row.enabled) return ["Stopped", "Paused"];
  if (row.nextTime && Date.parse(row.nextTime) < Date.now() - LATE_MS) return ["Waiting", "Overdue"];
  if (!row.nextTime) return ["NotReached", "Over"];
  return row.waiting ? ["Waiting", `${row.waiting} waiting`] : ["Running", "On"];
}

/** @param {{row: any}} props */
function State({ row }) {
  const [status, label] = stateOf(row);
  if (label === "On") return html`<span class="status tone-ok"><span class="dot" aria-hidden="true"></span><span class="word">On</span></span>`;
  return html`<${Status} status=${status} label=${label} />`;
}

const right = /** @type {const} */ ("right");
const COLUMNS = [
  { key: "state", title: "State", width: "108px", narrow: "84px", render: (/** @type {any} */ row) => html`<${State} row=${row} />` },
  { key: "name", title: "Schedule", width: "minmax(120px, 1.6fr)", render: (/** @type {any} */ row) => html`<span class="mono" title=${nameOf(row)}>${nameOf(row)}</span>` },
  { key: "when", title: "When", width: "minmax(0, 1.2fr)", narrow: false, render: (/** @type {any} */ row) => html`<span title=${`${row.cronExpression} ${row.timeZone}`}><code>${row.cronExpression}</code> <span class="muted">${row.timeZone}</span></span>` },
  { key: "next", title: "Next", width: "128px", narrow: "104px", align: right, render: (/** @type {any} */ row) => html`<${Time} at=${row.enabled ? row.nextTime : null} />` },
  { key: "started", title: "Started", width: "72px", narrow: false, align: right, render: (/** @type {any} */ row) => html`<span class="number">${row.started.toLocaleString()}</span>` },
  { key: "missed", title: "Missed", width: "64px", narrow: false, align: right, render: (/** @type {any} */ row) => html`<span class=${row.missed ? "number tone-fail" : "number muted"}>${row.missed.toLocaleString()}</span>` },
  { key: "skipped", title: "Skipped", width: "64px", narrow: false, align: right, render: (/** @type {any} */ row) => html`<span class="number muted">${row.skipped.toLocaleString()}</span>` },
];

/** @param {import("../routes.js").PageProps} props */
export default function Schedules({ query }) {
  const base = query.flow ? path`v1/flows/${query.flow}/schedules` : "v1/schedules";
  const list = usePages(base, { limit: 200 }, "schedules", { everySeconds: EVERY_SECONDS });
  const name = query.schedule;
  const side = name && html`<${Details} key=${name} name=${name} onChanged=${list.check} />`;
  return html`<div class="page fills schedules">
    <h1 class="hidden">Schedules</h1>
    <div class="row">
      <label class="row"><span class="muted">Flow</span>
        <input type="search" value=${query.flow ?? ""} placeholder="all" spellcheck=${false} pattern="[A-Za-z_][A-Za-z0-9_\\-]*"
          onChange=${(/** @type {any} */ event) => event.currentTarget.validity.valid && setQuery({ flow: event.currentTarget.value.trim(), schedule: null })} /></label>
      <span class="muted" role="status">${list.loading && list.isFirst ? "Reading…" : `${list.rows.length.toLocaleString()}${list.done ? "" : "+"} ${list.rows.length === 1 ? "schedule" : "schedules"}`}</span>
      ${list.fresh > 0 && html`<button type="button" onClick=${list.reload}>${list.fresh} new</button>`}
    </div>
    <${Problem} error=${list.error} onRetry=${list.reload} />
    <${Split} side=${side || null}>
      <section class="panel">
        <${Table} label="Schedules" columns=${COLUMNS} rows=${list.rows} keyOf=${(/** @type {any} */ row) => row.id} loading=${list.loading} done=${list.done}
          current=${list.rows.find((row) => nameOf(row) === name)?.id}
          more=${list.more} onVisible=${list.onVisible} onOpen=${(/** @type {any} */ row) => setQuery({ schedule: nameOf(row) })}
          empty=${!list.error && html`<${Empty} command=${onThisServer("flowserver schedules create FLOW/nightly --cron '0 0 3 * * ?' --timezone Europe/Berlin")}>No flow starts by itself. Create a schedule:<//>`} />
      </section>
    <//>
  </div>`;
}

/** @param {{name: string, onChanged: () => void}} props */
function Details({ name, onChanged }) {
  const { data, error, reload } = useQuery(apiPathOf(name), undefined, { everySeconds: EVERY_SECONDS });
  const [asked, setAsked] = useState(/** @type {"pause" | "resume" | "trigger" | "backfill" | null} */ (null));
  const [started, setStarted] = useState(/** @type {any} */ (null));
  const close = () => setAsked(null);
  const post = async (/** @type {string} */ what, /** @type {any} */ body) => {
    const answer = await api(`${apiPathOf(name)}/${what}`, { method: "POST", body });
    await reload();
    onChanged();
    return answer;
  };
  const ask = (/** @type {"pause" | "resume" | "trigger" | "backfill"} */ what, /** @type {string} */ right) => () => (data && may(right) ? setAsked(what) : false);
  const toggle = data?.enabled ? "pause" : "resume";
  useKeys("Schedule", [
    { keys: "P", label: "Pause or resume it", run: () => ask(toggle, "schedules.write")() },
    { keys: "T", label: "Start it now", run: () => ask("trigger", "schedules.run")() },
    { keys: "B", label: "Run ticks that have passed", run: () => ask("backfill", "schedules.run")() },
  ]);
  const actions = html`
    <button type="button" disabled=${!data || !may("schedules.write")} onClick=${ask(toggle, "schedules.write")}>${toggle === "pause" ? "Pause…" : "Resume…"}</button>
    <button type="button" disabled=${!data || !may("schedules.run")} onClick=${ask("trigger", "schedules.run")}>Start now…</button>
    <button type="button" disabled=${!data || !may("schedules.run")} onClick=${ask("backfill", "schedules.run")}>Backfill…</button>
    <${Copy} text=${onThisServer(`flowserver schedules get ${name}`)} label="Copy as command" />`;
  return html`<${Side} title=${html`<span class="mono">${name}</span>`} label=${`Schedule ${name}`} onClose=${() => setQuery({ schedule: null })} actions=${actions}>
    <${Problem} error=${error} onRetry=${reload} />
    ${started && html`<p role="status">Started <${Link} to=${path`/executions/${started.flowName}/${started.executionName}`} class="mono">${started.executionName}<//></p>`}
    ${data ? html`<${Shown} schedule=${data} />` : !error && html`<${Loading} />`}
    ${(asked === "pause" || asked === "resume") && html`<${NoteDialog} title=${`${asked === "pause" ? "Pause" : "Resume"} ${name}`} action=${asked === "pause" ? "Pause" : "Resume"}
      onNote=${(/** @type {string} */ note) => post(asked, { note })} onClose=${close} />`}
    ${asked === "trigger" && html`<${Confirm} title=${`Start ${name} now`} action="Start" onClose=${close} onConfirm=${async () => setStarted(await post("trigger", {}))}>
      <p>An execution starts as at a tick, paused or not. If one of this schedule runs, the policy <code>${data?.overlap}</code> decides.</p><//>`}
    ${asked === "backfill" && html`<${BackfillDialog} name=${name} onRun=${(/** @type {any} */ body) => post("backfill", body)} onClose=${close} />`}
  <//>`;
}

/** @param {{schedule: any}} props */
function Shown({ schedule }) {
  const { warnings, lastRefusal, nextTimes, queue, recent, payload } = schedule;
  return html`
    ${warnings.map((/** @type {any} */ each) => html`<p key=${each.id} class="notice" role="status">${each.message}</p>`)}
    ${lastRefusal && html`<p class="notice" role="status">The start of <${Time} at=${lastRefusal.time} /> was refused: ${lastRefusal.message} <code>${lastRefusal.code}</code></p>`}
    <${Facts} facts=${[
      ["State", html`<${State} row=${schedule} />`],
      ["Note", schedule.note || null],
      ["Flow", html`<${Link} to=${path`/flows/${schedule.flowName}`}>${schedule.flowName}<//>`],
      ["When", html`<code>${schedule.cronExpression}</code>`],
      ["Time zone", schedule.timeZone],
      ["Runs", schedule.qualifier || null],
      ["If one runs", schedule.overlap],
      ["Pauses itself", schedule.pauseOnFailure ? "when an execution fails" : null],
      ["Starts left", schedule.remainingActions],
      ["Description", schedule.description || null],
      ["Started", schedule.started.toLocaleString()],
      ["Missed, skipped", `${schedule.missed.toLocaleString()}, ${schedule.skipped.toLocaleString()}`],
      ["Last missed", schedule.lastMissed && html`<${Time} at=${schedule.lastMissed.time} /> (${schedule.lastMissed.reason})`],
      ["Last skipped", schedule.lastSkipped && html`<${Time} at=${schedule.lastSkipped.time} /> (${schedule.lastSkipped.reason})`],
    ]} />
    <div><h3>Next times</h3>
      ${nextTimes.length ? html`<ol class="times">${nextTimes.map((/** @type {string} */ at) => html`<li key=${at}><${Time} at=${at} /></li>`)}</ol>` : html`<p class="muted">None.</p>`}</div>
    ${queue.length > 0 && html`<div><h3>Waiting</h3><ul class="rows">${queue.map((/** @type {any} */ each, /** @type {number} */ index) => html`<li key=${index}>${each.kind}
      <span class="end"><${Time} at=${each.time} />${each.until && html` to <${Time} at=${each.until} />`}</span></li>`)}</ul></div>`}
    <div><h3>Last executions</h3>
      ${recent.length ? html`<ul class="rows">${recent.map((/** @type {any} */ run) => html`<li key=${run.executionName}>
        <${Status} status=${run.status ?? "NotReached"} label="" />
        ${run.status ? html`<${Link} class="mono cut" to=${path`/executions/${schedule.flowName}/${run.executionName}`} title=${run.executionName}>${run.executionName}<//>` : html`<span class="mono cut muted" title="deleted">${run.executionName}</span>`}
        <span class="end muted">${run.kind === "tick" ? "" : `${run.kind} `}<${Time} at=${run.startedTime} /></span></li>`)}</ul>`
      : html`<p class="muted">It has started none yet.</p>`}
      ${recent.length > 0 && html`<p><button type="button" onClick=${() => go("/executions", { flow: schedule.flowName, prefix: `${schedule.name}-` })}>Show all</button></p>`}</div>
    <div><h3>Payload</h3><${JsonTree} value=${payload} root="$input.payload" /></div>`;
}
