/** What waits for people: tasks that wait for a report, the oldest first, and the form that reports on them. */
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { stylesheet } from "../css.js";
import { useKeys } from "../keys.js";
import { onThisServer } from "../commands.js";
import { Copy, Empty, Loading, Problem, Time } from "../parts/basics.js";
import { JsonTree } from "../parts/json-tree.js";
import { ReportForm } from "../parts/report-form.js";
import { Facts, Side, Split } from "../parts/side.js";
import { Table } from "../parts/table.js";
import { Link, path, setQuery } from "../routes.js";
import { api, may, usePages, useQuery } from "../store.js";

stylesheet(new URL("./waiting.css", import.meta.url));

const EVERY_SECONDS = 10;
const FIRST = 100;

/** Names it in the URL, where its token must not be: who has that may report. @param {any} task */
const keyOf = (task) => `${task.flowName}/${task.executionName}/${task.enteredEventId}`;

/** @param {any} task */
const tokenOf = (task) => task.taskToken;

const COLUMNS = [
  { key: "execution", title: "Execution", width: "minmax(0, 1.4fr)", render: (/** @type {any} */ task) => html`<span class="mono" title=${`${task.flowName}/${task.executionName}`}>${task.flowName}/${task.executionName}</span>` },
  { key: "step", title: "Step", width: "minmax(0, 1fr)", render: (/** @type {any} */ task) => html`<code title=${task.stepName}>${task.stepName}</code>` },
  { key: "since", title: "Waits since", width: "132px", narrow: "96px", align: /** @type {const} */ ("right"), render: (/** @type {any} */ task) => html`<${Time} at=${task.enteredTime} />` },
  { key: "due", title: "Times out", width: "132px", narrow: false, align: /** @type {const} */ ("right"), render: (/** @type {any} */ task) => html`<${Time} at=${task.dueTime} />` },
];

