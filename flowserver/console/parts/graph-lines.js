/**
 * Orthogonal lines between the steps of a list. Ranks are horizontal bands; horizontals run in the gaps between them, so
 * they never cross a step, and verticals run in the columns that dagre has kept free. Lines that run aside have lanes
 * left and right of the list.
 */
import { put } from "./graph-blocks.js";

/** @typedef {import("./graph-layout.js").Block} Block */
/** @typedef {import("./graph-layout.js").Item} Item */
/** @typedef {import("./graph-layout.js").Link} Link */
/** @typedef {import("./graph-layout.js").Point} Point */
/** @typedef {{group: string, from: number, to: number, level: number}} Track  a horizontal, or several that share one */
/** @typedef {import("./graph-layout.js").Stop} Stop */
/** @typedef {{link: Link, stops: Stop[], lane: {side: -1 | 1, index: number} | null}} Route */

const LEAST = 24;
const BEFORE = 10;
const APART = 10;
const LANE = 14;
const NEAR = 10;

/**
 * @param {Map<string, Item>} items with their ranks and columns @param {Link[]} links
 * @param {string} first the item where control comes in @returns {Block}
 */
export function routed(items, links, first) {
  const heights = heightsOf(items);
  const [left, right] = extent(items, links);
  const drawn = links.filter((link) => link.edge !== null || link.from === "start");
  const routes = drawn.map((link) => route(link, items));
  setLanes(routes, left, right);
  const laneX = (/** @type {{side: -1 | 1, index: number}} */ lane) => (lane.side < 0 ? left - LANE * (lane.index + 1) : right + LANE * (lane.index + 1));
  const gaps = tracks(routes, heights.length, laneX);
  const tops = stack(heights, gaps);
  const count = (/** @type {-1 | 1} */ side) => Math.max(0, ...routes.map((each) => (each.lane?.side === side ? each.lane.index + 1 : 0)));
  const shift = LANE * count(-1) - left;
  const bottom = tops[tops.length - 1] + heights[heights.length - 1];
  const w = right - left + LANE * (count(-1) + count(1));
  const [head, exit] = [/** @type {Item} */ (items.get(first)), items.get("exit")];
  /** @type {Block} */
  const all = { w, h: bottom, entry: inlet(head) + shift, exit: exit ? exit.x + shift : null, boxes: [], lines: [], labels: [], dots: [] };
  for (const each of routes) {
    const points = path(each, items, heights, tops, gaps, laneX).map(([x, y]) => /** @type {Point} */ ([x + shift, y]));
    const target = /** @type {Item} */ (items.get(each.link.to));
    const { edge, more, from, to, back, spare } = each.link;
    all.lines.push({ key: `${from}>${to}${edge?.kind ?? ""}`, edge, more, points: straightened(points), arrow: target.h > 0 && !target.labels.length, back, spare });
  }
  for (const item of items.values()) put(item, item.x - item.w / 2 + shift, tops[item.rank] + (heights[item.rank] - item.h) / 2, all);
  return all;
}

/** Of each rank. @param {Map<string, Item>} items */
function heightsOf(items) {
  /** @type {number[]} */
  const heights = [];
  for (const item of items.values()) heights[item.rank] = Math.max(heights[item.rank] ?? 0, item.h);
  return heights;
}

/** From the left of all items and lines to their right. @param {Map<string, Item>} items @param {Link[]} links @returns {[number, number]} */
function extent(items, links) {
  const sides = [...items.values()].map((item) => [item.x - item.w / 2, item.x + item.w / 2]);
  const columns = links.flatMap((link) => link.via.map(({ x }) => [x - NEAR, x + NEAR]));
  const all = [...sides, ...columns];
  return [Math.min(...all.map(([from]) => from)), Math.max(...all.map(([, to]) => to))];
}

/** @param {Item} item */
const inlet = (item) => item.x - item.w / 2 + item.entry;
/** @param {Item} item */
const outlet = (item) => item.x - item.w / 2 + (item.exit ?? item.entry);

/** The columns of a line. @param {Link} link @param {Map<string, Item>} items @returns {Route} */
function route(link, items) {
  const from = /** @type {Item} */ (items.get(link.from));
  const to = /** @type {Item} */ (items.get(link.to));
  return { link, stops: [{ rank: from.rank, x: outlet(from) }, ...link.via, { rank: to.rank, x: inlet(to) }], lane: null };
}

/** Choose sides and lanes for the lines that run aside; those that lead on to one step share a lane. @param {Route[]} routes @param {number} left @param {number} right */
function setLanes(routes, left, right) {
  const aside = routes.filter((each) => each.link.aside);
  const span = (/** @type {Route} */ each) => Math.abs(each.stops[0].rank - each.stops[1].rank);
  const groupOf = (/** @type {Route} */ each) => (each.link.back ? "" : `${each.link.edge?.kind === "catch" ? "catch" : "to"} ${each.link.to}`);
  /** @type {Record<string, {low: number, high: number, group: string}[][]>} */
  const taken = { "-1": [], 1: [] };
  for (const each of aside.sort((a, b) => span(a) - span(b))) {
    const [from, to] = each.stops;
    const side = from.x - left + (to.x - left) < right - from.x + (right - to.x) - NEAR ? -1 : 1;
    const lanes = taken[String(side)];
    const group = groupOf(each);
    const [low, high] = [Math.min(to.rank - 1, from.rank), Math.max(to.rank - 1, from.rank)];
    let index = lanes.findIndex((used) => used.every((other) => high < other.low || low > other.high || (group && group === other.group)));
    if (index < 0) index = lanes.push([]) - 1;
    lanes[index].push({ low, high, group });
    each.lane = { side, index };
  }
}

