/**
 * Ranks and columns of the steps of a list, by dagre.
 *
 * A list is divided at the steps that every way passes, and dagre sees one part at a time: long flows stay quick to lay
 * out, and their main line stays straight. Links that run aside take no part.
 */
import { graphlib, layout as dagre } from "../vendor/dagre.js";

/** @typedef {import("./graph-layout.js").Item} Item */
/** @typedef {import("./graph-layout.js").Link} Link */

const COLUMNS_APART = 28;
const LINES_APART = 16;

/** Set `rank` and `x` of each item, and `via` of each link. @param {Map<string, Item>} items @param {Link[]} links */
export function setColumns(items, links) {
  const names = [...items.keys()].sort((a, b) => at(items, a).order - at(items, b).order);
  /** @type {Map<string, Link[]>} */
  const out = new Map(names.map((name) => [name, []]));
  for (const each of links) if (!each.aside) out.get(each.from)?.push(each);
  let furthest = -Infinity;
  let part = [names[0]];
  for (const [index, name] of names.entries()) {
    const { order } = at(items, name);
    if (index) part.push(name);
    if (index && ((Number.isInteger(order) && furthest <= order) || index === names.length - 1)) {
      layPart(part, items, out);
      part = [name];
    }
    for (const each of out.get(name) ?? []) furthest = Math.max(furthest, at(items, each.to).order);
  }
}

/** @param {Map<string, Item>} items @param {string} name */
const at = (items, name) => /** @type {Item} */ (items.get(name));

/**
 * Lay out a part below its first item, which is laid out already.
 * @param {string[]} names @param {Map<string, Item>} items @param {Map<string, Link[]>} out
 */
function layPart(names, items, out) {
  const [first, last] = [at(items, names[0]), at(items, names[names.length - 1])];
  if (names.length === 2) {
    [last.rank, last.x] = [first.rank + 1, first.x];
    return;
  }
  const links = names.slice(0, -1).flatMap((name) => out.get(name) ?? []);
  let graph = laidOut(names, items, links, []);
  const bottom = graph.node(names[names.length - 1]).y;
  const deeper = names.filter((name) => graph.node(name).y > bottom && !out.get(name)?.length);
  if (deeper.length) graph = laidOut(names, items, links, deeper); // the next part begins below all of this one
  const ys = [...new Set(names.map((name) => Math.round(graph.node(name).y)))].sort((a, b) => a - b);
  const shift = first.x - graph.node(names[0]).x;
  const begin = first.rank;
  for (const name of names) {
    const node = graph.node(name);
    const item = at(items, name);
    [item.rank, item.x] = [begin + ys.indexOf(Math.round(node.y)), node.x + shift];
  }
  const isAlone = names.every((name) => name === names[names.length - 1] || at(items, name).rank < last.rank);
  if (isAlone && names[names.length - 1] !== "exit") last.x = first.x; // the main line goes straight on
  for (const [index, link] of links.entries()) {
    /** @type {{x: number, y: number}[]} */
    const points = graph.edge(link.from, link.to, String(index)).points;
    const crossed = points.slice(1, -1).map(({ x, y }) => ({ rank: begin + ys.indexOf(Math.round(y)), x: x + shift }));
    link.via = crossed.filter(({ rank }) => rank > at(items, link.from).rank && rank < at(items, link.to).rank);
  }
}

/**
 * @param {string[]} names @param {Map<string, Item>} items @param {Link[]} links
 * @param {string[]} above items to keep above the last one
 */
function laidOut(names, items, links, above) {
  const graph = new graphlib.Graph({ multigraph: true });
  graph.setGraph({ nodesep: COLUMNS_APART, edgesep: LINES_APART, ranksep: 2 * LINES_APART });
  for (const name of names) graph.setNode(name, { width: Math.max(1, at(items, name).w), height: 1 });
  for (const [index, link] of links.entries()) {
    const weight = link.hidden || link.edge?.kind === "catch" ? 0 : link.to.startsWith("l") || link.edge?.kind === "next" ? 4 : 1;
    graph.setEdge(link.from, link.to, { weight }, String(index));
  }
  for (const name of above) graph.setEdge(name, names[names.length - 1], { weight: 0 }, "above");
  dagre(graph, { disableOptimalOrderHeuristic: true });
  return graph;
}
