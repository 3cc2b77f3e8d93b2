/** Write a definition: findings at their lines as you type, the graph beside it, save, publish, start. */
import { stylesheet } from "../css.js";
import { Loading, Problem } from "../parts/basics.js";
import { html, useEffect, useState } from "../vendor/preact.js";
import { Desk } from "./editor/desk.js";
import { NewDesk } from "./editor/new-desk.js";
import { loadFlow } from "./editor/saving.js";

stylesheet(new URL("./editor.css", import.meta.url));

/** @param {{params: {flow?: string}}} props */
export default function EditorPage({ params: { flow } }) {
  return flow ? html`<${Opened} key=${flow} flow=${flow} />` : html`<${NewDesk} />`;
}

/** @param {{flow: string}} props */
function Opened({ flow }) {
  const [saved, setSaved] = useState(/** @type {import("./editor/saving.js").Saved | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const load = () => {
    setError(null);
    loadFlow(flow).then(setSaved, setError);
  };
  useEffect(load, [flow]);
  if (error) return html`<div class="page"><${Problem} error=${error} onRetry=${load} /></div>`;
  if (!saved) return html`<${Loading} />`;
  return html`<${Desk} flow=${flow} saved=${saved} onSaved=${setSaved} />`;
}
