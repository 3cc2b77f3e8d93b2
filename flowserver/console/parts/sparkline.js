/** Starts and failures over time, as bars; each bar can lead to a list. */
import { html } from "../vendor/preact.js";
import { stylesheet } from "../css.js";
import { localTime } from "./basics.js";

stylesheet(new URL("./sparkline.css", import.meta.url));

const HEIGHT = 64;
const BAR = 10;
const GAP = 2;

/**
 * @typedef {{fromTime: string, bucketSeconds: number, completeFrom: string, started: number[], failed: number[]}} Series
 */

/**
 * `onOpen` gets the bounds of the part that was chosen.
 * @param {{series: Series, onOpen: (from: string, to: string) => void}} props
 */
export function Sparkline({ series, onOpen }) {
  const { started, failed } = series;
  const most = Math.max(1, ...started.map((count, index) => Math.max(count, failed[index])));
  const from = Date.parse(series.fromTime);
  const step = series.bucketSeconds * 1_000;
  const incomplete = Date.parse(series.completeFrom);
  const width = started.length * BAR;
  const high = (/** @type {number} */ count) => (count ? Math.max(2, (count / most) * (HEIGHT - 4)) : 0);
  return html`<figure class="sparkline">
    <svg viewBox=${`0 0 ${width} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${summaryOf(series)}>
      ${started.map((count, index) => {
        const begins = from + index * step;
        const bad = failed[index];
        const words = `${localTime(begins)}: ${count.toLocaleString()} started, ${bad.toLocaleString()} failed`;
        return html`<g key=${begins} class=${begins < incomplete ? "part faint" : "part"}
          onClick=${() => onOpen(new Date(begins).toISOString(), new Date(begins + step).toISOString())}>
          <title>${begins < incomplete ? `${words} at least` : words}</title>
          <rect class="whole" x=${index * BAR} y="0" width=${BAR} height=${HEIGHT} />
          <rect class="started" x=${index * BAR + GAP / 2} y=${HEIGHT - high(count)} width=${BAR - GAP} height=${high(count)} />
          <rect class="failed" x=${index * BAR + GAP / 2} y=${HEIGHT - high(bad)} width=${BAR - GAP} height=${high(bad)} />
        </g>`;
      })}
    </svg>
    <figcaption class="muted"><time datetime=${series.fromTime}>${localTime(from)}</time><span>peak: ${most.toLocaleString()} in ${partOf(series)}</span><span>now</span></figcaption>
  </figure>`;
}

/** "the last 24 hours" @param {Series} series */
export function spanOf({ bucketSeconds, started }) {
  const seconds = bucketSeconds * started.length;
  if (seconds >= 86_400) return "last 24 hours";
  return seconds >= 3_600 || seconds % 60 === 0 ? `last ${Math.round(seconds / 60)} minutes` : `last ${seconds} seconds`;
}

/** @param {Series} series */
function partOf({ bucketSeconds }) {
  return bucketSeconds >= 120 ? `${bucketSeconds / 60} minutes` : bucketSeconds === 60 ? "a minute" : bucketSeconds === 1 ? "a second" : `${bucketSeconds} seconds`;
}

/** @param {Series} series */
function summaryOf(series) {
  const sum = (/** @type {number[]} */ counts) => counts.reduce((total, count) => total + count, 0).toLocaleString();
  return `In the ${spanOf(series)}: ${sum(series.started)} started, ${sum(series.failed)} failed`;
}
