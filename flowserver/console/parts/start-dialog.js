/** A dialog that asks with what to start a run. */
import { html, useState } from "../vendor/preact.js";
import { Confirm, Tabs } from "./basics.js";
import { Editor } from "./editor.js";
import { objectText } from "./json-object.js";
import { inputText, StartFields } from "./start-fields.js";

/** Inputs that were given in this tab, by flow, so that the next start begins with the last one. @type {Map<string, string>} */
const given = new Map();

/**
 * `onStart` gets the input as the text of a JSON object, exactly as it was written, and the name: the same one however
 * often the start is tried. With `fields`, paths into the input, a form is offered besides JSON.
 * @param {{flow: string, fields?: string[][], note?: any, action?: string, onStart: (input: string, name: string) => Promise<void>, onClose: () => void}} props
 */
export function StartDialog({ flow, fields = [], note, action = "Start", onStart, onClose }) {
  const [input, setInput] = useState(given.get(flow) ?? "{\n  \n}");
  const [name, setName] = useState("");
  const [made] = useState(madeName);
  const [form, setForm] = useState(fields.length && !given.has(flow) ? "form" : "json");
  const [values, setValues] = useState(/** @type {Record<string, string>} */ ({}));
  const change = (/** @type {string} */ to) => {
    if (to === "json" && Object.values(values).some(Boolean)) setInput(inputText(fields, values));
    setForm(to);
  };
  const start = async () => {
    const text = form === "form" ? inputText(fields, values) : input;
    given.set(flow, text);
    const used = name.trim() || made;
    try {
      await onStart(objectText(text.trim() || "{}", "The input"), used);
    } catch (/** @type {any} */ error) {
      if (error.status === 0 || error.status >= 500) setName(used); // it may have been started: the same name starts no second one
      throw error;
    }
  };
  return html`<${Confirm} title=${`Start ${flow}`} action=${action} onConfirm=${start} onClose=${onClose} class="start-dialog">
    ${note}
    ${fields.length > 0 && html`<${Tabs} label="Input as" tabs=${[{ value: "form", label: "Form" }, { value: "json", label: "JSON" }]} value=${form} onChange=${change} />`}
    ${form === "form" && html`<${StartFields} fields=${fields} values=${values} onChange=${setValues} />`}
    ${form === "json" && html`<div class="field-box" role="group" aria-label="Input">
      <span class="muted">Input, a JSON object</span>
      <div class="input-editor"><${Editor} text=${input} label="Input" language="json" onChange=${setInput} /></div>
    </div>`}
    <label class="field">
      <span>Name (a name can be used once; the console makes one if this is empty)</span>
      <input value=${name} pattern="[A-Za-z_][A-Za-z0-9_\\-]{0,127}" title="1 to 128 letters, digits, _ and -; the first is a letter or _"
        onInput=${(/** @type {any} */ event) => setName(event.currentTarget.value)} />
    </label>
  <//>`;
}

/** "run-" and 80 random bits */
function madeName() {
  const bytes = crypto.getRandomValues(new Uint8Array(10));
  return `run-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
