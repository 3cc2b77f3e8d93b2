/** Ways through the graph of a flow: for the keyboard, for paths of steps, and for what an execution has taken. */

import { agree } from "../step-paths.js";

/** @typedef {import("./graph-layout.js").DefinitionGraph} DefinitionGraph */
/** @typedef {import("./graph-layout.js").GraphNode} GraphNode */
/** @typedef {import("./graph-layout.js").GraphEdge} GraphEdge */
/** @typedef {import("./graph-layout.js").Box} Box */
/**
 * @typedef {{status: string, entered?: number, attempts?: number, running?: number, waiting?: number, succeeded?: number,
 *   failed?: number, error?: string | null, first?: string | null, began?: string | null, last?: string | null,
 *   iterations?: {total: number, done: number, failed: number, running: number, aborted?: number} | null}} StepState
 *   a step summary
 * @typedef {Map<string, StepState>} States  by path, in the order in which the steps were entered first
 */

/** Names an edge in a set of taken ones. @param {GraphEdge} edge */
export const edgeKey = (edge) => `${edge.from} ${edge.kind} ${edge.index ?? "-"}`;

/**
 * The step that a path leads to: `pack[17].label` is drawn as `pack[].label`, and `ship[1]` as `ship`.
 * @param {DefinitionGraph} graph @param {string | null | undefined} path @returns {GraphNode | null}
 */
export function nodeOf(graph, path) {
  if (!path) return null;
  const exact = graph.nodes.find((node) => node.path === path);
  if (exact) return exact;
  return graph.nodes.find((node) => agree(node.path, path)) ?? nodeOf(graph, path.replace(/(\[\d*\]|\.?[^.[\]]+)$/, ""));
}

/** @type {WeakMap<DefinitionGraph, {out: GraphEdge[][], after: number[][], before: number[][]}>} */
const known = new WeakMap();

/**
 * For each step its edges, the steps that may follow it, and the reverse; the ends of lists lead on to what follows the
 * list. @param {DefinitionGraph} graph
 */
function neighbours(graph) {
  const found = known.get(graph);
  if (found) return found;
  /** @type {GraphEdge[][]} */
  const out = graph.nodes.map(() => []);
  for (const edge of graph.edges) out[edge.from].push(edge);
  /** @param {number} id @returns {number[]} */
  const behind = (id) => {
    const { list, parent } = graph.nodes[id];
    if (parent === null) return [];
    const { index } = graph.lists[list];
    const goto = out[parent].find((edge) => edge.kind === "goto" && edge.index === index);
    const ways = goto ? [goto] : out[parent].filter((edge) => edge.kind === "next" || edge.kind === "end");
    return ways.flatMap((edge) => (edge.to === null ? behind(parent) : [edge.to]));
  };
  const after = graph.nodes.map((node) => {
    const own = out[node.id].filter((edge) => node.type !== "choice" || edge.kind === "option" || edge.kind === "default");
    const inner = own.filter((edge) => edge.kind === "branch" || edge.kind === "iteration");
    return [...new Set([...inner, ...own].flatMap((edge) => (edge.to === null ? (node.type === "fail" ? [] : behind(node.id)) : [edge.to])))];
  });
  /** @type {number[][]} */
  const before = graph.nodes.map(() => []);
  for (const [id, followers] of after.entries()) for (const each of followers) before[each].push(id);
  const made = { out, after, before };
  known.set(graph, made);
  return made;
}

/**
 * Where an arrow key leads: up and down along edges (those that were taken first), left and right to what is beside.
 * @param {DefinitionGraph} graph @param {Box[]} boxes @param {number} id @param {string} key @param {(id: number) => boolean} wasEntered
 * @returns {number | null}
 */
