/** Search: pages, flows, executions, functions, queues and topics by the beginning of their names; all by keyboard. */
import { html, useEffect, useId, useMemo, useRef, useState } from "./vendor/preact.js";
import { stylesheet } from "./css.js";
import { takeTypedAhead } from "./keys.js";
import { Dialog, Status } from "./parts/basics.js";
import { Icon } from "./parts/icons.js";
import { PLACES } from "./places.js";
import { go, isOffered, path } from "./routes.js";
import { may, useQuery } from "./store.js";

stylesheet(new URL("./search.css", import.meta.url));

/** @typedef {{key: string, kind: string, icon: string, text: string, note?: any, to: string, query?: import("./routes.js").Changes}} Hit */

const TYPED_MS = 120;
const SHOWN_MAX = 6;
const FUNCTIONS_READ = 200;

/** @param {{onClose: () => void}} props */
export default function Search({ onClose }) {
  const ahead = useMemo(takeTypedAhead, []);
  const [text, setText] = useState(ahead.text);
  const [asked, setAsked] = useState(ahead.text.trim());
  const [at, setAt] = useState(0);
  const [isOpening, setOpening] = useState(ahead.isEntered);
  const list = useId();
  const view = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const timer = setTimeout(() => setAsked(text.trim()), TYPED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const { hits, isLoading } = useHits(asked);
  const isKnown = asked === text.trim() && !isLoading;
  useEffect(() => setAt(0), [asked]);
  useEffect(() => view.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [at]);

  const open = (/** @type {Hit | undefined} */ hit) => {
    if (!hit) return;
    onClose();
    go(hit.to, hit.query);
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && hits.length) setAt((at + step + hits.length) % hits.length);
    else if (event.key === "Enter") enter();
    else return;
    event.preventDefault();
  };
  /** Who types fast presses Enter before what was typed is looked for: the first that is found opens then. */
  const enter = () => {
    if (isKnown || at > 0) return open(hits[at]);
    setAsked(text.trim());
    setOpening(true);
  };
  useEffect(() => {
    if (!isOpening || !isKnown) return;
    setOpening(false);
    open(hits[0]);
  }, [isOpening, isKnown]);
  const chosen = hits[at];
  return html`<${Dialog} title="Search" onClose=${onClose} class="search">
    <input type="search" role="combobox" aria-label="Search" aria-expanded="true" aria-controls=${list} aria-autocomplete="list"
      aria-activedescendant=${chosen ? `${list}-${at}` : undefined} autofocus autocomplete="off" spellcheck=${false} value=${text}
      placeholder="Flow, execution, flow/execution, function, queue" onKeyDown=${onKeyDown}
      onInput=${(/** @type {any} */ event) => (setText(event.currentTarget.value), setOpening(false))} />
    <ul id=${list} role="listbox" aria-label="Found" ref=${view}>
      ${hits.map((hit, index) => html`<li key=${hit.key} id=${`${list}-${index}`} role="option" aria-selected=${String(index === at)}
        onClick=${() => open(hit)} onMouseMove=${() => index !== at && setAt(index)}>
        <${Icon} name=${hit.icon} size=${16} /><span class="cut text" title=${hit.text}>${hit.text}</span>
        ${hit.note}<span class="muted kind">${hit.kind}</span>
      </li>`)}
    </ul>
    ${!hits.length && html`<p class="muted nothing" role="status">${!isKnown ? "Searching…" : "Nothing begins so."}</p>`}
  <//>`;
}

/** @param {string} asked @returns {{hits: Hit[], isLoading: boolean}} */
function useHits(asked) {
  const [flow, execution] = asked.includes("/") ? split(asked) : ["", ""];
  const isName = /^[\w:.-]+$/.test(asked);
  const isFlow = /^[\w-]{1,128}$/.test(asked);
  const keep = { keep: true };
  const flows = useQuery(isFlow ? "v1/flows" : null, { namePrefix: asked, limit: SHOWN_MAX }, keep);
  const everywhere = useQuery(isName ? "v1/executions" : null, { namePrefix: asked, limit: SHOWN_MAX }, keep);
  const within = useQuery(/^[\w-]{1,128}$/.test(flow) && /^[\w:.-]*$/.test(execution) ? path`v1/flows/${flow}/executions` : null,
    { namePrefix: execution, limit: 2 * SHOWN_MAX }, keep);
  const functions = useQuery(asked ? "v1/functions" : null, { limit: FUNCTIONS_READ });
  const queues = useQuery(isFlow ? "v1/queues" : null, { prefix: asked, limit: SHOWN_MAX }, keep);
  const topics = useQuery(isFlow ? "v1/topics" : null, { prefix: asked, limit: SHOWN_MAX }, keep);
  const answers = [flows, everywhere, within, functions, queues, topics];
  const hits = useMemo(() => {
    const word = asked.toLowerCase();
    const begins = (/** @type {string} */ name) => name.toLowerCase().startsWith(word);
    const found = [
      ...PLACES.filter(([title, to]) => begins(title) && isOffered(to)).map(([title, to, icon]) => hit("page", icon, title, to)),
      ...(isFlow ? (flows.data?.flows ?? []) : []).filter(named(asked)).map((/** @type {any} */ each) => hit("flow", "flows", each.name, path`/flows/${each.name}`)),
      ...(flow ? (within.data?.executions ?? []) : isName ? (everywhere.data?.executions ?? []) : [])
        .filter(named(flow ? execution : asked)).map(ofExecution),
      ...(functions.data?.functions ?? []).filter((/** @type {any} */ each) => asked && (begins(each.function) || begins(`${each.service}/${each.function}`)))
        .slice(0, SHOWN_MAX).map((/** @type {any} */ each) => hit("function", "functions", `${each.service}/${each.function}`, "/functions", { function: `${each.service}/${each.function}` })),
      ...(isFlow ? (queues.data?.queues ?? []) : []).filter(named(asked)).map((/** @type {any} */ each) => hit("queue", "queues", each.name, "/queues", { kind: "queues", name: each.name })),
      ...(isFlow ? (topics.data?.topics ?? []) : []).filter(named(asked)).map((/** @type {any} */ each) => hit("topic", "queues", each.name, "/queues", { kind: "topics", name: each.name })),
    ];
    if (flow && execution && may("executions.read") && !may("executions.list")) {
      found.push(hit("execution", "executions", asked, path`/executions/${flow}/${execution}`)); // by its whole name
    }
    if (isFlow && isOffered("/executions")) found.push(hit("filter", "filter", `Executions whose names begin with ${asked}`, "/executions", { prefix: asked }));
    return found;
  }, [asked, ...answers.map((answer) => answer.data)]);
  return { hits, isLoading: answers.some((answer) => answer.loading) };
}

/** `flow/execution` @param {string} asked @returns {[string, string]} */
function split(asked) {
  const [flow, ...rest] = asked.split("/");
  return [flow, rest.join("/")];
}

/** Answers to what was typed before stay until the new ones are there; of those only what still fits. @param {string} prefix */
function named(prefix) {
  return (/** @type {any} */ each) => each.name.startsWith(prefix);
}

/** @param {any} row @returns {Hit} */
function ofExecution(row) {
  const note = html`<${Status} status=${row.status} label="" />`;
  return { ...hit("execution", "executions", `${row.flowName}/${row.name}`, path`/executions/${row.flowName}/${row.name}`), note };
}

/** @param {string} kind @param {string} icon @param {string} text @param {string} to @param {import("./routes.js").Changes} [query] @returns {Hit} */
function hit(kind, icon, text, to, query) {
  return { key: `${kind} ${text}`, kind, icon, text, to, query };
}
