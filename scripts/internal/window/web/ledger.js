// @ts-check
// The records of a ledger that a tab keeps, in their order.

/**
 * A record, as the package loop writes it.
 * @typedef {{is: "event" | "request", n: number, time: string, by?: Program, group?: string, version?: string,
 *   resource: string, subresource?: string, namespace?: string, name?: string, type?: string, kind?: string,
 *   verb?: string, code?: number, effect?: string, took?: number, open?: boolean, dryRun?: boolean}} Entry
 * @typedef {{name?: string, pid?: number, executable?: string, port?: number, user?: string}} Program
 */

// How many records are kept.
const limit = 6000;
const writes = ["create", "update", "patch", "apply", "delete", "deletecollection"];

export class Ledger {
  constructor() {
    /** @type {Entry[]} */
    this.all = [];
    /** @type {Set<string>} */
    this.known = new Set();
  }

  /**
   * Takes records. The order is that of their time: a request is recorded when it is answered.
   * @param {Entry[]} some
   */
  add(some) {
    for (const entry of some) {
      const ended = entry.verb === "watch" && !entry.open && Math.floor((entry.code ?? 0) / 100) === 2;
      const old = this.all.length === limit && isLater(this.all[0], entry);
      if (ended || old || this.known.has(keyOf(entry))) continue;
      this.known.add(keyOf(entry));
      let place = this.all.length;
      while (place > 0 && isLater(this.all[place - 1], entry)) place--;
      this.all.splice(place, 0, entry);
      if (this.all.length > limit) this.known.delete(keyOf(/** @type {Entry} */ (this.all.shift())));
    }
  }

  /**
   * Names the programs that are told of events. All others are tools, and kubectl is one also when it watches.
   * @returns {Set<string>}
   */
  operators() {
    const watching = this.all.filter((entry) => entry.is === "event" || entry.verb === "watch");
    return new Set(watching.map(nameOf).filter((name) => name !== "kubectl"));
  }

  /**
   * Returns the newest event that was delivered to a program before it sent a request.
   * @param {Entry} request
   * @returns {Entry | undefined}
   */
  before(request) {
    for (let i = this.all.indexOf(request) - 1; i >= 0; i--) {
      const entry = this.all[i];
      if (entry.is === "event" && isSame(entry.by, request.by)) return entry;
    }
    return undefined;
  }
}

/** @param {Entry} entry */
const keyOf = (entry) => `${entry.time} ${entry.n}`;

/**
 * @param {Entry} one
 * @param {Entry} other
 */
function isLater(one, other) {
  const apart = timeOf(one) - timeOf(other);
  return apart > 0 || apart === 0 && one.n > other.n;
}

/**
 * @param {Program} [one]
 * @param {Program} [other]
 */
const isSame = (one, other) => one?.name === other?.name && (one?.pid ? one.pid === other?.pid : one?.port === other?.port);

/** @param {Entry} entry */
export const timeOf = (entry) => Date.parse(entry.time);

/** @param {Entry} entry */
export const nameOf = (entry) => entry.by?.name ?? "unknown";

/** @param {Entry} entry */
export const clockOf = (entry) => {
  const time = new Date(entry.time);
  return `${time.toLocaleTimeString("en-GB")}.${String(time.getMilliseconds()).padStart(3, "0")}`;
};

/** @param {Entry} entry */
export const isWrite = (entry) => entry.is === "request" && writes.includes(entry.verb ?? "") && entry.subresource !== "token" &&
  !["authorization.k8s.io", "authentication.k8s.io"].includes(entry.group ?? "");

/** @param {Entry} entry */
export const isRead = (entry) => entry.is === "request" && !isWrite(entry);

/**
 * Says what an arrow is: an event that is delivered, or a request with what came of it.
 * @param {Entry} entry
 */
export function caption(entry) {
  const object = entry.namespace && entry.namespace !== "default" && entry.resource !== "namespaces"
    ? [entry.namespace, entry.name].filter(Boolean).join("/") : entry.name ?? "";
  const words = entry.is === "event"
    ? [entry.kind ?? entry.resource, object, entry.type]
    : [entry.verb, entry.subresource ? `${entry.resource}/${entry.subresource}` : entry.resource, object,
      entry.dryRun ? "dry run" : "", String(entry.code || "no answer"), entry.effect];
  return words.filter(Boolean).join(" ");
}

/**
 * @param {Entry} from
 * @param {Entry} to
 */
export function gap(from, to) {
  const ms = timeOf(to) - timeOf(from);
  return ms < 1000 ? `${ms} ms` : ms < 120_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;
}
