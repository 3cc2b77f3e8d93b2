/** Redrives an execution: from where it failed or from a step, with another definition, or with an edited input. */
import { html, useEffect, useMemo, useState } from "../../vendor/preact.js";
import { stringifyJson } from "../../exact-json.js";
import { Confirm, Problem } from "../../parts/basics.js";
import { objectText } from "../../parts/json-object.js";
import { api } from "../../store.js";
import { ExecutionLink } from "./execution-link.js";

const PLAN_MS = 250;
const SHOWN = 8;

/** @typedef {{from: string, definition: string, version: string, hasInput: boolean, input: string, children: string}} Wish */

/** The request, as text so that the input keeps the digits of its integers. @param {Wish} wish @param {object} more */
export function requestOf(wish, more) {
  const fields = /** @type {Record<string, any>} */ ({ definition: wish.definition === "version" ? Number(wish.version) : wish.definition, ...more });
  if (wish.from) fields.from = wish.from;
  if (wish.children === "new") fields.children = "new";
  const text = JSON.stringify(fields);
  return wish.hasInput ? `${text.slice(0, -1)},"input":${objectText(wish.input, "The input")}}` : text;
}

/** @param {Wish} wish @returns {string | null} what is wrong with the input */
function faultOf(wish) {
  if (wish.definition === "version" && !/^[1-9]\d*$/.test(wish.version)) return "Give the number of a version.";
  if (!wish.hasInput) return null;
  try {
    objectText(wish.input, "The input");
    return null;
  } catch (error) {
    return /** @type {Error} */ (error).message;
  }
}

/** @param {{run: import("./run.js").Run, execution: any, graph: any, onClose: () => void}} props */
export function RedriveDialog({ run, execution, graph, onClose }) {
  const [wish, setWish] = useState(/** @type {Wish} */ ({ from: "", definition: "same", version: "", hasInput: false, input: "", children: "continue" }));
  const token = useMemo(() => crypto.getRandomValues(new Uint32Array(2)).join("-"), []);
  const fault = faultOf(wish);
  const plan = usePlan(run, fault ? null : requestOf(wish, { dryRun: true }));
  const [error, setError] = useState(/** @type {any} */ (null));
  const change = (/** @type {Partial<Wish>} */ changes) => setWish((now) => ({ ...now, ...changes }));
  const value = (/** @type {any} */ event) => event.currentTarget.value;
  const editInput = async () => {
    if (wish.hasInput) return change({ hasInput: false });
    const path = plan.data?.again?.[0]?.path ?? execution.failedStep;
    setError(null);
    try {
      const input = wish.input || (await inputOf(run, path));
      setWish((now) => (now.from ? now : { ...now, hasInput: true, input }));
    } catch (failure) {
      setError(failure);
    }
  };
  const redrive = async () => {
    if (fault) throw new Error(fault);
    await api(`${run.apiPath}/redrive`, { method: "POST", text: requestOf(wish, { clientToken: token }), type: "application/json" });
    await run.reload();
  };
  const steps = (graph?.lists?.[0]?.nodes ?? []).map((/** @type {number} */ id) => graph.nodes[id].name);
  return html`<${Confirm} title=${`Redrive ${execution.flowName}/${execution.name}`} action="Redrive" onConfirm=${redrive} onClose=${onClose}>
    <label class="field"><span>From</span>
      <select value=${wish.from} onChange=${(/** @type {any} */ event) => change({ from: value(event), ...(value(event) ? { hasInput: false } : {}) })}>
        <option value="">where it ${execution.failedStep ? `failed: ${execution.failedStep}` : "ended"}</option>
        ${steps.map((/** @type {string} */ name) => html`<option key=${name} value=${name}>the step ${name}</option>`)}
      </select></label>
    <label class="field"><span>Definition</span>
      <select value=${wish.definition} onChange=${(/** @type {any} */ event) => change({ definition: value(event) })}>
        <option value="same">the one it ended with</option><option value="current">the flow's present one</option><option value="version">a published version</option>
      </select></label>
    ${wish.definition === "version" && html`<label class="field"><span>Version</span><input inputmode="numeric" value=${wish.version} onInput=${(/** @type {any} */ event) => change({ version: value(event) })} /></label>`}
    ${((plan.data?.children ?? []).length > 0 || wish.children === "new") && html`<label class="field"><span>Sub-flows</span>
      <select value=${wish.children} onChange=${(/** @type {any} */ event) => change({ children: value(event) })}>
        <option value="continue">continue the executions that failed</option><option value="new">start new executions</option>
      </select></label>`}
    ${!wish.from && html`<label class="row"><input type="checkbox" checked=${wish.hasInput} onChange=${editInput} /> Edit the input of the step</label>`}
    <${Problem} error=${error} />
    ${wish.hasInput && html`<label class="field"><span>Input of the step; it replaces what the mappings gave</span>
      <textarea rows="8" spellcheck=${false} value=${wish.input} onInput=${(/** @type {any} */ event) => change({ input: value(event) })}></textarea></label>`}
    ${fault ? html`<p class="execution-fault" role="alert">${fault}</p>` : html`<${Plan} plan=${plan} />`}
  <//>`;
}

