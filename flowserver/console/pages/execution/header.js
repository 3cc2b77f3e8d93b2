/** What the execution is and how it fares, and what may be done with it. */
import { html, useState } from "../../vendor/preact.js";
import { Confirm, Status, Time, Took } from "../../parts/basics.js";
import { causeText } from "../../parts/json-values.js";
import { useKeys } from "../../keys.js";
import { Link, path } from "../../routes.js";
import { api, may, useQuery } from "../../store.js";
import { ExecutionLink } from "./execution-link.js";
import { CommandDialog } from "./command-dialog.js";
import { RedriveDialog } from "./redrive-dialog.js";
import { StopDialog } from "./stop-dialog.js";
import { stepsAt } from "./summaries.js";

/**
 * @typedef {{run: import("./run.js").Run, execution: any, summary: import("./run.js").Summary | null, at: number | null, graph: any,
 *   onSelect: (path: string) => void, onTab: (tab: string) => void, onLive: () => void}} HeaderProps
 */

/** @param {HeaderProps} props */
export function Header(props) {
  const { run, execution, summary, at, onSelect, onTab, onLive } = props;
  const isNow = at === null;
  const status = isNow ? statusOf(execution) : (summary?.status ?? execution.status);
  const tab = (/** @type {string} */ name, /** @type {string} */ label) => html`<button type="button" class="quiet link" onClick=${() => onTab(name)}>${label}</button>`;
  return html`<header class="panel execution-header">
    <div class="row">
      <h1 class="mono" title=${`${execution.flowName} / ${execution.name}`}><${Link} to=${path`/flows/${execution.flowName}`}>${execution.flowName}<//> / <bdi>${execution.name}</bdi></h1>
      <${Status} status=${status} />
      ${!isNow && html`<span class="execution-past" role="status">Paused by you after event ${at.toLocaleString()}
        <button type="button" onClick=${onLive}>${execution.status === "Running" ? "Back to live" : "Back to the end"}</button></span>`}
      ${isNow && execution.error && html`<span class="execution-error" title=${causeText(execution.cause)}>
        ${execution.failedStep && html`at <button type="button" class="quiet link mono" title=${execution.failedStep} onClick=${() => onSelect(execution.failedStep)}>${execution.failedStep}</button> · `}
        <span class="mono">${execution.error}</span>${execution.cause && html`: <bdi>${causeText(execution.cause).slice(0, 300)}</bdi>`}
      </span>`}
      <span class="grow"></span>
      <${Actions} ...${props} />
    </div>
    ${isNow && execution.parkedError && execution.status === "Running" && html`<p class="execution-parked" role="alert">The server has set it aside: <bdi>${execution.parkedError}</bdi></p>`}
    ${isNow && execution.waitingSteps > 0 && execution.status === "Running" && html`<p class="execution-parked" role="status">
      ${execution.waitingSteps === 1 ? "1 step has failed and waits" : `${execution.waitingSteps.toLocaleString()} steps have failed and wait`} for a redrive.</p>`}
    <div class="execution-facts">
      <span>started <${Time} at=${execution.startedTime} /></span>
      <span>${isNow && execution.stoppedTime === null ? "running for" : "took"} <${Took} from=${execution.startedTime} to=${isNow ? execution.stoppedTime : (summary?.lastEventTime ?? execution.stoppedTime)} /></span>
      <span>${execution.version === null ? "no version" : `version ${execution.version}`}${execution.alias && ` (${execution.alias})`}</span>
      <${StartedBy} execution=${execution} />
      ${execution.redriveCount > 0 && html`<span>redriven ${execution.redriveCount === 1 ? "once" : `${execution.redriveCount} times`}, <${Time} at=${execution.lastRedriveTime} /></span>`}
      ${isNow && html`<${Current} execution=${execution} summary=${summary} onSelect=${onSelect} />`}
      ${isNow && summary?.complete === false && html`<span role="status" class="muted">steps counted up to event ${summary.lastEventId.toLocaleString()} of ${run.lastEventId.value.toLocaleString()}…</span>`}
      ${tab("definition", "definition")} ${tab("input", "input")} ${tab("output", "output")}
    </div>
  </header>`;
}

