/** The console's start. */
import { html, render } from "./vendor/preact.js";
import { Frame } from "./frame.js";
import "./theme.js";

render(html`<${Frame} />`, /** @type {HTMLElement} */ (document.getElementById("console")));
