/** Stops an execution for good, with an error and a cause. */
import { html, useState } from "../../vendor/preact.js";
import { Confirm } from "../../parts/basics.js";
import { api } from "../../store.js";

/** @param {{run: import("./run.js").Run, execution: any, onClose: () => void}} props */
export function StopDialog({ run, execution, onClose }) {
  const [error, setError] = useState("");
  const [cause, setCause] = useState("");
  const stop = async () => {
    await api(`${run.apiPath}/stop`, { method: "POST", body: { error: error || null, cause: cause || null } });
    await run.reload();
  };
  const value = (/** @type {any} */ event) => event.currentTarget.value;
  return html`<${Confirm} title=${`Stop ${execution.flowName}/${execution.name}`} action="Stop" danger onConfirm=${stop} onClose=${onClose}>
    <p>It ends now. A redrive can let it go on later. A flow that waits for it can catch this error:</p>
    <label class="field"><span>Error</span><input value=${error} maxlength="128" placeholder="none" onInput=${(/** @type {any} */ event) => setError(value(event))} /></label>
    <label class="field"><span>Cause</span><textarea rows="3" value=${cause} placeholder="none" onInput=${(/** @type {any} */ event) => setCause(value(event))}></textarea></label>
  <//>`;
}
