/** What the server finds in a definition, as a list that leads to the lines. */
import { stylesheet } from "../css.js";
import { html } from "../vendor/preact.js";

stylesheet(new URL("./problems.css", import.meta.url));

/** @typedef {import("./editor.js").Finding} Finding */

/** @param {{findings: Finding[], onJump: (finding: Finding) => void}} props */
export function Problems({ findings, onJump }) {
  return html`<ol class="problems" aria-label="Problems">
    ${findings.map(
      (found) => html`<li key=${`${found.line}:${found.column}:${found.id}:${found.message}`}>
        <button type="button" class="quiet" onClick=${() => onJump(found)}>
          <span class="mark tone-${found.severity === "error" ? "fail" : "wait"}" aria-hidden="true">${found.severity === "error" ? "✕" : "!"}</span>
          <span class="hidden">${found.severity}</span>
          <span class="mono muted">${found.line}:${found.column}</span>
          <span class="grow">${found.message}${found.hint && html`<span class="muted"> – ${found.hint}</span>`}</span>
        </button>
      </li>`,
    )}
  </ol>`;
}

/** "2 errors, 1 warning" @param {Finding[]} findings @returns {string} "" without findings */
export function countOf(findings) {
  const errors = findings.filter((found) => found.severity === "error").length;
  const warnings = findings.length - errors;
  const parts = [errors && `${errors} ${errors === 1 ? "error" : "errors"}`, warnings && `${warnings} ${warnings === 1 ? "warning" : "warnings"}`];
  return parts.filter(Boolean).join(", ");
}
