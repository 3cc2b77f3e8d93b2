/**
 * When each step of an execution ran: one row a step path with a bar for each visit, and the iterations of a foreach by pages of 100.
 * With the focus in it: arrows and `j k` move, → opens a foreach, ← closes it, Enter selects, `[ ]` turn its pages.
 */
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { stylesheet } from "../css.js";
import { agree } from "../step-paths.js";
import { localTime } from "./basics.js";
import { BREAK_PX, elapsed, endAhead, idleSpans, scaleOf } from "./timeline-scale.js";
import { busySpans, rowsOf } from "./timeline-rows.js";
import { TimelineRow } from "./timeline-row.js";
import { PAGE, useIterations } from "./timeline-iterations.js";
import { useVirtualRows } from "./virtual-list.js";

stylesheet(new URL("./timeline.css", import.meta.url));

const ROW_PX = 28;
/** @type {Node[]} */
const NO_NODES = [];

/**
 * @typedef {import("./timeline-rows.js").Step} Step
 * @typedef {import("./timeline-rows.js").Node} Node
 * @typedef {import("./timeline-rows.js").Page} Page
 * @typedef {(path: string, query: {status: string, nextToken: string | null, limit: number}, signal: AbortSignal) => Promise<Page>} LoadIterations
 * @param {{steps: Step[], nodes?: Node[], from: string | number, to: string | number | null, now?: string | number | null,
 *   selected?: string | null, onSelect?: (path: string) => void, loadIterations?: LoadIterations, revision?: string | number, allSteps?: Step[], label?: string}} props
 *   `nodes`: of the definition's graph; steps that were not reached are known by them. `to`: the end of the execution, null while it runs.
 *   `now`: where running bars end, the present if absent; the instant of the event when the page shows the past.
 *   `allSteps`: how the steps are at present, if `steps` shows the past: the axis is theirs, so that it does not move with the scrubber.
 *   `revision`: another one says that iterations that were loaded may have changed.
 */
