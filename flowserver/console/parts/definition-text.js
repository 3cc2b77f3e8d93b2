/** A definition to read: numbered lines, some of them marked. */
import { stylesheet } from "../css.js";
import { html, useEffect, useMemo, useRef } from "../vendor/preact.js";

stylesheet(new URL("./definition-text.css", import.meta.url));

/** As YAML counts lines. */
const LINE_BREAK = /\r\n|[\r\n\x85\u2028\u2029]/;

/**
 * `marked` are the first and the last line to mark, from 1; the first comes into view. `onLine` is called with a line
 * that was clicked.
 * @param {{text: string, marked?: [number, number] | null, onLine?: (line: number) => void, label?: string}} props
 */
export function DefinitionText({ text, marked = null, onLine, label = "Definition" }) {
  const view = useRef(/** @type {HTMLDivElement | null} */ (null));
  const lines = useMemo(() => text.replace(/^\ufeff/, "").replace(/\s+$/, "").split(LINE_BREAK), [text]);
  const [from, to] = marked ?? [0, -1];
  useEffect(() => {
    const [box, line] = [view.current, view.current?.children[from - 1]];
    if (!box || !(line instanceof HTMLElement)) return;
    const [top, bottom] = [line.offsetTop - box.offsetTop, line.offsetTop - box.offsetTop + (Math.min(to, from + 8) - from + 1) * line.offsetHeight];
    if (top < box.scrollTop || bottom > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 4;
  }, [from, to, text]);
  const click = (/** @type {MouseEvent} */ event) => {
    const line = event.target instanceof Element ? event.target.closest(".definition-text > div") : null;
    if (!line || !view.current || getSelection()?.toString()) return;
    onLine?.([...view.current.children].indexOf(line) + 1);
  };
  return html`<div class="definition-text" ref=${view} role="region" aria-label=${label} tabindex="0" onClick=${click}>
    ${lines.map((line, index) => {
      const isMarked = index + 1 >= from && index + 1 <= to;
      return html`<div key=${index} class=${`${isMarked ? "marked" : ""} ${onLine ? "can" : ""}`}>${line}</div>`;
    })}
  </div>`;
}
