/** Aliases, with the versions among which each divides the starts. */
import { onThisServer } from "../../commands.js";
import { Confirm, Empty, Loading, Panel, Problem } from "../../parts/basics.js";
import { path } from "../../routes.js";
import { api, may } from "../../store.js";
import { html, useState } from "../../vendor/preact.js";

/** @typedef {{version: number, weight: number}} Route */
/** @typedef {{name: string, routes: Route[]}} Alias */

/** @param {{flow: string, answer: {data: any, error: any, reload: () => any}, versions: any[]}} props */
export function Aliases({ flow, answer, versions }) {
  const [edited, setEdited] = useState(/** @type {Alias | null} */ (null));
  const rows = /** @type {Alias[]} */ (answer.data?.aliases ?? []);
  const isAllowed = may("aliases.write");
  const blank = () => setEdited({ name: "", routes: [{ version: versions[0]?.version ?? 1, weight: 100 }] });
  return html`<${Panel} class="list" title="Aliases" actions=${isAllowed && versions.length > 0 && html`<button type="button" class="small" onClick=${blank}>New alias…</button>`}>
    <${Problem} error=${answer.error} onRetry=${answer.reload} />
    ${!answer.data && !answer.error && html`<${Loading} />`}
    ${answer.data && !rows.length && html`<${Empty} command=${onThisServer(`flowserver aliases create ${flow}/prod --version ${versions[0]?.version ?? 1}`)}>An alias names the version that starts use, or divides them between two.<//>`}
    <ul>
      ${rows.map((alias) => html`<li key=${alias.name}>
        <span class="mono cut" title=${alias.name}>${alias.name}</span>
        <span class="grow"><${Weights} routes=${alias.routes} /></span>
        ${isAllowed && html`<button type="button" class="small" aria-label=${`Change ${alias.name}`} onClick=${() => setEdited(alias)}>Change…</button>`}
      </li>`)}
    </ul>
    ${edited && html`<${Edit} flow=${flow} alias=${edited} versions=${versions} onDone=${answer.reload} onClose=${() => setEdited(null)} />`}
  <//>`;
}

/** @param {{routes: Route[]}} props */
function Weights({ routes }) {
  const used = routes.filter((each) => each.weight > 0);
  return html`<span class="weights" role="img" aria-label=${used.map((each) => `version ${each.version}: ${each.weight} %`).join(", ")}>
    ${used.map((each) => html`<span key=${each.version} class="weight mono" style=${{ flexGrow: each.weight }}>${each.version}${each.weight < 100 ? ` · ${each.weight} %` : ""}</span>`)}
  </span>`;
}

/** @param {{flow: string, alias: Alias, versions: any[], onDone: () => any, onClose: () => void}} props */
function Edit({ flow, alias, versions, onDone, onClose }) {
  const isNew = alias.name === "";
  const [name, setName] = useState(alias.name);
  const [first, setFirst] = useState(String(alias.routes[0].version));
  const [second, setSecond] = useState(alias.routes[1] ? String(alias.routes[1].version) : "");
  const [share, setShare] = useState(alias.routes[1]?.weight ?? 10);
  const save = async () => {
    const routes = second ? [{ version: Number(first), weight: 100 - share }, { version: Number(second), weight: share }] : [{ version: Number(first), weight: 100 }];
    if (isNew) await api(path`v1/flows/${flow}/aliases`, { method: "POST", body: { name, routes } });
    else await api(path`v1/flows/${flow}/aliases/${alias.name}`, { method: "PATCH", body: { routes } });
    await onDone();
  };
  const numbers = [...new Set([...versions.map((each) => String(each.version)), ...alias.routes.map((each) => String(each.version))])];
  return html`<${Confirm} title=${isNew ? "New alias" : `Change ${alias.name}`} action="Save" onConfirm=${save} onClose=${onClose}>
    ${isNew && html`<label class="field"><span>Name</span><input value=${name} required pattern="[A-Za-z_][A-Za-z0-9_\\-]{0,127}" placeholder="prod" autofocus
      onInput=${(/** @type {any} */ event) => setName(event.currentTarget.value)} /></label>`}
    <label class="field"><span>Version</span><select value=${first} onChange=${(/** @type {any} */ event) => setFirst(event.currentTarget.value)}>
      ${numbers.map((each) => html`<option key=${each} value=${each}>version ${each}</option>`)}</select></label>
    <label class="field"><span>A second version gets some of the starts</span><select value=${second} onChange=${(/** @type {any} */ event) => setSecond(event.currentTarget.value)}>
      <option value="">none</option>${numbers.filter((each) => each !== first).map((each) => html`<option key=${each} value=${each}>version ${each}</option>`)}</select></label>
    ${second && html`<label class="field"><span>of 100 starts, version ${second} gets</span><input type="number" min="0" max="100" required value=${share}
      onInput=${(/** @type {any} */ event) => setShare(Number(event.currentTarget.value))} /></label>`}
    <p class="muted">Executions that run keep their version.</p>
  <//>`;
}
