/** What the server finds in a definition, as a list that leads to the lines. */
import { stylesheet } from "../css.js";
import { html } from "../vendor/preact.js";

stylesheet(new URL("./problems.css", import.meta.url));

/** @typedef {import("./editor.js").Finding} Finding */

/** @typedef {{finds: string, argument: string}} Rule */
/** @typedef {{step: string, line: number, column: number, note: string}} PathStep  one step of a way that shows a finding */

/**
 * `rules` say why findings are true, by their ids.
 * @param {{findings: Finding[], onJump: (place: {line: number, column: number}) => void, label?: string, rules?: Map<string, Rule>}} props
 */
export function Problems({ findings, onJump, label = "Problems", rules }) {
  return html`<ol class="problems" aria-label=${label}>
    ${findings.map(
      (found) => html`<li key=${`${found.line}:${found.column}:${found.id}:${found.message}`}>
        <button type="button" class="quiet" onClick=${() => onJump(found)}>
          <span class="mark tone-${found.severity === "error" ? "fail" : "wait"}" aria-hidden="true">${found.severity === "error" ? "✕" : "!"}</span>
          <span class="hidden">${found.severity}</span>
          <span class="mono muted">${found.line}:${found.column}</span>
          <span class="grow">${found.message}${found.hint && html`<span class="muted"> – ${found.hint}</span>`}</span>
        </button>
        <${Why} rule=${rules?.get(found.id ?? "")} way=${found.path ?? []} onJump=${onJump} />
      </li>`,
    )}
  </ol>`;
}

/** @param {{rule: Rule | undefined, way: PathStep[], onJump: (place: {line: number, column: number}) => void}} props */
function Why({ rule, way, onJump }) {
  if (!rule && !way.length) return null;
  return html`<details class="why">
    <summary>Why?</summary>
    ${rule && html`<p>${rule.finds} ${rule.argument.replace(/\[([^\]]+)\]\([^)]*\)/g, "$1")}</p>`}
    ${way.length > 0 && html`<ol aria-label="A way that shows it">
      ${way.map((each) => html`<li><button type="button" class="quiet" onClick=${() => onJump(each)}>
        <span class="mono muted">${each.line}:${each.column}</span><span class="grow">${each.step} ${each.note}</span>
      </button></li>`)}
    </ol>`}
  </details>`;
}

/** "2 errors, 1 warning" @param {Finding[]} findings @returns {string} "" without findings */
export function countOf(findings) {
  const errors = findings.filter((found) => found.severity === "error").length;
  const warnings = findings.length - errors;
  const parts = [errors && `${errors} ${errors === 1 ? "error" : "errors"}`, warnings && `${warnings} ${warnings === 1 ? "warning" : "warnings"}`];
  return parts.filter(Boolean).join(", ");
}
