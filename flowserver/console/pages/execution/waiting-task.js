/** A step that waits for a report with its task token: a person reports it from here. */
import { html, useState } from "../../vendor/preact.js";
import { Confirm, Copy, Problem } from "../../parts/basics.js";
import { objectText } from "../../parts/json-object.js";
import { api, may } from "../../store.js";

/** @param {{run: import("./run.js").Run, execution: any, step: import("../../parts/inspector.js").Inspected}} props */
export function WaitingTask({ run, execution, step }) {
  const [state, setState] = useState(/** @type {{task: any, error: any, kind: "succeed" | "fail" | null}} */ ({ task: null, error: null, kind: null }));
  if (step.current?.status !== "WaitingForToken" || !may("tasks.report")) return null;
  const open = (/** @type {"succeed" | "fail" | null} */ kind) => async () => {
    try {
      const task = await waitingTask(run, execution, step.path);
      setState({ task, error: task ? null : new Error("This step does not wait any more."), kind: task ? kind : null });
    } catch (error) {
      setState({ task: null, error, kind: null });
    }
  };
  const close = () => setState({ ...state, kind: null });
  return html`<section class="waiting-task" aria-label="Report">
    <p>This step waits for a report with its task token.</p>
    <div class="row">
      <button type="button" class="primary" onClick=${open("succeed")}>Report success…</button>
      <button type="button" class="danger" onClick=${open("fail")}>Report failure…</button>
      ${state.task ? html`<${Copy} text=${state.task.taskToken} label="Copy the token" />` : html`<button type="button" class="quiet" onClick=${open(null)}>Show the token</button>`}
    </div>
    ${state.task && html`<code class="cut" title=${state.task.taskToken}>${state.task.taskToken}</code>`}
    <${Problem} error=${state.error} />
    ${state.kind && html`<${Report} run=${run} task=${state.task} path=${step.path} kind=${state.kind} onClose=${close} />`}
  </section>`;
}

/** The task of the last entry of a step; null if it does not wait. @param {import("./run.js").Run} run @param {any} execution @param {string} path */
async function waitingTask(run, execution, path) {
  const last = await api(`${run.apiPath}/events`, { query: { path, type: "StepEntered", order: "desc", limit: 1 } });
  const entered = last.events[0]?.eventId;
  let nextToken = null;
  do {
    const query = { flow: execution.flowName, execution: execution.name, nextToken };
    const page = await api("v1/tasks", { query });
    const found = page.tasks.find((/** @type {any} */ task) => task.enteredEventId === entered);
    if (found) return found;
    nextToken = page.nextToken;
  } while (nextToken !== null);
  return null;
}

/** @param {{run: import("./run.js").Run, task: any, path: string, kind: "succeed" | "fail", onClose: () => void}} props */
function Report({ run, task, path, kind, onClose }) {
  const [output, setOutput] = useState("{}");
  const [error, setError] = useState("");
  const [cause, setCause] = useState("");
  const isSuccess = kind === "succeed";
  const report = async () => {
    const text = isSuccess
      ? `{"taskToken":${JSON.stringify(task.taskToken)},"output":${objectText(output, "The output")}}`
      : JSON.stringify({ taskToken: task.taskToken, error, cause: cause || null });
    await api(`v1/tasks/${kind}`, { method: "POST", text, type: "application/json" });
    await run.look();
  };
  const value = (/** @type {any} */ event) => event.currentTarget.value;
  return html`<${Confirm} title=${`${isSuccess ? "Report success" : "Report failure"} of ${path}`} action="Report" danger=${!isSuccess} onConfirm=${report} onClose=${onClose}>
    ${isSuccess
      ? html`<label class="field"><span>Output, a JSON object: the result of the step</span>
          <textarea rows="6" spellcheck=${false} value=${output} onInput=${(/** @type {any} */ event) => setOutput(value(event))}></textarea></label>`
      : html`<label class="field"><span>Error, which retry and catch of the step match</span>
          <input required value=${error} onInput=${(/** @type {any} */ event) => setError(value(event))} /></label>
        <label class="field"><span>Cause</span><textarea rows="3" value=${cause} onInput=${(/** @type {any} */ event) => setCause(value(event))}></textarea></label>`}
  <//>`;
}
