/** An editor of definitions and JSON, or a reader of them. The library behind it is loaded when it is shown first. */
import { stylesheet } from "../css.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";

stylesheet(new URL("./editor.css", import.meta.url));

/** The library takes a tenth of a second to run. Until then the text is there, so paint that first. */
const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

/**
 * @typedef {import("./editor/view.js").Finding} Finding
 * @typedef {import("./editor/view.js").CodeView} CodeView
 * @typedef {import("./editor/complete.js").Completions} Completions
 * @typedef {{text: string, label: string, language?: "yaml" | "json" | "text", readOnly?: boolean,
 *   onChange?: (text: string) => void, onSave?: () => void, onCursor?: (line: number) => void, findings?: Finding[],
 *   complete?: (text: string, offset: number) => Completions | null, jump?: {line: number, column?: number} | null}} EditorProps
 */

/**
 * `text` replaces what is shown if it differs. `findings` are marked where the server has found them. A new object in
 * `jump` moves the cursor there. Tab indents; Esc and then Tab leaves the editor.
 * @param {EditorProps} props
 */
export function Editor(props) {
  const { text, label, language = "yaml", readOnly = false, findings, jump } = props;
  const host = useRef(/** @type {HTMLDivElement | null} */ (null));
  const latest = useRef(props);
  latest.current = props;
  const [view, setView] = useState(/** @type {CodeView | null} */ (null));
  const [failed, setFailed] = useState(false);

  useEffect(() => {
    let isGone = false;
    /** @type {CodeView | undefined} */
    let made;
    painted().then(() => import("./editor/view.js")).then(
      ({ CodeView }) => {
        const element = host.current;
        if (isGone || !element) return;
        const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
        made = new CodeView(root, {
          text: latest.current.text,
          language,
          label,
          isReadOnly: latest.current.readOnly ?? false,
          onChange: (changed) => latest.current.onChange?.(changed),
          onSave: () => latest.current.onSave?.(),
          onCursor: (line) => latest.current.onCursor?.(line),
          complete: (whole, offset) => latest.current.complete?.(whole, offset) ?? null,
        });
        setView(made);
      },
      () => setFailed(true),
    );
    return () => {
      isGone = true;
      made?.destroy();
      setView(null);
    };
  }, [language, label]);

  useLayoutEffect(() => {
    if (view) view.text = text; // at once: after the next key it would undo that
  }, [view, text]);
  useEffect(() => view?.lock(readOnly), [view, readOnly]);
  useEffect(() => view?.show(findings ?? []), [view, findings]);
  useEffect(() => {
    if (view && jump) view.jump(jump.line, jump.column ?? 1);
  }, [view, jump]);

  return html`<div class="editor">
    ${failed && html`<p class="muted">The editor could not be loaded. This is the text:</p>`}
    ${!view && html`<pre class="mono" tabindex="0" aria-label=${label}>${text}</pre>`}
    <div class="editor-host" ref=${host} hidden=${!view}></div>
  </div>`;
}
