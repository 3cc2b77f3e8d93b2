/** Step summaries: how they are read, and kept up to date by what the stream of events says. */
import { api } from "../../store.js";
import { agree } from "../../step-paths.js";

/**
 * @typedef {{path: string, status: string, entered: number, running: number, waiting: number, succeeded: number,
 *   failed: number, attempts: number, redrives: number, error: string | null, first: string, began: string, last: string,
 *   iterations: {total: number, done: number, failed: number, aborted: number, running: number} | null,
 *   changedBy?: number}} StepSummary  `changedBy`: the last event of the changes that have brought it
 * @typedef {{steps: StepSummary[], status: string, lastEventId: number, lastEventTime: string | null, complete: boolean}} Summary
 *   `complete`: whether the server has read all events
 * @typedef {{steps: StepSummary[] | null, status: string, lastEventId: number, lastEventTime: string}} Changes
 */

const STEPS_PAGE = 1_000;
const STEPS_MAX = 5_000;

/**
 * The whole summary, of all pages, which are of one moment.
 * @param {string} apiPath @param {number | null} at after which event; null: now @param {AbortSignal} signal
 * @param {number} [seconds] how long the server may read; else the summary is complete
 * @returns {Promise<Summary>}
 */
export async function readSummary(apiPath, at, signal, seconds) {
  const first = await api(`${apiPath}/steps`, { query: { at, within: seconds, limit: STEPS_PAGE }, signal });
  const steps = first.steps;
  let nextToken = first.nextToken;
  while (nextToken !== null && steps.length < STEPS_MAX) {
    const query = { at: first.lastEventId, limit: STEPS_PAGE, nextToken };
    const page = await api(`${apiPath}/steps`, { query, signal });
    steps.push(...page.steps);
    nextToken = page.nextToken;
  }
  return { ...first, steps };
}

/**
 * The summary after the changes; null if they do not say what it is.
 * @param {Summary} summary @param {Changes} changes @returns {Summary | null}
 */
export function withChanges(summary, { steps: changed, ...after }) {
  if (after.lastEventId <= summary.lastEventId) return summary;
  if (changed === null) return null;
  const steps = [...summary.steps];
  const places = new Map(steps.map((step, index) => [step.path, index]));
  const isWhole = steps.length < STEPS_MAX;
  for (const each of changed) {
    const step = { ...each, changedBy: after.lastEventId };
    const index = places.get(step.path);
    if (index !== undefined) steps[index] = step;
    else if (isWhole) steps.push(step);
  }
  return { ...summary, ...after, steps };
}

/**
 * A summary that was read, with the changes that are shown already and came after it.
 * @param {Summary} read @param {Summary} shown a later one, which may lack what the stream could not say @returns {Summary}
 */
export function withLater(read, shown) {
  const later = shown.steps.filter(({ changedBy = 0 }) => changedBy > read.lastEventId);
  const steps = new Map([...read.steps, ...later].map((step) => [step.path, step]));
  return { ...shown, steps: [...steps.values()] };
}

/**
 * The steps that an execution is at: what it said of them when it was read, of those that have not changed since.
 * @param {any} execution `readAfter`: an event that it knew of @param {Summary | null} summary
 * @returns {{shown: {path: string, status: string}[], count: number}}
 */
export function stepsAt(execution, summary) {
  const said = execution.currentSteps ?? [];
  if (!summary?.complete) return { shown: said, count: execution.currentStepCount ?? said.length };
  const running = summary.steps.filter((step) => step.running > 0);
  const around = new Set(running.flatMap((step) => pathsAround(step.path)));
  const inmost = running.filter((step) => !around.has(step.path));
  const shown = inmost.flatMap(({ path, changedBy = 0 }) => {
    const known = changedBy > execution.readAfter ? [] : said.filter((/** @type {any} */ each) => agree(each.path, path));
    return known.length ? known : [{ path, status: "Running" }];
  });
  return { shown, count: inmost.reduce((count, step) => count + step.running, 0) };
}

/** @param {string} path @returns {string[]} */
const pathsAround = (path) => [...path.matchAll(/[.[]/g)].map(({ index }) => path.slice(0, index));
