// @ts-check
// The records of a ledger that a tab keeps, in their order.

import { element, t } from "./dom.js";

/**
 * An arrow, as the server sends it.
 * @typedef {{is: "event" | "request" | "note", n: number, time: string, by?: Program, group?: string, version?: string,
 *   resource: string, subresource?: string, kind?: string, namespace?: string, name?: string, uid?: string, type?: string,
 *   verb?: string, code?: number, effect?: string, took?: number, facts?: string[], owners?: string[], fields?: string[],
 *   values?: Record<string, string>,
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
   * Returns the objects after an arrow, as the events and the answers until then have shown them.
   * @param {Entry} last
   * @returns {import("./objects.js").Thing[]}
   */
  objectsAt(last) {
    /** @type {Map<string, import("./objects.js").Thing>} */
    const objects = new Map();
    for (const entry of this.all) {
      if (isLater(entry, last)) break;
      const key = objectOf(entry);
      if (!entry.namespace || !entry.name || ["events", "leases"].includes(entry.resource)) continue;
      if (showsEnd(entry)) objects.delete(key);
      else if (showsObject(entry)) {
        objects.set(key, { resource: resourceOf(entry), kind: entry.kind || objects.get(key)?.kind || entry.resource,
          namespace: entry.namespace, name: entry.name, uid: entry.uid ?? "", custom: isCustom(entry), facts: entry.facts,
          owners: entry.owners });
      }
    }
    return [...objects.values()];
  }

  /**
   * Returns the custom resources that no other object owns, by the keys of their objects.
   * @returns {Map<string, Entry>}
   */
  roots() {
    return new Map(this.all.filter((entry) => entry.name && isCustom(entry) && !entry.owners?.length)
      .map((entry) => [objectOf(entry), entry]));
  }

  /**
   * Returns the keys of an object and of all objects that it owns, also those that are gone.
   * @param {string} root
   * @returns {Set<string>}
   */
  family(root) {
    const keys = new Set([root]);
    const uids = new Set();
    for (let known = -1; known < keys.size + uids.size;) {
      known = keys.size + uids.size;
      for (const entry of this.all) {
        const key = objectOf(entry);
        if (!keys.has(key) && !entry.owners?.some((owner) => uids.has(owner))) continue;
        keys.add(key);
        if (entry.uid) uids.add(entry.uid);
      }
    }
    return keys;
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

/**
 * Reports whether an event or the answer to a write shows an object as it then was.
 * @param {Entry} entry
 */
function showsObject(entry) {
  if (entry.is === "event") return entry.type === "ADDED" || entry.type === "MODIFIED";
  return entry.changes && entry.uid && entry.effect && (!entry.subresource || entry.subresource === "status");
}

/**
 * Reports whether an event or an answer shows that an object is gone. An object with finalizers is deleted later.
 * @param {Entry} entry
 */
const showsEnd = (entry) => entry.type === "DELETED" || entry.verb === "delete" && entry.effect === "moved" && !entry.uid;

/** @param {Entry} entry */
const isCustom = ({ group = "" }) => group.includes(".") && !group.endsWith(".k8s.io");

/** @param {Entry} entry */
export const resourceOf = (entry) => `${entry.group ?? ""}/${entry.version}/${entry.resource}`;

/** @param {Entry} entry */
export const objectOf = (entry) => `${resourceOf(entry)} ${entry.namespace}/${entry.name}`;

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

/** @param {Entry} entry */
export const speakerOf = (entry) => ({ "a user": t("a user"), "the lab": t("the lab") })[nameOf(entry)] ?? nameOf(entry);

/**
 * Returns a line with the fields that an arrow changed, if there are any.
 * @param {Entry} entry
 */
export function drawFields({ fields, values = {} }) {
  const most = 3;
  if (!fields) return [];
  const some = fields.slice(0, most).map((field) => values[field] ? `${field} (${values[field]})` : field).join(", ");
  return [element("span", { class: "fields" },
    fields.length > most ? t("changed {1} and {2} more", some, fields.length - most) : t("changed {1}", some))];
}

/** @param {Entry} entry */
export function kindOf(entry) {
  if (entry.is !== "request") return entry.is;
  if (!entry.code || entry.code >= 400) return "refused-request";
  return entry.changes ? entry.effect === "same" ? "same" : "write" : "read";
}
