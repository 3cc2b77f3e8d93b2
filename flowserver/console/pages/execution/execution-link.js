/** A link to another execution. */
import { Link } from "../../routes.js";
import { html } from "../../vendor/preact.js";

/** @param {{of: string}} props `of`: FLOW/NAME, as the API names parents and sub-flows */
export function ExecutionLink({ of }) {
  return html`<${Link} class="mono" to=${`/executions/${of.split("/").map(encodeURIComponent).join("/")}`}>${of}<//>`;
}
