/** In the place of a page that the key may not see: why, and what it may do. */
import { html, useEffect, useState } from "./vendor/preact.js";
import { Panel } from "./parts/basics.js";
import { Facts } from "./parts/side.js";
import { PLACES } from "./places.js";
import { Link, go, isOffered, path } from "./routes.js";
import { permissionOf } from "./store/needs.js";
import { may, permissions } from "./store.js";

/** @param {{page: import("./routes.js").Entry}} props */
export default function NotAllowed({ page }) {
  const { key, role, flows, may: names } = permissions.value;
  const needed = permissionOf(page.reads ?? "");
  const isAboutFlows = needed === null || may(needed);
  const places = PLACES.filter(([, to]) => isOffered(to));
  const first = places[0]?.[1];
  const instead = page.name === "overview" && first && first !== "/server" ? first : null;
  useEffect(() => {
    if (instead !== null) go(instead, {}, { replace: true }); // the first page is where a sign-in leads
  }, [instead]);
  if (instead !== null) return null;
  return html`<div class="page">
    <h1 class="hidden">${page.title}</h1>
    <${Panel} title=${`${page.title}: not with this key`}>
      <div class="body column">
        <p role="status">${isAboutFlows ? html`This page is about all flows, and the key is for flows whose names begin with <code>${flows}</code>.` : html`This page needs the permission <code>${needed}</code>.`}</p>
        <${Facts} facts=${[
          ["Your key", key && html`<bdi>${key}</bdi>`],
          ["Its role", html`<span>${role}${flows && html`, for flows <code>${flows}…</code>`}</span>`],
          ["It may", html`<span class="mono">${(names ?? []).join(", ")}</span>`],
          ["Pages", places.length ? html`<span class="row">${places.map(([title, to]) => html`<${Link} key=${to} to=${to}>${title}<//>`)}</span>` : null],
        ]} />
        ${may("executions.read") && html`<${ByName} />`}
      </div>
    <//>
  </div>`;
}

/** Opens an execution whose name the caller knows. */
function ByName() {
  const [text, setText] = useState("");
  const [flow, name, ...rest] = text.trim().split("/");
  const open = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (flow && name && !rest.length) go(path`/executions/${flow}/${name}`);
  };
  return html`<form class="row" onSubmit=${open}>
    <label class="row"><span>Execution</span>
      <input type="text" class="mono" placeholder="flow/name" value=${text} spellcheck=${false} autocomplete="off" required pattern="\\s*[^\\/\\s]+\\/[^\\/\\s]+\\s*"
        onInput=${(/** @type {any} */ event) => setText(event.currentTarget.value)} /></label>
    <button type="submit">Open</button>
  </form>`;
}
