// @ts-check
// Short log lines: the time, the level, the message, and the values that do not repeat others.

const red = "\x1b[31m";
const dim = "\x1b[2m";
const plain = "\x1b[0m";
// Fields of controller-runtime that repeat another field, or that a reader knows.
const known = ["controller", "controllerGroup", "controllerKind", "reconcileID", "namespace", "name", "stacktrace"];
// The beginning of a log line of zap, in both of its forms, or of klog.
const begins = /^(?:\d{4}-\d\d-\d\dT\d\d:|\{"level":"|[IWEF]\d{4} \d\d:)/;
// Control sequences that a shell sends before the first line of a program.
const control = /^(?:\x1b\[[\d;?]*[A-Za-z]|\r)*/;
// A line of the stack trace that zap prints below an error: a function, or its place in the source.
const trace = /^(?:\t\S+:\d+|[\w./-]+\.[\w.*()[\]-]+)$/;

/** Shortens the log lines in the output of a terminal, which arrives in pieces. */
export class Log {
  constructor() {
    this.whole = false; // the reader wants whole lines
    this.shortened = false; // a line was shortened
    this.decoder = new TextDecoder();
    this.rest = ""; // the beginning of a log line
    this.inTrace = false;
  }

  /** Begins anew: the server sends all output again. */
  reset() {
    this.decoder = new TextDecoder();
    this.rest = "";
    this.inTrace = false;
  }

  /**
   * Returns the text to show for a piece. It keeps the beginning of a log line until the line is complete.
   * @param {BufferSource} piece
   */
  take(piece) {
    const text = this.rest + this.decoder.decode(piece, { stream: true });
    this.rest = "";
    if (this.whole) return text;
    const lines = text.split(/(?<=\n)/);
    const last = lines.at(-1) ?? "";
    if (begins.test(last.replace(control, "")) && !last.endsWith("\n")) this.rest = /** @type {string} */ (lines.pop());
    return lines.map((line) => this.line(line)).join("");
  }

  /** Returns the beginning of a line whose end has not arrived. */
  flush() {
    const rest = this.rest;
    this.rest = "";
    return rest;
  }

  /** @param {string} line */
  line(line) {
    const before = control.exec(line)?.[0] ?? "";
    const text = line.slice(before.length).replace(/\r?\n$/, "");
    if (this.inTrace && trace.test(text)) return "";
    this.inTrace = false;
    const short = line.endsWith("\n") && begins.test(text) ? shortOf(text) : undefined;
    if (!short) return line;
    this.shortened = true;
    this.inTrace = short.level === "ERROR";
    const values = short.values.map(([name, value]) => ` ${dim}${visible(name)}=${plain}${visible(value)}`).join("");
    const level = short.level === "ERROR" ? `${red}ERROR${plain}` : visible(short.level).padEnd(5);
    return `${before}${dim}${short.time}${plain} ${level} ${visible(short.message)}${values}${line.slice(before.length + text.length)}`;
  }
}

/**
 * @param {string} line
 * @returns {{time: string, level: string, message: string, values: [string, string][]} | undefined}
 */
function shortOf(line) {
  const zap = /^\S+T(\d\d:\d\d:\d\d)\S*\t([A-Z]+)\t(.*)$/.exec(line);
  if (zap) {
    const [, time, level, rest] = zap;
    const parts = rest.split("\t");
    const values = parts.length > 1 && parts.at(-1)?.startsWith("{") ? fieldsOf(/** @type {string} */ (parts.pop())) : {};
    return values && { time, level, message: parts.at(-1) ?? "", values: valuesOf(values) };
  }
  const klog = /^([IWEF])\d{4} (\d\d:\d\d:\d\d)\S* +\d+ \S+\] (.*)$/.exec(line);
  if (klog) {
    const [, letter, time, message] = klog;
    return { time, level: { I: "INFO", W: "WARN" }[letter] ?? "ERROR", message, values: [] };
  }
  const fields = fieldsOf(line);
  const time = /T(\d\d:\d\d:\d\d)/.exec(String(fields?.ts))?.[1];
  if (!fields || !time) return undefined;
  const { level, ts, logger, caller, msg, ...values } = fields;
  return { time, level: String(level).toUpperCase(), message: String(msg), values: valuesOf(values) };
}

/**
 * Writes the control characters of a text as JSON does. A user of the cluster may have chosen the text, and the terminal
 * would obey them.
 * @param {string} text
 */
function visible(text) {
  return text.replace(/[\x00-\x1f\x7f-\x9f]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * @param {string} json
 * @returns {Record<string, unknown> | undefined}
 */
function fieldsOf(json) {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

/**
 * @param {Record<string, unknown>} fields
 * @returns {[string, string][]}
 */
function valuesOf(fields) {
  return Object.entries(fields).filter(([name]) => !known.includes(name)).map(([name, value]) => [name, textOf(value)]);
}

/**
 * Returns the text of a value: for an object of the API, its namespace and name.
 * @param {unknown} value
 */
function textOf(value) {
  if (typeof value === "string") return value;
  const { namespace, name } = /** @type {{namespace?: string, name?: string}} */ (value ?? {});
  return name ? [namespace, name].filter(Boolean).join("/") : JSON.stringify(value);
}
