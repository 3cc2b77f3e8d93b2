/**
 * The steps of a flow as a picture, with what became of each painted over it. The layout is computed once for a graph;
 * a change of a step's state paints that step anew and nothing else.
 */
import { stylesheet } from "../css.js";
import { useKeys } from "../keys.js";
import { html, useMemo, useRef, useState, useEffect } from "../vendor/preact.js";
import { StepIcon } from "./graph-icons.js";
import { layoutOf } from "./graph-layout.js";
import { Node, paintKey } from "./graph-node.js";
import { START, edgeKey, nodeOf, stateOf, takenEdges, walk } from "./graph-walk.js";
import { useZoom } from "./graph-zoom.js";

/** @typedef {import("./graph-layout.js").DefinitionGraph} DefinitionGraph */
/** @typedef {import("./graph-layout.js").GraphNode} GraphNode */
/** @typedef {import("./graph-layout.js").Line} Line */
/** @typedef {import("./graph-layout.js").Label} Label */
/** @typedef {import("./graph-walk.js").States} States */
/** @typedef {import("./graph-walk.js").Taken} Taken */

stylesheet(new URL("./graph.css", import.meta.url));

const CORNER = 6;

/** For the help: the graph itself takes the keys while the focus is in it. */
const KEYS = [
  { keys: "ArrowDown|ArrowUp|ArrowLeft|ArrowRight", label: "Walk along the edges" },
  { keys: "Enter", label: "Select the step" },
  { keys: "o", label: "Open the sub-flow or the iterations" },
  { keys: "+|-", label: "Zoom" },
  { keys: "0", label: "Show all of it" },
].map((key) => ({ ...key, run: () => /** @type {const} */ (false) }));

/**
 * `graph` is the answer of `POST v1/definitions/graph`; give the same object for the same definition. `states` are step
 * summaries by path, null to draw the definition alone. `selected` is a path, with iterations or without, or the `id` of a node. `onOpen` is called to open a sub-flow or the iterations of a
 * foreach; `hrefOf` makes sub-flows links.
 * @param {{graph: DefinitionGraph, states?: States | null, selected?: string | number | null,
 *   onSelect?: (path: string, node: GraphNode) => void, onOpen?: (node: GraphNode) => void,
 *   hrefOf?: (node: GraphNode) => string | null, label?: string}} props
 */
export function Graph({ graph, states = null, selected = null, onSelect, onOpen, hrefOf, label = "Steps of the flow" }) {
  const [folded, setFolded] = useState(/** @type {Set<number>} */ (new Set()));
  const [focus, setFocus] = useState(0);
  const frame = useRef(/** @type {SVGSVGElement | null} */ (null));
  const drawing = useRef(/** @type {SVGGElement | null} */ (null));
  useEffect(() => setFolded(new Set()), [graph]);
  useKeys("Graph", KEYS);
  const layout = useMemo(() => layoutOf(graph, inUse(folded, graph)), [graph, folded]);
  const zoom = useZoom(frame, drawing, layout);
  const chosen = useMemo(() => (typeof selected === "number" ? (graph.nodes[selected] ?? null) : nodeOf(graph, selected)), [graph, selected]);
  const gone = useSame(useMemo(() => states && takenEdges(graph, states), [graph, states]));
  const ways = useMemo(() => {
    const lines = layout.lines.toSorted((a, b) => weight(a, gone) - weight(b, gone));
    return lines.map((line) => html`<${Way} key=${line.key} line=${line} gone=${gone} chosen=${chosen?.id ?? null} />`);
  }, [layout, gone, chosen]);
  const conditions = useMemo(() => layout.labels.map((each, index) => html`<${Condition} key=${index} label=${each} gone=${gone} />`), [layout, gone]);
  const boxes = useMemo(() => new Map(layout.boxes.map((box) => [box.id, box])), [layout]);
  const first = boxes.has(focus) ? focus : (chosen?.id ?? 0);

  useEffect(() => {
    const box = chosen && boxes.get(chosen.id);
    if (!box) return;
    setFocus(box.id);
    zoom.reveal(box);
  }, [chosen, boxes]);

  const act = useRef(/** @type {Actions | null} */ (null));
  act.current = {
    pick: (id) => onSelect?.(graph.nodes[id].path, graph.nodes[id]),
    open: (id) => onOpen?.(graph.nodes[id]),
    fold: (id) => setFolded((before) => (before.has(id) ? new Set([...before].filter((each) => each !== id)) : new Set([...before, id]))),
    focus: setFocus,
  };
  const nodes = usePainted(graph, layout, states, chosen?.id ?? null, first, folded, hrefOf, act);

  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow")) {
      const next = walk(graph, layout.boxes, first, event.key, (id) => Boolean(stateOf(graph, states, graph.nodes[id])));
      event.preventDefault();
      if (next === null) return;
      setFocus(next);
      const box = boxes.get(next);
      if (box) zoom.reveal(box);
      requestAnimationFrame(() => /** @type {SVGElement | null} */ (frame.current?.querySelector(".graph-node[tabindex='0']"))?.focus({ preventScroll: true }));
      return;
    }
    /** @type {Record<string, () => void>} */
    const keys = {
      "+": () => zoom.zoomBy(1),
      "=": () => zoom.zoomBy(1),
      "-": () => zoom.zoomBy(-1),
      0: () => zoom.fit(),
      o: () => act.current?.open(first),
    };
    if (isOnNode(event.target)) keys.Enter = keys[" "] = () => act.current?.pick(first);
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  };

  return html`<div class="flow-graph" role="group" aria-label=${label} onKeyDown=${onKeyDown}>
    <svg ref=${frame} class="graph-frame">
      <g ref=${drawing}>
        ${useMemo(() => html`<${Frames} boxes=${layout.boxes} graph=${graph} />`, [layout])}
        ${ways}
        ${layout.dots.map(([x, y]) => html`<circle class="graph-dot" cx=${x} cy=${y} r="4" />`)}
        ${nodes}
        ${conditions}
      </g>
    </svg>
    <div class="graph-zoom">
      <button type="button" class="quiet" aria-label="Zoom in" title="Zoom in (+)" onClick=${() => zoom.zoomBy(1)}>+</button>
      <button type="button" class="quiet" aria-label="Zoom out" title="Zoom out (-)" onClick=${() => zoom.zoomBy(-1)}>−</button>
      <button type="button" class="quiet" title="Show all (0)" onClick=${() => zoom.fit()}>fit</button>
    </div>
  </div>`;
}