/** What the step that runs again got last. @param {import("./run.js").Run} run @param {string | null} path @returns {Promise<string>} */
async function inputOf(run, path) {
  if (!path) return "{}";
  const page = await api(`${run.apiPath}/events`, { query: { path, type: "StepStarted", order: "desc", limit: 1 } });
  return stringifyJson(page.events[0]?.detail.input ?? {}, 2);
}

/** What the server says that a redrive would do. @param {import("./run.js").Run} run @param {string | null} request */
function usePlan(run, request) {
  const [plan, setPlan] = useState(/** @type {{data: any, error: any}} */ ({ data: null, error: null }));
  useEffect(() => {
    if (request === null) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      api(`${run.apiPath}/redrive`, { method: "POST", text: request, type: "application/json", signal: stop.signal }).then(
        (data) => setPlan({ data, error: null }),
        (error) => !stop.signal.aborted && setPlan({ data: null, error }),
      );
    }, PLAN_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [run, request]);
  return plan;
}

/** @param {{plan: {data: any, error: any}}} props */
function Plan({ plan }) {
  const { data, error } = plan;
  if (error) return html`<${Problem} error=${error} />`;
  if (!data) return html`<p class="muted" role="status">Asking what would run again…</p>`;
  if (!data.redrivable) return html`<div class="execution-fault" role="alert">It cannot be redriven so: ${data.reasons.map((/** @type {string} */ each) => html`<p>${each}</p>`)}
    ${data.redriveInstead && html`<p>Redrive <${ExecutionLink} of=${data.redriveInstead} /> instead.</p>`}</div>`;
  const steps = (/** @type {number} */ count) => (count === 1 ? "1 step runs" : `${count.toLocaleString()} steps run`);
  const undone = data.kept.filter((/** @type {any} */ each) => each.undoneBy).map((/** @type {any} */ each) => `${each.step} (by ${each.undoneBy})`);
  return html`<div class="redrive-plan" role="status">
    <p>${steps(data.againCount)} again${data.keptCount ? `, ${data.keptCount.toLocaleString()} kept` : ""}.${data.callsAgainCount ? ` ${data.callsAgainCount === 1 ? "1 call is" : `${data.callsAgainCount.toLocaleString()} calls are`} retried with the same idempotency key.` : ""}</p>
    ${undone.length > 0 && html`<p class="redrive-undone" role="alert">Kept, although undone since: ${undone.join(", ")}.</p>`}
    <ul>${data.again.slice(0, SHOWN).map((/** @type {any} */ each) => html`<li key=${each.path}><code>${each.path}</code> <span class="muted">${each.why}</span></li>`)}
      ${data.againCount > SHOWN && html`<li class="muted">and ${(data.againCount - SHOWN).toLocaleString()} more</li>`}</ul>
    ${(data.children ?? []).length > 0 && html`<p>Sub-flows</p><ul class="redrive-children">${data.children.slice(0, SHOWN).map((/** @type {any} */ each) => html`<li><code>${each.path}</code> <span class="muted">of ${each.parent} ${each.does}</span>
      ${each.child && html` <${ExecutionLink} of=${each.child} />`}${each.reason && html` <span class="muted">${each.reason}</span>`}</li>`)}
      ${data.children.length > SHOWN && html`<li class="muted">and ${(data.children.length - SHOWN).toLocaleString()} more</li>`}</ul>`}
  </div>`;
}
