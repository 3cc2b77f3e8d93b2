/** Small parts that every page uses. They take data and callbacks; none knows a URL or makes a request. */
import { html, signal, useEffect, useErrorBoundary, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { NO_COPY, copyText } from "../clipboard.js";
import { Icon } from "./icons.js";
import { duration } from "./durations.js";

const COPIED_MS = 1_500;
const NOT_COPIED_MS = 5_000;

/** @typedef {"ok" | "run" | "fail" | "wait" | "stop" | "none"} Tone */

/** Tone and shape of every status: of executions, steps, invocations, deliveries. @type {Record<string, [Tone, string, string]>} */
const STATUSES = {
  Succeeded: ["ok", "check", "Succeeded"],
  Running: ["run", "ring", "Running"],
  Failed: ["fail", "cross", "Failed"],
  Stopped: ["stop", "square", "Stopped"],
  TimedOut: ["stop", "square-clock", "Timed out"],
  Cancelled: ["stop", "square", "Cancelled"],
  Aborted: ["stop", "square", "Aborted"],
  Caught: ["fail", "caught", "Caught"],
  Waiting: ["wait", "clock", "Waiting"],
  Retrying: ["wait", "retry", "Retrying"],
  WaitingForToken: ["wait", "hand", "Waiting for a report"],
  WaitingForSubFlow: ["run", "nested", "Waiting for a sub-flow"],
  WaitingForInvocation: ["wait", "clock", "Waiting for an invocation"],
  WaitingForRedrive: ["wait", "pause", "Waiting for a redrive"],
  WaitingForSlot: ["wait", "slot", "Waiting for a slot"],
  Parked: ["fail", "pause", "Parked"],
  NotReached: ["none", "open", "Not reached"],
};

/** @type {Record<string, any>} */
const SHAPES = {
  check: html`<circle class="fill" cx="8" cy="8" r="7" /><path class="hole" d="M4.8 8.2l2.2 2.2 4.3-4.6" />`,
  cross: html`<circle class="fill" cx="8" cy="8" r="7" /><path class="hole" d="M5.5 5.5l5 5m0-5l-5 5" />`,
  ring: html`<circle class="faint" cx="8" cy="8" r="5.8" /><path class="turns" d="M8 2.2a5.8 5.8 0 0 1 5.8 5.8" />`,
  square: html`<rect class="fill" x="2.5" y="2.5" width="11" height="11" rx="1.5" />`,
  "square-clock": html`<rect class="fill" x="2" y="2" width="12" height="12" rx="1.5" /><path class="hole" d="M8 4.5V8l2.5 1.5" />`,
  clock: html`<circle cx="8" cy="8" r="6" /><path d="M8 4.5V8l2.5 1.5" />`,
  retry: html`<path d="M13.5 8A5.5 5.5 0 1 1 11.5 3.8M13.5 2v3.5H10" />`,
  hand: html`<circle cx="8" cy="5" r="2.5" /><path d="M3 14c0-3 2-4.5 5-4.5s5 1.5 5 4.5" />`,
  nested: html`<rect x="2" y="2" width="8" height="8" rx="1" /><path d="M13 6v7H6" />`,
  pause: html`<circle cx="8" cy="8" r="6" /><path d="M6.3 5.8v4.4M9.7 5.8v4.4" />`,
  slot: html`<path d="M3 4h10M3 8h10M3 12h5" />`,
  caught: html`<circle cx="8" cy="8" r="6" /><path d="M6 6l4 4m0-4l-4 4" />`,
  open: html`<circle cx="8" cy="8" r="5.5" />`,
};

/** The tone of a status, for parts that draw it themselves. @param {string} status @returns {Tone} */
export function toneOf(status) {
  return STATUSES[status]?.[0] ?? "none";
}

/** The word of a status. @param {string} status */
export function wordOf(status) {
  return STATUSES[status]?.[2] ?? status;
}

/** The shape of a status alone, for drawings. @param {{status: string, [attribute: string]: any}} props */
export function Shape({ status, ...more }) {
  const [tone, shape] = STATUSES[status] ?? ["none", "open"];
  return html`<svg class="shape shape-${shape} tone-${tone}" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" ...${more}>${SHAPES[shape]}</svg>`;
}

/**
 * A status, told apart by shape, colour and word. `label` replaces the word; "" leaves the shape alone, which then has
 * the word as its name.
 * @param {{status: string, label?: string}} props
 */
export function Status({ status, label }) {
  const word = wordOf(status);
  const named = label === "" ? { role: "img", "aria-label": word, "aria-hidden": undefined } : {};
  return html`<span class="status tone-${toneOf(status)}" title=${word}>
    <${Shape} status=${status} ...${named} />
    ${label === "" ? null : html`<span class="word">${label ?? word}</span>`}
  </span>`;
}

/** The present time, renewed each second while something shows it. */
const now = signal(Date.now());
let clocks = 0;
let clock = 0;

/** @param {boolean} isNeeded @returns {number} */
function useNow(isNeeded) {
  useEffect(() => {
    if (!isNeeded) return;
    if (!clocks++) clock = setInterval(() => (now.value = Date.now()), 1_000);
    return () => {
      if (!--clocks) clearInterval(clock);
    };
  }, [isNeeded]);
  return isNeeded ? Math.max(now.value, Date.now() - 1_000) : 0;
}

const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const YEAR = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });

