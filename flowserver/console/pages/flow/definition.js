/** The definition with the graph beside it: the one that is saved, or a version; or how two of them differ. */
import { DefinitionText } from "../../parts/definition-text.js";
import { Diff } from "../../parts/diff.js";
import { Copy, Empty, Loading, Panel, Problem, Time } from "../../parts/basics.js";
import { Graph } from "../../parts/graph.js";
import { nodeOf } from "../../parts/graph-walk.js";
import { go, href, Link, path } from "../../routes.js";
import { useGraph, useQuery } from "../../store.js";
import { html, useMemo } from "../../vendor/preact.js";

/** @typedef {import("../../parts/graph-layout.js").GraphNode} GraphNode */

const SAVED = "saved";

/**
 * `version` is the number of the version to show, null for what is saved; `against` what it is compared with.
 * @param {{flow: string, saved: string, version: string | null, published: {data: any, error: any}, against: string | null,
 *   step: string | null, versions: any[], onQuery: (changes: Record<string, string | null>) => void}} props
 */
export function Definition({ flow, saved, version, published, against, step, versions, onQuery }) {
  const text = version === null ? saved : (published.data?.definition ?? null);
  const other = useQuery(against && against !== SAVED ? path`v1/flows/${flow}/versions/${against}` : null);
  const compared = against === SAVED ? saved : (other.data?.definition ?? null);
  const { data: graph, error } = useGraph(text);
  const chosen = useMemo(() => graph && nodeOf(graph, step), [graph, step]);
  const named = (/** @type {string | null} */ each) => (each === null || each === SAVED ? "the saved definition" : `version ${each}`);
  const atLine = (/** @type {number} */ line) => {
    const node = graph?.nodes.findLast((each) => each.line <= line && line <= each.endLine);
    if (node) onQuery({ step: node.path });
  };
  const title = version === null ? "Definition" : html`Version ${version} <span class="muted">published <${Time} at=${published.data?.createdTime} /></span>`;
  return html`<${Panel} class="definition" title=${title} actions=${html`
      ${version !== null && html`<${Link} class="button" to=${path`/flows/${flow}`}>Show the saved one<//>`}
      ${versions.length > 0 && html`<label class="row"><span class="muted">compare with</span>
        <select value=${against ?? ""} onChange=${(/** @type {any} */ event) => onQuery({ against: event.currentTarget.value || null })}>
          <option value="">–</option>
          ${version !== null && html`<option value=${SAVED}>the saved definition</option>`}
          ${versions.filter((each) => String(each.version) !== version).map((each) => html`<option key=${each.version} value=${each.version}>version ${each.version}</option>`)}
        </select></label>`}
      ${text !== null && html`<${Copy} text=${text} label="Copy" />`}`}>
    <${Problem} error=${published.error ?? other.error} />
    ${against !== null && text !== null && compared !== null
      ? html`<div class="compared"><${Diff} ...${sides(against, compared, version, text, named)} /></div>`
      : html`<div class="both">
          <div class="text">${text === null ? !published.error && html`<${Loading} />` : html`<${DefinitionText} text=${text} marked=${chosen && [chosen.line, chosen.endLine]} onLine=${atLine} />`}</div>
          <div class="drawn">
            ${error && html`<${Empty}>This definition cannot be drawn: ${error.message}<//>`}
            ${graph && html`<${Graph} graph=${graph} selected=${step} onSelect=${(/** @type {string} */ chosenPath) => onQuery({ step: chosenPath })}
              hrefOf=${(/** @type {GraphNode} */ node) => (node.call?.flow ? href(path`/flows/${node.call.flow}`) : null)}
              onOpen=${(/** @type {GraphNode} */ node) => node.call?.flow && go(path`/flows/${node.call.flow}`)} />`}
          </div>
        </div>`}
  <//>`;
}

/** The older of the two is at the left. @param {string} against @param {string} compared @param {string | null} version @param {string} text @param {(each: string | null) => string} named */
function sides(against, compared, version, text, named) {
  const isOlder = version === null || (against !== SAVED && Number(against) < Number(version));
  const [left, right] = isOlder ? [compared, text] : [text, compared];
  const [leftTitle, rightTitle] = isOlder ? [named(against), named(version)] : [named(version), named(against)];
  return { left, right, leftTitle, rightTitle };
}
