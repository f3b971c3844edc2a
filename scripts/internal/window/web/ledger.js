// @ts-check
// The records of a ledger that a tab keeps, in their order.

/**
 * An arrow, as the server sends it.
 * @typedef {{is: "event" | "request" | "note", n: number, time: string, by?: Program, group?: string, version?: string,
 *   resource: string, namespace?: string, name?: string, uid?: string, verb?: string, code?: number, effect?: string, took?: number,
 *   text: string, sentence: string, changes?: boolean, later?: string}} Entry
 * @typedef {{name?: string, pid?: number, executable?: string}} Program
 */

// How many records are kept.
const limit = 6000;

export class Ledger {
  constructor() {
    /** @type {Entry[]} */
    this.all = [];
    /** @type {Set<string>} */
    this.known = new Set();
  }

  /**
   * Takes records, and sorts them by their time: a request is recorded only when it is answered.
   * @param {Entry[]} some
   */
  add(some) {
    for (const entry of some) {
      const old = this.all.length === limit && isLater(this.all[0], entry);
      if (old || this.known.has(keyOf(entry))) continue;
      this.known.add(keyOf(entry));
      let place = this.all.length;
      while (place > 0 && isLater(this.all[place - 1], entry)) place--;
      this.all.splice(place, 0, entry);
      if (this.all.length > limit) this.known.delete(keyOf(/** @type {Entry} */ (this.all.shift())));
    }
  }

  /**
   * Returns the names that several running programs share. After a restart, a program has another process, but the
   * records of the two processes do not alternate.
   * @returns {Set<string>}
   */
  shared() {
    const known = new Set();
    const newest = new Map();
    const shared = new Set();
    for (const entry of this.all) {
      const name = nameOf(entry);
      if (!entry.by?.pid || newest.get(name) === entry.by.pid) continue;
      if (known.has(nameAndProcess(entry.by))) shared.add(name);
      known.add(nameAndProcess(entry.by));
      newest.set(name, entry.by.pid);
    }
    return shared;
  }

  /**
   * Returns the names of the programs that receive events. All other programs are tools. kubectl is a tool, also when
   * it watches.
   * @returns {Set<string>}
   */
  operators() {
    const watching = this.all.filter((entry) => entry.is === "event" || entry.verb === "watch");
    return new Set(watching.map(nameOf).filter((name) => name !== "kubectl"));
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

/** @param {Entry} entry */
export const timeOf = (entry) => Date.parse(entry.time);

/** @param {Entry} entry */
export const nameOf = (entry) => entry.by?.name ?? "unknown";

/** @param {Program} by */
export const nameAndProcess = (by) => `${by.name ?? "unknown"}[${by.pid}]`;

/** @param {Entry} entry */
export const clockOf = (entry) => {
  const time = new Date(entry.time);
  return `${time.toLocaleTimeString("en-GB")}.${String(time.getMilliseconds()).padStart(3, "0")}`;
};

/** @param {Entry} entry */
export const isLease = (entry) => entry.is !== "note" && entry.resource === "leases";

/** @param {Entry} entry */
export const isRead = (entry) => entry.is === "request" && !entry.changes;

/**
 * Reports whether a request got no answer, or the answer that the API server cannot work.
 * @param {Entry} entry
 */
export const isUnanswered = (entry) => entry.is === "request" && (!entry.code || entry.code >= 500);

/**
 * @param {Entry} from
 * @param {Entry} to
 */
export function gap(from, to) {
  const ms = timeOf(to) - timeOf(from);
  return ms < 1000 ? `${ms} ms` : ms < 120_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;
}