/** @param {string | number | Date} at @returns {string} local: the time, with the day unless that is today */
export function localTime(at) {
  const date = new Date(at);
  const today = new Date();
  if (date.toDateString() === today.toDateString()) return TIME.format(date);
  const day = date.getFullYear() === today.getFullYear() ? DAY : YEAR;
  return `${day.format(date)}, ${TIME.format(date)}`;
}

/** An instant in local time; UTC on hover. Nothing for null. @param {{at: string | number | null | undefined}} props */
export function Time({ at }) {
  if (at === null || at === undefined) return html`<span class="muted">–</span>`;
  const utc = new Date(at).toISOString();
  return html`<time datetime=${utc} title=${utc.replace("T", " ").replace("Z", " UTC")}>${localTime(at)}</time>`;
}

/**
 * How long it took; while `to` is null, how long it takes so far.
 * @param {{from: string | number | null | undefined, to?: string | number | null}} props
 */
export function Took({ from, to }) {
  const isOver = to !== null && to !== undefined;
  const present = useNow(!isOver && Boolean(from));
  if (!from) return html`<span class="muted">–</span>`;
  const end = isOver ? new Date(to).getTime() : present;
  const ms = end - new Date(from).getTime();
  return html`<span class="took" title=${`${Math.max(0, ms).toLocaleString()} ms`}>${isOver ? duration(ms) : soFar(ms)}</span>`;
}

/** What still runs changes by whole seconds. @param {number} ms @returns {string} "7s", "3m7s" */
function soFar(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  return seconds < 60 ? `${seconds}s` : duration(seconds * 1_000);
}

