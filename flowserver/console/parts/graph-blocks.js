/** Blocks of a graph: a list of steps is drawn, and then put into the block of the step that holds it. */

/** @typedef {import("./graph-layout.js").Block} Block */
/** @typedef {import("./graph-layout.js").Item} Item */
/** @typedef {import("./graph-layout.js").Point} Point */

/** Draw an item with its upper left corner there. @param {Item} item @param {number} x @param {number} y @param {Block} all */
export function put(item, x, y, all) {
  if (item.block) putBlock(item.block, x, y, all);
  else if (item.labels.length) all.labels.push(...item.labels.map((each) => ({ ...each, x: x + item.w / 2, y: y + each.y })));
  else if (item.h) all.dots.push([x + item.w / 2, y + item.h / 2]);
}

/** Draw a block with its upper left corner there. @param {Block} block @param {number} x @param {number} y @param {Block} all */
export function putBlock(block, x, y, all) {
  for (const box of block.boxes) all.boxes.push({ ...box, x: box.x + x, y: box.y + y });
  for (const each of block.labels) all.labels.push({ ...each, x: each.x + x, y: each.y + y });
  for (const [left, top] of block.dots) all.dots.push([left + x, top + y]);
  for (const each of block.lines) {
    all.lines.push({ ...each, points: each.points.map(([left, top]) => /** @type {Point} */ ([left + x, top + y])) });
  }
}
