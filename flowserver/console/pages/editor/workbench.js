/** The text with its findings, and beside it the graph: what the editors of new and of old flows share. */
import { Panel, Problem } from "../../parts/basics.js";
import { completionsAt } from "../../parts/editor/complete.js";
import { Editor } from "../../parts/editor.js";
import { countOf, Problems } from "../../parts/problems.js";
import { html, useCallback, useEffect, useMemo, useRef, useState } from "../../vendor/preact.js";
import { Beside, stepAt } from "./beside.js";
import { useCheck, useKnowledge } from "./checking.js";
import { UnsavedGuard } from "./leaving.js";
import { inBrief } from "./saving.js";

/**
 * @param {{flow: string | null, text: string, onText: (text: string) => void, onSave: () => void, isUnsaved: boolean, error: any, title: any,
 *   actions: any, first?: number | null, onLine?: (line: number) => void, children?: any}} props
 *   `flow`: its name, null if it has none yet; `first`: the line where the cursor is at first, with the focus; `onLine` gets the line of the cursor; `children`: dialogs
 */
export function Workbench({ flow, text, onText, onSave, isUnsaved, error, title, actions, first = null, onLine, children }) {
  const check = useCheck(text);
  const { language, resources, rules } = useKnowledge();
  const [line, setLine] = useState(1);
  const [jump, setJump] = useState(/** @type {{line: number, column?: number} | null} */ (first === null ? null : { line: first }));
  const complete = useCallback(
    (/** @type {string} */ whole, /** @type {number} */ offset) => (language ? completionsAt(whole, offset, language, resources) : null),
    [language, resources],
  );
  useSaveKey(onSave);
  const moved = (/** @type {number} */ to) => {
    setLine(to);
    onLine?.(to);
  };
  const { graph, isOld, findings } = check;
  const at = useMemo(() => stepAt(graph, line), [graph, line]);
  const beside = useMemo(
    () => html`<${Beside} flow=${flow} text=${text} graph=${graph} isOld=${isOld} at=${at} onLine=${(/** @type {number} */ to) => setJump({ line: to })} />`,
    [flow, text, graph, isOld, at],
  );
  const found = useMemo(
    () => findings.length > 0 && html`<${Problems} findings=${findings} rules=${rules} onJump=${(/** @type {{line: number, column: number}} */ each) => setJump({ line: each.line, column: each.column })} />`,
    [findings, rules],
  );
  const count = countOf(findings);
  const state = check.error ? "The server did not check this text." : check.isFirst || check.isLate ? "Checking…" : count || "No problems";

  return html`<div class="page fills workbench">
    <header><div class="row grow">${title}</div><div class="row">${actions}</div></header>
    <${Problem} error=${inBrief(error)} />
    <div class="bench">
      <${Panel} class="written">
        <div class="text"><${Editor} text=${text} label="Definition" onChange=${onText} onSave=${onSave} onCursor=${moved}
          findings=${findings} complete=${complete} jump=${jump} /></div>
        <footer class="found">
          <p class="row"><strong role="status">${state}</strong>
            <span class="muted keys">Ctrl Space completes · F8 next problem · Esc then Tab leaves the text</span></p>
          ${found}
        </footer>
      <//>
      ${beside}
    </div>
    <${UnsavedGuard} isUnsaved=${isUnsaved} />
    ${children}
  </div>`;
}

/** Ctrl-S (on a Mac: Cmd-S) saves wherever the focus is. @param {() => void} onSave */
function useSaveKey(onSave) {
  const latest = useRef(onSave);
  latest.current = onSave;
  useEffect(() => {
    const press = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "s" || !(event.ctrlKey || event.metaKey) || event.defaultPrevented) return;
      event.preventDefault();
      if (!document.querySelector("dialog:modal")) latest.current();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}
