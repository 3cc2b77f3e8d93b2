/**
 * Where the steps of a flow are drawn: a pure function of the graph that `POST v1/definitions/graph` gives.
 *
 * Each list of steps is laid out by itself, and then placed in the frame of the parallel or foreach step that holds it,
 * or under the choice whose option it is. `graph-columns.js` finds ranks and columns, `graph-lines.js` the heights of
 * ranks and the lines between them.
 */
import { putBlock } from "./graph-blocks.js";
import { setColumns } from "./graph-columns.js";
import { routed } from "./graph-lines.js";

/**
 * @typedef {{kind: string, name: string, pattern: string, flow: string | null, retries: number, timeoutSeconds: number | null}} Call
 * @typedef {{id: number, path: string, name: string, type: string, title: string | null, line: number, endLine: number,
 *   list: number, parent: number | null, call: Call | null, 
 *   wait: {seconds: number | null, until: string | null, path: string | null} | null,
 *   foreach: {source: string, item: string, index: string | null} | null}} GraphNode
 * @typedef {{id: number, kind: string, parent: number | null, index: number | null, nodes: number[]}} GraphList
 * @typedef {{from: number, to: number | null, kind: string, label: string | null, index: number | null}} GraphEdge
 * @typedef {{nodes: GraphNode[], lists: GraphList[], edges: GraphEdge[]}} DefinitionGraph
 *
 * @typedef {{id: number, x: number, y: number, w: number, h: number, head: number}} Box  a step; `head` is the height
 *   of its own part, and less than `h` if it is a frame around other steps
 * @typedef {[number, number]} Point
 * @typedef {{key: string, edge: GraphEdge | null, more: GraphEdge[], points: Point[], arrow: boolean, back: boolean, spare: boolean}} Line
 *   `more`: options that share it; `spare`: the only way to its end, though it is a catch
 * @typedef {{text: string, full: string, x: number, y: number, w: number, edge: GraphEdge | null}} Label
 * @typedef {{w: number, h: number, entry: number, exit: number | null, boxes: Box[], lines: Line[], labels: Label[], dots: Point[]}} Block
 *   `entry` and `exit` are where control comes in at the top and leaves at the bottom
 *
 * @typedef {{w: number, h: number, entry: number, exit: number | null, block: Block | null, labels: Label[],
 *   order: number, rank: number, x: number}} Item  `order` is its position in the list; labels and options have their
 *   choice's and a half. `x` is its middle
 * @typedef {{rank: number, x: number}} Stop  where a line crosses a rank
 * @typedef {{from: string, to: string, edge: GraphEdge | null, more: GraphEdge[], back: boolean, aside: boolean, hidden: boolean,
 *   spare: boolean, via: Stop[]}} Link  a line to come. Those that lead back and most catches run aside, which is beside
 *   the list; those that are hidden only keep steps in order
 */

export const NODE_HEIGHT = 44;
const HEAD_HEIGHT = 52;
const GAP = 24;
const PAD = 12;
const DOT = 12;
const LABEL_HEIGHT = 18;
const LABEL_CHARACTERS = 28;
/** Ways that skip more steps than this run beside the list, so that its main line stays straight and soon laid out. */
const SKIPPED_MAX = 6;

/** @type {WeakMap<DefinitionGraph, Map<string, Block>>} */
const known = new WeakMap();

/**
 * The picture of a graph, computed once for each graph and set of folded steps.
 * @param {DefinitionGraph} graph @param {Set<number>} [folded] foreach and parallel steps that hide what they hold
 * @returns {Block}
 */
export function layoutOf(graph, folded = new Set()) {
  const key = [...folded].sort().join();
  const kept = known.get(graph) ?? new Map();
  known.set(graph, kept);
  if (!kept.has(key)) kept.set(key, new Layout(graph, folded).list(graph.lists[0]));
  return kept.get(key);
}

/** Lead the ways out of a block down to the bottom of its frame. @param {Block} block @param {number} height */
function reach(block, height) {
  for (const { arrow, points } of block.lines) {
    const last = points[points.length - 1];
    if (!arrow && last[0] === block.exit && last[1] === block.h) points[points.length - 1] = [last[0], height];
  }
}

/** @param {string} text @param {number} characters */
export function cut(text, characters) {
  return text.length <= characters ? text : `${text.slice(0, characters - 1)}…`;
}

