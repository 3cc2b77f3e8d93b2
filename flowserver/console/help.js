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
    ${distinct(groups.value).map((group, index) => html`<section key=${index}>
      <h3>${group.title}</h3>
      <dl>${group.list.map((key) => html`<div key=${key.keys}><dt>${shown(key.keys)}</dt><dd>${key.label}</dd></div>`)}</dl>
    </section>`)}
    <section><h3>Dialogs</h3><dl><div><dt><kbd>Esc</kbd></dt><dd>Close</dd></div></dl></section>
  <//>`;
}

/** Two lists on a page have the same keys: they are said once. @param {typeof groups.value} all */
function distinct(all) {
  const shape = (/** @type {typeof all[0]} */ group) => JSON.stringify([group.title, group.list.map((key) => [key.keys, key.label])]);
  return [...new Map(all.map((group) => [shape(group), group])).values()];
}

/** @param {string} keys */
function shown(keys) {
  return keys.split("|").map((alternative, index) => html`${index > 0 && " or "}${alternative.split(" ").map((key) => html`<kbd>${NAMES[key] ?? key}</kbd> `)}`);
}

/** @type {Record<string, string>} */
const NAMES = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", " ": "Space", Escape: "Esc" };
