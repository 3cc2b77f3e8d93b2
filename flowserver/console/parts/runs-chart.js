/** How long the last runs took: a bar each, the newest at the right. */
import { stylesheet } from "../css.js";
import { html, useRef, useState } from "../vendor/preact.js";
import { localTime, toneOf, wordOf } from "./basics.js";
import { duration } from "./durations.js";

stylesheet(new URL("./runs-chart.css", import.meta.url));

/** @typedef {{name: string, status: string, startedTime: string, stoppedTime: string | null, failedStep?: string | null}} Run */

/** The shape of a bar says whether it ran well; its colour says it again. @type {Record<string, string>} */
const MARKS = { fail: "✕", stop: "■", run: "▸", wait: "◷" };
const HEIGHT = 84;

/**
 * `runs` have the newest first.
 * @param {{runs: Run[], now: number, hrefOf: (run: Run) => string, onOpen: (run: Run) => void}} props
 */
export function RunsChart({ runs, now, hrefOf, onOpen }) {
  const [focus, setFocus] = useState(0);
  const list = useRef(/** @type {HTMLDivElement | null} */ (null));
  const shown = runs.toReversed();
  const took = shown.map((run) => Math.max(0, (run.stoppedTime ? Date.parse(run.stoppedTime) : now) - Date.parse(run.startedTime)));
  const longest = Math.max(1, ...took);
  const ended = took.filter((_, index) => shown[index].stoppedTime).sort((a, b) => a - b);
  const median = ended[Math.floor((ended.length - 1) / 2)] ?? null;
  const at = Math.min(shown.length - 1, focus);
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowLeft: 1, ArrowRight: -1, Home: Infinity, End: -Infinity }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(shown.length - 1, at + step));
    setFocus(next);
    const bar = list.current?.children[shown.length - 1 - next];
    if (bar instanceof HTMLElement) bar.focus();
  };
  const click = (/** @type {MouseEvent} */ event, /** @type {Run} */ run) => {
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    onOpen(run);
  };
  return html`<div class="runs-chart">
    <div class="bars" ref=${list} role="group" aria-label="Durations of the last runs" onKeyDown=${onKeyDown}>
      ${shown.map((run, index) => {
        const tone = toneOf(run.status);
        const said = [run.name, wordOf(run.status), duration(took[index]), localTime(run.startedTime), run.failedStep && `at ${run.failedStep}`].filter(Boolean).join(" · ");
        return html`<a key=${run.name} href=${hrefOf(run)} class=${`tone-${tone}`} title=${said} aria-label=${said} tabindex=${shown.length - 1 - index === at ? 0 : -1}
          onClick=${(/** @type {MouseEvent} */ event) => click(event, run)}>
          <span class="mark" aria-hidden="true">${MARKS[tone] ?? ""}</span>
          <span class="bar" style=${{ height: `${Math.max(3, (HEIGHT * took[index]) / longest)}px` }}></span>
        </a>`;
      })}
    </div>
    <div class="scale">
      <span>${shown.length ? localTime(shown[0].startedTime) : ""}</span>
      <span>${median === null ? "" : `median ${duration(median)}, longest ${duration(longest)}`}</span>
      <span>${shown.length ? localTime(shown[shown.length - 1].startedTime) : ""}</span>
    </div>
  </div>`;
}