export function walk(graph, boxes, id, key, wasEntered) {
  const shown = new Map(boxes.map((box) => [box.id, box]));
  const { after, before } = neighbours(graph);
  if (key === "ArrowDown" || key === "ArrowUp") {
    const down = key === "ArrowDown";
    const ways = (down ? after : before)[id].filter((each) => shown.has(each) && each !== id && (down ? each > id : each < id));
    return ways.find(wasEntered) ?? ways[0] ?? null;
  }
  const own = shown.get(id);
  if (!own) return null;
  const side = key === "ArrowRight" ? 1 : -1;
  const middle = (/** @type {Box} */ box) => [box.x + box.w / 2, box.y + box.head / 2];
  const [x, y] = middle(own);
  let best = null;
  let least = Infinity;
  for (const box of boxes) {
    const [dx, dy] = [(middle(box)[0] - x) * side, Math.abs(middle(box)[1] - y)];
    if (dx < 8 || dy > 3 * dx) continue;
    if (dx + 3 * dy < least) [best, least] = [box.id, dx + 3 * dy];
  }
  return best;
}

/**
 * The edges that an execution has taken, as far as its step summaries show: of two options that lead to the same step
 * both. @param {DefinitionGraph} graph @param {States} states @returns {Set<string>} keys of edges
 */
export function takenEdges(graph, states) {
  const order = new Map([...states.keys()].map((path, index) => [path, index]));
  const state = (/** @type {number} */ id) => states.get(graph.nodes[id].path);
  const rank = (/** @type {number} */ id) => order.get(graph.nodes[id].path) ?? -1;
  const times = (/** @type {number} */ id) => (state(id) ? (state(id)?.entered ?? 1) : 0);
  const isDone = (/** @type {number} */ id) => Boolean(state(id)?.succeeded ?? (state(id)?.status === "Succeeded"));
  const isOwn = (/** @type {GraphEdge} */ edge) => edge.to !== null && graph.nodes[edge.to].parent === edge.from;
  const { out } = neighbours(graph);
  /** @type {GraphEdge[]} */
  const taken = [];
  for (const node of graph.nodes) {
    if (!times(node.id)) continue;
    const edges = out[node.id];
    if (node.type === "choice") {
      taken.push(...optionsTaken(node, edges, { rank, times, isDone, isOwn }));
      continue;
    }
    for (const edge of edges) {
      const went = edge.to === null || times(edge.to) > 0;
      if (edge.kind === "catch" ? (state(node.id)?.failed ?? 0) > 0 && went : edge.kind === "next" || edge.kind === "end" ? isDone(node.id) && went : went) {
        taken.push(edge);
      }
    }
  }
  return new Set(taken.map(edgeKey));
}

/**
 * @param {GraphNode} node @param {GraphEdge[]} edges
 * @param {{rank: (id: number) => number, times: (id: number) => number, isDone: (id: number) => boolean, isOwn: (edge: GraphEdge) => boolean}} seen
 * @returns {GraphEdge[]}
 */
function optionsTaken(node, edges, { rank, times, isDone, isOwn }) {
  const options = edges.filter((edge) => edge.kind === "option" || edge.kind === "default");
  const own = options.filter((edge) => isOwn(edge) && edge.to !== null && times(edge.to) > 0);
  const direct = options.filter((edge) => !isOwn(edge));
  const led = direct.filter((edge) => edge.to !== null && (edge.to > node.id ? rank(edge.to) > rank(node.id) : times(edge.to) > 1));
  let chosen = [...own, ...led];
  if (times(node.id) === 1) {
    const forward = led.filter((edge) => edge.to !== null && edge.to > node.id);
    const soonest = Math.min(...forward.map((edge) => rank(/** @type {number} */ (edge.to))));
    chosen = own.length ? own : forward.length ? forward.filter((edge) => rank(/** @type {number} */ (edge.to)) === soonest) : led;
  }
  if (!chosen.length && isDone(node.id)) chosen = direct.filter((edge) => edge.to === null);
  const written = chosen.filter((edge) => edge.kind !== "default" || !chosen.some((other) => other !== edge && other.to === edge.to));
  const after = edges
    .filter((edge) => edge.kind === "next" || edge.kind === "end")
    .flatMap((edge) => own.map((option) => ({ ...edge, index: option.index })));
  const gone = [...edges.filter((edge) => edge.kind === "goto" && own.some((option) => option.index === edge.index)), ...after];
  return [...written, ...(isDone(node.id) ? gone : [])];
}
