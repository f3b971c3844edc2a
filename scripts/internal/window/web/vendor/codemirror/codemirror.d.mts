// The part of CodeMirror that the window uses. esbuild makes codemirror.mjs from this list, and TypeScript reads its types.
export { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
export { defaultKeymap, history, historyField, historyKeymap, indentWithTab, isolateHistory } from "@codemirror/commands";
export { go } from "@codemirror/lang-go";
export { yaml } from "@codemirror/lang-yaml";
export { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
export { lintGutter, nextDiagnostic, setDiagnostics } from "@codemirror/lint";
export { hoverTooltips, LSPClient, serverCompletion, signatureHelp } from "@codemirror/lsp-client";
export { closeSearchPanel, openSearchPanel, search } from "@codemirror/search";
export { ChangeSet, Compartment, EditorState, type Extension, Text } from "@codemirror/state";
export { activateHover, closeHoverTooltips, EditorView, hasHoverTooltips, keymap, lineNumbers } from "@codemirror/view";
export { classHighlighter } from "@lezer/highlight";
