/** Published versions, the newest first, with the aliases that choose them. */
import { onThisServer } from "../../commands.js";
import { Empty, Loading, Panel, Problem, Time } from "../../parts/basics.js";
import { Link, path } from "../../routes.js";
import { may } from "../../store.js";
import { html } from "../../vendor/preact.js";

/**
 * @param {{flow: string, answer: {data: any, error: any, reload: () => void}, aliases: any[], chosen: string | null,
 *   onPublish: () => void}} props
 */
export function Versions({ flow, answer, aliases, chosen, onPublish }) {
  const rows = answer.data?.versions ?? [];
  return html`<${Panel} class="list" title="Versions" actions=${may("versions.publish") && html`<button type="button" class="small" onClick=${onPublish}>Publish…</button>`}>
    <${Problem} error=${answer.error} onRetry=${answer.reload} />
    ${!answer.data && !answer.error && html`<${Loading} />`}
    ${answer.data && !rows.length && html`<${Empty} command=${onThisServer(`flowserver versions publish ${flow}`)}>There are no versions: runs use the saved definition. Publish one above, or with:<//>`}
    <ul>
      ${rows.map((/** @type {any} */ row, /** @type {number} */ index) => html`<li key=${row.version} aria-current=${String(row.version) === chosen ? "true" : undefined}>
        <${Link} class="mono" to=${path`/flows/${flow}`} query=${{ version: row.version }} aria-label=${`Version ${row.version}`}>${row.version}<//>
        <span class="grow cut" title=${row.description}>${row.description || html`<span class="muted">no description</span>`}</span>
        ${aliasesOf(aliases, row.version).map((each) => html`<span class="tag mono" key=${each.name} title=${each.name}>${each.name}${each.weight < 100 ? ` ${each.weight} %` : ""}</span>`)}
        <span class="muted"><${Time} at=${row.createdTime} /></span>
        ${rows[index + 1] ? html`<${Link} to=${path`/flows/${flow}`} query=${{ version: row.version, against: rows[index + 1].version }} aria-label=${`diff of version ${row.version}`}>diff<//>` : html`<span class="gap"></span>`}
      </li>`)}
    </ul>
    ${answer.data?.nextToken && html`<p class="muted foot">Older versions: <code>${onThisServer(`flowserver versions list ${flow}`)}</code></p>`}
  <//>`;
}

/** @param {any[]} aliases @param {number} version @returns {{name: string, weight: number}[]} */
function aliasesOf(aliases, version) {
  return aliases.flatMap((alias) => alias.routes.filter((/** @type {any} */ each) => each.version === version && each.weight > 0).map((/** @type {any} */ each) => ({ name: alias.name, weight: each.weight })));
}