/** @param {import("../routes.js").PageProps} props */
export default function Waiting({ query }) {
  const wanted = { flow: query.flow, execution: query.flow && query.execution };
  const list = usePages("v1/tasks", { ...wanted, limit: FIRST }, "tasks");
  const latest = useQuery("v1/tasks", { ...wanted, limit: FIRST }, { everySeconds: EVERY_SECONDS });
  const [settled, setSettled] = useState(/** @type {Set<string>} */ (new Set()));
  const tasks = list.rows.filter((task) => !settled.has(task.taskToken));
  const chosen = tasks.find((task) => query.task ? keyOf(task) === query.task : false) ?? (query.execution ? tasks[0] : undefined);
  const { fresh, isGone } = compare(list, latest.data, settled);
  const [mode, setMode] = useState(/** @type {import("../parts/report-form.js").Mode} */ ("approve"));
  const form = useRef(/** @type {HTMLElement | null} */ (null));
  const [said, say] = useState("");

  const choose = (/** @type {any} */ task) => {
    setMode((now) => (now === "reject" ? "approve" : now)); // the rejection was meant for the task before
    setQuery({ task: task ? keyOf(task) : null, execution: null });
  };
  const begin = (/** @type {import("../parts/report-form.js").Mode} */ wanted) => {
    if (!may("tasks.report") || !tasks.length) return false;
    if (!chosen) choose(tasks[0]);
    setMode(wanted);
    const focus = () => /** @type {HTMLElement | null} */ (document.querySelector(".report [data-first]"))?.focus();
    focus(); // at once, so that what is typed next is in the note
    requestAnimationFrame(focus);
  };
  useKeys("Waiting", [
    { keys: "a", label: "Approve: note, then Enter", run: () => begin("approve") },
    { keys: "r", label: "Reject: note, then Enter", run: () => begin("reject") },
    { keys: "J", label: "Report a JSON output", run: () => begin("json") },
    { keys: "n", label: "Next task", run: () => (tasks.length ? choose(next(tasks, chosen)) : false) },
    { keys: "p", label: "Task before", run: () => (tasks.length ? choose(next(tasks, chosen, -1)) : false) },
  ]);
  const report = async (/** @type {"succeed" | "fail"} */ how, /** @type {string} */ text) => {
    const token = chosen.taskToken;
    const following = tasks.length > 1 ? next(tasks, chosen) : null;
    const words = `${chosen.flowName}/${chosen.executionName}: ${how === "succeed" ? "success" : "failure"} reported`;
    await api(`v1/tasks/${how}`, { method: "POST", text: withToken(token, text), type: "application/json" });
    setSettled(new Set([...settled, token]));
    say(words);
    choose(following);
  };
  useEffect(() => {
    if (chosen && said) form.current?.focus();
  }, [chosen && keyOf(chosen)]);

  const side = chosen && html`<${Task} key=${keyOf(chosen)} task=${chosen} isGone=${isGone(chosen)} mode=${mode} onMode=${setMode} onReport=${report} onClose=${() => choose(null)} focusRef=${form} />`;
  return html`<div class="page fills waiting">
    <h1 class="hidden">Waiting</h1>
    <div class="row">
      <${FlowFilter} flow=${query.flow} />
      ${query.execution && html`<button type="button" onClick=${() => setQuery({ execution: null })}>Only <span class="mono">${query.execution}</span> ✕</button>`}
      <span class="muted" role="status">${said || (list.loading ? "Reading…" : `${tasks.length.toLocaleString()}${list.done ? "" : "+"} waiting`)}</span>
      ${fresh > 0 && html`<button type="button" onClick=${() => (list.reload(), latest.reload())}>${fresh} new</button>`}
    </div>
    <${Problem} error=${list.error} onRetry=${list.reload} />
    <${Split} side=${side}>
      <section class="panel">
        <${Table} label="Waiting tasks" columns=${COLUMNS} rows=${tasks} keyOf=${keyOf} loading=${list.loading} done=${list.done} current=${chosen && keyOf(chosen)}
          more=${list.paused ? undefined : list.more} onOpen=${choose} isDim=${isGone}
          empty=${!list.error && html`<${Empty} command=${onThisServer("flowserver tasks list")}>Nothing waits for people. A task step with <code>pattern: waitForCallback</code> waits here until its token is reported.<//>`}
          foot=${list.paused && html`<div class="table-foot"><button type="button" onClick=${list.more}>Look further</button></div>`} />
      </section>
    <//>
  </div>`;
}

/**
 * What has come, and what was settled elsewhere, since the list was read; known if the first tasks are all.
 * @param {{rows: any[], loading: boolean}} list @param {any} latest a page @param {Set<string>} settled
 */
function compare(list, latest, settled) {
  const present = new Set((latest?.tasks ?? []).map(tokenOf));
  const isWhole = latest !== undefined && latest.nextToken === null && !list.loading;
  const known = new Set(list.rows.map(tokenOf));
  const fresh = isWhole ? [...present].filter((token) => !known.has(token) && !settled.has(token)).length : 0;
  return { fresh, isGone: (/** @type {any} */ task) => isWhole && !present.has(task.taskToken) };
}

/** The task after (or before) one, in a ring. @param {any[]} tasks @param {any} task @param {number} [step] */
function next(tasks, task, step = 1) {
  const at = task ? tasks.findIndex((each) => keyOf(each) === keyOf(task)) : step > 0 ? -1 : 0;
  return tasks[(at + step + tasks.length) % tasks.length];
}

/** The report with the token, and its output as it was written: integers keep their digits. @param {string} token @param {string} text */
function withToken(token, text) {
  return `{"taskToken": ${JSON.stringify(token)}, ${text.trim().slice(1)}`;
}

/** @param {{flow: string | undefined}} props */
function FlowFilter({ flow }) {
  const { data } = useQuery("v1/flows", { limit: 100 });
  const names = (data?.flows ?? []).map((/** @type {any} */ each) => each.name);
  const apply = (/** @type {any} */ event) => setQuery({ flow: event.currentTarget.value.trim(), task: null, execution: null });
  return html`<label class="row"><span class="muted">Flow</span>
    <input type="search" list="waiting-flows" value=${flow ?? ""} placeholder="all" spellcheck=${false} onChange=${apply} />
    <datalist id="waiting-flows">${names.map((/** @type {string} */ name) => html`<option key=${name} value=${name} />`)}</datalist>
  </label>`;
}

/**
 * @param {{task: any, isGone: boolean, mode: import("../parts/report-form.js").Mode, onMode: (mode: import("../parts/report-form.js").Mode) => void,
 *   onReport: (how: "succeed" | "fail", text: string) => Promise<void>, onClose: () => void, focusRef: any}} props
 */
function Task({ task, isGone, mode, onMode, onReport, onClose, focusRef }) {
  const runPath = path`/executions/${task.flowName}/${task.executionName}`;
  const command = onThisServer(`flowserver tasks succeed ${task.taskToken} --output '{"approved": true}'`);
  const { data, error } = useQuery(path`v1/flows/${task.flowName}/executions/${task.executionName}`);
  return html`<${Side} title=${html`<span ref=${focusRef} tabindex="-1" class="mono">${task.executionName}</span>`} label=${`Task ${task.stepName} of ${task.flowName}/${task.executionName}`} onClose=${onClose} actions=${html`<${Copy} text=${command} label="Copy as command" />`}>
    <${Facts} facts=${[
      ["Flow", html`<${Link} to=${path`/flows/${task.flowName}`}>${task.flowName}<//>`],
      ["Execution", html`<${Link} to=${runPath} query=${{ step: task.stepName }} class="mono">${task.executionName}<//>`],
      ["Step", html`<code>${task.stepName}</code>`],
      ["Waits since", html`<${Time} at=${task.enteredTime} />`],
      ["Times out", task.dueTime && html`<${Time} at=${task.dueTime} />`],
    ]} />
    ${isGone && html`<p class="notice" role="status">It does not wait any more: its step has ended, or another report came first.</p>`}
    ${may("tasks.report") && html`<${ReportForm} mode=${mode} onMode=${onMode} onReport=${onReport} />`}
    ${may("executions.read") && html`<div><h3>Input of the execution</h3>
      <${Problem} error=${error} />
      ${data ? html`<${JsonTree} value=${data.input} root="$input" />` : !error && html`<${Loading} />`}</div>`}
  <//>`;
}
