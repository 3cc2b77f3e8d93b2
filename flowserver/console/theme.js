/** Dark or light: as the system says, or as its user chose, which this browser remembers. */
import { ofBrowser } from "./memory.js";
import { effect, signal } from "./vendor/preact.js";

/** @typedef {"system" | "light" | "dark"} Theme */

const KEY = "flowserver.theme";
const stored = ofBrowser.get(KEY);

/** The choice. */
export const theme = signal(/** @type {Theme} */ (stored === "light" || stored === "dark" ? stored : "system"));

effect(() => {
  const root = document.documentElement;
  if (theme.value === "system") {
    root.removeAttribute("data-theme");
    ofBrowser.set(KEY, null);
  } else {
    root.setAttribute("data-theme", theme.value);
    ofBrowser.set(KEY, theme.value);
  }
});

/** Choose the next of system, light, dark. */
export function nextTheme() {
  theme.value = theme.value === "system" ? "light" : theme.value === "light" ? "dark" : "system";
}