/** The counts from before as long as they are the same, so that what depends on them stays. @param {Taken | null} taken */
function useSame(taken) {
  const before = useRef(taken);
  if (!taken || before.current?.size !== taken.size || ![...taken].every(([key, count]) => before.current?.get(key) === count)) before.current = taken;
  return before.current;
}

/** @typedef {{pick: (id: number) => void, open: (id: number) => void, fold: (id: number) => void, focus: (id: number) => void}} Actions */

/** @param {Set<number>} folded @param {DefinitionGraph} graph */
const inUse = (folded, graph) => new Set([...folded].filter((id) => ["foreach", "parallel"].includes(graph.nodes[id]?.type)));

/** @param {EventTarget | null} target */
const isOnNode = (target) => target instanceof Element && target.classList.contains("graph-node");

/**
 * The steps as painted; what has not changed is the same object as before, so that it is not even compared.
 * @param {DefinitionGraph} graph @param {import("./graph-layout.js").Block} layout @param {States | null} states
 * @param {number | null} chosen @param {number} focus @param {Set<number>} folded
 * @param {((node: GraphNode) => string | null) | undefined} hrefOf @param {{current: Actions | null}} act
 */
function usePainted(graph, layout, states, chosen, focus, folded, hrefOf, act) {
  const kept = useRef(/** @type {{layout: object | null, live: boolean, painted: Map<number, {key: string, vnode: any}>}} */ ({ layout: null, live: false, painted: new Map() }));
  const isLive = states !== null;
  if (kept.current.layout !== layout || kept.current.live !== isLive) kept.current = { layout, live: isLive, painted: new Map() };
  return layout.boxes.map((box) => {
    const node = graph.nodes[box.id];
    const state = stateOf(graph, states, node);
    const href = node.call?.flow ? hrefOf?.(node) : null;
    const key = `${paintKey(node, state)}|${chosen === box.id}|${focus === box.id}|${href}`;
    const before = kept.current.painted.get(box.id);
    if (before?.key === key) return before.vnode;
    const isFrame = node.type === "foreach" || node.type === "parallel";
    const vnode = html`<g key=${box.id}>
      <${Node} node=${node} box=${box} state=${state} isLive=${isLive} isSelected=${chosen === box.id} isFocus=${focus === box.id}
        isFolded=${folded.has(box.id)} isLinked=${Boolean(href)} branches=${node.type === "parallel" ? graph.lists.filter((list) => list.parent === node.id).length : 0} onPick=${(/** @type {number} */ id) => act.current?.pick(id)} onOpen=${(/** @type {number} */ id) => act.current?.open(id)} onFocus=${(/** @type {number} */ id) => act.current?.focus(id)} />
      ${isFrame && html`<${Fold} box=${box} name=${node.name} isFolded=${folded.has(box.id)} onFold=${() => act.current?.fold(box.id)} />`}
      ${href && html`<a class="graph-link" href=${href} aria-label=${`Open the flow ${node.call?.flow}`} tabindex="-1"
        transform=${`translate(${box.x + box.w - 28} ${box.y + box.head / 2 - 20})`} onClick=${(/** @type {MouseEvent} */ event) => follow(event, () => act.current?.open(box.id))}>
        <rect width="20" height="20" rx="3" /><${StepIcon} name="link" x=${2} y=${2} /></a>`}
    </g>`;
    kept.current.painted.set(box.id, { key, vnode });
    return vnode;
  });
}

