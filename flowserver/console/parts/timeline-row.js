/** One row of a timeline. It is painted again only if it has changed. */
import { Component, html } from "../vendor/preact.js";
import { Icon } from "./icons.js";
import { Status, localTime, toneOf } from "./basics.js";
import { duration } from "./durations.js";
import { PAGE } from "./timeline-iterations.js";

const BAR_PX_MIN = 3;
const MARK_PX = 6;
/** An error goes before its bar if there is less room behind it. */
const ERROR_PX = 120;
/** With less room on both sides an error is among the notes. */
const ERROR_PX_MIN = 60;

/**
 * @typedef {{row: import("./timeline-rows.js").Row, index: number, top: number, isAt: boolean, isSelected: boolean, px: string,
 *   trackPx: number, scale: import("./timeline-scale.js").Scale, onClick: () => void, onToggle: () => void, iterations: import("./timeline-iterations.js").Iterations}} RowProps
 *   `px`: another one says that the bars are elsewhere
 * @extends {Component<RowProps>}
 */
export class TimelineRow extends Component {
  /** @param {RowProps} next */
  shouldComponentUpdate(next) {
    const before = this.props;
    if (next.index !== before.index || next.top !== before.top || next.isAt !== before.isAt || next.isSelected !== before.isSelected) return true;
    if (next.px !== before.px || next.row.kind === "pager") return true;
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
      <div role="gridcell" class="timeline-track" aria-label=${isReached ? undefined : "not reached"}>${isReached ? track(props) : html`<span class="timeline-none">(not reached)</span>`}</div>
      <div role="gridcell" class="timeline-note" title=${[row.error, row.note].filter(Boolean).join(" · ")}>
        ${row.error && isReached && !hasRoom(props) && html`<span class="timeline-error">${row.error}</span>`}
        ${row.note && html`<span class="number">${row.note}</span>`}
      </div>
    </div>`;
  }
}

/** @param {RowProps} props */
function track(props) {
  const { row, scale } = props;
  if (!row.bars.length) return null;
  const { more } = row;
  return html`${row.bars.map((each, index) => bar(row, each, index, scale))}
    ${more && html`<span class="timeline-more" title=${`${more.count.toLocaleString()} more visits`}
      style=${{ left: `${scale.x(more.from)}px`, width: `${Math.max(BAR_PX_MIN, scale.x(more.to) - scale.x(more.from))}px` }}>×${more.count.toLocaleString()} more</span>`}
    ${row.error && hasRoom(props) && html`<span class="timeline-error" style=${besides(...extentOf(props))}>${row.error}</span>`}`;
}

/** A visit or an iteration; of a task its attempts. What took no time is a mark. @param {import("./timeline-rows.js").Row} row @param {import("./timeline-rows.js").Bar} each @param {number} index @param {import("./timeline-scale.js").Scale} scale */
function bar(row, each, index, scale) {
  const { from, to, isRunning, parts, status } = each;
  const [x0, x1] = [scale.x(from), scale.x(to)];
  const took = isRunning ? "runs" : `took ${duration(to - from)}`;
  const title = `${row.path}\n${status}, ${took}, began ${localTime(from)}${each.error ? `\n${each.error}` : ""}`;
  const isWaiting = row.waits || (isRunning && row.status === "WaitingForRedrive");
  const isMark = to === from && !isRunning;
  const names = `timeline-bar tone-${isRunning && row.waits ? "wait" : toneOf(status)}${isMark ? " mark" : ""}${isRunning ? " running" : ""}${isWaiting ? " waits" : parts.length ? " tried" : ""}`;
  return html`<div key=${index} class=${names} title=${title} style=${isMark ? { left: `${x0}px` } : { left: `${x0}px`, width: `${Math.max(BAR_PX_MIN, x1 - x0)}px` }}>
    ${!isMark && parts.map((part) => {
      const left = scale.x(part.from) - x0;
      return html`<i class=${`tone-${part.tone}`} style=${{ left: `${left}px`, width: `${Math.max(BAR_PX_MIN, scale.x(part.to) - x0 - left)}px` }}></i>`;
    })}
  </div>`;
}

/** Where its bars begin and end. @param {RowProps} props @returns {[number, number, number]} */
function extentOf({ row, scale, trackPx }) {
  const ends = row.bars.map((each) => scale.x(each.to));
  return [scale.x(row.bars[0].from), Math.max(...ends) + MARK_PX, trackPx];
}

/** Whether an error can be read beside the bars. @param {RowProps} props */
function hasRoom(props) {
  if (!props.row.bars.length) return false;
  const [from, to, trackPx] = extentOf(props);
  return Math.max(from, trackPx - to) >= ERROR_PX_MIN;
}

/** @param {number} from @param {number} to @param {number} trackPx */
function besides(from, to, trackPx) {
  const isAfter = trackPx - to >= Math.min(from, ERROR_PX);
  return isAfter ? { left: `${to + 6}px`, right: "auto", maxWidth: `${Math.max(0, trackPx - to - 6)}px` } : { left: "auto", right: `${trackPx - from + 6}px`, maxWidth: `${from - 6}px` };
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
