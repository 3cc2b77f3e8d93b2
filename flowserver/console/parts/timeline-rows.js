/** The rows of a timeline: steps in the order of the definition, and below a foreach that is open a page of its iterations. */
import { duration } from "./durations.js";

/**
 * @typedef {{path: string, status: string, entered: number, running: number, waiting: number, attempts: number, redrives: number,
 *   error: string | null, began: string, last: string,
 *   iterations: {total: number, done: number, failed: number, aborted: number, running: number} | null,
 *   visits?: Visit[], visitCount?: number}} Step as in step summaries
 * @typedef {{first: string, last: string | null, status: string, error: string | null,
 *   attempts: {first: string, last: string | null, error: string | null}[]}} Visit
 * @typedef {{path: string, type: string, call?: {pattern: string} | null}} Node as in graphs of definitions
 * @typedef {{index: number, path: string, status: string, step: string | null, attempts: number, error: string | null, first: string, last: string}} Iteration
 * @typedef {{begins: number[], status: string}} Opened `begins`: the index that each page up to the one shown begins with
 * @typedef {{iterations: Iteration[], counts: NonNullable<Step["iterations"]>, nextToken: string | null}} Page
 * @typedef {{from: number, to: number, tone: string}} Part
 * @typedef {{from: number, to: number, status: string, error: string | null, isRunning: boolean, parts: Part[]}} Bar
 *   a visit of a step with its attempts, or an iteration
 * @typedef {{from: number, to: number, count: number}} More  visits that the server does not tell one by one
 * @typedef {{key: string, kind: "step" | "iteration" | "pager", path: string, label: string, hint: string, depth: number, status: string,
 *   opens: boolean, isOpen: boolean, isRunning: boolean, waits: string | null, bars: Bar[], more: More | null, note: string, error: string,
 *   counts?: Step["iterations"], opened?: Opened, page?: Page, problem?: any, isEnd?: boolean}} Row
 */

/** A page of so many iterations has buttons to turn it at its end, too. */
const LONG_PAGE = 20;

const PATH_OF_NAME = /^(?:(.*)\.)?([^.]*)$/;

/** The path of the step that holds it, and its number there: `[]` of an iteration, `[1]` of a branch. @param {string} path */
function splitPath(path) {
  const [, before = "", name] = /** @type {RegExpExecArray} */ (PATH_OF_NAME.exec(path));
  const [, parent, number = ""] = /** @type {RegExpExecArray} */ (/^(.*?)(\[\d*\])?$/.exec(before));
  return { parent, number, name };
}

/**
 * Paths in the order of the definition; those that it lacks, because it has changed since, follow the step that holds them.
 * @param {Step[]} steps @param {Node[]} nodes @returns {string[]}
 */
function pathsInOrder(steps, nodes) {
  const paths = [...new Set([...nodes.map((node) => node.path), ...steps.map((step) => step.path)])];
  const known = new Set(paths);
  /** @type {Map<string, string[]>} */
  const inner = new Map();
  for (const path of paths) {
    let { parent } = splitPath(path);
    while (parent && !known.has(parent)) parent = splitPath(parent).parent;
    inner.set(parent, [...(inner.get(parent) ?? []), path]);
  }
  /** @type {string[]} */
  const ordered = [];
  const take = (/** @type {string} */ path) => {
    ordered.push(path);
    const own = inner.get(path) ?? [];
    const branch = (/** @type {string} */ each) => Number(/^\[(\d+)\]/.exec(each.slice(path.length))?.[1] ?? -1);
    own.sort((a, b) => branch(a) - branch(b)).forEach(take);
  };
  (inner.get("") ?? []).forEach(take);
  return ordered;
}

/** The status of a step that waits and does not work; null of others. @param {Node | undefined} node */
function waitOf(node) {
  if (node?.type === "wait") return "Waiting";
  return node?.call?.pattern === "waitForCallback" ? "WaitingForToken" : null;
}

