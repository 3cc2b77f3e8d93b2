/** Ways through the graph of a flow: for the keyboard, for paths of steps, and for what an execution has taken. */

import { agree } from "../step-paths.js";

/** @typedef {import("./graph-layout.js").DefinitionGraph} DefinitionGraph */
/** @typedef {import("./graph-layout.js").GraphNode} GraphNode */
/** @typedef {import("./graph-layout.js").GraphEdge} GraphEdge */
/** @typedef {import("./graph-layout.js").Box} Box */
/**
 * @typedef {{status: string, entered?: number, attempts?: number, running?: number, waiting?: number, succeeded?: number,
 *   failed?: number, error?: string | null, first?: string | null, began?: string | null, last?: string | null,
 *   iterations?: {total: number, done: number, failed: number, running: number, aborted?: number} | null,
 *   options?: Record<string, number>, edges?: EdgeTaken[]}} StepState  a step summary
 * @typedef {{to: string | null, kind: string, index: number | null, count: number}} EdgeTaken
 * @typedef {Map<string, number>} Taken  how often each edge was taken, by `edgeKey`
 * @typedef {Map<string, StepState>} States  by path, in the order in which the steps were entered first
 */

/** The way to the first step, which is no edge of the graph. */
export const START = "start";

/** Names an edge among those that were taken. @param {GraphEdge} edge */
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
 * How often an execution took each edge, as the server counted them. An edge that the graph lacks, because the
 * definition was another one then, is left out, and so is a choice's of which no option is recorded.
 * @param {DefinitionGraph} graph @param {States} states @returns {Taken}
 */
export function takenEdges(graph, states) {
  const { out } = neighbours(graph);
  /** @type {Taken} */
  const taken = new Map(states.size ? [[START, 1]] : []);
  for (const node of graph.nodes) {
    for (const edge of stateOf(graph, states, node)?.edges ?? []) {
      const drawn = out[node.id].find((each) => isTaken(graph, node, each, edge));
      if (!drawn) continue;
      const key = edgeKey(edge.kind === "after" ? { ...drawn, index: edge.index } : drawn);
      taken.set(key, (taken.get(key) ?? 0) + edge.count);
    }
  }
  return taken;
}

/** @param {DefinitionGraph} graph @param {GraphNode} node @param {GraphEdge} drawn @param {EdgeTaken} edge */
function isTaken(graph, node, drawn, edge) {
  if ((drawn.to === null ? null : graph.nodes[drawn.to].path) !== edge.to) return false;
  const isSame = drawn.index === edge.index;
  const isNext = drawn.kind === "next" || drawn.kind === "end";
  if (edge.kind === "after") return isNext || (drawn.kind === "goto" && isSame);
  if (edge.kind === "next") return isNext && node.type !== "choice";
  return drawn.kind === edge.kind && (isSame || (edge.kind === "catch" && edge.index === null));
}

/**
 * What became of a step. Of two options that hold steps of the same path, the one that was not taken has none.
 * @param {DefinitionGraph} graph @param {States | null} states @param {GraphNode} node @returns {StepState | undefined}
 */
export function stateOf(graph, states, node) {
  return states && !isPassedBy(graph, states, node) ? states.get(node.path) : undefined;
}

/** @param {DefinitionGraph} graph @param {States} states @param {GraphNode} node @returns {boolean} */
function isPassedBy(graph, states, node) {
  const { kind, parent, index } = graph.lists[node.list];
  if (parent === null) return false;
  if (kind === "option" || kind === "default") {
    const choice = states.get(graph.nodes[parent].path);
    if (choice?.options && !isUnrecorded(choice) && !choice.options[index ?? kind]) return true;
  }
  return isPassedBy(graph, states, graph.nodes[parent]);
}

/** Whether an earlier version of the server ran a choice, and has not recorded its option. @param {StepState | undefined} choice */
export const isUnrecorded = (choice) => (choice?.edges ?? []).some((edge) => edge.kind === "next" || (edge.kind === "option" && edge.index === null));
