/** What the inspector shows: the events of the selected step, read again while it moves. */
import { useEffect, useRef, useState } from "../../vendor/preact.js";
import { api, isPassing } from "../../store.js";
import { nodeOf } from "../../parts/graph-walk.js";
import { entriesOf, isMany } from "../../parts/step-story.js";
import { agree } from "../../step-paths.js";

const EVENTS = 100;
const FAILURES = 20;
const READ_AGAIN_MS = 300;
/** After an error that may pass. */
const TRY_AGAIN_MS = 5_000;
/** Who holds a key down passes many events; what is passed is not asked for. */
const HURRY_MS = 120;
/** @type {{path: string | null, entries: any, failures: any, event: any, hasOlder: boolean, error: any}} */
const NOTHING = { path: null, entries: null, failures: null, event: null, hasOlder: false, error: null };
const FAILED = ["StepFailed", "StepWaitingForRedrive"];

/**
 * @param {import("./run.js").Run} run @param {string | null} path @param {number | null} at
 * @param {{states: Map<string, any> | null, graph: any, execution: any, until: string | null}} known
 * @returns {import("../../parts/inspector.js").Inspected | null}
 */
export function useInspected(run, path, at, { states, graph, execution, until }) {
  const [read, setRead] = useState(NOTHING);
  const asked = useRef(-Infinity);
  const isLoop = graph && path ? nodeOf(graph, path)?.type === "foreach" : false;
  useEffect(() => {
    if (!path) return;
    const stop = new AbortController();
    const load = async () => {
      try {
        const found = await eventsOf(run, path, at, isLoop, stop.signal);
        setRead({ path, ...found, error: null });
      } catch (error) {
        if (stop.signal.aborted) return;
        setRead({ ...NOTHING, path, error });
        if (isPassing(error)) loads.ask(TRY_AGAIN_MS);
      }
    };
    const listen = (/** @type {any[]} */ events) => {
      const own = events.filter((event) => covers(path, event.stepPath ?? ""));
      if (own.length) loads.ask(READ_AGAIN_MS);
      if (own.some((event) => event.type === "StepEntered")) run.lookSoon(); // what it waits for
    };
    const loads = oneAtATime(load);
    const isHurried = performance.now() - asked.current < HURRY_MS;
    asked.current = performance.now();
    loads.ask(isHurried ? HURRY_MS : 0);
    if (at === null) run.listeners.add(listen);
    return () => {
      stop.abort();
      loads.end();
      run.listeners.delete(listen);
    };
  }, [run, path, at, isLoop]);
  if (!path) return null;
  const node = graph ? nodeOf(graph, path) : null;
  const { entries, failures, event, hasOlder, error } = read.path === path ? read : NOTHING;
  const current = at === null ? (execution?.currentSteps?.find((/** @type {any} */ each) => each.path === path) ?? null) : null;
  return { path, node, current, until, summary: states?.get(node?.path ?? path) ?? null, entries: at === null && until ? closed(entries, until) : entries, failures, event, hasOlder, error };
}

/**
 * Loads what was asked for after a while; asked again meanwhile, it loads once more when it is done.
 * @param {() => Promise<void>} load which does not throw
 */
export function oneAtATime(load) {
  let timer = 0;
  let isLoading = false;
  let isOver = false;
  /** @type {number | null} */
  let again = null;
  const begin = async () => {
    timer = 0;
    isLoading = true;
    await load();
    isLoading = false;
    if (again !== null) ask(again);
    again = null;
  };
  const ask = (/** @type {number} */ ms) => {
    if (isOver) return;
    if (isLoading) again = ms;
    else timer ||= setTimeout(begin, ms);
  };
  const end = () => {
    isOver = true;
    clearTimeout(timer);
  };
  return { ask, end };
}

/**
 * @param {import("./run.js").Run} run @param {string} path @param {number | null} at @param {boolean} isLoop a foreach, whose
 *   failed iterations are looked for, too @param {AbortSignal} signal
 */
async function eventsOf(run, path, at, isLoop, signal) {
  const asked = { before: at === null ? null : at + 1, order: "desc", paths: true };
  const ask = (/** @type {any} */ query) => api(`${run.apiPath}/events`, { query: { ...asked, ...query }, signal });
  const askFailures = async (/** @type {any} */ query) => {
    const page = await ask({ ...query, type: FAILED, limit: FAILURES });
    return page.events.map((/** @type {any} */ each) => ({ path: each.stepPath, error: each.detail.error, cause: each.detail.cause, eventId: each.eventId }));
  };
  if (isMany(path)) return { entries: null, failures: await askFailures({ path }), event: null, hasOlder: false };
  const [page, failures] = await Promise.all([ask({ path, limit: EVENTS }), isLoop ? askFailures({ step: path.endsWith("]") ? path : `${path}[]` }) : null]);
  const event = page.events.find((/** @type {any} */ each) => each.eventId === at) ?? null;
  return { entries: entriesOf(page.events.reverse()), failures, event, hasOlder: page.nextToken !== null };
}

/**
 * Entries of an execution that has ended: what was under way has no event of its end.
 * @param {import("../../parts/step-story.js").Entry[] | null} entries @param {string} stoppedAt
 */
function closed(entries, stoppedAt) {
  return entries?.map((each) => (each.status === "Running" ? { ...each, status: "Aborted", endedAt: stoppedAt } : each)) ?? null;
}

/** @param {string} path which may stand for many @param {string} other */
const covers = (path, other) => path === other || (isMany(path) && agree(path, other));
