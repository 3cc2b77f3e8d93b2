/** How code looks: the console's tokens, which reach into a shadow root, so that dark and light need no second theme. */
import { EditorView, HighlightStyle, syntaxHighlighting, tags } from "../../vendor/codemirror.js";

const surface = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--panel)", fontSize: "12px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "18px", overflow: "auto" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--muted)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 7%, transparent)" },
  ".cm-activeLineGutter": { color: "var(--text)" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--accent) 25%, transparent)",
  },
  ".cm-selectionMatch": { backgroundColor: "color-mix(in srgb, var(--accent) 16%, transparent)" },
  ".cm-searchMatch": { backgroundColor: "var(--wait-soft)", outline: "1px solid var(--wait)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "transparent", outline: "1px solid var(--muted)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--raised)", borderColor: "var(--line)", color: "var(--muted)" },
  ".cm-placeholder": { color: "var(--muted)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--fail) 1px", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--wait) 1px", textUnderlineOffset: "3px" },
  ".cm-lintRange-active": { backgroundColor: "var(--fail-soft)" },
  ".cm-lintPoint-error:after": { borderBottomColor: "var(--fail)" },
  ".cm-lintPoint-warning:after": { borderBottomColor: "var(--wait)" },
  ".cm-gutter-lint": { width: "14px" },
  ".cm-gutter-lint .cm-gutterElement": { padding: "0 2px" },
  ".cm-lint-marker": { content: "none", width: "10px", height: "18px", textAlign: "center", fontWeight: "700" },
  ".cm-lint-marker-error": { content: "none", color: "var(--fail)" },
  ".cm-lint-marker-error:before": { content: "'✕'" },
  ".cm-lint-marker-warning": { content: "none", color: "var(--wait)" },
  ".cm-lint-marker-warning:before": { content: "'!'" },
});

const above = EditorView.theme({
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--text)",
    border: "1px solid var(--line)",
    borderRadius: "var(--r)",
    fontFamily: "var(--sans)",
    fontSize: "13px",
    lineHeight: "20px",
    maxWidth: "min(480px, 90vw)",
  },
  ".cm-diagnostic": { padding: "4px 8px", whiteSpace: "pre-wrap" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--fail)" },
  ".cm-diagnostic-warning": { borderLeft: "3px solid var(--wait)" },
  ".cm-diagnostic .hint": { color: "var(--muted)", display: "block" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "12px", maxHeight: "216px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "2px 8px", lineHeight: "20px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-text)" },
  ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal", fontFamily: "var(--sans)", marginLeft: "12px" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-completionIcon": { display: "none" },
  ".cm-tooltip.cm-completionInfo": { padding: "4px 8px", maxWidth: "280px" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-panels.cm-panels-bottom": { borderTop: "1px solid var(--line)" },
  ".cm-panel.cm-search": { fontFamily: "var(--sans)", fontSize: "13px" },
  ".cm-panel.cm-search label": { fontSize: "12px" },
  ".cm-textfield": { backgroundColor: "var(--panel)", color: "var(--text)", border: "1px solid var(--line)", fontSize: "13px" },
  ".cm-button": { backgroundImage: "none", backgroundColor: "var(--panel)", color: "var(--text)", border: "1px solid var(--line)", fontSize: "12px" },
  ".cm-panel button[name=close]": { color: "var(--text)" },
  ":focus-visible:not(.cm-content)": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
});

const differences = EditorView.theme({
  "&.cm-merge-a .cm-changedLine, .cm-deletedChunk": { backgroundColor: "var(--fail-soft)" },
  "&.cm-merge-b .cm-changedLine, .cm-inlineChangedLine": { backgroundColor: "var(--ok-soft)" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": {
    background: "color-mix(in srgb, var(--fail) 8%, transparent)",
    boxShadow: "inset 0 -2px var(--fail)",
  },
  "&.cm-merge-b .cm-changedText, .cm-inlineChangedLine .cm-changedText": {
    background: "color-mix(in srgb, var(--ok) 8%, transparent)",
    boxShadow: "inset 0 -2px var(--ok)",
  },
  "&.cm-merge-a .cm-changedLineGutter, .cm-deletedLineGutter": { background: "var(--fail)" },
  "&.cm-merge-b .cm-changedLineGutter": { background: "var(--ok)" },
  ".cm-collapsedLines": {
    background: "var(--raised)",
    color: "var(--muted)",
    fontFamily: "var(--sans)",
    border: "solid var(--line)",
    borderWidth: "1px 0",
  },
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: "'⋯'" },
});

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom, tags.keyword], color: "var(--wait)" },
  { tag: [tags.separator, tags.punctuation, tags.squareBracket, tags.brace], color: "var(--muted)" },
  { tag: [tags.labelName, tags.typeName, tags.meta], color: "var(--run)" },
  { tag: tags.invalid, color: "var(--fail)" },
]);

/** For an editor that fills what it is in, and scrolls by itself. */
export const filling = EditorView.theme({ "&": { height: "100%" } });

export const looks = [surface, above, differences, syntaxHighlighting(colours)];
