/** Start a run from the editor. */
import { StartDialog } from "../../parts/start-dialog.js";
import { fieldsOf } from "../../parts/start-fields.js";
import { go, path } from "../../routes.js";
import { api } from "../../store.js";
import { html } from "../../vendor/preact.js";

/**
 * @param {{flow: string, text: string, isUnsaved: boolean, onSave: (() => Promise<unknown>) | null, onClose: () => void}} props
 *   `onSave` null: the caller may not save
 */
export function StartRun({ flow, text, isUnsaved, onSave, onClose }) {
  const note = !isUnsaved
    ? null
    : onSave
      ? html`<p>Your changes are saved first.</p>`
      : html`<p>It runs the definition that is saved, without your changes.</p>`;
  const start = async (/** @type {string} */ input, /** @type {string} */ name) => {
    if (isUnsaved && onSave) await onSave();
    const body = `{"name": ${JSON.stringify(name)}, "input": ${input}}`; // the input keeps all digits of its numbers
    const run = await api(path`v1/flows/${flow}/executions`, { method: "POST", text: body, type: "application/json" });
    setTimeout(() => go(path`/executions/${flow}/${run.name}`)); // once nothing is unsaved
  };
  return html`<${StartDialog} flow=${flow} fields=${fieldsOf(text)} note=${note} action=${isUnsaved && onSave ? "Save and start" : "Start"} onStart=${start} onClose=${onClose} />`;
}
