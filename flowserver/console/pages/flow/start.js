/** Start a run of the flow: with a form of what the definition reads, or JSON; of the saved definition or a version. */
import { StartDialog } from "../../parts/start-dialog.js";
import { fieldsOf } from "../../parts/start-fields.js";
import { go, path } from "../../routes.js";
import { api, useGraph, useQuery } from "../../store.js";
import { html, useState } from "../../vendor/preact.js";

/** @param {{flow: string, definition: string, versions: any[], aliases: any[], onClose: () => void}} props */
export function StartFlow({ flow, definition, versions, aliases, onClose }) {
  const [qualifier, setQualifier] = useState("");
  const number = /^\d+$/.test(qualifier) ? qualifier : String(aliases.find((each) => each.name === qualifier)?.routes[0].version ?? "");
  const version = useQuery(number ? path`v1/flows/${flow}/versions/${number}` : null);
  const used = number ? (version.data?.definition ?? "") : definition;
  const { data: graph } = useGraph(used || null);
  const set = (graph?.nodes ?? []).flatMap((node) => (node.foreach ? [node.foreach.item, node.foreach.index ?? ""] : []));
  const start = async (/** @type {string} */ input, /** @type {string} */ name) => {
    const chosen = qualifier && `, "qualifier": ${JSON.stringify(qualifier)}`;
    const text = `{"name": ${JSON.stringify(name)}${chosen}, "input": ${input}}`; // the input keeps all digits of its numbers
    const run = await api(path`v1/flows/${flow}/executions`, { method: "POST", text, type: "application/json" });
    setTimeout(() => go(path`/executions/${flow}/${run.name}`));
  };
  const choice = versions.length > 0 && html`<label class="field"><span>What it runs</span>
    <select value=${qualifier} onChange=${(/** @type {any} */ event) => setQualifier(event.currentTarget.value)}>
      <option value="">the saved definition</option>
      ${aliases.map((each) => html`<option key=${each.name} value=${each.name}>alias ${each.name}</option>`)}
      ${versions.map((each) => html`<option key=${each.version} value=${each.version}>version ${each.version}</option>`)}
    </select></label>`;
  return html`<${StartDialog} flow=${flow} fields=${fieldsOf(used, set)} note=${choice} onStart=${start} onClose=${onClose} />`;
}
