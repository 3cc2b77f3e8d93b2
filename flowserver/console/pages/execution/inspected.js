/** What the inspector shows: the events of the selected step, read again while it moves. */
import { useEffect, useState } from "../../vendor/preact.js";
import { api } from "../../store.js";
import { entriesOf, isMany } from "../../parts/step-story.js";

const EVENTS = 100;
const FAILURES = 20;
const READ_AGAIN_MS = 300;
/** @type {{path: string | null, entries: any, failures: any, hasOlder: boolean, error: any}} */
const NOTHING = { path: null, entries: null, failures: null, hasOlder: false, error: null };
const FAILED = ["StepFailed", "StepWaitingForRedrive"];

/**
 * @param {import("./run.js").Run} run @param {string | null} path @param {number | null} at
 * @param {{states: Map<string, any>, graph: any, execution: any}} known
 * @returns {import("../../parts/inspector.js").Inspected | null}
 */
export function useInspected(run, path, at, { states, graph, execution }) {
  const [read, setRead] = useState(NOTHING);
  useEffect(() => {
    if (!path) return;
    const stop = new AbortController();
    let timer = 0;
    const load = async () => {
      timer = 0;
      try {
        const found = await eventsOf(run, path, at, stop.signal);
        setRead({ path, ...found, error: null });
      } catch (error) {
        if (!stop.signal.aborted) setRead({ path, entries: null, failures: null, hasOlder: false, error });
      }
    };
    const listen = (/** @type {any[]} */ events) => {
      if (events.some((event) => covers(path, event.stepPath ?? ""))) timer ||= setTimeout(load, READ_AGAIN_MS);
    };
    void load();
    if (at === null) run.listeners.add(listen);
    return () => {
      stop.abort();
      clearTimeout(timer);
      run.listeners.delete(listen);
    };
  }, [run, path, at]);
  if (!path) return null;
  const node = graph ? nodeOf(graph, path) : null;
  const { entries, failures, hasOlder, error } = read.path === path ? read : NOTHING;
  const current = at === null ? (execution?.currentSteps?.find((/** @type {any} */ each) => each.path === path) ?? null) : null;
  return { path, node, current, summary: states.get(node?.path ?? path) ?? states.get(path) ?? null, entries, failures, hasOlder, error };
}

/** @param {import("./run.js").Run} run @param {string} path @param {number | null} at @param {AbortSignal} signal */
async function eventsOf(run, path, at, signal) {
  const before = at === null ? null : at + 1;
  const asked = { path, before, order: "desc", paths: true };
  if (isMany(path)) {
    const page = await api(`${run.place}/events`, { query: { ...asked, type: FAILED, limit: FAILURES }, signal });
    const failures = page.events.map((/** @type {any} */ each) => ({ path: each.stepPath, error: each.detail.error, cause: each.detail.cause, eventId: each.eventId }));
    return { entries: null, failures, hasOlder: page.nextToken !== null };
  }
  const page = await api(`${run.place}/events`, { query: { ...asked, limit: EVENTS }, signal });
  const entries = entriesOf(page.events.reverse());
  return { entries, failures: null, hasOlder: page.nextToken !== null };
}

/** @param {string} path which may stand for many @param {string} other */
const covers = (path, other) => path === other || (isMany(path) && path === other.replace(/\[\d+\]/g, "[]"));

/**
 * The step of the graph that a path leads to: `pack[17].label` is `pack[].label`, `ship[1]` is `ship`.
 * @param {any} graph @param {string} path @returns {any}
 */
export function nodeOf(graph, path) {
  const exact = graph.nodes.find((/** @type {any} */ node) => node.path === path);
  if (exact) return exact;
  const pattern = path.replace(/\[\d*\]/g, "[]");
  const numbers = path.match(/\[\d*\]/g) ?? [];
  const found = graph.nodes.find((/** @type {any} */ node) => {
    if (node.path.replace(/\[\d*\]/g, "[]") !== pattern) return false;
    const own = node.path.match(/\[\d*\]/g) ?? [];
    return own.every((/** @type {string} */ each, /** @type {number} */ index) => each === "[]" || each === numbers[index]);
  });
  if (found) return found;
  const shorter = path.replace(/(\[\d*\]|\.?[^.[\]]+)$/, "");
  return shorter ? nodeOf(graph, shorter) : null;
}