/** A plain click stays in the page. @param {MouseEvent} event @param {() => void} open */
function follow(event, open) {
  if (event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  open();
}

/** @param {{box: import("./graph-layout.js").Box, name: string, isFolded: boolean, onFold: () => void}} props */
function Fold({ box, name, isFolded, onFold }) {
  return html`<g class="graph-fold" role="button" tabindex="-1" aria-expanded=${String(!isFolded)} aria-label=${`${isFolded ? "Unfold" : "Fold"} ${name}`}
    transform=${`translate(${box.x + box.w - 28} ${box.y + box.head / 2 - 20})`} onClick=${onFold}>
    <rect width="20" height="20" rx="3" /><path d=${isFolded ? "M8 5.5 12.5 10 8 14.5" : "M5.5 8 10 12.5 14.5 8"} />
  </g>`;
}

/** How often a line was taken. @param {Line} line @param {Taken | null} gone */
const timesOf = (line, gone) => [line.edge, ...line.more].reduce((sum, edge) => sum + (gone?.get(edge ? edgeKey(edge) : START) ?? 0), 0);

/** What matters most is drawn last. @param {Line} line @param {Taken | null} gone */
const weight = (line, gone) => (timesOf(line, gone) ? 2 : line.back ? 0 : 1);

/** The grounds of parallel and foreach steps. @param {{boxes: import("./graph-layout.js").Box[], graph: DefinitionGraph}} props */
function Frames({ boxes, graph }) {
  const frames = boxes.filter((box) => box.h > box.head || graph.nodes[box.id].type === "foreach");
  return frames.map(({ id, x, y, w, h }) => html`<g key=${id} transform=${`translate(${x} ${y})`}>
    ${graph.nodes[id].type === "foreach" && html`<path class="graph-card" d=${`M${w} 6h4v${h - 2}H6v-4`} />`}
    <rect class="graph-around" width=${w} height=${h} rx="4" />
  </g>`);
}

/** @param {{line: Line, gone: Taken | null, chosen: number | null}} props */
function Way({ line, gone, chosen }) {
  const { edge, points, arrow } = line;
  const times = timesOf(line, gone);
  const isTaken = times > 0;
  const isCatch = edge?.kind === "catch";
  const isShown = isTaken || (edge !== null && (edge.from === chosen || edge.to === chosen));
  if (isCatch && !isShown && !line.spare) return null;
  const shade = isTaken ? "taken" : gone ? "faint" : "";
  const [x, y] = points[points.length - 1];
  const isOption = edge?.kind === "option" || edge?.kind === "default"; // its label has the count
  return html`<g class=${`graph-way ${shade} ${line.back ? "back" : ""} ${isCatch ? (isShown ? "catch" : "spare") : ""}`} data-edge=${edge ? edgeKey(edge) : START}>
    ${isCatch && html`<title>${`on ${edge.label}`}</title>`}
    <path d=${rounded(points)} />${arrow && html`<path class="graph-arrow" d=${`M${x} ${y}l-4 -7h8z`} />`}
    ${times > 1 && !isOption && html`<${Times} times=${times} at=${middle(points)} />`}
  </g>`;
}

/** @param {{times: number, at: import("./graph-layout.js").Point}} props */
const Times = ({ times, at: [x, y] }) => html`<text class="graph-times" x=${x} y=${y}>×${times.toLocaleString()}</text>`;

/** Beside the middle of the longest part of a line. @param {import("./graph-layout.js").Point[]} points @returns {import("./graph-layout.js").Point} */
function middle(points) {
  const length = (/** @type {number} */ index) => Math.abs(points[index][0] - points[index + 1][0]) + Math.abs(points[index][1] - points[index + 1][1]);
  let longest = 0;
  for (let index = 1; index < points.length - 1; index++) if (length(index) > length(longest)) longest = index;
  const [[ax, ay], [bx, by]] = [points[longest], points[longest + 1]];
  return [(ax + bx) / 2 + 4, (ay + by) / 2 + (ay === by ? -4 : 4)];
}

/** @param {import("./graph-layout.js").Point[]} points */
function rounded(points) {
  let path = `M${points[0].join(" ")}`;
  for (let index = 1; index < points.length - 1; index++) {
    const [[ax, ay], [x, y], [bx, by]] = [points[index - 1], points[index], points[index + 1]];
    const r = Math.min(CORNER, (Math.abs(x - ax) + Math.abs(y - ay)) / 2, (Math.abs(bx - x) + Math.abs(by - y)) / 2);
    path += `L${x - Math.sign(x - ax) * r} ${y - Math.sign(y - ay) * r}Q${x} ${y} ${x + Math.sign(bx - x) * r} ${y + Math.sign(by - y) * r}`;
  }
  return `${path}L${points[points.length - 1].join(" ")}`;
}

/** @param {{label: Label, gone: Taken | null}} props */
function Condition({ label, gone }) {
  const times = label.edge ? (gone?.get(edgeKey(label.edge)) ?? 0) : 0;
  const shade = !label.edge || !gone ? "" : times ? "taken" : "faint";
  return html`<g class=${`graph-condition ${shade}`} transform=${`translate(${label.x} ${label.y})`}>
    <title>${label.full}</title>
    <rect x=${-label.w / 2} y="-9" width=${label.w} height="18" rx="3" /><text y="4">${label.text}</text>
    ${times > 1 && html`<${Times} times=${times} at=${[label.w / 2 + 4, 4]} />`}
  </g>`;
}
