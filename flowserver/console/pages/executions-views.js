/** Views: filters under a name, kept in this browser. */
import { html, signal, useState } from "../vendor/preact.js";
import { ofBrowser } from "../memory.js";
import { Dialog } from "../parts/basics.js";
import { Icon } from "../parts/icons.js";
import { Link } from "../routes.js";
import { describe, filterOf } from "./executions-filter.js";

/** @typedef {import("../routes.js").Query} Query */
/** @typedef {{name: string, query: Query}} View */

const KEY = "flowserver.views";
const VIEWS_MAX = 50;

/** Views that everybody has. @type {View[]} */
const GIVEN = [
  { name: "All executions", query: {} },
  { name: "Running", query: { status: "running" } },
  { name: "Failed today", query: { status: "failed", ended: "today" } },
  { name: "Waiting for a redrive", query: { status: "redrive" } },
  { name: "Parked", query: { status: "parked" } },
];

const saved = signal(/** @type {View[]} */ (read()));
addEventListener("storage", (event) => event.key === KEY && (saved.value = read()));

/** @returns {View[]} */
function read() {
  try {
    const views = JSON.parse(ofBrowser.get(KEY) ?? "[]");
    return views.filter((/** @type {any} */ view) => typeof view?.name === "string" && typeof view.query === "object");
  } catch {
    return [];
  }
}

/** @param {View[]} views */
function write(views) {
  saved.value = views.slice(0, VIEWS_MAX);
  ofBrowser.set(KEY, JSON.stringify(saved.value));
}

/** @param {Query} one @param {Query} other */
const isSame = (one, other) => JSON.stringify(filterOf(one)) === JSON.stringify(filterOf(other));

/** Choose, save and remove views. @param {{query: Query}} props */
export function Views({ query }) {
  const [isOpen, setOpen] = useState(false);
  const now = [...saved.value, ...GIVEN].find((view) => isSame(view.query, query));
  const close = () => setOpen(false);
  return html`<button type="button" class="views" onClick=${() => setOpen(true)} aria-haspopup="dialog">
      <${Icon} name="save" size=${16} /><span class="cut">${now?.name ?? "Views"}</span>
    </button>
    ${isOpen && html`<${Dialog} title="Views" onClose=${close} class="views-dialog">
      <${Save} query=${query} isKnown=${Boolean(now)} />
      <ul class="view-list">
        ${saved.value.map((view) => html`<li key=${view.name}>
          <${Link} to="/executions" query=${view.query} onClick=${() => setTimeout(close)} aria-current=${view === now ? "true" : undefined}>${view.name}<//>
          <span class="muted cut">${describe(view.query)}</span>
          <button type="button" class="quiet" aria-label=${`Remove ${view.name}`} onClick=${() => write(saved.value.filter((each) => each !== view))}><${Icon} name="close" size=${16} /></button>
        </li>`)}
        ${GIVEN.map((view) => html`<li key=${`given ${view.name}`}>
          <${Link} to="/executions" query=${view.query} onClick=${() => setTimeout(close)} aria-current=${view === now ? "true" : undefined}>${view.name}<//>
        </li>`)}
      </ul>
    <//>`}`;
}

/** @param {{query: Query, isKnown: boolean}} props */
function Save({ query, isKnown }) {
  const [name, setName] = useState(describe(query));
  if (isKnown) return html`<p class="muted">Set a filter in the list, then save it here under a name.</p>`;
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const given = name.trim();
    if (given) write([{ name: given, query: filterOf(query) }, ...saved.value.filter((view) => view.name !== given)]);
  };
  return html`<form class="row save-view" onSubmit=${submit}>
    <label class="grow"><span class="hidden">Name of the view</span>
      <input class="grow" value=${name} maxlength="80" autofocus onInput=${(/** @type {any} */ event) => setName(event.currentTarget.value)} /></label>
    <button type="submit" class="primary">Save this view</button>
  </form>`;
}
