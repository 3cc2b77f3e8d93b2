/** The definition with the lines of a step marked. */
import { html, useEffect, useMemo, useRef } from "../../vendor/preact.js";
import { Copy } from "../../parts/basics.js";

const LINES_MAX = 5_000;

/** @param {{text: string, mark: [number, number] | null}} props */
export function Definition({ text, mark }) {
  const lines = useMemo(() => text.replace(/\n$/, "").split("\n"), [text]);
  const first = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => first.current?.scrollIntoView({ block: "center" }), [mark, text]);
  const from = lines.length > LINES_MAX && mark ? Math.max(0, mark[0] - LINES_MAX / 2) : 0;
  const shown = lines.slice(from, from + LINES_MAX);
  return html`<div class="pane-scroll definition" tabindex="0" aria-label="Definition">
    <div class="definition-copy"><${Copy} text=${text} label="Copy" /></div>
    <ol class="mono" start=${from + 1} style=${{ "--digits": String(lines.length).length }}>
      ${shown.map((line, index) => {
        const number = from + index + 1;
        const isMarked = mark !== null && number >= mark[0] && number <= mark[1];
        return html`<li key=${number} value=${number} class=${isMarked ? "marked" : ""} ref=${isMarked && number === mark[0] ? first : undefined}
          aria-current=${isMarked && number === mark[0] ? "location" : undefined}><code>${line}</code></li>`;
      })}
    </ol>
    ${shown.length < lines.length && html`<p class="muted">Lines ${from + 1} to ${from + shown.length} of ${lines.length} are shown.</p>`}
  </div>`;
}
