// @ts-check
// Go's language server in the editor: completion, documentation, and the parameters of a call. Without the server, the
// editor has none of them.

import { dial } from "./connection.js";
import { activateHover, closeHoverTooltips, hasHoverTooltips, hoverTooltips, keymap, LSPClient, serverCompletion,
  signatureHelp } from "./vendor/codemirror/codemirror.mjs";

/** @typedef {import("./vendor/codemirror/codemirror.mjs").EditorView} EditorView */
/** @typedef {import("./vendor/codemirror/codemirror.mjs").Extension} Extension */

// The key F9 shows the documentation of a name, as the pointer does, until the reader types or moves the cursor.
const documentation = keymap.of([{ key: "F9", run: (/** @type {EditorView} */ view) => {
  activateHover(view, view.state.selection.main.head, 1, { until: (change) => change.docChanged || Boolean(change.selection) });
  return true;
} }, { key: "Escape", run: (/** @type {EditorView} */ view) => {
  if (hasHoverTooltips(view.state)) view.dispatch({ effects: closeHoverTooltips });
  return false;
} }]);

// The elements of a documentation that the editor shows, as tagName has them for HTML.
const shown = ["P", "PRE", "CODE", "SPAN", "UL", "OL", "LI", "EM", "STRONG", "BR", "HR", "H1", "H2", "H3", "H4", "H5", "H6"];

/**
 * Returns HTML that only has shown elements, with their attribute class. Its text may be a comment in a dependency, which
 * could lead the page elsewhere.
 * @param {string} html
 */
export function sanitize(html) {
  const { body } = new DOMParser().parseFromString(html, "text/html");
  for (const element of body.querySelectorAll("*")) {
    if (!shown.includes(element.tagName)) element.replaceWith(...element.childNodes);
    for (const { name } of [...element.attributes]) if (name !== "class") element.removeAttribute(name);
  }
  return body.innerHTML;
}

/** @param {WebSocket} socket */
function clientOf(socket) {
  const quiet = () => true; // ignores the messages of gopls about itself
  const client = new LSPClient({ timeout: 60_000, sanitizeHTML: sanitize,
    extensions: [serverCompletion(), hoverTooltips(), signatureHelp(), documentation],
    notificationHandlers: { "window/showMessage": quiet, "window/logMessage": quiet },
    initializationOptions: { linksInHover: false, diagnosticsTrigger: "Save" } });
  /** @type {Map<(text: string) => void, (event: MessageEvent) => void>} */
  const handlers = new Map();
  return client.connect({
    send: (text) => socket.send(text),
    subscribe: (handler) => {
      const listener = (/** @type {MessageEvent} */ event) => handler(event.data);
      handlers.set(handler, listener);
      socket.addEventListener("message", listener);
    },
    unsubscribe: (handler) => socket.removeEventListener("message", /** @type {any} */ (handlers.get(handler))),
  });
}

/**
 * Connects the editor of a file to gopls, as soon as gopls runs. Returns a function that ends the connection.
 * @param {string} id the exercise
 * @param {string} address the file
 * @param {(extension: Extension) => void} use puts an extension into the editor, in the place of the last one
 * @param {() => void} onEnd is called when the server has ended the connection
 */
export function connectGopls(id, address, use, onEnd) {
  const socket = dial(`/exercises/${encodeURIComponent(id)}/gopls`);
  const ready = () => use(clientOf(socket).plugin(address, "go"));
  const closed = () => {
    use([]);
    onEnd();
  };
  socket.addEventListener("message", ready, { once: true });
  socket.addEventListener("close", closed);
  return () => {
    socket.removeEventListener("message", ready);
    socket.removeEventListener("close", closed);
    socket.close();
  };
}
