/** What a person is asked before a schedule is paused, resumed, or runs ticks that have passed. */
import { html, useState } from "../vendor/preact.js";
import { Confirm } from "./basics.js";

/** @param {{title: string, action: string, onNote: (note: string) => Promise<any>, onClose: () => void}} props */
export function NoteDialog({ title, action, onNote, onClose }) {
  const [note, setNote] = useState("");
  return html`<${Confirm} title=${title} action=${action} onConfirm=${() => onNote(note.trim())} onClose=${onClose}>
    <label class="field"><span>Why (optional; others see it)</span>
      <input value=${note} maxlength="256" onInput=${(/** @type {any} */ event) => setNote(event.currentTarget.value)} /></label>
  <//>`;
}

const POLICIES = [
  ["", "the schedule's own policy"],
  ["BufferAll", "one after another (BufferAll)"],
  ["AllowAll", "side by side (AllowAll)"],
  ["Skip", "only while none runs (Skip)"],
];

/** @param {Date} date @returns {string} as an input of the type datetime-local has it */
function local(date) {
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}T${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** @param {{name: string, onRun: (body: Record<string, string>) => Promise<any>, onClose: () => void}} props */
export function BackfillDialog({ name, onRun, onClose }) {
  const now = new Date();
  const [from, setFrom] = useState(local(new Date(now.getTime() - 86_400_000)));
  const [to, setTo] = useState(local(now));
  const [overlap, setOverlap] = useState("BufferAll");
  const run = () => {
    const [startTime, endTime] = [new Date(from), new Date(to)].map((date) => date.toISOString());
    return onRun({ startTime, endTime, ...(overlap && { overlap }) });
  };
  return html`<${Confirm} title=${`Backfill ${name}`} action="Run the ticks" onConfirm=${run} onClose=${onClose}>
    <p>The ticks of a range that has passed run as if they were due now, both ends included. Ticks that have run already run no second time.</p>
    <div class="row">
      <label class="field"><span>From, local time</span><input type="datetime-local" required value=${from} onInput=${(/** @type {any} */ event) => setFrom(event.currentTarget.value)} /></label>
      <label class="field"><span>To</span><input type="datetime-local" required value=${to} onInput=${(/** @type {any} */ event) => setTo(event.currentTarget.value)} /></label>
    </div>
    <label class="field"><span>If an execution of it runs</span>
      <select value=${overlap} onChange=${(/** @type {any} */ event) => setOverlap(event.currentTarget.value)}>
        ${POLICIES.map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}
      </select></label>
  <//>`;
}