/**
 * When steps that hold no others work; of the others, when they begin and end. What is not among that is idle time.
 * @param {Step[]} steps @param {Node[]} nodes @param {number} now @returns {{from: number, to: number}[]}
 */
export function busySpans(steps, nodes, now) {
  const holders = new Set(steps.map((step) => splitPath(step.path).parent));
  const byPath = new Map(nodes.map((node) => [node.path, node]));
  return steps.flatMap((step) => {
    const { bars, more } = barsOf(step, now);
    const works = !holders.has(step.path) && !waitOf(byPath.get(step.path)) && step.waiting === 0;
    if (works) return more ? [...bars, more] : bars;
    return bars.flatMap(({ from, to, isRunning }) => (isRunning ? [{ from, to: from }] : [{ from, to: from }, { from: to, to }]));
  });
}

/** @param {Step} step @returns {string} */
function noteOf(step) {
  const notes = [];
  const loop = step.iterations;
  if (loop) {
    notes.push(loop.done ? `${loop.done.toLocaleString()} ✔` : "", loop.failed ? `${loop.failed.toLocaleString()} ✕` : "");
    notes.push(loop.aborted ? `${loop.aborted.toLocaleString()} ■` : "", loop.running ? `${loop.running.toLocaleString()} ▸` : "");
    const left = loop.total - loop.done - loop.failed - loop.aborted - loop.running;
    notes.push(left ? `${left.toLocaleString()} to come` : "");
  } else if (step.entered > 1) notes.push(`${step.entered.toLocaleString()} times`);
  const retried = step.attempts - step.entered;
  if (retried > 0) notes.push(`×${retried.toLocaleString()} retried`);
  if (step.redrives) notes.push(`${step.redrives} redrive${step.redrives > 1 ? "s" : ""}`);
  const took = step.running ? null : tookOf(step);
  if (took !== null) notes.push(duration(took));
  return notes.filter(Boolean).join(" · ");
}

/** How long its visits took since it began last, without the time between them; null if some are not told. @param {Step} step */
function tookOf(step) {
  const bars = barsOf(step, NaN).bars.filter((bar) => bar.from >= Date.parse(step.began));
  if (step.path.includes("[]")) return Date.parse(step.last) - Date.parse(step.began); // side by side
  return bars.length < step.entered ? null : bars.reduce((sum, bar) => sum + bar.to - bar.from, 0);
}

/** A bar for each visit that the server tells, and where the others were. @param {Step} step @param {number} now */
function barsOf(step, now) {
  const visits = step.visits ?? [];
  /** @type {Bar[]} */
  const bars = visits.map(({ first, last, status, error, attempts }) => ({
    from: Date.parse(first),
    to: last === null ? now : Date.parse(last),
    status,
    error,
    isRunning: last === null,
    parts: attempts.map((each) => ({
      from: Date.parse(each.first),
      to: each.last === null ? now : Date.parse(each.last),
      tone: each.error !== null ? "fail" : each.last === null ? "run" : "ok",
    })),
  }));
  const count = (step.visitCount ?? 0) - visits.length;
  const middle = visits.length / 2;
  /** @type {More | null} */
  const more = count > 0 ? { from: bars[middle - 1].to, to: Math.max(bars[middle - 1].to, bars[middle].from), count } : null;
  return { bars, more };
}

/**
 * @param {{steps: Step[], nodes: Node[], now: number, opened: Map<string, Opened>, pages: Map<string, Page | {problem: any}>}} given
 * @returns {Row[]}
 */
