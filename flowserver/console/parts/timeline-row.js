/** One row of a timeline. It is painted again only if it has changed. */
import { Component, html } from "../vendor/preact.js";
import { Icon } from "./icons.js";
import { Status, localTime, toneOf } from "./basics.js";
import { duration } from "./durations.js";
import { PAGE } from "./timeline-iterations.js";

const BAR_PX_MIN = 6;
/** An error goes before its bar if there is less room behind it. */
const ERROR_PX = 120;
/** With less room on both sides an error is written over its bar. */
const ERROR_PX_MIN = 40;

/**
 * @typedef {{row: import("./timeline-rows.js").Row, index: number, top: number, isAt: boolean, isSelected: boolean, x0: number, x1: number,
 *   trackPx: number, scale: import("./timeline-scale.js").Scale, onClick: () => void, onToggle: () => void, iterations: import("./timeline-iterations.js").Iterations}} RowProps
 * @extends {Component<RowProps>}
 */
export class TimelineRow extends Component {
  /** @param {RowProps} next */
  shouldComponentUpdate(next) {
    const before = this.props;
    if (next.index !== before.index || next.top !== before.top || next.isAt !== before.isAt || next.isSelected !== before.isSelected) return true;
    if (next.x0 !== before.x0 && !Number.isNaN(next.x0)) return true;
    if (next.x1 !== before.x1 && !Number.isNaN(next.x1)) return true;
    if (next.row.kind === "pager") return true;
    if (next.row.parts.length && next.scale !== before.scale) return true;
    return next.row !== before.row && JSON.stringify(next.row) !== JSON.stringify(before.row);
  }

  /** @param {RowProps} props */
  render(props) {
    const { row, index, top, isAt, isSelected, onClick, onToggle } = props;
    const tone = row.waits && row.isRunning ? "wait" : toneOf(row.status);
    const isReached = row.status !== "NotReached";
    const names = `timeline-row tone-${tone}${isAt ? " at" : ""}${isSelected ? " selected" : ""}${isReached ? "" : " faint"}`;
    const open = row.opens ? { "aria-expanded": String(row.isOpen) } : {};
    const id = `timeline-${row.key}`;
    if (row.kind === "pager") {
      return html`<div role="row" id=${id} class=${`${names} pager`} aria-rowindex=${index + 1} aria-level=${row.depth + 1} style=${{ transform: `translateY(${top}px)` }}>
        <div role="gridcell" class="timeline-pager" style=${{ "--depth": row.depth }}><${Pager} row=${row} iterations=${props.iterations} /></div>
      </div>`;
    }
    return html`<div role="row" id=${id} class=${names} aria-rowindex=${index + 1} aria-level=${row.depth + 1} aria-selected=${String(isSelected)} ...${open}
      style=${{ transform: `translateY(${top}px)` }} onClick=${() => String(getSelection()) || onClick()}>
      <div role="gridcell" class="timeline-label" style=${{ "--depth": row.depth }} title=${row.path}>
        ${row.opens
          ? html`<button type="button" class="quiet timeline-toggle" tabindex="-1" aria-label=${`${row.isOpen ? "Close" : "Open"} the iterations of ${row.path}`}
              onClick=${(/** @type {Event} */ event) => (event.stopPropagation(), onToggle())}><${Icon} name="back" size=${12} /></button>`
          : html`<span class="timeline-toggle"></span>`}
        <${Status} status=${row.isRunning ? (row.waits ?? row.status) : row.status} label="" />
        <span class="mono cut">${row.label}${row.hint && html` <span class="muted">${row.hint}</span>`}</span>
      </div>
      <div role="gridcell" class="timeline-track" aria-label=${isReached ? undefined : "not reached"}>${isReached ? bar(props) : html`<span class="timeline-none">(not reached)</span>`}</div>
      <div role="gridcell" class="timeline-note" title=${[row.error, row.note].filter(Boolean).join(" · ")}>
        ${row.note && html`<span class="number">${row.note}</span>`}
      </div>
    </div>`;
  }
}

