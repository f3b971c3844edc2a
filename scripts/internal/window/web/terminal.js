// @ts-check
// A terminal of the page: it shows what a shell in the server prints, and sends it keys.

import { ask, closed, dial } from "./connection.js";
import { element, t } from "./dom.js";
import { Log } from "./log.js";
import { FitAddon } from "./vendor/xterm/addon-fit.mjs";
import { Terminal } from "./vendor/xterm/xterm.mjs";

/** @typedef {import("./dom.js").State} State */

const themes = {
  light: { background: "#fbfaf7", foreground: "#24292e", cursor: "#1f6f8b", selectionBackground: "#c9dfe7",
    black: "#24292e", red: "#b3261e", green: "#2e6b34", yellow: "#7a5b00", blue: "#1f5fa8", magenta: "#84329b",
    cyan: "#1f6f8b", white: "#5c646c", brightBlack: "#5c646c", brightRed: "#b3261e", brightGreen: "#2e6b34",
    brightYellow: "#7a5b00", brightBlue: "#1f5fa8", brightMagenta: "#84329b", brightCyan: "#1f6f8b", brightWhite: "#24292e" },
  dark: { background: "#14181b", foreground: "#dfe3e6", cursor: "#7cc4dc", selectionBackground: "#2d4a55" },
};
// As inputLimit in input.go.
const inputLimit = 1 << 20;
const scheme = matchMedia("(prefers-color-scheme: dark)");

/** A terminal in an element, by the names of its page and itself. */
export class PageTerminal {
  /**
   * @param {HTMLElement} place
   * @param {string} name
   * @param {string} page
   * @param {(state: State) => void} onState
   */
  constructor(place, name, page, onState) {
    this.name = name;
    this.place = place;
    this.onState = onState;
    this.address = "/terminal?" + new URLSearchParams({ name, page });
    this.silent = true; // while old output is shown, answers to its queries are not for the shell
    this.pause = 250;
    /** @type {string[]} */
    this.unsent = [];
    /** @type {WebSocket | undefined} */
    this.socket = undefined;
    this.terminal = new Terminal({ fontFamily: "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace",
      fontSize: 13, lineHeight: 1.2, screenReaderMode: true, convertEol: false, scrollback: 5000, theme: themes.light });
    this.fit = new FitAddon();
    this.terminal.loadAddon(this.fit);
    this.terminal.onData((/** @type {string} */ keys) => this.sendKeys(keys));
    this.terminal.attachCustomKeyEventHandler((/** @type {KeyboardEvent} */ event) => !event.altKey || event.ctrlKey);
    scheme.addEventListener("change", () => this.paint());
    this.paint();
    this.refused = element("p", { class: "refused-input", role: "alert", hidden: true });
    this.log = new Log();
    this.wholeLines = element("button", { type: "button", class: "whole-lines", hidden: true, "aria-pressed": "false",
      click: () => this.showWholeLines() }, t("Whole log lines"));
    place.append(this.refused, this.wholeLines);
    /** @type {number | undefined} */
    this.unended = undefined;
    this.opened = false;
    this.tried = false;
    this.connect();
  }

  paint() {
    this.terminal.options.theme = scheme.matches ? themes.dark : themes.light;
  }

  /** Shows the terminal at the size of its place. */
  show() {
    if (!this.opened) {
      this.terminal.open(this.place);
      this.opened = true;
      new ResizeObserver(() => this.resize()).observe(this.place);
    }
    this.resize();
  }

  resize() {
    if (this.place.hidden || this.place.clientHeight === 0) return;
    const large = document.documentElement.classList.contains("projector");
    this.terminal.options.fontSize = large ? 22 : 13;
    const size = this.fit.proposeDimensions();
    if (!size || Number.isNaN(size.cols) || (size.cols === this.sent?.cols && size.rows === this.sent?.rows)) return;
    this.sent = size;
    this.fit.fit();
    this.send(JSON.stringify({ size: { columns: size.cols, rows: size.rows } }));
  }

  focus() {
    this.terminal.focus();
  }

  connect() {
    const socket = dial(this.address);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    this.silent = true;
    socket.addEventListener("open", () => {
      this.terminal.reset();
      this.log.reset();
      this.tried = true;
      ask();
      this.pause = 250;
      for (const text of this.unsent.splice(0)) socket.send(text);
    });
    socket.addEventListener("message", (event) => this.take(event.data, socket));
    socket.addEventListener("close", () => {
      this.place.dataset.connected = "no";
      this.unsent = [];
      this.tried = true;
      ask();
      setTimeout(() => this.connect(), this.pause);
      this.pause = Math.min(2 * this.pause, 5000);
    });
  }

  /**
   * @param {ArrayBuffer | string} data
   * @param {WebSocket} socket
   */
  take(data, socket) {
    if (typeof data !== "string") {
      this.terminal.write(this.log.take(data), () => socket.send(JSON.stringify({ drawn: data.byteLength })));
      this.wholeLines.hidden = !this.log.shortened;
      clearTimeout(this.unended);
      if (this.log.rest) this.unended = setTimeout(() => this.terminal.write(this.log.flush()), 200);
      return;
    }
    const message = JSON.parse(data);
    if (message.size) this.terminal.resize(message.size.columns, message.size.rows);
    if (message.refused) this.refuse(message.refused);
    for (const state of message.states ?? []) this.onState(state);
    if (message.state) this.onState(message.state);
    if (message.replayed) {
      this.terminal.write("", () => {
        this.silent = false;
        this.place.dataset.connected = "yes";
      });
      this.sent = undefined;
      this.resize();
    }
  }

  /** Shows the lines of logs whole, or short again: the server sends all output again. */
  showWholeLines() {
    this.log.whole = !this.log.whole;
    this.wholeLines.ariaPressed = String(this.log.whole);
    this.socket?.close();
    this.focus();
  }

  /** @param {string} keys */
  sendKeys(keys) {
    if (this.silent || this.socket?.readyState !== WebSocket.OPEN) return;
    const bytes = new TextEncoder().encode(keys);
    this.refused.hidden = true;
    if (bytes.length <= inputLimit) this.socket.send(bytes);
    else this.refuse(t("The input was refused: a terminal takes at most 1 MiB at once."));
  }

  /** @param {string} sentence */
  refuse(sentence) {
    this.refused.textContent = sentence;
    this.refused.hidden = false;
  }

  /**
   * Sends a request. Requests wait only for the first connection: a lost connection drops them, because a command that
   * runs minutes after the click surprises the reader.
   * @param {string} text
   * @returns {boolean}
   */
  send(text) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(text);
    else if (this.tried) return false;
    else this.unsent.push(text);
    return true;
  }

  /** @param {number} block */
  runBlock(block) {
    if (!this.send(JSON.stringify({ block }))) this.onState({ id: String(block), is: "refused", says: closed });
  }

  /**
   * @param {string} id
   * @param {string} command
   * @param {boolean} [restart] first ends what runs in the terminal
   */
  runCommand(id, command, restart = false) {
    if (!this.send(JSON.stringify({ id, command, restart }))) this.onState({ id, is: "refused", says: closed });
  }
}
