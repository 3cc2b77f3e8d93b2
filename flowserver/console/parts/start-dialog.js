/** A dialog that asks with what to start a run. */
import { html, useState } from "../vendor/preact.js";
import { Confirm } from "./basics.js";
import { Editor } from "./editor.js";

/** Inputs that were given in this tab, by flow, so that the next start begins with the last one. @type {Map<string, string>} */
const given = new Map();

/**
 * `onStart` gets the input as the text of a JSON object, exactly as it was written, and the name ("" for one that the
 * server makes).
 * @param {{flow: string, note?: any, action?: string, onStart: (input: string, name: string) => Promise<void>, onClose: () => void}} props
 */
export function StartDialog({ flow, note, action = "Start", onStart, onClose }) {
  const [input, setInput] = useState(given.get(flow) ?? "{\n  \n}");
  const [name, setName] = useState("");
  const start = () => {
    given.set(flow, input);
    return onStart(objectText(input), name.trim());
  };
  return html`<${Confirm} title=${`Start ${flow}`} action=${action} onConfirm=${start} onClose=${onClose} class="start-dialog">
    ${note}
    <div class="field-box" role="group" aria-label="Input">
      <span class="muted">Input, a JSON object</span>
      <div class="input-editor"><${Editor} text=${input} label="Input" language="json" onChange=${setInput} /></div>
    </div>
    <label class="field">
      <span>Name (a name can be used once; the server makes one if this is empty)</span>
      <input value=${name} pattern="[A-Za-z_][A-Za-z0-9_\\-]{0,127}" title="1 to 128 letters, digits, _ and -; the first is a letter or _"
        onInput=${(/** @type {any} */ event) => setName(event.currentTarget.value)} />
    </label>
  <//>`;
}

/** @param {string} text @returns {string} the text; throws an Error that says why it is no JSON object */
export function objectText(text) {
  if (!text.trim()) return "{}";
  const value = JSON.parse(text);
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error("The input must be a JSON object, such as {}.");
  return text;
}
