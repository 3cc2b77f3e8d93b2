/** An error and its cause: the message in words first, and what else the cause has as a tree. */
import { html } from "../vendor/preact.js";
import { JsonTree } from "./json-tree.js";
import { causeValue, CutText } from "./json-values.js";
import { Copy } from "./basics.js";

/** @param {{error: string | null, cause: string | null}} props */
export function Cause({ error, cause }) {
  const value = cause === null ? null : causeValue(cause);
  const message = typeof value?.errorMessage === "string" ? value.errorMessage : null;
  return html`<div class="inspector-cause" role="group" aria-label="Error">
    <p><strong class="mono">${error}</strong> <${Copy} text=${cause ? `${error}: ${cause}` : (error ?? "")} /></p>
    ${message !== null && html`<p class="inspector-message"><${CutText} text=${message} /></p>`}
    ${value !== null ? html`<details open=${message === null}><summary>Cause</summary><${JsonTree} value=${value} root="cause" label="Cause" /></details>`
      : cause && html`<p class="inspector-message"><${CutText} text=${cause} /></p>`}
  </div>`;
}
