// The editor of statements: CodeMirror with a mode for SQL and completion. It lives in a shadow root, since its styles
// are then sheets that scripts adopt, which the page's policy allows, and not elements of style.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { EditorState, Prec } from "@codemirror/state";
import { drawSelection, EditorView, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { h } from "./dom.js";
import { isKeyword } from "./keywords.js";

const language = StreamLanguage.define({
  name: "sql",
  startState: () => ({ inComment: false }),
  token(stream, state) {
    if (state.inComment || stream.match("/*")) {
      state.inComment = !stream.match(/^.*?\*\//);
      if (state.inComment) stream.skipToEnd();
      return "comment";
    }
    if (stream.eatSpace()) return null;
    if (stream.match("--")) {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match(/^'(?:[^']|'')*'?/) || stream.match(/^"(?:[^"]|"")*"?/)) return "string";
    if (stream.match(/^`(?:[^`]|``)*`?/)) return "variableName";
    if (stream.match(/^\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:\d\d)?)?/)) return "number";
    if (stream.match(/^\d+(?:\.\d+)?(?:e[+-]?\d+)?(?:y|mo|w|d|h|ms|m|s|us|ns)?\b/i)) return "number";
    if (stream.match(/^[A-Za-z_\u4e00-\u9fff]\w*(?=\s*\()/)) return isKeyword(stream.current()) ? "keyword" : "function";
    if (stream.match(/^root(?:\.[\w*]+)*/i)) return "variableName";
    if (stream.match(/^[A-Za-z_\u4e00-\u9fff]\w*/)) return isKeyword(stream.current()) ? "keyword" : null;
    stream.next();
    return null;
  },
  tokenTable: { function: tags.function(tags.variableName) },
  languageData: { commentTokens: { line: "--" } },
});

const highlighting = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
  { tag: tags.function(tags.variableName), color: "var(--code-function)" },
  { tag: tags.variableName, color: "var(--accent)" },
]);

const look = EditorView.theme({
  "&": { height: "100%", fontSize: "13.5px", backgroundColor: "var(--surface)", color: "var(--text)" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--text)", padding: "8px 0" },
  ".cm-scroller": { lineHeight: "1.55", fontFamily: "var(--mono)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--muted)", border: "none" },
  ".cm-cursor": { borderLeftColor: "var(--text)", borderLeftWidth: "2px" },
  "&.cm-focused": { outline: "none" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection)" },
  ".cm-matchingBracket": { backgroundColor: "var(--accent-soft)", outline: "1px solid var(--accent)" },
  ".cm-placeholder": { color: "var(--muted)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "8px", boxShadow: "0 8px 24px rgb(0 0 0 / 0.25)", overflow: "hidden" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "15em" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 10px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-text)" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-completionDetail": { color: "inherit", opacity: "0.75", fontStyle: "normal" },
});

// Replace a selection by typed text without the browser's own editing: browsers give such text the inline style of the
// text that it replaces, which the page's policy refuses.
function replaceSelection(event, view) {
  const { from, to } = view.state.selection.main;
  if (event.inputType !== "insertText" || !event.data || from === to || view.composing) return false;
  event.preventDefault();
  const insert = () => view.state.update(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
  if (!view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, event.data, insert))) view.dispatch(insert());
  return true;
}

export class Editor {
  // `complete`: a source of completions; `onRun`, `onCancel`: of its shortcuts; `onChange(text)`.
  constructor({ complete, onRun, onCancel, onChange }) {
    this.element = h("div", { class: "editor" });
    const root = this.element.attachShadow({ mode: "open" });
    const run = () => {
      onRun();
      return true;
    };
    this.extensions = [
      lineNumbers(), history(), drawSelection(), bracketMatching(), closeBrackets(), language, syntaxHighlighting(highlighting), look,
      autocompletion({ override: [complete], icons: false }), EditorView.lineWrapping, placeholder("select * from root.**"),
      EditorView.contentAttributes.of({ "aria-label": "Statement", spellcheck: "false" }),
      EditorView.domEventHandlers({ beforeinput: replaceSelection }),
      Prec.highest(keymap.of([{ key: "Mod-Enter", run }])),
      keymap.of([...completionKeymap, ...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, { key: "Escape", run: () => onCancel() }]),
      EditorView.updateListener.of((update) => update.docChanged && onChange(update.state.doc.toString())),
    ];
    this.view = new EditorView({ state: this.stateOf(""), parent: root, root });
  }

  stateOf(text) {
    return EditorState.create({ doc: text, extensions: this.extensions });
  }

  get text() {
    return this.view.state.doc.toString();
  }

  // Replace text, selection and history of changes.
  show(state) {
    this.view.setState(state);
  }

  replace(text) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  // Return the selected text, or the statement at the cursor.
  current() {
    const { from, to, head } = this.view.state.selection.main;
    return from === to ? statementAt(this.text, head) : this.view.state.sliceDoc(from, to);
  }

  focus() {
    this.view.focus();
  }

  destroy() {
    this.view.destroy();
  }
}

// Return the statement of a text at a place; statements end with semicolons outside of quotes and comments.
export function statementAt(text, place) {
  const parts = /'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|--[^\n]*|\/\*[^]*?\*\/|(;)/g;
  let start = 0;
  for (const found of text.matchAll(parts)) {
    if (found[1] === undefined) continue;
    if (found.index >= place && text.slice(start, found.index).trim()) return text.slice(start, found.index).trim();
    if (text.slice(found.index + 1).trim()) start = found.index + 1;
    else return text.slice(start, found.index).trim();
  }
  return text.slice(start).trim();
}
