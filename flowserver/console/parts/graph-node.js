/** One step of the graph, painted with what became of it. */
import { html } from "../vendor/preact.js";
import { Shape, toneOf, wordOf } from "./basics.js";
import { duration } from "./durations.js";
import { StepIcon } from "./graph-icons.js";
import { cut } from "./graph-layout.js";
import { isUnrecorded } from "./graph-walk.js";

/** @typedef {import("./graph-layout.js").GraphNode} GraphNode */
/** @typedef {import("./graph-layout.js").Box} Box */
/** @typedef {import("./graph-walk.js").StepState} StepState */

/** Steps that take no time of their own. */
const INSTANT = new Set(["pass", "choice", "succeed", "fail"]);
const NAME_WIDTH = 7.3;
const SMALL_WIDTH = 6.1;

/** What to show of a step as its status. @param {GraphNode} node @param {StepState | undefined} state */
export function shownStatus(node, state) {
  if (!state) return "NotReached";
  if (state.waiting) return "WaitingForRedrive";
  if (state.status !== "Running") return state.status;
  if (node.type === "wait") return "Waiting";
  if (node.call?.pattern === "waitForCallback") return "WaitingForToken";
  if (node.call?.kind === "flow" && node.call.pattern === "sync") return "WaitingForSubFlow";
  return "Running";
}

/** Time, attempts or counts, in a few characters. @param {GraphNode} node @param {StepState} state @returns {string} */
export function figures(node, state) {
  const loop = state.iterations;
  if (loop) {
    const parts = /** @type {string[]} */ ([`${loop.done} ✔`, loop.failed && `${loop.failed} ✕`, loop.aborted && `${loop.aborted} ■`, loop.running && `${loop.running} ▸`]);
    return loop.done === loop.total ? parts[0] : `${loop.total} · ${parts.filter(Boolean).join(" ")}`;
  }
  const missing = node.type === "choice" && isUnrecorded(state) ? "option not recorded" : "";
  if ((state.entered ?? 1) > 1) {
    const parts = [state.succeeded && `${state.succeeded} ✔`, state.failed && `${state.failed} ✕`, state.running && `${state.running} ▸`];
    return [parts.filter(Boolean).join(" ") || `${state.entered} times`, missing].filter(Boolean).join(" · ");
  }
  const begin = state.began ?? state.first;
  if (INSTANT.has(node.type)) return missing;
  const took = !state.running && begin && state.last ? duration(Date.parse(state.last) - Date.parse(begin)) : "";
  const tries = (state.attempts ?? 0) > 1 ? `×${state.attempts}` : "";
  return [took, tries].filter(Boolean).join(" ");
}

/** What a step does, in a few words. @param {GraphNode} node @param {number} branches @returns {string | null} */
function titleOf(node, branches) {
  if (node.type === "parallel") return `${branches} ${branches === 1 ? "branch" : "branches"}`;
  return node.title;
}

/** The step in words. @param {GraphNode} node @param {StepState | undefined} state @param {boolean} isLive */
export function spoken(node, state, isLive) {
  const what = `${node.type}${node.title ? ` ${node.title}` : ""}`;
  if (!isLive) return `${node.name}, ${what}`;
  const said = state ? figures(node, state).replace(/[✔✕▸■×]/g, (shape) => SPOKEN[shape]) : "";
  return [node.name, wordOf(shownStatus(node, state)), said, state?.error, what].filter(Boolean).join(", ");
}

/** @type {Record<string, string>} */
const SPOKEN = { "✔": "succeeded", "✕": "failed", "▸": "running", "■": "cut short", "×": "attempts " };

/** Everything that the picture of a step depends on. @param {GraphNode} node @param {StepState | undefined} state */
export function paintKey(node, state) {
  if (!state) return "";
  const loop = state.iterations;
  return [state.status, state.waiting, state.error, figures(node, state), loop && [loop.total, loop.done, loop.failed, loop.running].join()].join("|");
}

/**
 * @param {{node: GraphNode, box: Box, state: StepState | undefined, isLive: boolean, isSelected: boolean, isFocus: boolean,
 *   isFolded: boolean, isLinked: boolean, branches: number, onPick: (id: number) => void, onOpen: (id: number) => void, onFocus: (id: number) => void}} props
 */
