/** Where instants are across the timeline. Long times in which nothing works are cut out. Instants and spans in ms. */
import { duration } from "./durations.js";

/** @typedef {{from: number, to: number}} Span */
/** @typedef {{x: (ms: number) => number, ticks: {x: number, label: string}[], breaks: (Span & {x: number})[]}} Scale */

/** Idle time is cut out if it is longer than so many medians of the times that steps work, */
const MEDIANS = 10;
/** a second, */
const IDLE_MS_MIN = 1_000;
/** and this part of the whole. */
const PART_MIN = 1 / 20;
export const BREAK_PX = 14;
const TICK_PX = 88;

/**
 * When no step works, for so long that it is cut out.
 * @param {Span[]} busy when steps work; waits are not among them @param {number} from @param {number} to @returns {Span[]}
 */
export function idleSpans(busy, from, to) {
  const lengths = busy.map((span) => span.to - span.from).filter((length) => length > 0).sort((a, b) => a - b);
  const median = Math.max(1, lengths[lengths.length >> 1] ?? 1);
  const least = Math.max(IDLE_MS_MIN, MEDIANS * median, (to - from) * PART_MIN);
  const idle = [];
  let end = from;
  for (const span of [...busy].sort((a, b) => a.from - b.from)) {
    if (span.from - end > least) idle.push({ from: end, to: Math.min(span.from, to) });
    end = Math.max(end, span.to);
  }
  if (to - end > least) idle.push({ from: end, to });
  return idle.length * BREAK_PX * 3 > TICK_PX * 10 ? [] : idle;
}

/** The end of the axis while an execution runs: it moves in steps, so that bars at rest seldom move. @param {number} from @param {number} now */
export function endAhead(from, now) {
  let length = 2_000;
  while (length < now - from) length *= 1.5;
  return from + length;
}

/**
 * @param {Span} whole @param {Span[]} cut times that take no room @param {number} widthPx
 * @returns {Scale}
 */
export function scaleOf(whole, cut, widthPx) {
  const width = Math.max(1, widthPx - cut.length * BREAK_PX);
  const shown = Math.max(1, whole.to - whole.from - cut.reduce((sum, span) => sum + span.to - span.from, 0));
  const perMs = width / shown;
  const x = (/** @type {number} */ ms) => {
    let at = Math.min(Math.max(ms, whole.from), whole.to) - whole.from;
    let breaks = 0;
    for (const span of cut) {
      if (ms <= span.from) break;
      at -= Math.min(ms, span.to) - span.from;
      breaks += ms >= span.to ? BREAK_PX : BREAK_PX / 2;
    }
    return at * perMs + breaks;
  };
  const step = niceStep((shown * TICK_PX) / width);
  const ticks = [];
  for (let ms = 0; ms <= whole.to - whole.from && ticks.length < 100; ms += step) {
    const at = whole.from + ms;
    const inside = cut.find((span) => at > span.from && at < span.to);
    if (inside) ms = Math.ceil((inside.to - whole.from) / step - 1) * step;
    else ticks.push({ x: x(at), label: elapsed(ms) });
  }
  return { x, ticks: apart(ticks, widthPx), breaks: cut.map((span) => ({ ...span, x: x(span.from) })) };
}

/** Ticks that do not run into each other or over the end. @param {{x: number, label: string}[]} ticks @param {number} widthPx */
function apart(ticks, widthPx) {
  let last = -TICK_PX;
  return ticks.filter((tick) => {
    if (tick.x - last < TICK_PX * 0.6 || tick.x > widthPx - 36) return false;
    last = tick.x;
    return true;
  });
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400].map((s) => s * 1_000)];

/** @param {number} least @returns {number} */
function niceStep(least) {
  const found = STEPS.find((step) => step >= least);
  return found ?? Math.ceil(least / 86_400_000) * 86_400_000;
}

/** Time since the begin. @param {number} ms @returns {string} */
export function elapsed(ms) {
  if (ms === 0) return "0";
  return ms >= 1_000 && ms < 60_000 ? `${Number((ms / 1_000).toFixed(1))}s` : duration(ms);
}
