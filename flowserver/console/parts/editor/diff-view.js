/** The difference of two texts, on CodeMirror: side by side, or one text with what was removed above what was added. */
import { EditorState, EditorView, getChunks, MergeView, unifiedMergeView } from "../../vendor/codemirror.js";
import { reading } from "./view.js";

/** @typedef {{left: string, right: string, leftTitle: string, rightTitle: string, language: "yaml" | "json" | "text"}} Texts */

/** Beyond these an exact difference takes too long: what follows is then marked as one change. */
const EXACTNESS = { scanLimit: 500, timeout: 150 };
const COLLAPSED = { margin: 3, minSize: 8 };

/**
 * Show the difference; returns how many changes there are, and what removes it again.
 * @param {ShadowRoot} root @param {Texts} texts @param {boolean} isWide
 * @returns {{changes: number, destroy: () => void}}
 */
export function showDiff(root, { left, right, leftTitle, rightTitle, language }, isWide) {
  const fixed = [EditorState.readOnly.of(true), EditorView.lineWrapping];
  if (isWide) {
    const merge = new MergeView({
      a: { doc: left, extensions: [reading(language, leftTitle), fixed] },
      b: { doc: right, extensions: [reading(language, rightTitle), fixed] },
      parent: root,
      root,
      collapseUnchanged: COLLAPSED,
      diffConfig: EXACTNESS,
    });
    return { changes: merge.chunks.length, destroy: () => merge.destroy() };
  }
  const unified = unifiedMergeView({ original: left, mergeControls: false, collapseUnchanged: COLLAPSED, diffConfig: EXACTNESS });
  const extensions = [reading(language, `${leftTitle}, changed to ${rightTitle}`), fixed, unified];
  const view = new EditorView({ root, parent: root, state: EditorState.create({ doc: right, extensions }) });
  return { changes: getChunks(view.state)?.chunks.length ?? 0, destroy: () => view.destroy() };
}
