/** The steps of two runs beside each other, and in what they differ. */
import { duration } from "../../parts/durations.js";
import { edgeKey, isUnrecorded, takenEdges } from "../../parts/graph-walk.js";

/**
 * @typedef {{path: string, status: string, attempts: number, entered: number, error: string | null, began: string, last: string,
 *   running: number, iterations: {total: number, done: number, failed: number, running: number} | null,
 *   edges?: import("../../parts/graph-walk.js").EdgeTaken[]}} Step  a step summary
 * @typedef {{steps: Step[], graph: any, now: number}} Run  `now`: for steps that still run
 * @typedef {{path: string, a: Step | null, b: Step | null, msA: number, msB: number, differences: string[], note: string,
 *   optionA: string | null, optionB: string | null}} Row
 *   `note`: about the timing, which is no difference of what the runs did
 */

/** Beyond this factor and this many milliseconds a step is called slower. */
const SLOWER_FACTOR = 1.5;
const SLOWER_MS = 100;
const NOT_RECORDED = "option not recorded";

/** @param {Run} a @param {Run} b @returns {Row[]} in the order in which the steps were entered */
export function rowsOf(a, b) {
  const [stepsA, stepsB] = [byPath(a.steps), byPath(b.steps)];
  const [optionsA, optionsB] = [optionsOf(a), optionsOf(b)];
  return mergedPaths(a.steps, b.steps).map((path) => {
    const [stepA, stepB] = [stepsA.get(path) ?? null, stepsB.get(path) ?? null];
    const [msA, msB] = [took(stepA, a.now), took(stepB, b.now)];
    const [optionA, optionB] = [optionsA.get(path) ?? null, optionsB.get(path) ?? null];
    const differences = differencesOf(stepA, stepB);
    const isKnown = optionA !== NOT_RECORDED && optionB !== NOT_RECORDED;
    if (stepA && stepB && isKnown && optionA !== optionB) differences.unshift(`other option: ${optionA ?? "none"} → ${optionB ?? "none"}`);
    const notes = stepA && stepB ? [isKnown ? "" : NOT_RECORDED, pace(msA, msB)] : [];
    return { path, a: stepA, b: stepB, msA, msB, differences, note: notes.filter(Boolean).join(" · "), optionA, optionB };
  });
}

/** @param {Step[]} steps @returns {Map<string, Step>} */
const byPath = (steps) => new Map(steps.map((step) => [step.path, step]));

/**
 * All paths, each once: those of the first run in its order, the others behind the step that they followed.
 * @param {Step[]} first @param {Step[]} second @returns {string[]}
 */
function mergedPaths(first, second) {
  const paths = first.map((step) => step.path);
  const known = new Set(paths);
  let at = 0;
  for (const { path } of second) {
    if (known.has(path)) at = paths.indexOf(path) + 1;
    else paths.splice(at++, 0, path);
  }
  return paths;
}

/** Milliseconds from the begin of the step's last run to its last event. @param {Step | null} step @param {number} now */
function took(step, now) {
  if (!step) return 0;
  return Math.max(0, (step.running ? now : Date.parse(step.last)) - Date.parse(step.began));
}

/** @param {Step | null} a @param {Step | null} b @returns {string[]} */
function differencesOf(a, b) {
  if (!a || !b) return [a ? "only in A" : "only in B"];
  const found = [];
  if (a.status !== b.status) found.push(`${a.status} → ${b.status}`);
  if (a.error !== b.error) found.push(`error: ${a.error ?? "none"} → ${b.error ?? "none"}`);
  if (a.attempts !== b.attempts) found.push(`attempts: ${a.attempts} → ${b.attempts}`);
  if (a.entered !== b.entered) found.push(`entered: ${a.entered} → ${b.entered}`);
  const [total, other] = [a.iterations?.total ?? 0, b.iterations?.total ?? 0];
  if (total !== other) found.push(`iterations: ${total} → ${other}`);
  return found;
}

/** @param {number} a @param {number} b */
function pace(a, b) {
  const [less, more] = [Math.min(a, b), Math.max(a, b)];
  if (more - less < SLOWER_MS || more < less * SLOWER_FACTOR) return "";
  return `B ${b > a ? "slower" : "faster"} by ${duration(more - less)}`;
}

/** The options that each choice took, by path: their conditions, or "else". @param {Run} run @returns {Map<string, string>} */
function optionsOf({ steps, graph }) {
  const found = new Map();
  if (!graph) return found;
  const states = byPath(steps);
  const taken = takenEdges(graph, states);
  for (const edge of graph.edges) {
    if (edge.kind !== "option" && edge.kind !== "default") continue;
    const { path } = graph.nodes[edge.from];
    const times = taken.get(edgeKey(edge)) ?? 0;
    if (isUnrecorded(states.get(path))) found.set(path, NOT_RECORDED);
    if (!times || found.get(path) === NOT_RECORDED) continue;
    const label = `${edge.label ?? "else"}${times > 1 ? ` ×${times}` : ""}`;
    found.set(path, found.has(path) ? `${found.get(path)}, ${label}` : label);
  }
  return found;
}