export function Node({ node, box, state, isLive, isSelected, isFocus, isFolded, isLinked, branches, onPick, onOpen, onFocus }) {
  const status = shownStatus(node, state);
  const tone = isLive ? toneOf(status) : "plain";
  const isFrame = box.h > box.head;
  const side = (isFrame || isFolded ? 26 : 0) + (isLinked ? 24 : 0);
  const said = isLive && state ? figures(node, state) : "";
  const nameRoom = (box.w - 40 - (isLive ? 24 : 6) - side) / NAME_WIDTH;
  const title = titleOf(node, branches);
  const titleRoom = (box.w - 50) / SMALL_WIDTH - (said ? said.length + 2 : 0);
  const label = spoken(node, state, isLive);
  return html`<g class="graph-step type-${node.type} tone-${tone}" transform=${`translate(${box.x} ${box.y})`}>
    <title>${[node.name, node.title, node.path !== node.name && node.path].filter(Boolean).join(" · ")}</title>
    <g class="graph-node ${isSelected ? "selected" : ""}" role="button" tabindex=${isFocus ? 0 : -1} aria-label=${label} aria-pressed=${String(isSelected)}
      data-path=${node.path} data-status=${isLive ? status : undefined} onClick=${() => onPick(node.id)} onDblClick=${() => onOpen(node.id)} onFocus=${() => onFocus(node.id)}>
      <${Outline} node=${node} box=${box} isFrame=${isFrame} />
    </g>
    <g class="graph-face" aria-hidden="true">
      <${StepIcon} name=${node.call?.kind ?? node.type} x=${12} y=${box.head / 2 - 8} />
      <text class="graph-name" x="36" y=${box.head / 2 - (title || said ? 4 : -4)}>${cut(node.name, Math.max(4, Math.floor(nameRoom)))}</text>
      ${title && titleRoom > 3 && html`<text class="graph-title" x="36" y=${box.head / 2 + 13}>${cut(title, Math.floor(titleRoom))}</text>`}
      ${said && html`<text class="graph-said" x=${box.w - 12} y=${box.head / 2 + 13}>${said}</text>`}
      ${isLive && html`<${Shape} status=${status} x=${box.w - 28 - side} y=${box.head / 2 - 18} />`}
      ${state?.iterations && html`<${Bar} loop=${state.iterations} w=${box.w - 24} y=${box.head - 7} />`}
    </g>
  </g>`;
}

/** @param {{node: GraphNode, box: Box, isFrame: boolean}} props */
function Outline({ node, box: { w, h, head }, isFrame }) {
  const ring = html`<rect class="graph-ring" x="-4" y="-4" width=${w + 8} height=${h + 8} rx="7" />`;
  if (node.type === "choice") {
    const points = `0,${h / 2} 14,0 ${w - 14},0 ${w},${h / 2} ${w - 14},${h} 14,${h}`;
    return html`${ring}<polygon class="graph-shape" points=${points} />`;
  }
  const round = node.type === "succeed" || node.type === "fail" ? h / 2 : 4;
  const inside = isFrame && html`<path class="graph-head" d=${`M0 ${head}h${w}`} />`;
  return html`${ring}<rect class="graph-shape" width=${w} height=${head} rx=${round} />${inside}`;
}

/** @param {{loop: NonNullable<StepState["iterations"]>, w: number, y: number}} props */
function Bar({ loop, w, y }) {
  const whole = Math.max(1, loop.total);
  const parts = [["ok", loop.done], ["fail", loop.failed], ["stop", loop.aborted ?? 0], ["run", loop.running]];
  let x = 12;
  return html`<rect class="graph-bar" x="12" y=${y} width=${w} height="3" />${parts.map(([tone, count]) => {
    const part = (w * Number(count)) / whole;
    const from = x;
    x += part;
    return part > 0 && html`<rect class=${`graph-part tone-${tone}`} x=${from} y=${y} width=${part} height="3" />`;
  })}`;
}
