/** Search. */
import { html } from "./vendor/preact.js";
import { Dialog } from "./parts/basics.js";

/** @param {{onClose: () => void}} props */
export default function Search({ onClose }) {
  return html`<${Dialog} title="Search" onClose=${onClose}><input type="search" aria-label="Search" autofocus /><//>`;
}
