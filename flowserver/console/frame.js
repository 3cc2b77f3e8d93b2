/** What is around every page: rail, top bar, sign-in, search, help; and what keeps a broken page to itself. */
import { effect, html, signal, useEffect, useErrorBoundary, useRef, useState } from "./vendor/preact.js";
import { stylesheetsReady } from "./css.js";
import { keepTypedAhead, takeTypedAhead, useKeys } from "./keys.js";
import { Loading, Problem } from "./parts/basics.js";
import { Icon } from "./parts/icons.js";
import { PLACES } from "./places.js";
import { Link, go, isLeavingGuarded, isOffered, mayShow, path, route } from "./routes.js";
import { reachable } from "./store/requests.js";
import { isReady, permissions, session, signOut } from "./store.js";
import { nextTheme, theme } from "./theme.js";

const loadSignIn = () => import("./signin.js");
const loadSearch = () => import("./search.js");
const loadNotAllowed = () => import("./not-allowed.js");
const loadHelp = () => import("./help.js");

/** What lies over the page: the search, the help, or nothing. */
const overlay = signal(/** @type {"search" | "help" | null} */ (null));
const close = () => void (overlay.value = null);
effect(() => {
  if (overlay.value !== "search") takeTypedAhead(); // no field will
});

/** The whole console. */
export function Frame() {
  useKeys("Everywhere", [
    { keys: "/", label: "Search", run: openSearch },
    { keys: "?", label: "This help", run: () => void (overlay.value = "help") },
    ...PLACES.map(([title, to, , key]) => ({ keys: `g ${key}`, label: title, run: () => go(to) })),
  ]);
  const wanted = wantedSignIn();
  return html`
    <a class="skip" href="#page" onClick=${skip}>Skip to the page</a>
    <${Rail} />
    <${TopBar} />
    <main id="page" tabindex="-1" class=${wanted === null ? "" : "concealed"} inert=${wanted !== null}>
      ${!reachable.value && html`<div class="banner" role="status">The server cannot be reached.${unloaded.value > 0 ? "" : " This page tries again."}</div>`}
      <${Page} />
    </main>
    ${wanted !== null && html`<${Lazy} load=${loadSignIn} reason=${wanted} />`}
    ${wanted === null && overlay.value === "search" && html`<${Lazy} load=${loadSearch} onClose=${close} />`}
    ${wanted === null && overlay.value === "help" && html`<${Lazy} load=${loadHelp} onClose=${close} />`}
  `;
}

/** Why the server wants a sign-in, null if it wants none here: one page signs in itself. */
function wantedSignIn() {
  return route.value?.name === "sign-in" ? null : session.value.wanted;
}

/** Opens at once, or as soon as it is loaded, with what was typed until then. */
function openSearch() {
  overlay.value = "search";
  if (components.has(loadSearch)) return;
  keepTypedAhead(close);
  load(loadSearch).catch(takeTypedAhead);
}

/** Loaded once the page is quiet, so that it opens at once. */
const preload = () => void load(loadSearch).catch(() => {});
if ("requestIdleCallback" in window) requestIdleCallback(preload, { timeout: 2_000 });
else setTimeout(preload, 1_000);

/** @param {Event} event */
function skip(event) {
  event.preventDefault();
  document.getElementById("page")?.focus();
}

