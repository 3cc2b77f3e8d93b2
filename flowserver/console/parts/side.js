/** What lies beside a list: the details of the chosen row. Esc closes it; below 1,000 px it is a sheet. */
import { html, useEffect, useRef } from "../vendor/preact.js";
import { stylesheet } from "../css.js";
import { useKeys } from "../keys.js";
import { Icon } from "./icons.js";

stylesheet(new URL("./side.css", import.meta.url));

/** A list, and beside it what `side` shows; null for nothing. @param {{side: any, children?: any}} props */
export function Split({ side, children }) {
  return html`<div class=${side ? "split open" : "split"}>
    <div class="split-list">${children}</div>
    ${side}
  </div>`;
}

/**
 * @param {{title: any, label: string, onClose: () => void, actions?: any, children?: any}} props
 *   `label` names it for screen readers
 */
export function Side({ title, label, onClose, actions, children }) {
  useKeys(label, [{ keys: "Escape", label: "Close", run: () => onClose() }]);
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (element.current) element.current.scrollTop = 0;
  }, [label]);
  return html`<aside class="side panel" aria-label=${label} ref=${element}>
    <header>
      <h2 class="cut">${title}</h2>
      <button type="button" class="quiet" aria-label="Close" title="Close (Esc)" onClick=${onClose}><${Icon} name="close" /></button>
    </header>
    ${actions && html`<div class="side-actions row">${actions}</div>`}
    <div class="body column">${children}</div>
  </aside>`;
}

/** Names and values; those that are null or undefined are left out. @param {{facts: [string, any][]}} props */
export function Facts({ facts }) {
  return html`<dl class="facts">
    ${facts.map(([name, value]) => value !== null && value !== undefined && html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}
