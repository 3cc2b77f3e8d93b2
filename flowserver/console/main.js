/** The console's start. */
import { html, render } from "./vendor/preact.js";
import { Frame } from "./frame.js";
import { route } from "./routes.js";
import { loadPermissions } from "./store/session.js";
import "./theme.js";

route.peek()?.load().catch(() => {
  // The frame loads it again, and shows why it could not be loaded.
});
loadPermissions().catch(() => {
  // Refused: the frame shows the sign-in. Or not reached: the frame says so, and the server refuses what is not allowed.
});

// Chromium leaves what is in an element unstyled anew if the element's class changed just before it was moved. Without
// moveBefore() Preact inserts elements of lists that are sorted again, and those are styled.
Reflect.deleteProperty(Element.prototype, "moveBefore");
render(html`<${Frame} />`, /** @type {HTMLElement} */ (document.getElementById("console")));
