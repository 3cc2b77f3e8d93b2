/** Small outlines of 16 by 16 for the types of steps. */
import { html } from "../vendor/preact.js";

/** @type {Record<string, string>} */
const PATHS = {
  function: "M10.5 3C8 2.2 7.2 3 7.2 5.5v5c0 2.4-.8 3.2-3.2 2.5M5 7.5h5",
  flow: "M2.5 2.5h5v4h-5zM8.5 9.5h5v4h-5zM5 6.5v5h3.5",
  queue: "M2.5 4.5h11v7h-11zM6 4.5v7M9.5 4.5v7",
  topic: "M8 8h.01M5.5 10.5a3.5 3.5 0 0 1 0-5M10.5 5.5a3.5 3.5 0 0 1 0 5M3.5 12.5a6.4 6.4 0 0 1 0-9M12.5 3.5a6.4 6.4 0 0 1 0 9",
  action: "M9 2 4 9h4l-1 5 5-7H8z",
  wait: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 5v3l2 1.5",
  pass: "M2.5 8h10M9 4.5 12.5 8 9 11.5",
  choice: "M8 2l6 6-6 6-6-6z",
  parallel: "M3 3v10M8 3v10M13 3v10",
  foreach: "M2.5 5h9v8.5h-9zM5 5V2.5h8.5V11h-2",
  succeed: "M3 8.5l3.5 3.5L13 4.5",
  fail: "M4 4l8 8M12 4l-8 8",
  link: "M6.5 3H3v10h10V9.5M9 3h4v4M13 3 7.5 8.5",
};

/** @param {{name: string, x: number, y: number}} props */
export function StepIcon({ name, x, y }) {
  return html`<path class="graph-icon" transform=${`translate(${x} ${y})`} d=${PATHS[name] ?? PATHS.pass} />`;
}
