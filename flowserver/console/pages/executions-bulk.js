/** Stop or redrive the executions that are selected. */
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { Dialog, Problem } from "../parts/basics.js";
import { api, changeMany } from "../store.js";
import { path } from "../routes.js";

/**
 * @typedef {{kind: "stop" | "redrive", rows: any[]}} Wish
 * @typedef {import("../store/bulk.js").Progress<any>} Progress
 */

const WORDS = {
  stop: { title: "Stop", doing: "Stopping", done: "stopped", what: "running", action: "Stop" },
  redrive: { title: "Redrive", doing: "Redriving", done: "redriven", what: "unsuccessful", action: "Redrive" },
};

/** Whether an execution can be stopped or redriven. @param {"stop" | "redrive"} kind @param {any} row */
export function isPossible(kind, row) {
  if (kind === "stop") return row.status === "Running";
  return ["Failed", "Stopped", "TimedOut"].includes(row.status) || row.waitingSteps > 0;
}

/** @param {number} count */
const executions = (count) => `${count.toLocaleString()} ${count === 1 ? "execution" : "executions"}`;

/** @param {Wish & {onClose: () => void, onChanged: (rows: any[], failed: any[]) => void}} props `onChanged` gets the rows, and those of them that failed */
export function BulkDialog({ kind, rows, onClose, onChanged }) {
  const possible = rows.filter((row) => isPossible(kind, row));
  const words = WORDS[kind];
  const [progress, setProgress] = useState(/** @type {Progress | null} */ (null));
  const aborting = useRef(new AbortController());
  const asked = useRef({ body: {} });
  useEffect(() => () => aborting.current.abort(), []);

  const run = async (/** @type {any[]} */ items) => {
    setProgress({ done: 0, total: items.length, failed: [] });
    const change = (/** @type {any} */ row) =>
      api(path`v1/flows/${row.flowName}/executions/${row.name}/` + kind, { method: "POST", body: asked.current.body });
    const result = await changeMany(items, change, { signal: aborting.current.signal, onProgress: setProgress });
    onChanged(items, result.failed.map(({ item }) => item));
  };
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    const given = Object.fromEntries([...form].filter(([, value]) => value !== ""));
    // One token for the whole change: trying the rest again redrives nothing twice.
    asked.current = { body: kind === "redrive" ? { ...given, clientToken: newToken() } : given };
    run(possible);
  };
  const title = `${words.title} ${executions(possible.length)}`;
  return html`<${Dialog} title=${title} onClose=${onClose}>
    ${progress
      ? html`<${Outcome} words=${words} progress=${progress} onAbort=${() => aborting.current.abort()} isAborted=${aborting.current.signal.aborted}
          onClose=${onClose} onAgain=${() => run(progress.failed.map(({ item }) => item))} />`
      : html`<form onSubmit=${submit}>
          ${possible.length < rows.length && html`<p class="muted">${executions(rows.length - possible.length)} of the selection ${rows.length - possible.length === 1 ? "is" : "are"} left out: not ${words.what}.</p>`}
          <${Names} rows=${possible} />
          ${kind === "stop" ? html`<${StopFields} />` : html`<${RedriveFields} />`}
          <footer>
            <button type="button" onClick=${onClose}>Cancel</button>
            <button type="submit" class=${kind === "stop" ? "danger" : "primary"} disabled=${!possible.length}>${words.action}</button>
          </footer>
        </form>`}
  <//>`;
}

function newToken() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {{rows: any[]}} props */
function Names({ rows }) {
  const first = rows.slice(0, 5);
  return html`<ul class="bulk-names mono">
    ${first.map((row) => html`<li key=${row.id} class="cut">${row.flowName}/${row.name}</li>`)}
    ${rows.length > first.length && html`<li class="muted">and ${(rows.length - first.length).toLocaleString()} more</li>`}
  </ul>`;
}

function StopFields() {
  return html`<p>A stop is for good. A flow that waits for one of them can catch the error.</p>
    <label class="field"><span>Error (optional)</span><input name="error" maxlength="128" placeholder="Cancelled" spellcheck=${false} /></label>
    <label class="field"><span>Cause, in words (optional)</span><input name="cause" maxlength="4096" /></label>`;
}

function RedriveFields() {
  return html`<p>Each goes on where it failed or was aborted. What succeeded is kept.</p>
    <label class="field"><span>Definition</span>
      <select name="definition">
        <option value="same">the one that each ended with</option>
        <option value="current">the flow's present one</option>
      </select>
    </label>`;
}

/**
 * @param {{words: typeof WORDS["stop"], progress: Progress, isAborted: boolean, onAbort: () => void, onAgain: () => void,
 *   onClose: () => void}} props
 */
function Outcome({ words, progress, isAborted, onAbort, onAgain, onClose }) {
  const { done, total, failed } = progress;
  const isOver = done === total || isAborted;
  const close = useRef(/** @type {HTMLButtonElement | null} */ (null));
  useEffect(() => close.current?.focus(), [isOver]);
  const label = isOver ? `${executions(done - failed.length)} ${words.done}` : `${words.doing}: ${done} of ${total}`;
  return html`<div>
    <p role="status"><label>${label}${isOver && failed.length ? `, ${failed.length} failed` : ""}
      <progress class="bulk-progress" max=${total} value=${done}></progress></label></p>
    ${failed.length > 0 && html`<ul class="bulk-errors">
      ${failed.slice(0, 100).map(({ item, error }) => html`<li key=${item.id}><span class="mono">${item.flowName}/${item.name}</span><${Problem} error=${error} /></li>`)}
      ${failed.length > 100 && html`<li class="muted">and ${failed.length - 100} more</li>`}
    </ul>`}
    <footer>
      ${!isOver && html`<button type="button" onClick=${onAbort}>Stop here</button>`}
      ${isOver && failed.length > 0 && !isAborted && html`<button type="button" onClick=${onAgain}>Try the ${failed.length} again</button>`}
      <button type="button" class="primary" ref=${close} disabled=${!isOver} onClick=${onClose}>Close</button>
    </footer>
  </div>`;
}
