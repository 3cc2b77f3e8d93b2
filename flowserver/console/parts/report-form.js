/** The form that settles a task: approve, reject, or any JSON. */
import { html, useState } from "../vendor/preact.js";
import { Problem } from "./basics.js";
import { objectText } from "./json-object.js";

/** @typedef {"approve" | "reject" | "json"} Mode */

/** @type {[Mode, string][]} */
const MODES = [["approve", "Approve"], ["reject", "Reject"], ["json", "JSON output"]];

/**
 * `onReport` gets the body of the report but its token: `{"output": {…}}`, or `{"error": …, "cause": …}` for a failure.
 * @param {{mode: Mode, onMode: (mode: Mode) => void, onReport: (how: "succeed" | "fail", body: string) => Promise<void>}} props
 */
export function ReportForm({ mode, onMode, onReport }) {
  const [note, setNote] = useState("");
  const [output, setOutput] = useState("{}");
  const [asFailure, setAsFailure] = useState(true);
  const [state, setState] = useState(/** @type {{busy: boolean, error: any}} */ ({ busy: false, error: null }));
  const send = async (/** @type {Event | null} */ event) => {
    event?.preventDefault();
    if (state.busy) return;
    setState({ busy: true, error: null });
    try {
      await onReport(...reportOf(mode, note, output, asFailure));
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(event);
    if (event.key === "Escape") /** @type {HTMLElement} */ (event.target).blur();
  };
  const label = { approve: "Approve and go on", reject: "Reject and go on", json: "Report and go on" }[mode];
  return html`<form class="report" onSubmit=${send} onKeyDown=${onKey}>
    <div class="row" role="group" aria-label="Report">
      ${MODES.map(([value, text]) => html`<button type="button" key=${value} aria-pressed=${String(mode === value)} onClick=${() => onMode(value)}>${text}</button>`)}
    </div>
    ${mode === "json"
      ? html`<label class="field"><span>Output, a JSON object</span>
          <textarea data-first rows="5" spellcheck=${false} value=${output} onInput=${(/** @type {any} */ event) => setOutput(event.currentTarget.value)}></textarea></label>`
      : html`<label class="field"><span>Note (optional)</span>
          <input data-first value=${note} maxlength="4096" onInput=${(/** @type {any} */ event) => setNote(event.currentTarget.value)} /></label>`}
    ${mode === "reject" && html`<label class="field"><span>Report it as</span>
      <select value=${asFailure ? "error" : "output"} onChange=${(/** @type {any} */ event) => setAsFailure(event.currentTarget.value === "error")}>
        <option value="error">the error Rejected</option>
        <option value="output">output, approved: false</option>
      </select></label>`}
    <p class="muted mono report-preview">${previewOf(mode, note, output, asFailure)}</p>
    <${Problem} error=${state.error} />
    <button type="submit" class=${mode === "reject" ? "danger" : "primary"} disabled=${state.busy}>${label}</button>
  </form>`;
}

/** @param {Mode} mode @param {string} note @param {string} output @param {boolean} asFailure @returns {["succeed" | "fail", string]} */
function reportOf(mode, note, output, asFailure) {
  const said = note.trim();
  if (mode === "json") return ["succeed", `{"output": ${objectText(output.trim() || "{}", "The output")}}`];
  if (mode === "reject" && asFailure) return ["fail", JSON.stringify({ error: "Rejected", ...(said && { cause: said }) })];
  return ["succeed", JSON.stringify({ output: { approved: mode === "approve", ...(said && { note: said }) } })];
}

/** What will be reported, in a line. @param {Mode} mode @param {string} note @param {string} output @param {boolean} asFailure */
function previewOf(mode, note, output, asFailure) {
  try {
    const [how, body] = reportOf(mode, note, output, asFailure);
    const shown = how === "succeed" ? body.slice(body.indexOf(":") + 1, -1).trim() : body;
    return `${how === "succeed" ? "output" : "fails with"} ${shown.length > 200 ? `${shown.slice(0, 200)}…` : shown}`;
  } catch (error) {
    return String(/** @type {Error} */ (error).message);
  }
}