export function rowsOf({ steps, nodes, now, opened, pages }) {
  const byPath = new Map(steps.map((step) => [step.path, step]));
  const nodeAt = new Map(nodes.map((node) => [node.path, node]));
  const loops = steps.filter((step) => step.iterations).map((step) => step.path);
  /** @type {Row[]} */
  const rows = [];
  for (const path of pathsInOrder(steps, nodes)) {
    const step = byPath.get(path);
    const depth = path.split(".").length - 1;
    const { name, number } = splitPath(path);
    const base = { key: path, kind: /** @type {const} */ ("step"), path, label: name, hint: number === "[]" ? "each" : number, depth };
    if (!step) {
      rows.push({ ...NOTHING, ...base });
      continue;
    }
    const opens = step.iterations !== null && !path.includes("[]");
    rows.push({
      ...base, status: step.waiting ? "WaitingForRedrive" : step.status, opens, isOpen: opened.has(path),
      ...barsOf(step, now), isRunning: step.running > 0, waits: waitOf(nodeAt.get(path)), note: noteOf(step), error: step.error ?? "",
    });
    if (opens) addIterations(path, depth + 1, step.iterations);
  }
  return rows;

  /** @param {string} path of the foreach, with numbers @param {number} depth @param {Step["iterations"]} counts */
  function addIterations(path, depth, counts) {
    const state = opened.get(path);
    if (!state) return;
    const found = pages.get(path);
    const page = found && "iterations" in found ? found : undefined;
    const problem = found && "problem" in found ? found.problem : undefined;
    rows.push({ ...NOTHING, key: `${path}[`, kind: "pager", path, depth, opened: state, page, problem, counts: page?.counts ?? counts });
    for (const each of page?.iterations ?? []) {
      const inner = loops.filter((loop) => isWithin(loop, each.path));
      const isRunning = each.status === "Running";
      const retried = each.attempts > 1 ? [`${each.attempts} attempts`] : [];
      const took = isRunning ? [] : [duration(Date.parse(each.last) - Date.parse(each.first))];
      const [from, to, error] = [Date.parse(each.first), isRunning ? now : Date.parse(each.last), each.error ?? ""];
      rows.push({
        ...NOTHING, key: each.path, kind: "iteration", path: each.path, label: `[${each.index}]`, hint: each.status === "Succeeded" || !each.step ? "" : `at ${each.step}`,
        depth, status: each.status, opens: inner.length > 0, isOpen: opened.has(each.path),
        bars: [{ from, to, status: each.status, error, isRunning, parts: [] }], isRunning, note: [...retried, ...took].join(" · "), error,
      });
      if (opened.has(each.path)) for (const loop of inner) addInner(loop, each, depth + 1);
    }
    if (page && page.iterations.length >= LONG_PAGE) rows.push({ ...NOTHING, key: `${path}]`, kind: "pager", path, depth, opened: state, page, isEnd: true });
  }

  /** @param {string} loop @param {Iteration} around @param {number} depth */
  function addInner(loop, around, depth) {
    const path = numbered(loop, around.path);
    rows.push({
      ...NOTHING, key: path, path, label: path.slice(around.path.length + 1), depth, status: around.status, opens: true, isOpen: opened.has(path),
    });
    addIterations(path, depth + 1, null);
  }
}

const NOTHING = {
  key: "", kind: /** @type {const} */ ("step"), path: "", label: "", hint: "", depth: 0, status: "NotReached", opens: false, isOpen: false,
  isRunning: false, waits: null, bars: /** @type {Bar[]} */ ([]), more: null, note: "", error: "",
};

/** Whether a foreach is in that iteration, and in no further foreach within it. @param {string} loop @param {string} iteration */
function isWithin(loop, iteration) {
  const length = matching(loop, iteration);
  const pattern = loop.slice(0, length).replace(/[.[\]]/g, "\\$&").replaceAll("\\[\\]", "\\[\\d+\\]");
  const rest = loop.slice(length);
  return rest.startsWith(".") && !rest.includes("[]") && new RegExp(`^${pattern}$`).test(iteration);
}

/** How long the begin of the loop's path is that stands for the iteration's. @param {string} loop @param {string} iteration */
function matching(loop, iteration) {
  const count = iteration.split("[").length - 1;
  let at = 0;
  for (let found = 0; found < count; found++) at = loop.indexOf("]", at) + 1;
  return at;
}

/** The loop's path with the numbers of the iteration. @param {string} loop @param {string} iteration */
function numbered(loop, iteration) {
  return iteration + loop.slice(matching(loop, iteration));
}