/** Names that schedules give: their own, and the instant. */
const SCHEDULED = /^(.+)-\d{8}T\d{6}Z$/;

/** The execution or the schedule that has started it. @param {{execution: any}} props */
function StartedBy({ execution }) {
  const { parent, flowName: flow, name } = execution;
  const schedule = SCHEDULED.exec(name)?.[1] ?? null;
  const { data } = useQuery(schedule === null || parent ? null : path`v1/flows/${flow}/schedules/${schedule}`);
  if (parent) return html`<span>for <${ExecutionLink} of=${parent} /></span>`;
  return data ? html`<span>by schedule <${Link} to="/schedules" query=${{ flow }}>${schedule}<//></span>` : null;
}

/** @param {any} execution */
function statusOf(execution) {
  if (execution.status !== "Running") return execution.status;
  if (execution.parkedError) return "Parked";
  return execution.waitingSteps > 0 && execution.currentStepCount === execution.waitingSteps ? "WaitingForRedrive" : "Running";
}

const CURRENT_SHOWN = 3;

/** The steps that it is at. @param {{execution: any, summary: import("./summaries.js").Summary | null, onSelect: (path: string) => void}} props */
function Current({ execution, summary, onSelect }) {
  if (execution.status !== "Running") return null;
  const { shown, count } = stepsAt(execution, summary);
  if (!shown.length) return null;
  const left = count - Math.min(CURRENT_SHOWN, shown.length);
  return html`<span>at ${shown.slice(0, CURRENT_SHOWN).map((/** @type {any} */ each) => html`<button key=${each.path} type="button" class="quiet link mono" onClick=${() => onSelect(each.path)}>
    <${Status} status=${each.status} label="" />${each.path}</button> `)}${left > 0 && html`<span class="muted">and ${left} more</span>`}</span>`;
}

/** @param {HeaderProps} props */
function Actions({ run, execution, graph }) {
  const [open, setOpen] = useState(/** @type {"stop" | "redrive" | "restart" | "command" | null} */ (null));
  const isRunning = execution.status === "Running";
  const canStop = isRunning && may("executions.stop");
  const canRedrive = may("executions.redrive") && (isRunning ? execution.waitingSteps > 0 : execution.status !== "Succeeded");
  const canRestart = isRunning && execution.parkedError !== null && may("executions.restart");
  const show = (/** @type {typeof open} */ what, /** @type {boolean} */ isPossible) => () => (isPossible ? setOpen(what) : false);
  useKeys("Execution: actions", [
    { keys: "S", label: "Stop", run: show("stop", canStop) },
    { keys: "R", label: "Redrive", run: show("redrive", canRedrive) },
    { keys: "C", label: "Copy as command", run: show("command", true) },
  ]);
  const close = () => setOpen(null);
  return html`<div class="row execution-actions">
    ${canRestart && html`<button type="button" class="primary" onClick=${show("restart", true)}>Restart</button>`}
    ${canRedrive && html`<button type="button" class="primary" onClick=${show("redrive", true)}>Redrive…</button>`}
    ${canStop && html`<button type="button" class="danger" onClick=${show("stop", true)}>Stop…</button>`}
    <${Link} class="button" to="/compare" query=${{ left: `${execution.flowName}/${execution.name}` }}>Compare<//>
    <button type="button" onClick=${show("command", true)}>Copy as command</button>
    ${open === "stop" && html`<${StopDialog} run=${run} execution=${execution} onClose=${close} />`}
    ${open === "redrive" && html`<${RedriveDialog} run=${run} execution=${execution} graph=${graph} onClose=${close} />`}
    ${open === "command" && html`<${CommandDialog} execution=${execution} onClose=${close} />`}
    ${open === "restart" && html`<${Confirm} title="Restart" action="Restart" onClose=${close} onConfirm=${async () => {
      await api(`${run.apiPath}/restart`, { method: "POST" });
      await run.reload();
    }}><p>It goes on at the step where the server set it aside. What is done is not done again. If the cause is still there, it is set aside again.</p><//>`}
  </div>`;
}
