/** The keys that work at present. */
import { html } from "./vendor/preact.js";
import { charactersWork, groups, setCharactersWork } from "./keys.js";
import { Dialog } from "./parts/basics.js";

/** @param {{onClose: () => void}} props */
export default function Help({ onClose }) {
  return html`<${Dialog} title="Keys" onClose=${onClose} class="help">
    <section><h3>Characters</h3>
      <label class="row"><input type="checkbox" checked=${charactersWork.value} onChange=${(/** @type {any} */ event) => setCharactersWork(event.currentTarget.checked)} />
        Single characters are keys</label>
    </section>
    ${groups.value.map((group, index) => html`<section key=${index}>
      <h3>${group.title}</h3>
      <dl>${group.list.map((key) => html`<div key=${key.keys}><dt>${shown(key.keys)}</dt><dd>${key.label}</dd></div>`)}</dl>
    </section>`)}
    <section><h3>Dialogs</h3><dl><div><dt><kbd>Esc</kbd></dt><dd>Close</dd></div></dl></section>
  <//>`;
}

/** @param {string} keys */
function shown(keys) {
  return keys.split("|").map((alternative, index) => html`${index > 0 && " or "}${alternative.split(" ").map((key) => html`<kbd>${NAMES[key] ?? key}</kbd> `)}`);
}

/** @type {Record<string, string>} */
const NAMES = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", " ": "Space", Escape: "Esc" };
