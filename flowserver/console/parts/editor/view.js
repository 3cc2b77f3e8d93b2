/** The editor itself, on CodeMirror. This file and the library are loaded where code is shown, and nowhere else. */
import {
  autocompletion,
  bracketMatching,
  closeBrackets,
  closeBracketsKeymap,
  codeFolding,
  Compartment,
  completionKeymap,
  defaultKeymap,
  drawSelection,
  EditorState,
  EditorView,
  foldGutter,
  foldKeymap,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSelectionMatches,
  highlightSpecialChars,
  history,
  historyKeymap,
  indentOnInput,
  indentUnit,
  indentWithTab,
  json,
  keymap,
  lineNumbers,
  lintGutter,
  lintKeymap,
  Prec,
  search,
  searchKeymap,
  setDiagnostics,
  startCompletion,
  yaml,
} from "../../vendor/codemirror.js";
import { offsetsIn } from "./positions.js";
import { filling, looks } from "./theme.js";

/**
 * @typedef {{severity: "error" | "warning", message: string, hint?: string | null, id?: string, line: number, column: number,
 *   endLine: number, endColumn: number, path?: import("../problems.js").PathStep[]}} Finding  as the server reports it
 * @typedef {import("./complete.js").Completions} Completions
 * @typedef {{text: string, language: "yaml" | "json" | "text", label: string, isReadOnly: boolean,
 *   onChange: (text: string) => void, onSave: () => void, onCursor: (line: number) => void,
 *   complete: (text: string, offset: number) => Completions | null}} Settings
 */

/** @param {"yaml" | "json" | "text"} language */
export const languageOf = (language) => (language === "yaml" ? yaml() : language === "json" ? json() : []);

/** What shows text: numbers, folding, search, colours. @param {"yaml" | "json" | "text"} language @param {string} label */
export const reading = (language, label) => [
  lineNumbers(),
  codeFolding(),
  highlightSpecialChars(),
  drawSelection(),
  bracketMatching(),
  highlightSelectionMatches(),
  search(),
  languageOf(language),
  looks,
  EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
];

export class CodeView {
  /** @param {ShadowRoot} root @param {Settings} settings */
  constructor(root, settings) {
    this.settings = settings;
    this.writing = new Compartment();
    const { text, language, label, isReadOnly } = settings;
    const separator = /\r\n/.test(text) && !/[^\r]\n/.test(text) ? [EditorState.lineSeparator.of("\r\n")] : [];
    const extensions = [
      ...separator,
      reading(language, label),
      filling,
      foldGutter(),
      lintGutter(),
      this.writing.of(isReadOnly ? lockedText : writableText((text, offset) => this.settings.complete(text, offset))),
      Prec.high(keymap.of([{ key: "Mod-s", preventDefault: true, run: () => (this.settings.onSave(), true) }])),
      keymap.of([...lintKeymap, ...searchKeymap, ...foldKeymap, ...defaultKeymap]),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) this.settings.onChange(this.text);
        if (update.docChanged || update.selectionSet) this.settings.onCursor(this.line);
      }),
    ];
    this.view = new EditorView({ root, parent: root, state: EditorState.create({ doc: text, extensions }) });
  }

  get text() {
    return this.view.state.sliceDoc();
  }

  /** The line of the cursor, counted from 1. */
  get line() {
    const { state } = this.view;
    return state.doc.lineAt(state.selection.main.head).number;
  }

  /** Show another text, unless it is this one. @param {string} text */
  set text(text) {
    if (text === this.text) return;
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  /** @param {boolean} isReadOnly */
  lock(isReadOnly) {
    this.view.dispatch({ effects: this.writing.reconfigure(isReadOnly ? lockedText : writableText((text, offset) => this.settings.complete(text, offset))) });
  }

  /** @param {Finding[]} findings */
  show(findings) {
    const offset = offsetsIn(this.view.state.doc.toString());
    const diagnostics = findings.map((found) => {
      const from = offset(found.line, found.column);
      const to = Math.max(from, Math.min(offset(found.endLine, found.endColumn), this.view.state.doc.lineAt(from).to)); // of a whole step its first line
      return { from, to, severity: found.severity, message: found.message, renderMessage: () => explained(found) };
    });
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
  }

  /** Put the cursor at a place and show it. @param {number} line @param {number} column */
  jump(line, column) {
    const anchor = offsetsIn(this.view.state.doc.toString())(line, column);
    this.view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
    this.view.focus();
  }

  focus() {
    this.view.focus();
  }

  destroy() {
    this.view.destroy();
  }
}

const lockedText = [EditorState.readOnly.of(true)];

/** @param {(text: string, offset: number) => Completions | null} complete */
const writableText = (complete) => [
  history(),
  closeBrackets(),
  indentOnInput(),
  indentUnit.of("  "),
  highlightActiveLine(),
  highlightActiveLineGutter(),
  EditorView.domEventHandlers({ beforeinput: typeOverSelection }),
  autocompletion({
    override: [(/** @type {any} */ context) => offered(context, complete)],
    activateOnCompletion: (/** @type {any} */ option) => /: ?$/.test(option.apply ?? ""),
    icons: false,
    interactionDelay: 0, // what is complete already is not offered, so Enter seldom meets a list that has just opened
  }),
  keymap.of([...closeBracketsKeymap, ...completionKeymap, ...historyKeymap, { key: "Alt-/", run: startCompletion }, indentWithTab]),
];

/**
 * Typing over a selection. A browser that does this itself writes inline styles, which the page's policy forbids.
 * @param {InputEvent} event @param {any} view @returns {boolean}
 */
function typeOverSelection(event, view) {
  const { data, inputType } = event;
  if (inputType !== "insertText" || !data || view.composing || view.state.readOnly || view.state.selection.main.empty) return false;
  event.preventDefault();
  const { from, to } = view.state.selection.main;
  const insert = () => view.state.update(view.state.replaceSelection(data), { userEvent: "input.type", scrollIntoView: true });
  const isTaken = view.state.facet(EditorView.inputHandler).some((/** @type {any} */ take) => take(view, from, to, data, insert));
  if (!isTaken) view.dispatch(insert());
  return true;
}

/**
 * What can be written at the cursor; while you type, only once a word or a value has begun.
 * @param {any} context @param {(text: string, offset: number) => Completions | null} complete
 */
function offered(context, complete) {
  const found = complete(context.state.doc.toString(), context.pos);
  if (!found) return null;
  const typed = context.state.sliceDoc(found.from, context.pos);
  if (!context.explicit && found.options.some((option) => option.label === typed)) return null;
  const isBegun = found.from < context.pos || /[:{,[-] $/.test(context.state.sliceDoc(Math.max(0, context.pos - 2), context.pos));
  return context.explicit || isBegun ? { ...found, validFor: /^[\w$:./[\]*-]*$/ } : null;
}

/**
 * A finding as text nodes: nothing of it is markup.
 * @param {Finding} found
 */
function explained({ message, hint }) {
  const shown = document.createElement("span");
  shown.append(message);
  if (hint) {
    const line = document.createElement("span");
    line.className = "hint";
    line.append(`Hint: ${hint}`);
    shown.append(line);
  }
  return shown;
}