class Layout {
  /** @param {DefinitionGraph} graph @param {Set<number>} folded */
  constructor(graph, folded) {
    this.graph = graph;
    this.folded = folded;
    /** @type {Map<number, GraphEdge[]>} */
    this.out = new Map(graph.nodes.map((node) => [node.id, []]));
    for (const edge of graph.edges) this.out.get(edge.from)?.push(edge);
    /** @type {Map<number, GraphList[]>} */
    this.inner = new Map(graph.nodes.map((node) => [node.id, []]));
    for (const list of graph.lists) if (list.parent !== null) this.inner.get(list.parent)?.push(list);
  }

  /** @param {GraphList} list @returns {Block} */
  list(list) {
    /** @type {Map<string, Item>} */
    const items = new Map();
    const longest = Math.max(...list.nodes.map((id) => this.graph.nodes[id].name.length));
    const width = Math.round(Math.min(280, Math.max(176, 84 + longest * 7.3)));
    /** @type {Map<number, number>} */
    const orders = new Map(list.nodes.map((id, order) => [id, order]));
    for (const [id, order] of orders) items.set(`n${id}`, { ...this.step(this.graph.nodes[id], width), order });
    /** @type {Link[]} */
    const links = [];
    for (const id of list.nodes) this.links(id, orders, items, links);
    const isRoot = list.kind === "root";
    if (isRoot) {
      items.set("start", item({ w: DOT, h: DOT, order: -1 }));
      links.push(link("start", `n${list.nodes[0]}`, null));
    }
    const end = isRoot ? DOT : 0;
    if (links.some((each) => each.to === "exit")) items.set("exit", item({ w: end, h: end, order: orders.size }));
    connect(items, links, `n${list.nodes[0]}`);
    setColumns(items, links);
    return routed(items, links, isRoot ? "start" : `n${list.nodes[0]}`);
  }

  /** A step with what it holds. @param {GraphNode} node @param {number} width @returns {Item} */
  step(node, width) {
    const inner = node.type === "choice" || this.folded.has(node.id) ? [] : (this.inner.get(node.id) ?? []);
    const isFrame = node.type === "parallel" || node.type === "foreach";
    const head = isFrame ? HEAD_HEIGHT : NODE_HEIGHT;
    const blocks = inner.map((list) => this.list(list));
    const held = blocks.reduce((sum, block) => sum + block.w + GAP, -GAP) + 2 * PAD;
    const w = Math.max(isFrame ? width + 32 : width, blocks.length ? held : 0);
    const bottom = blocks.length ? Math.max(...blocks.map((block) => block.h)) + GAP + PAD : 0;
    /** @type {Block} */
    const all = { w, h: head + bottom, entry: w / 2, exit: w / 2, boxes: [], lines: [], labels: [], dots: [] };
    all.boxes.push({ id: node.id, x: 0, y: 0, w, h: all.h, head });
    let x = (w - held) / 2 + PAD;
    for (const [index, block] of blocks.entries()) {
      reach(block, bottom - GAP);
      putBlock(block, x, head + GAP, all);
      /** @type {GraphEdge | undefined} */
      const way = this.out.get(node.id)?.find((edge) => edge.to === inner[index].nodes[0]);
      all.lines.push(line(`in${node.id}.${index}`, way ?? null, [[x + block.entry, head], [x + block.entry, head + GAP]]));
      if (blocks.length > 1) {
        const text = `[${inner[index].index}]`;
        all.labels.push({ text, full: `Branch ${inner[index].index}`, x: x + block.entry + 16, y: head + GAP / 2, w: 24, edge: null });
      }
      x += block.w + GAP;
    }
    return item({ w, h: all.h, block: all });
  }