/** @param {RowProps} props */
function bar({ row, x0, x1, scale, trackPx }) {
  if (Number.isNaN(x0)) return null;
  const width = Math.max(BAR_PX_MIN, x1 - x0);
  const took = row.isRunning ? "runs" : `took ${duration(row.to - row.from)}`;
  const title = `${row.path}\n${row.status}, ${took}, began ${localTime(row.from)}${row.error ? `\n${row.error}` : ""}`;
  const names = `timeline-bar${row.isRunning ? " running" : ""}${row.waits || row.status === "WaitingForRedrive" || row.parts.length ? " waits" : ""}`;
  return html`<div class=${names} title=${title} style=${{ left: `${x0}px`, width: `${width}px` }}>
    ${row.parts.map((part) => {
      const left = scale.x(part.from) - x0;
      return html`<i class=${`tone-${part.tone}`} style=${{ left: `${left}px`, width: `${Math.max(3, scale.x(part.to) - x0 - left)}px` }}></i>`;
    })}
  </div>${row.error && words(row.error, x0, x0 + width, trackPx)}`;
}

/** An error where it has the most room beside its bar. @param {string} error @param {number} from @param {number} to @param {number} trackPx */
function words(error, from, to, trackPx) {
  const isOver = Math.max(from, trackPx - to) < ERROR_PX_MIN;
  const style = isOver ? { right: `${trackPx - to + 4}px`, maxWidth: `${to - from - 8}px` } : besides(from, to, trackPx);
  return html`<span class=${isOver ? "timeline-error over" : "timeline-error"} style=${style}>${error}</span>`;
}

/** @param {number} from @param {number} to @param {number} trackPx */
function besides(from, to, trackPx) {
  const isAfter = trackPx - to >= Math.min(from, ERROR_PX);
  return isAfter ? { left: `${to + 6}px`, maxWidth: `${Math.max(0, trackPx - to - 6)}px` } : { right: `${trackPx - from + 6}px`, maxWidth: `${from - 6}px` };
}

const FILTERS = [["done", "Succeeded", "✔"], ["failed", "Failed", "✕"], ["aborted", "Cancelled", "■"], ["running", "Running", "▸"]];

/** @param {{row: import("./timeline-rows.js").Row, iterations: import("./timeline-iterations.js").Iterations}} props */
function Pager({ row, iterations }) {
  const { path, page, problem, opened } = row;
  const counts = row.counts;
  const status = opened?.status ?? "";
  const shown = page?.iterations ?? [];
  const total = counts?.total ?? 0;
  const range = shown.length ? `${shown[0].index.toLocaleString()} – ${shown[shown.length - 1].index.toLocaleString()}` : "none";
  const isFirst = (opened?.begins.length ?? 0) < 2 && !(opened?.begins.at(-1) && !status);
  const turn = html`
    <button type="button" class="quiet" disabled=${isFirst} aria-label="Page before" title="Page before  [" onClick=${() => iterations.turn(path, -1)}>‹</button>
    <span class="number" role=${row.isEnd ? undefined : "status"}>${problem ? "" : page ? `${range} of ${total.toLocaleString()}` : "loading…"}</span>
    <button type="button" class="quiet" disabled=${!page?.nextToken} aria-label="Next page" title="Next page  ]" onClick=${() => iterations.turn(path, 1)}>›</button>`;
  if (row.isEnd) return turn;
  return html`${turn}
    ${problem && html`<span class="timeline-error">${problem.message || String(problem)}</span>
      <button type="button" class="quiet chip" onClick=${() => iterations.again(path)}>Try again</button>`}
    <button type="button" class="quiet chip" aria-pressed=${String(status === "")} onClick=${() => iterations.filter(path, "")}>all</button>
    ${FILTERS.map(([field, value, sign]) => {
      const count = counts?.[/** @type {"done"} */ (field)] ?? 0;
      if (!count && status !== value) return null;
      return html`<button type="button" key=${value} class="quiet chip" aria-pressed=${String(status === value)} aria-label=${`Only ${value}: ${count}`}
        onClick=${() => iterations.filter(path, status === value ? "" : value)}>${sign} ${count.toLocaleString()}</button>`;
    })}
    ${total > PAGE && html`<input class="timeline-jump" type="number" min="0" max=${total - 1} placeholder="go to" aria-label=${`Go to an iteration of ${path}`}
      onChange=${(/** @type {Event} */ event) => {
        const field = /** @type {HTMLInputElement} */ (event.currentTarget);
        if (field.value !== "" && field.checkValidity()) iterations.jump(path, Number(field.value));
      }} />`}`;
}
