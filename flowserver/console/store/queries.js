/** The cache: what was read from the server, shared by everything on the page that asks for the same. */
import { effect, signal, useEffect, useRef } from "../vendor/preact.js";
import { api, isPassing, urlOf } from "./requests.js";
import { mayRead } from "./needs.js";
import { session } from "./session.js";

/** @typedef {import("./requests.js").ApiQuery} ApiQuery */
/** @typedef {{data: any, error: any, loading: boolean}} Answer */

/** Answers without a reader that are kept, so that "back" shows at once what was there. */
const KEPT_MAX = 40;
const SOON_MS = 1_000;
/** Seconds between reads, while an answer that was to be read once fails for a reason that may pass. */
const AGAIN_SECONDS = 2;
/** After an error the next read is later by this factor. */
const ERROR_FACTOR = 3;

class Entry {
  /** @param {string} path @param {ApiQuery | undefined} query */
  constructor(path, query) {
    this.path = path;
    this.query = query;
    this.state = signal(/** @type {Answer} */ ({ data: undefined, error: null, loading: true }));
    /** @type {Map<object, number>} seconds between reads, by reader; 0: once */
    this.readers = new Map();
    /** @type {AbortController | null} */
    this.request = null;
    this.readAt = -Infinity;
    this.timer = 0;
  }

  /** @returns {Promise<void>} */
  async read() {
    if (this.request) return;
    clearTimeout(this.timer);
    const request = (this.request = new AbortController());
    this.state.value = { ...this.state.peek(), loading: true };
    try {
      const data = await api(this.path, { query: this.query, signal: request.signal });
      if (this.request !== request) return;
      this.state.value = { data, error: null, loading: false };
    } catch (error) {
      if (this.request !== request || request.signal.aborted) return;
      this.state.value = { data: this.state.peek().data, error, loading: false };
    }
    this.request = null;
    this.readAt = performance.now();
    this.schedule();
  }

  schedule() {
    clearTimeout(this.timer);
    const { error } = this.state.peek();
    const again = error && isPassing(error) ? AGAIN_SECONDS : 0;
    const waits = [...this.readers.values()].map((seconds) => seconds || again).filter((seconds) => seconds > 0);
    if (!waits.length || document.hidden || session.peek().wanted !== null) return;
    const wait = Math.min(...waits) * 1_000 * (error ? ERROR_FACTOR : 1);
    this.timer = setTimeout(() => this.read(), Math.max(0, this.readAt + wait - performance.now()));
  }

  /** After a change: what a request under way will say may be from before it. @returns {Promise<void>} */
  reload() {
    this.abort();
    return this.read();
  }

  abort() {
    clearTimeout(this.timer);
    this.request?.abort();
    this.request = null;
  }
}

/** @type {Map<string, Entry>} */
const entries = new Map();

document.addEventListener("visibilitychange", () => {
  for (const entry of entries.values()) entry.schedule();
});

let number = session.peek().number;
effect(() => {
  if (session.value.number === number) return;
  number = session.value.number;
  for (const [key, entry] of entries) {
    entry.abort();
    entry.readAt = -Infinity;
    entry.state.value = { data: undefined, error: null, loading: true };
    if (!entry.readers.size) entries.delete(key);
    // The page begins anew at once, and asks for what it needs; the other readers are still there then.
    else if (session.value.wanted === null) setTimeout(() => entry.readers.size && entry.read());
  }
});

/** @param {string} path @param {ApiQuery} [query] @returns {Entry} */
function entryOf(path, query) {
  const key = urlOf(path, query);
  let entry = entries.get(key);
  if (entry) entries.delete(key);
  else entry = new Entry(path, query);
  entries.set(key, entry);
  for (const [old, each] of entries) {
    if (entries.size <= KEPT_MAX) break;
    if (each !== entry && !each.readers.size) entries.delete(old);
  }
  return entry;
}

const NOTHING = signal(/** @type {Answer} */ ({ data: undefined, error: null, loading: false }));

/**
 * What the server answers to a GET. Equal questions share one request; a `path` of null asks nothing, nor one that the caller may not read. With
 * `everySeconds` it is read again so often while the tab is visible; without, only after an error that may pass. With `keep` the answer to the question before
 * stays until the new one is there. After an error `data` is what was read last.
 * @param {string | null} path @param {ApiQuery} [query] @param {{everySeconds?: number, keep?: boolean}} [options]
 * @returns {{data: any, error: any, loading: boolean, reload: () => Promise<void>}}
 */
export function useQuery(path, query, { everySeconds = 0, keep = false } = {}) {
  if (path !== null && !mayRead(path)) path = null;
  const key = path === null ? null : urlOf(path, query);
  const reader = useRef({}).current;
  const held = useRef(/** @type {{key: string | null, entry: Entry | null}} */ ({ key: null, entry: null })).current;
  if (held.key !== key) {
    held.key = key;
    held.entry = path === null ? null : entryOf(path, query);
  }
  const entry = held.entry;
  useEffect(() => {
    if (!entry) return;
    entry.readers.set(reader, everySeconds);
    if (performance.now() - entry.readAt > SOON_MS) entry.read();
    else entry.schedule();
    return () => {
      entry.readers.delete(reader);
      if (!entry.readers.size) entry.abort();
      else entry.schedule();
    };
  }, [entry, everySeconds]);
  const answer = (entry?.state ?? NOTHING).value;
  const before = useRef(/** @type {any} */ (undefined));
  if (answer.data !== undefined) before.current = answer.data;
  const data = answer.data === undefined && keep ? before.current : answer.data;
  return { ...answer, data, reload: () => entry?.reload() ?? Promise.resolve() };
}