  /**
   * What leads away from a step within its list. An option's own steps are an item of the list.
   * @param {number} id @param {Map<number, number>} orders of the steps of its list
   * @param {Map<string, Item>} items @param {Link[]} links
   */
  links(id, orders, items, links) {
    const node = this.graph.nodes[id];
    const edges = this.out.get(id) ?? [];
    const order = /** @type {number} */ (orders.get(id));
    /** @param {string} from @param {GraphEdge} edge @param {GraphEdge[]} [more] */
    const add = (from, edge, more) => {
      const target = edge.to === null ? orders.size : /** @type {number} */ (orders.get(edge.to));
      const back = target <= order;
      const aside = back || edge.kind === "catch" || target - order > SKIPPED_MAX;
      links.push({ ...link(from, edge.to === null ? "exit" : `n${edge.to}`, edge, more), back, aside });
    };
    if (node.type !== "choice") {
      for (const edge of edges) {
        if (edge.kind === "catch") add(`n${id}`, edge);
        else if ((edge.kind === "next" || edge.kind === "end") && node.type !== "fail") add(`n${id}`, edge);
      }
      return;
    }
    const after = edges.find((edge) => edge.kind === "next" || edge.kind === "end");
    const ownOf = (/** @type {GraphEdge} */ edge) => (this.inner.get(id) ?? []).find((each) => edge.to === each.nodes[0] && (each.index ?? null) === edge.index);
    const options = edges.filter((each) => each.kind === "option" || each.kind === "default");
    for (const [edge, ...more] of together(options, ownOf, order, orders)) {
      const name = `${id}.${edge.index ?? "else"}`;
      items.set(`l${name}`, { ...labelled([edge, ...more]), order: order + 0.5 });
      links.push(link(`n${id}`, `l${name}`, edge, more));
      const own = ownOf(edge);
      if (!own) {
        add(`l${name}`, edge, more);
        continue;
      }
      const block = this.list(own);
      items.set(`b${name}`, item({ w: block.w, h: block.h, entry: block.entry, exit: block.exit, block, order: order + 0.5 }));
      links.push(link(`l${name}`, `b${name}`, edge));
      const goes = edges.find((each) => each.kind === "goto" && each.index === edge.index) ?? (after && { ...after, index: edge.index });
      if (block.exit !== null && goes) add(`b${name}`, goes);
    }
  }
}

/**
 * Options that lead to the same step at once are together; those that run aside come last.
 * @param {GraphEdge[]} options @param {(edge: GraphEdge) => GraphList | undefined} ownOf
 * @param {number} order of the choice @param {Map<number, number>} orders @returns {GraphEdge[][]}
 */
function together(options, ownOf, order, orders) {
  /** @type {Map<string, GraphEdge[]>} */
  const ways = new Map();
  for (const edge of options) {
    const key = ownOf(edge) ? `own ${edge.index}` : `to ${edge.to}`;
    ways.set(key, [...(ways.get(key) ?? []), edge]);
  }
  const isAside = (/** @type {GraphEdge[]} */ [edge]) => {
    const skipped = ownOf(edge) ? 1 : (orders.get(edge.to ?? -1) ?? orders.size) - order;
    return skipped <= 0 || skipped > SKIPPED_MAX;
  };
  return [...ways.values()].toSorted((a, b) => Number(isAside(a)) - Number(isAside(b)));
}

/** @param {Partial<Item> & {w: number, h: number}} values @returns {Item} */
function item(values) {
  return { entry: values.w / 2, exit: values.w / 2, block: null, labels: [], order: 0, rank: 0, x: 0, ...values };
}

/** @param {string} from @param {string} to @param {GraphEdge | null} edge @param {GraphEdge[]} [more] @returns {Link} */
function link(from, to, edge, more = []) {
  return { from, to, edge, more, back: false, aside: false, hidden: false, spare: false, via: [] };
}

/** Conditions, one below the other. @param {GraphEdge[]} edges @returns {Item} */
function labelled(edges) {
  const labels = edges.map((edge, index) => {
    const full = edge.label ?? "else";
    const text = cut(full, LABEL_CHARACTERS);
    return { text, full, x: 0, y: index * (LABEL_HEIGHT + 2) + LABEL_HEIGHT / 2, w: Math.round(text.length * 6.7 + 12), edge };
  });
  return item({ w: Math.max(...labels.map((each) => each.w)), h: edges.length * (LABEL_HEIGHT + 2) - 2, labels });
}

/** @param {string} key @param {GraphEdge | null} edge @param {Point[]} points @returns {Line} */
function line(key, edge, points) {
  return { key, edge, more: [], points, arrow: true, back: false, spare: false };
}

/**
 * Give every step a way in. A catch shows the one way to a step if there is no other; a step that nothing leads to gets
 * a link that is not drawn.
 * @param {Map<string, Item>} items @param {Link[]} links @param {string} first
 */
function connect(items, links, first) {
  const entered = new Set(links.filter((each) => !each.aside).map((each) => each.to));
  for (const each of links.filter((other) => other.edge?.kind === "catch" && !entered.has(other.to)).reverse()) {
    each.spare = true;
    if (entered.has(each.to) || !isForward(each, items)) continue;
    each.aside = false;
    entered.add(each.to);
  }
  let before = first;
  for (const name of [...items.keys()].filter((each) => each.startsWith("n") || each === "exit")) {
    if (name !== first && !entered.has(name)) links.push({ ...link(before, name, null), hidden: true });
    before = name;
  }
}

/** @param {Link} link @param {Map<string, Item>} items */
function isForward({ from, to }, items) {
  return (items.get(from)?.order ?? 0) < (items.get(to)?.order ?? 0);
}
