/** The pages and their URLs. A URL is the state of a page: sharing it shows the same thing. */
import { computed, html, signal } from "./vendor/preact.js";

/**
 * @typedef {Record<string, string>} Params  decoded parts of the path
 * @typedef {Record<string, string>} Query
 * @typedef {Record<string, string | number | boolean | null | undefined>} Changes  null, undefined and "" leave it out
 * @typedef {{params: Params, query: Query}} PageProps
 * @typedef {{default: (props: PageProps) => any}} PageModule
 * @typedef {{name: string, pattern: string, title: string, reads?: string, load: () => Promise<PageModule>}} Entry
 *   `reads`: what of the API the page shows, "-" for names; a caller who may not read that has no use for the page
 * @typedef {Entry & {params: Params, query: Query, path: string}} Route
 */

/** @param {string} file @returns {() => Promise<PageModule>} */
const page = (file) => () => import(`./pages/${file}.js`);

/** @type {Entry[]} */
export const TABLE = [
  { name: "overview", pattern: "/", title: "Overview", reads: "v1/overview", load: page("overview") },
  { name: "executions", pattern: "/executions", title: "Executions", reads: "v1/executions", load: page("executions") },
  { name: "execution", pattern: "/executions/{flow}/{execution}", title: "Execution", reads: "v1/flows/-/executions/-", load: page("execution") },
  { name: "flows", pattern: "/flows", title: "Flows", reads: "v1/flows", load: page("flows") },
  { name: "edit", pattern: "/flows/-/new", title: "New flow", reads: "v1/flows", load: page("editor") }, // no flow is named "-"
  { name: "flow", pattern: "/flows/{flow}", title: "Flow", reads: "v1/flows", load: page("flow") },
  { name: "edit", pattern: "/flows/{flow}/edit", title: "Edit", reads: "v1/flows", load: page("editor") },
  { name: "compare", pattern: "/compare", title: "Compare", reads: "v1/flows/-/executions/-", load: page("compare") },
  { name: "waiting", pattern: "/waiting", title: "Waiting", reads: "v1/tasks", load: page("waiting") },
  { name: "schedules", pattern: "/schedules", title: "Schedules", reads: "v1/schedules", load: page("schedules") },
  { name: "functions", pattern: "/functions", title: "Functions", reads: "v1/functions", load: page("functions") },
  { name: "queues", pattern: "/queues", title: "Queues", reads: "v1/queues", load: page("queues") },
  { name: "audit", pattern: "/audit", title: "Audit", reads: "v1/audit", load: page("audit") },
  { name: "sign-in", pattern: "/sign-in", title: "Sign in", load: page("sign-in") },
  { name: "server", pattern: "/server", title: "Server", load: page("server") },
];

/** Whether the caller has a use for a page; `store/needs.js` knows. */
export const mayShow = signal(/** @type {(entry: Entry) => boolean} */ (() => true));

/** The path that the console is served under, with a slash at its end. */
export const base = new URL(document.baseURI).pathname;

const location = signal(window.location.pathname + window.location.search);
addEventListener("popstate", () => {
  const url = window.location.pathname + window.location.search;
  if (mayLeaveFor(url)) location.value = url;
  else history.pushState(null, "", location.peek());
});

/** Asked before another page is shown: true lets it be; else the page calls `leave` once it may. */
/** @typedef {(leave: () => void) => boolean} Guard */
let guard = /** @type {Guard | null} */ (null);

/**
 * Let the present page be asked before it is left, by any way within the console.
 * @param {Guard} asked @returns {() => void} ends that
 */
export function guardLeaving(asked) {
  guard = asked;
  return () => {
    if (guard === asked) guard = null;
  };
}

/** Whether the present page would ask, because something is not saved. */
export const isLeavingGuarded = () => guard !== null;

/** @param {string} url */
function mayLeaveFor(url) {
  if (guard === null || url.split("?")[0] === location.peek().split("?")[0]) return true;
  const leave = () => {
    guard = null;
    show(url, false);
  };
  return guard(leave);
}

/** The page that the URL names; null for a URL that names none. */
export const route = computed(() => match(location.value));

/** @param {string} url path and query, with the base @returns {Route | null} */
export function match(url) {
  const [path, search = ""] = url.split("?", 2);
  if (!(path + "/").startsWith(base)) return null;
  const own = "/" + path.slice(base.length).replace(/\/$/, "");
  const query = Object.fromEntries(new URLSearchParams(search));
  for (const entry of TABLE) {
    const params = paramsOf(entry.pattern, own);
    if (params) return { ...entry, params, query, path: own };
  }
  return null;
}

/** @param {string} pattern @param {string} path @returns {Params | null} */
function paramsOf(pattern, path) {
  const wanted = pattern.split("/");
  const given = path.split("/");
  if (wanted.length !== given.length) return null;
  /** @type {Params} */
  const params = {};
  for (const [index, part] of wanted.entries()) {
    if (!part.startsWith("{")) {
      if (part !== given[index]) return null;
    } else {
      try {
        params[part.slice(1, -1)] = decodeURIComponent(given[index]);
      } catch {
        return null;
      }
    }
  }
  return params;
}

/**
 * The URL of a page, with the base: `href("/executions", {flow: "order"})`. Encode what you put into the path:
 * `path` below does it.
 * @param {string} to @param {Changes} [query] @returns {string}
 */
export function href(to, query) {
  const search = searchOf(query ?? {});
  return base + to.replace(/^\//, "") + (search && "?" + search);
}

/** Whether the caller has a use for the page at this path of the console. @param {string} to */
export function isOffered(to) {
  const page = match(href(to));
  return page === null || mayShow.value(page);
}

/**
 * A path from its parts: path`/flows/${flow}` encodes what is put in.
 * @param {TemplateStringsArray} texts @param {...string} values @returns {string}
 */
export function path(texts, ...values) {
  return texts.reduce((made, text, index) => made + encodeURIComponent(values[index - 1]) + text);
}

/** @param {Changes} query */
function searchOf(query) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
  }
  return search.toString();
}

/**
 * Show another page.
 * @param {string} to @param {Changes} [query] @param {{replace?: boolean}} [how] `replace`: without a step of history
 */
export function go(to, query, { replace = false } = {}) {
  const url = href(to, query);
  if (mayLeaveFor(url)) show(url, replace);
}

/** @param {string} url @param {boolean} replace */
function show(url, replace) {
  history[replace ? "replaceState" : "pushState"](null, "", url);
  location.value = url;
  if (!replace) window.scrollTo(0, 0);
}

/**
 * Change some of the query of the present page.
 * @param {Changes} changes @param {{replace?: boolean}} [how]
 */
export function setQuery(changes, { replace = true } = {}) {
  const now = route.peek();
  if (now) go(now.path, { ...now.query, ...changes }, { replace });
}

/**
 * A link to a page. A plain click changes the page without a reload. Without a use for the page it is a text.
 * @param {{to: string, query?: Changes, children?: any, [attribute: string]: any}} props
 */
export function Link({ to, query, children, ...rest }) {
  /** @param {MouseEvent} event */
  const onClick = (event) => {
    rest.onClick?.(event);
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to, query);
  };
  if (!isOffered(to)) return html`<span class=${rest.class} title=${rest.title}>${children}</span>`;
  return html`<a ...${rest} href=${href(to, query)} onClick=${onClick}>${children}</a>`;
}