/** A button that copies a text, and says whether the browser did so. @param {{text: string, label?: string}} props */
export function Copy({ text, label }) {
  const [isCopied, setCopied] = useState(/** @type {boolean | null} */ (null));
  const copy = async () => setCopied(await copyText(text));
  useEffect(() => {
    const timer = isCopied === null ? undefined : setTimeout(() => setCopied(null), isCopied ? COPIED_MS : NOT_COPIED_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const icon = isCopied === null ? "copy" : isCopied ? "done" : "warning";
  return html`<span class="copy">
    <button type="button" class="quiet" onClick=${copy} aria-label=${label ? undefined : "Copy"} title=${label ? undefined : "Copy"}>
      <${Icon} name=${icon} size=${16} />${label}
    </button>
    <span class=${isCopied === false ? "muted" : "hidden"} role="status">${isCopied === null ? "" : isCopied ? "Copied" : NO_COPY}</span>
  </span>`;
}

/** What to say where there is nothing, and the command that would change that. @param {{children?: any, command?: string}} props */
export function Empty({ children, command }) {
  return html`<div class="empty">
    <p>${children}</p>
    ${command && html`<p class="command"><code>${command}</code><${Copy} text=${command} /></p>`}
  </div>`;
}

/** @param {{title?: any, actions?: any, children?: any, class?: string}} props */
export function Panel({ title, actions, children, class: more = "" }) {
  return html`<section class="panel ${more}">
    ${(title || actions) && html`<header><h2>${title}</h2><div class="actions">${actions}</div></header>`}
    ${children}
  </section>`;
}

/**
 * A dialog over the page. Esc, the cross and a click beside it close it.
 * @param {{title: string, onClose: () => void, children?: any, class?: string}} props
 */
export function Dialog({ title, onClose, children, class: more = "" }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useLayoutEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog?.showModal();
    const field = dialog?.querySelector("[autofocus]:not([type=submit]), .body :is(input, select, textarea):enabled");
    /** @type {HTMLElement | null | undefined} */ (field ?? dialog?.querySelector("[autofocus], .body button:enabled"))?.focus();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const cancel = (/** @type {Event} */ event) => {
    event.preventDefault();
    onClose();
  };
  const click = (/** @type {MouseEvent} */ event) => event.target === element.current && onClose();
  return html`<dialog ref=${element} class=${more} aria-label=${title} onCancel=${cancel} onMouseDown=${click}>
    <header><h2>${title}</h2><button type="button" class="quiet" aria-label="Close" onClick=${onClose}><${Icon} name="close" /></button></header>
    <div class="body">${children}</div>
  </dialog>`;
}

/**
 * A question before a change. `onConfirm` may take its time; an error that it throws is shown, and the question stays.
 * @param {{title: string, action: string, danger?: boolean, onConfirm: () => any, onClose: () => void, children?: any,
 *   class?: string}} props
 */
export function Confirm({ title, action, danger = false, onConfirm, onClose, children, class: more }) {
  const [state, setState] = useState(/** @type {{busy: boolean, error: any}} */ ({ busy: false, error: null }));
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setState({ busy: true, error: null });
    try {
      await onConfirm();
      onClose();
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose} class=${more}>
    <form onSubmit=${submit}>
      ${children}
      <${Problem} error=${state.error} />
      <footer>
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class=${danger ? "danger" : "primary"} disabled=${state.busy} autofocus>${action}</button>
      </footer>
    </form>
  <//>`;
}

/**
 * @param {{tabs: {value: string, label: any}[], value: string, onChange: (value: string) => void, label?: string}} props
 */
export function Tabs({ tabs, value, onChange, label }) {
  const move = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const index = tabs.findIndex((tab) => tab.value === value);
    onChange(tabs[(index + step + tabs.length) % tabs.length].value);
    const list = /** @type {HTMLElement} */ (event.currentTarget);
    requestAnimationFrame(() => /** @type {HTMLElement | null} */ (list.querySelector("[aria-selected=true]"))?.focus());
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} onKeyDown=${move}>
    ${tabs.map((tab) => {
      const isChosen = tab.value === value;
      return html`<button type="button" role="tab" key=${tab.value} aria-selected=${String(isChosen)} tabindex=${isChosen ? 0 : -1}
        onClick=${() => onChange(tab.value)}>${tab.label}</button>`;
    })}
  </div>`;
}

/** An error in words, with its code and request id; nothing for null. @param {{error: any, onRetry?: () => void}} props */
export function Problem({ error, onRetry }) {
  if (!error) return null;
  const problem = error.problem;
  return html`<div class="problem" role="alert">
    <${Icon} name="warning" size=${16} />
    <div>
      <p>${error.message || String(error)}</p>
      ${problem?.diagnostics?.map((/** @type {any} */ each) => html`<p class="mono">${each.line ? `line ${each.line}: ` : ""}${each.message}</p>`)}
      ${error.code && html`<p class="muted"><code>${error.code}</code>${problem?.requestId && html` · request <code>${problem.requestId}</code>`}</p>`}
    </div>
    ${onRetry && html`<button type="button" onClick=${onRetry}>Try again</button>`}
  </div>`;
}

/** Shown only if it takes a while, so that quick answers do not flicker. @param {{label?: string}} props */
export function Loading({ label = "Loading…" }) {
  return html`<div class="loading" role="status">${label}</div>`;
}

/** Keeps an error of what it contains to that part of the page. @param {{children?: any}} props */
export function Boundary({ children }) {
  const [error, reset] = useErrorBoundary((found) => console.error(found));
  return error ? html`<${Problem} error=${error} onRetry=${reset} />` : children;
}
