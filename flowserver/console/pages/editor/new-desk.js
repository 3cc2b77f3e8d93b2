/** The editor of a flow that does not exist yet: its name, and what it begins with. */
import { Confirm } from "../../parts/basics.js";
import { go, path } from "../../routes.js";
import { may } from "../../store.js";
import { html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { createFlow, useOneAtATime } from "./saving.js";
import { TEMPLATES } from "./templates.js";
import { keepTestsAs } from "./testing.js";
import { Workbench } from "./workbench.js";

const NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,127}$/;

/** The flow that was created here last, until its editor has taken over. */
let made = /** @type {{flow: string, line: number} | null} */ (null);

/** The line of the cursor if the flow was created here just now; else null. @param {string} flow @returns {number | null} */
export function lineOfCreated(flow) {
  const line = made?.flow === flow ? made.line : null;
  made = null;
  return line;
}

export function NewDesk() {
  const [template, setTemplate] = useState(TEMPLATES[0]);
  const [wanted, setWanted] = useState(/** @type {import("./templates.js").Template | null} */ (null));
  const [text, setText] = useState(template.text);
  const [name, setName] = useState("");
  const [created, setCreated] = useState(/** @type {string | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const line = useRef(1);
  const isChanged = text !== template.text;

  useEffect(() => {
    if (created) go(path`/flows/${created}/edit`, {}, { replace: true });
  }, [created]);

  const create = useOneAtATime(async () => {
    setError(null);
    try {
      if (!NAME.test(name)) {
        document.getElementById("flow-name")?.focus();
        throw new Error("Give the flow a name: 1 to 128 letters, digits, _ and -; the first is a letter or _.");
      }
      await createFlow(name, text);
      keepTestsAs(name);
      made = { flow: name, line: line.current };
      setCreated(name);
    } catch (failure) {
      setError(failure);
    }
  });
  const begin = (/** @type {import("./templates.js").Template} */ chosen) => {
    setTemplate(chosen);
    setText(chosen.text);
  };
  const choose = (/** @type {any} */ event) => {
    const chosen = TEMPLATES.find((each) => each.name === event.currentTarget.value) ?? template;
    if (isChanged) setWanted(chosen);
    else begin(chosen);
  };

  return html`<${Workbench} flow=${null} text=${text} onText=${setText} onSave=${create} isUnsaved=${isChanged && !created} error=${error}
    onLine=${(/** @type {number} */ to) => (line.current = to)}
    title=${html`<h1 class="hidden">New flow</h1>
      <label class="row">Name <input id="flow-name" class="mono" value=${name} autocomplete="off" spellcheck=${false} maxlength="128"
        onInput=${(/** @type {any} */ event) => setName(event.currentTarget.value)} /></label>
      <label class="row">Begin with <select value=${template.name} onChange=${choose} title=${template.about}>
        ${TEMPLATES.map((each) => html`<option key=${each.name} value=${each.name}>${each.title}</option>`)}
      </select></label>`}
    actions=${html`<button type="button" class="primary" disabled=${!may("flows.write")} onClick=${create} title="Ctrl S" aria-keyshortcuts="Control+S">Create</button>`}>
    ${wanted &&
    html`<${Confirm} title="Replace your text?" action="Replace" danger onConfirm=${() => begin(wanted)} onClose=${() => setWanted(null)}>
      <p>What you have written is replaced by "${wanted.title}": ${wanted.about}</p>
    <//>`}
  <//>`;
}