function Rail() {
  const now = route.value?.path ?? "";
  return html`<nav class="rail" aria-label="Places">
    ${PLACES.filter(([, to]) => isOffered(to)).map(([title, to, icon, key]) => {
      const isHere = to === "/" ? now === "/" : now === to || now.startsWith(`${to}/`);
      return html`<${Link} key=${to} to=${to} title=${`${title} (g ${key})`} aria-current=${isHere ? "page" : undefined}>
        <${Icon} name=${icon} /><span class="label">${title}</span>
      <//>`;
    })}
  </nav>`;
}

function TopBar() {
  const { key, open } = permissions.value;
  const { hasToken } = session.value;
  return html`<header class="top">
    <${Breadcrumb} />
    <button type="button" class="find" aria-label="Search" onClick=${openSearch} aria-keyshortcuts="/">
      <${Icon} name="search" size=${16} /><span>Search</span><kbd>/</kbd>
    </button>
    <span class="server cut" title=${location.origin}>
      <${Icon} name=${hasToken ? "key" : "server"} size=${16} /><span class="cut">${key ?? (open ? "no keys" : location.host)}</span>
    </span>
    ${hasToken && html`<button type="button" class="quiet" onClick=${signOut}>Sign out</button>`}
    <button type="button" class="quiet" onClick=${nextTheme} aria-label=${`Theme: ${theme.value}`} title=${`Theme: ${theme.value}`}>
      <${Icon} name=${theme.value} />
    </button>
    <button type="button" class="quiet" onClick=${() => (overlay.value = "help")} aria-label="Help" title="Help (?)"><${Icon} name="help" /></button>
  </header>`;
}

function Breadcrumb() {
  const now = route.value;
  const place = PLACES.find(([, to]) => to !== "/" && (now?.path === to || now?.path.startsWith(`${to}/`)));
  const flow = now?.params.flow;
  const crumbs = [];
  if (place) crumbs.push({ text: place[0], to: place[1] });
  else if (now) crumbs.push({ text: now.title, to: now.path });
  if (now?.name === "execution") crumbs.push({ text: flow, to: path`/flows/${flow ?? ""}` }, { text: now.params.execution, to: now.path });
  else if (flow) crumbs.push({ text: flow, to: path`/flows/${flow}` });
  if (now?.name === "edit" && place) crumbs.push({ text: now.title, to: now.path });
  return html`<nav class="crumbs" aria-label="Breadcrumb"><ol>
    ${crumbs.map(({ text, to }, index) => {
      const isLast = index === crumbs.length - 1;
      return html`<li key=${to} class="cut"><${Link} to=${to} class="cut" title=${text} aria-current=${isLast ? "page" : undefined}>${text}<//></li>`;
    })}
  </ol></nav>`;
}

/** The page that the URL names, loaded when it is first shown. */
function Page() {
  const now = route.value;
  const key = now ? `${now.pattern} ${JSON.stringify(now.params)}` : "";
  const { number } = session.value;
  const wanted = wantedSignIn();
  const shown = useRef({ number, key: number }).current;
  const first = useRef(true);
  useEffect(() => {
    document.title = now ? `${titleOf(now)} · flowserver` : "flowserver";
    if (!first.current && !document.querySelector("dialog:modal")) document.getElementById("page")?.focus({ preventScroll: true });
    first.current = false;
  }, [key]);
  // Another sign-in begins the page anew, with nothing of the former key; what somebody has typed stays.
  const isKept = isLeavingGuarded() || document.querySelector("#page dialog[open]") !== null;
  if (shown.number !== number && wanted === null) {
    shown.number = number;
    if (!isKept) shown.key = number;
  }
  if (shown.number !== number && !isKept) return null;
  if (!now) return html`<div class="empty"><p>There is no page at this address.</p><p><${Link} to="/">Overview<//></p></div>`;
  if (!isReady.value) return html`<${Loading} />`;
  if (!mayShow.value(now)) return html`<${Guarded} key=${`not ${key}`}><${Lazy} load=${loadNotAllowed} meanwhile=${html`<${Loading} />`} page=${now} /><//>`;
  return html`<${Guarded} key=${`${shown.key} ${key}`}><${Lazy} load=${now.load} meanwhile=${html`<${Loading} />`} params=${now.params} query=${now.query} /><//>`;
}

/** @param {import("./routes.js").Route} now */
function titleOf(now) {
  const { flow, execution } = now.params;
  return execution ? `${execution} · ${flow}` : flow ? `${flow} · ${now.title}` : now.title;
}

/** @param {{children?: any}} props */
function Guarded({ children }) {
  const [error] = useErrorBoundary((found) => console.error(found));
  if (!error) return children;
  // What it failed with may be kept, and the server may be newer than this document: only a reload begins anew.
  return html`<div class="page"><h1>This page has failed</h1><p>The other pages work.</p><${Problem} error=${error} onRetry=${() => location.reload()} /></div>`;
}

/** How many parts of the page could not be loaded: only a reload tries these again. */
const unloaded = signal(0);

/** Components that were loaded, by their loader, so that they are there at once the next time. @type {WeakMap<Function, any>} */
const components = new WeakMap();

/** @param {() => Promise<{default: any}>} loader @returns {Promise<any>} the component, once its style sheets apply */
async function load(loader) {
  const module = await loader();
  await stylesheetsReady();
  components.set(loader, module.default);
  return module.default;
}

/**
 * A component that is loaded when it is first shown, with the style sheets that it brings.
 * @param {{load: () => Promise<{default: any}>, meanwhile?: any, [prop: string]: any}} props
 */
function Lazy({ load: loader, meanwhile = null, ...rest }) {
  const [state, setState] = useState({ component: components.get(loader) ?? null, error: /** @type {any} */ (null) });
  useEffect(() => {
    let isShown = true;
    if (state.component) return;
    load(loader)
      .then((component) => isShown && setState({ component, error: null }))
      .catch((error) => isShown && setState({ component: null, error }));
    return () => void (isShown = false);
  }, [loader]);
  const { component, error } = state;
  const isUnloaded = !component && error !== null;
  useEffect(() => {
    if (!isUnloaded) return;
    unloaded.value += 1;
    return () => void (unloaded.value -= 1);
  }, [isUnloaded]);
  if (component) return html`<${component} ...${rest} />`;
  if (!error) return meanwhile;
  // A module that failed to load fails for ever in this document, so only a reload tries again.
  return html`<div class="page"><h1>This page could not be loaded</h1><${Problem} error=${error} onRetry=${() => location.reload()} /></div>`;
}