export function Timeline({ steps, nodes = NO_NODES, from, to, now = null, selected = null, onSelect, loadIterations, revision = 0, allSteps = steps, label = "Timeline" }) {
  const begin = new Date(from).getTime();
  const isLive = to === null && now === null;
  const present = useClock(isLive && steps.some((step) => step.running > 0));
  const last = to === null ? null : new Date(to).getTime();
  const instant = now === null ? last ?? present : new Date(now).getTime();
  const end = last ?? endAhead(begin, Math.max(instant, present));

  const iterations = useIterations(loadIterations, revision, selected, steps);
  const { opened, pages } = iterations;
  const rows = useMemo(() => rowsOf({ steps, nodes, now: instant, opened, pages }), [steps, nodes, instant, opened, pages]);

  const view = useRef(/** @type {HTMLDivElement | null} */ (null));
  const axis = useRef(/** @type {HTMLDivElement | null} */ (null));
  const width = useWidth(axis);
  const [shownIdle, setShownIdle] = useState(/** @type {Set<number>} */ (new Set()));
  const axisNow = last ?? present;
  const busy = useMemo(() => busySpans(allSteps, nodes, axisNow), [allSteps, nodes, axisNow]);
  const passed = Math.min(end, axisNow);
  const idle = useMemo(() => idleSpans(busy, begin, passed), [busy, begin, passed]);
  const scale = useMemo(() => {
    const cut = idle.filter((span) => !shownIdle.has(span.from));
    return scaleOf({ from: begin, to: end }, cut, width);
  }, [idle, shownIdle, begin, end, width]);

  const [cursor, setCursor] = useState(/** @type {string | null} */ (null));
  const at = rows.findIndex((row) => row.key === cursor);
  const chosen = selected === null || rows.some((row) => row.path === selected) ? selected : (rows.find((row) => agree(row.path, selected))?.path ?? selected);
  const list = useVirtualRows({ count: rows.length, rowPx: ROW_PX, view });

  const isFound = useRef(selected === null);
  useEffect(() => {
    if (isFound.current || selected === null) return;
    const inside = [...opened.keys()].filter((path) => path.endsWith("]") && selected.startsWith(path));
    const wanted = inside.sort((a, b) => b.length - a.length)[0] ?? chosen;
    const index = rows.findIndex((row) => row.kind !== "pager" && row.path === wanted);
    if (index < 0) return;
    isFound.current = true;
    list.show(index, "center");
  }, [rows, list.height]);

  const move = (/** @type {number} */ index) => {
    const next = Math.min(Math.max(index, 0), rows.length - 1);
    setCursor(rows[next]?.key ?? null);
    list.show(next);
  };
  const toggle = (/** @type {import("./timeline-rows.js").Row} */ row) => row.opens && (row.isOpen ? iterations.close(row.path) : iterations.open(row.path));
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== view.current) return;
    const row = rows[at];
    const page = Math.max(1, Math.floor((view.current?.clientHeight ?? 0) / ROW_PX) - 1);
    /** @type {Record<string, () => unknown>} */
    const keys = {
      ArrowDown: () => move(at + 1), j: () => move(at + 1), ArrowUp: () => move(at - 1), k: () => move(at - 1),
      PageDown: () => move(at + page), PageUp: () => move(at - page), Home: () => move(0), End: () => move(rows.length - 1),
      ArrowRight: () => row?.opens && !row.isOpen && toggle(row),
      ArrowLeft: () => (row?.isOpen ? toggle(row) : row && move(parentOf(rows, at))),
      Enter: () => row && row.kind !== "pager" && onSelect?.(row.path),
      "]": () => row && iterations.turn(loopOf(rows, at), 1),
      "[": () => row && iterations.turn(loopOf(rows, at), -1),
    };
    const run = keys[event.key];
    if (!run) return;
    event.preventDefault();
    event.stopPropagation();
    run();
  };

  return html`<div class="timeline" style=${{ "--row": `${ROW_PX}px` }}>
    <div class="timeline-head">
      <span class="timeline-corner muted">since ${localTime(begin)}</span>
      <div class="timeline-axis" ref=${axis}>
        ${scale.ticks.map((tick) => html`<span key=${tick.label} class="timeline-tick" aria-hidden="true" style=${{ left: `${tick.x}px` }}>${tick.label}</span>`)}
        ${idle.map((span) => {
          const isShown = shownIdle.has(span.from);
          const words = `idle ${elapsed(span.to - span.from)}`;
          return html`<button type="button" key=${span.from} class=${`timeline-idle${isShown ? " shown" : ""}`}
            aria-label=${isShown ? `Collapse ${words}` : `Show ${words}, collapsed`} title=${isShown ? "Collapse it" : `${words}, collapsed: show it`}
            style=${{ left: `${isShown ? (scale.x(span.from) + scale.x(span.to)) / 2 : scale.x(span.from) + BREAK_PX / 2}px` }}
            onClick=${() => setShownIdle(toggled(shownIdle, span.from))}>${isShown ? `collapse ${words}` : `├ ${words} ┤`}</button>`;
        })}
      </div>
      <span class="timeline-note"></span>
    </div>
    <div class="timeline-view" ref=${view} role="treegrid" aria-label=${label} aria-rowcount=${rows.length} tabindex="0" onKeyDown=${onKeyDown}
      aria-activedescendant=${at >= 0 ? `timeline-${rows[at].key}` : undefined}>
      <div role="presentation" class="timeline-rows" style=${{ height: `${list.height}px` }}>
        <div class="timeline-lines" aria-hidden="true"><div>
          ${scale.ticks.map((tick) => html`<i key=${tick.label} style=${{ left: `${tick.x}px` }}></i>`)}
          ${scale.breaks.map((span) => html`<b key=${span.from} style=${{ left: `${span.x}px`, width: `${BREAK_PX}px` }}></b>`)}
        </div></div>
        ${list.items.map((item) => {
          const row = rows[item.index];
          if (!row) return null;
          return html`<${TimelineRow} key=${row.key} row=${row} index=${item.index} top=${item.start} isAt=${item.index === at}
            isSelected=${row.kind !== "pager" && (row.path === chosen || (selected !== null && isOf(row, selected)))} scale=${scale} trackPx=${width} px=${pixelsOf(row, scale, width)}
            onClick=${() => (setCursor(row.key), onSelect?.(row.path))} onToggle=${() => (setCursor(row.key), toggle(row))} iterations=${iterations} />`;
        })}
      </div>
    </div>
    ${rows.length === 0 && html`<p class="muted timeline-empty">No step has begun yet.</p>`}
  </div>`;
}

/** Whether that is the row's step, or a step in the row's iteration. @param {import("./timeline-rows.js").Row} row @param {string} path */
function isOf(row, path) {
  return row.kind !== "pager" && (row.path === path || (row.kind === "iteration" && path.startsWith(`${row.path}.`)));
}

/** Where a row's bars are. @param {import("./timeline-rows.js").Row} row @param {import("./timeline-scale.js").Scale} scale @param {number} width */
const pixelsOf = ({ bars, more }, scale, width) => [width, ...bars, more].flatMap((each) => (typeof each === "object" && each ? [scale.x(each.from), scale.x(each.to)] : each)).join();

/** @param {import("./timeline-rows.js").Row[]} rows @param {number} at @returns {number} the row that the one at hand is below */
function parentOf(rows, at) {
  let index = at;
  while (index > 0 && rows[index].depth >= rows[at].depth) index -= 1;
  return index;
}

/** @param {import("./timeline-rows.js").Row[]} rows @param {number} at @returns {string} the foreach whose page is turned there */
function loopOf(rows, at) {
  if (rows[at].isOpen) return rows[at].path;
  let index = at;
  while (index > 0 && rows[index].kind !== "pager") index -= 1;
  return rows[index].path;
}

/** @param {Set<number>} set @param {number} value @returns {Set<number>} */
function toggled(set, value) {
  const next = new Set(set);
  if (!next.delete(value)) next.add(value);
  return next;
}

/** The present, renewed each second while something runs. @param {boolean} isNeeded @returns {number} */
function useClock(isNeeded) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isNeeded) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [isNeeded]);
  return now;
}

/** @param {{current: HTMLElement | null}} element @returns {number} */
function useWidth(element) {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const box = /** @type {HTMLElement} */ (element.current);
    const measure = () => setWidth(box.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  return width;
}

export { PAGE };
