/** The console's start. */
import { html, render } from "./vendor/preact.js";
import { Frame } from "./frame.js";
import { loadPermissions } from "./store/session.js";
import "./theme.js";

loadPermissions().catch(() => {
  // Refused: the frame shows the sign-in. Or not reached: the frame says so, and the server refuses what is not allowed.
});

render(html`<${Frame} />`, /** @type {HTMLElement} */ (document.getElementById("console")));
