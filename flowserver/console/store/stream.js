/** Server-sent events over fetch, which unlike EventSource sends the bearer token. */
import { parseJson } from "../exact-json.js";
import { ApiError, send } from "./requests.js";

const BATCH_MS = 100;
const RETRY_MS_MAX = 15_000;

/** @typedef {{name: string, data: any}} NamedMessage  of a stream: what has an `event` field */

/**
 * Follow a stream. `onBatch` gets arrays of what the events' data say (JSON), and messages that have names besides: at
 * once after a pause, else one batch every 100 ms. A connection that breaks is made again and misses nothing; one that brings nothing is made again more and more rarely. `onEnd` is
 * called when nothing will follow: with no argument at the stream's end, or with the error that forbids it, such as that of an event that cannot be read twice.
 * @param {string} path @param {import("./requests.js").ApiQuery} query @param {(batch: any[], named: NamedMessage[]) => void} onBatch
 * @param {{signal?: AbortSignal, onEnd?: (error?: any) => void}} [options]
 */
export async function stream(path, query, onBatch, { signal, onEnd } = {}) {
  /** @type {any[]} */
  let batch = [];
  /** @type {NamedMessage[]} */
  let named = [];
  let timer = 0;
  let flushed = -Infinity;
  const flush = () => {
    timer = 0;
    flushed = performance.now();
    const [full, others] = [batch, named];
    [batch, named] = [[], []];
    if ((full.length || others.length) && !signal?.aborted) onBatch(full, others);
  };
  let lastId = "";
  let failures = 0;
  let isHeard = false;
  /** @type {string | undefined} */
  let unreadableAfter;
  let createParser;
  try {
    ({ createParser } = await import("../vendor/eventsource-parser.js"));
  } catch (error) {
    if (!signal?.aborted) onEnd?.(error);
    return;
  }
  const onEvent = (/** @type {{id?: string, event?: string, data: string}} */ event) => {
    const data = parseJson(event.data);
    if (event.event) named.push({ name: event.event, data });
    else batch.push(data);
    if (event.id) lastId = event.id;
    isHeard = true;
    timer ||= setTimeout(flush, Math.max(0, flushed + BATCH_MS - performance.now()));
  };
  while (!signal?.aborted) {
    const began = performance.now();
    isHeard = false;
    try {
      /** @type {Record<string, string>} */
      const headers = { Accept: "text/event-stream" };
      if (lastId) headers["Last-Event-ID"] = lastId;
      const response = await send(path, { query, headers, signal });
      if (response.status === 204 || !response.body) break;
      if (!isEvents(response)) await response.body.cancel(); // a proxy's page
      else await feed(response.body, createParser({ onEvent }));
    } catch (error) {
      if (signal?.aborted) return;
      const wasUnreadable = unreadableAfter === lastId;
      if (error instanceof SyntaxError) unreadableAfter = lastId;
      if (error instanceof SyntaxError && wasUnreadable) {
        flush();
        return onEnd?.(error);
      }
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) {
        flush();
        return onEnd?.(error);
      }
    }
    failures = isHeard || performance.now() - began > RETRY_MS_MAX ? 0 : failures + 1;
    await pause(Math.min(RETRY_MS_MAX, 250 * 2 ** failures), signal);
  }
  clearTimeout(timer);
  flush();
  if (!signal?.aborted) onEnd?.();
}

/** @param {Response} response */
const isEvents = (response) => (response.headers.get("Content-Type") ?? "").startsWith("text/event-stream");

/** @param {ReadableStream<Uint8Array>} body @param {{feed: (text: string) => void}} parser */
async function feed(body, parser) {
  const reader = body.pipeThrough(/** @type {any} */ (new TextDecoderStream())).getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      parser.feed(value);
    }
  } finally {
    reader.cancel().catch(() => {}); // the connection, if what it brought could not be read
  }
}

/** @param {number} ms @param {AbortSignal} [signal] @returns {Promise<void>} */
function pause(ms, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
}