/**
 * The horizontals of each gap; that below rank r is at r + 1. Lines from one step share one, and so do lines to one step.
 * @param {Route[]} routes @param {number} count ranks @param {(lane: {side: -1 | 1, index: number}) => number} laneX
 */
function tracks(routes, count, laneX) {
  /** @type {Map<string, Track>[]} */
  const gaps = Array.from({ length: count + 1 }, () => new Map());
  /** @type {Map<string, number>} */
  const leaving = new Map();
  const forward = routes.filter((each) => !each.lane);
  for (const { stops } of forward) {
    for (const stop of stops.slice(0, -1)) leaving.set(`${stop.rank}@${stop.x}`, (leaving.get(`${stop.rank}@${stop.x}`) ?? 0) + 1);
  }
  for (const each of forward) {
    for (const [index, stop] of each.stops.slice(0, -1).entries()) {
      const next = each.stops[index + 1];
      if (Math.abs(stop.x - next.x) < 1) continue;
      extend(gaps[stop.rank + 1], groupOf(stop, next, leaving), stop.x, next.x);
    }
  }
  for (const each of routes) {
    if (!each.lane) continue;
    const [from, to] = each.stops;
    extend(gaps[from.rank + 1], `<${each.link.from}`, from.x, laneX(each.lane));
    extend(gaps[to.rank], `>${each.link.to}`, to.x, laneX(each.lane));
  }
  for (const gap of gaps) setLevels(gap);
  return gaps;
}

/** @param {Stop} stop @param {Stop} next @param {Map<string, number>} leaving */
function groupOf(stop, next, leaving) {
  return (leaving.get(`${stop.rank}@${stop.x}`) ?? 0) > 1 ? `s${stop.x}` : `t${next.x}`;
}

/** @param {Map<string, Track>} gap @param {string} group @param {number} a @param {number} b */
function extend(gap, group, a, b) {
  const track = gap.get(group) ?? { group, from: Infinity, to: -Infinity, level: 0 };
  track.from = Math.min(track.from, a, b);
  track.to = Math.max(track.to, a, b);
  gap.set(group, track);
}

/** Those that overlap get different heights. @param {Map<string, Track>} gap */
function setLevels(gap) {
  /** @type {Track[][]} */
  const levels = [];
  for (const track of [...gap.values()].sort((a, b) => a.to - a.from - (b.to - b.from))) {
    let level = levels.findIndex((used) => used.every((each) => track.to + NEAR < each.from || track.from - NEAR > each.to));
    if (level < 0) level = levels.push([]) - 1;
    levels[level].push(track);
    track.level = level;
  }
}

/** @param {Map<string, Track>} gap */
const levelsOf = (gap) => Math.max(0, ...[...gap.values()].map((track) => track.level + 1));

/** The top of each rank. @param {number[]} heights @param {Map<string, Track>[]} gaps */
function stack(heights, gaps) {
  /** @type {number[]} */
  const tops = [];
  let y = gaps[0].size ? LEAST + APART * (levelsOf(gaps[0]) - 1) : 0;
  for (const [index, height] of heights.entries()) {
    tops.push(y);
    y += height + LEAST + APART * Math.max(0, levelsOf(gaps[index + 1]) - 1);
  }
  return tops;
}

/**
 * @param {Route} each @param {Map<string, Item>} items @param {number[]} heights @param {number[]} tops
 * @param {Map<string, Track>[]} gaps @param {(lane: {side: -1 | 1, index: number}) => number} laneX @returns {Point[]}
 */
function path(each, items, heights, tops, gaps, laneX) {
  const from = /** @type {Item} */ (items.get(each.link.from));
  const to = /** @type {Item} */ (items.get(each.link.to));
  const start = tops[from.rank] + (heights[from.rank] + from.h) / 2;
  const end = tops[to.rank] + (heights[to.rank] - to.h) / 2;
  const height = (/** @type {number} */ gap, /** @type {string} */ group) => {
    const level = gaps[gap].get(group)?.level ?? 0;
    const top = gap ? tops[gap - 1] + heights[gap - 1] : 0;
    return top + BEFORE + APART * level;
  };
  if (each.lane) {
    const [a, b] = each.stops;
    const [x, low, high] = [laneX(each.lane), height(from.rank + 1, `<${each.link.from}`), height(to.rank, `>${each.link.to}`)];
    return [[a.x, start], [a.x, low], [x, low], [x, high], [b.x, high], [b.x, end]];
  }
  /** @type {Point[]} */
  const points = [[each.stops[0].x, start]];
  for (const [index, stop] of each.stops.slice(0, -1).entries()) {
    const next = each.stops[index + 1];
    if (Math.abs(stop.x - next.x) < 1) continue;
    const groups = gaps[stop.rank + 1];
    const group = groups.has(`s${stop.x}`) && isWithin(groups.get(`s${stop.x}`), stop.x, next.x) ? `s${stop.x}` : `t${next.x}`;
    const y = height(stop.rank + 1, group);
    points.push([stop.x, y], [next.x, y]);
  }
  points.push([each.stops[each.stops.length - 1].x, end]);
  return points;
}

/** @param {Track | undefined} track @param {number} a @param {number} b */
const isWithin = (track, a, b) => track !== undefined && track.from <= Math.min(a, b) && track.to >= Math.max(a, b);

/** Without points in the middle of a straight line. @param {Point[]} points @returns {Point[]} */
function straightened(points) {
  return points.filter(([x, y], index) => {
    const [before, after] = [points[index - 1], points[index + 1]];
    if (!before || !after) return true;
    return !(Math.abs(before[0] - x) < 1 && Math.abs(after[0] - x) < 1) && !(Math.abs(before[1] - y) < 1 && Math.abs(after[1] - y) < 1);
  });
}
