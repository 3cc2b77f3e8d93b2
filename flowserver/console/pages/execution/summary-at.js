/** The step summary as it is, or as it was after an event. */
import { useEffect, useRef, useState } from "../../vendor/preact.js";
import { isPassing } from "../../store.js";
import { readSummary } from "./summaries.js";

/** @typedef {import("./summaries.js").Summary} Summary */

const KEPT_MAX = 60;
const AGAIN_MS = 5_000;

/**
 * Of an event of the past: one question at a time, and the last one wins, however fast the scrubber is moved.
 * @param {import("./run.js").Run} run @param {number | null} at
 * @returns {{summary: Summary | null, isBehind: boolean}} `isBehind`: what is shown belongs to another event
 */
export function useSummary(run, at) {
  const kept = useRef(/** @type {Map<number, Summary>} */ (new Map())).current;
  const state = useRef({ wanted: at, isReading: false, before: /** @type {Summary | null} */ (null) }).current;
  const [, paint] = useState(0);
  state.wanted = at;
  useEffect(() => {
    const read = async () => {
      if (state.isReading) return;
      state.isReading = true;
      while (state.wanted !== null && !kept.has(state.wanted) && !run.stop.signal.aborted) {
        const wanted = state.wanted;
        try {
          kept.set(wanted, await readSummary(run.apiPath, wanted, run.stop.signal));
        } catch (error) {
          if (run.stop.signal.aborted) break;
          run.error.value = error;
          if (isPassing(error)) setTimeout(read, AGAIN_MS);
          break;
        }
        run.error.value = null;
        if (kept.size > KEPT_MAX) kept.delete(/** @type {number} */ (kept.keys().next().value));
        paint((count) => count + 1);
      }
      state.isReading = false;
    };
    void read();
  }, [run, at]);
  const now = run.now.value;
  if (at === null) {
    state.before = null;
    return { summary: now, isBehind: false };
  }
  const found = kept.get(at) ?? null;
  if (found) state.before = found;
  return { summary: found ?? state.before ?? now, isBehind: !found };
}
