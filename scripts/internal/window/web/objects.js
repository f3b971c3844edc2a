// @ts-check
// The objects of the local cluster as a tree, one object as YAML with its managers, and the actions of a user on them.

import { load } from "./connection.js";
import { element, prose, showState, t } from "./dom.js";
import { nameAndProcess, resourceOf } from "./ledger.js";

/** @typedef {import("./ledger.js").Entry} Entry */
/** @typedef {import("./ledger.js").Ledger} Ledger */
/** @typedef {{resource: string, kind: string, namespace?: string, name: string, uid: string, custom?: boolean,
 *    facts?: string[], owners?: string[]}} Thing */
/** @typedef {{pid: number, executable: string}} Program */
/** @typedef {{managers: {manager: string, operation: string, subresource?: string, time?: string}[],
 *    lines: {text: string, managers?: number[]}[], uid: string, away?: string, deleted?: boolean}} Managed */

export class Objects {
  /**
   * @param {import("./dom.js").Run} run
   * @param {(identity: string) => void} onRead receives the identity of the cluster, when it is known
   */
  constructor(run, onRead) {
    this.run = run;
    this.onRead = onRead;
    /** @type {{resource: string, namespace: string, name: string, uid: string} | undefined} The object of the YAML. */
    this.shown = undefined;
    this.drawnYAML = "";
    this.name = ""; // of the chosen object, also when it is deleted and made again
    /** @type {Thing[]} */
    this.all = [];
    /** @type {(Program & {name: string})[]} */
    this.programs = [];
    this.away = "";
    this.drawn = "";
    this.busy = false;
    this.again = false;
    this.past = false; // the tree is that of an arrow
    this.pointed = ""; // the name of the object that an arrow of a check is about
    this.heading = element("h2");
    this.tree = element("div", { class: "tree" });
    this.acts = element("div", { class: "acts" });
    this.verdict = element("div", { class: "verdict", role: "status" });
    this.title = element("h2");
    this.body = element("div");
    this.yaml = element("section", { class: "yaml", "aria-label": t("The object as YAML"), hidden: true, tabindex: "-1",
      keydown: (event) => /** @type {KeyboardEvent} */ (event).key === "Escape" && this.close() },
      element("header", {}, this.title, element("button", { type: "button", click: () => this.close() }, t("Close"))), this.body);
    this.user = element("div", {}, element("h2", {}, t("Act as a user")), this.acts, this.verdict);
    this.side = element("div", { class: "side" }, this.heading, this.tree, this.user);
    this.place = element("section", { class: "loop-objects", "aria-label": t("Objects") }, this.side, this.yaml);
  }

  /**
   * Reads the objects whose resources are in the ledger, and its running programs.
   * @param {Ledger} ledger
   */
  async refresh(ledger) {
    this.again = this.busy;
    if (this.busy) return;
    this.busy = true;
    setTimeout(() => {
      this.busy = false;
      if (this.again) this.refresh(ledger);
    }, 500);
    this.past = false;
    const query = new URLSearchParams();
    const namespaced = ledger.all.filter((entry) => entry.namespace && entry.version && !["events", "leases"].includes(entry.resource));
    for (const resource of new Set(namespaced.map(resourceOf))) query.append("resource", resource);
    /** @type {Map<number, import("./ledger.js").Program>} */
    const processes = new Map();
    const operators = ledger.operators();
    for (const { by } of ledger.all) if (by?.pid && operators.has(by.name ?? "")) processes.set(by.pid, by);
    for (const pid of [...processes.keys()].slice(-16)) query.append("pid", String(pid));
    const answer = await load(`/loop/state?${query}`);
    /** @type {{objects: Thing[], programs: Program[], cluster?: string, away?: string}} */
    const state = answer.ok ? await answer.json() : { objects: [], programs: [], away: t("The window's server does not answer.") };
    if (this.past) return; // another source was chosen meanwhile
    this.away = state.away ?? "";
    this.all = state.objects;
    this.programs = state.programs.filter((one) => one.executable === processes.get(one.pid)?.executable)
      .map((one) => ({ ...one, name: processes.get(one.pid)?.name ?? "" }));
    for (const one of this.programs.filter(({ name }, _, all) => all.filter((other) => other.name === name).length > 1)) {
      one.name = nameAndProcess(one);
    }
    this.draw();
    await this.read();
    this.onRead(state.cluster ?? "");
  }

  /**
   * Shows the objects of an arrow. They have no YAML, and no user changes them.
   * @param {Thing[]} some
   */
  showPast(some) {
    this.past = true;
    this.pointed = "";
    this.away = "";
    this.all = some;
    this.programs = [];
    this.draw();
  }

  /**
   * Marks the object of an arrow in the tree of that arrow.
   * @param {Entry} entry
   */
  point(entry) {
    this.pointed = nameOf({ resource: resourceOf(entry), namespace: entry.namespace, name: entry.name ?? "" });
    this.draw();
    this.tree.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }

  draw() {
    this.heading.textContent = this.past ? t("Objects after this arrow, as events and answers showed them")
      : t("Objects of the local cluster, now");
    this.user.hidden = this.past;
    const now = JSON.stringify([this.past, this.all, this.programs.map((one) => one.pid), this.name, this.pointed, this.away]);
    if (now === this.drawn) return; // the focus stays where it is
    this.drawn = now;
    const focused = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.key : undefined;
    const uids = new Set(this.all.map((one) => one.uid));
    const roots = this.all.filter((one) => !one.owners?.some((owner) => uids.has(owner)));
    roots.sort((one, other) => Number(other.custom ?? false) - Number(one.custom ?? false));
    this.tree.replaceChildren(roots.length ? this.branch(roots)
      : element("p", { class: "note" }, ...prose(this.away || t("No custom resource and no object with an owner is there."))));
    this.acts.replaceChildren(...this.actions().map(({ name, command }) => element("div", { class: "action" },
      element("button", { type: "button", "data-key": name, click: () => this.act(name, command) }, name),
      element("code", {}, command))));
    if (focused) /** @type {HTMLElement | null} */ (this.place.querySelector(`[data-key="${CSS.escape(focused)}"]`))?.focus();
  }

  /**
   * @param {Thing[]} some
   * @returns {HTMLElement}
   */
  branch(some) {
    return element("ul", {}, ...some.map((one) => {
      const below = this.all.filter((other) => other.owners?.includes(one.uid));
      const name = [element("b", {}, one.kind), ` ${one.name}`];
      const item = element("li", {}, this.past ? element("span", nameOf(one) === this.pointed ? { "aria-current": "true" } : {}, ...name) : element("button", { type: "button", class: "plain", "data-key": nameOf(one),
        ...(one === this.chosen() ? { "aria-current": "true" } : {}), click: () => this.choose(one.resource, one.namespace, one.name) },
        ...name), element("div", { class: "facts" },
        ...(one.facts ?? []).map((fact) => element("span", {}, fact))));
      if (below.length) item.append(this.branch(below));
      return item;
    }));
  }

  /**
   * Returns the chosen object, also when it is made again, or none while it is gone. Before a choice, it returns a
   * custom resource.
   */
  chosen() {
    return this.all.find((one) => this.name ? nameOf(one) === this.name : one.custom);
  }

  /**
   * Chooses an object, and shows it as YAML until the view is closed.
   * @param {string} resource
   * @param {string} [namespace]
   * @param {string} [name]
   * @param {string} [uid] of the object of an arrow
   */
  choose(resource, namespace = "", name = "", uid = "") {
    this.name = nameOf({ resource, namespace, name });
    this.draw();
    this.shown = { resource, namespace, name, uid };
    this.drawnYAML = "";
    this.body.replaceChildren();
    this.yaml.insertBefore(this.user, this.body);
    this.yaml.hidden = false;
    this.yaml.focus();
    return this.read();
  }

  /**
   * Shows the object of an arrow.
   * @param {Entry} entry
   */
  open(entry) {
    this.choose(resourceOf(entry), entry.namespace, entry.name, entry.uid);
  }

  /**
   * Returns the actions of a user on the chosen object and on the running programs.
   * @returns {{name: string, command: string}[]}
   */
  actions() {
    const now = new Date().toTimeString().slice(0, 8);
    const all = [];
    const one = this.chosen();
    if (one && /^[a-z0-9.-]+$/.test(one.name)) {
      const kind = one.kind.toLowerCase();
      const object = `${kind} ${one.name}${one.namespace && one.namespace !== "default" ? ` -n ${one.namespace}` : ""}`;
      all.push({ name: t("Delete this {1}", one.kind), command: `kubectl delete ${object}` },
        { name: t("Add a label"), command: `kubectl label ${object} touched=${now.replaceAll(":", "-")} --overwrite` });
      if (one.kind === "MyWeb") {
        all.push({ name: t("Edit the page"),
          command: `kubectl patch ${object} --type=merge -p '{"spec":{"pageContentHtml":"<h1>${now}</h1>"}}'` },
        { name: t("Falsify the status"),
          command: `kubectl patch ${object} --subresource=status --type=merge -p '{"status":{"readyReplicas":77}}'` });
      }
    }
    if (this.programs.length) {
      all.push({ name: t("Freeze all watches"), command: "scripts/workshop freeze" },
        { name: t("Thaw them"), command: "scripts/workshop freeze --end" });
    }
    for (const { name, pid } of this.programs) {
      all.push({ name: t("Stop {1}", name), command: `kill ${pid}` }, { name: t("Kill {1}", name), command: `kill -KILL ${pid}` });
    }
    return all;
  }

  /**
   * @param {string} name
   * @param {string} command
   */
  act(name, command) {
    this.drawn = ""; // the next one has another time in its command
    this.run(`loop ${name}`, command, (state) => {
      showState(this.verdict, state);
      this.verdict.append(" ", t("In the terminal “Commands”:"), " ", element("code", {}, command));
    });
  }

  /** Reads the object of the YAML again. A deleted object stays as it was, with a heading that says so. */
  async read() {
    const shown = this.shown;
    if (!shown) return;
    const { resource, namespace, name } = shown;
    const answer = await load(`/loop/object?${new URLSearchParams({ resource, namespace, name })}`);
    /** @type {Managed} */
    const object = answer.ok ? await answer.json() : { away: t("The window's server does not answer.") };
    if (shown !== this.shown) return; // another object was chosen meanwhile
    let is = object.deleted ? t("deleted") : object.away ? t("as it was before") : t("now");
    if (!object.away) {
      shown.uid ||= object.uid;
      if (shown.uid !== object.uid) is = t("now: another object, with the UID {1}", object.uid);
      const drawn = JSON.stringify(object);
      if (drawn !== this.drawnYAML) this.body.replaceChildren(...drawYAML(object));
      this.drawnYAML = drawn;
    } else if (!this.drawnYAML) {
      this.body.replaceChildren(element("p", { role: "alert" }, object.away));
    }
    this.title.textContent = `${resource.split("/")[2]} ${name}, ${is}`;
  }

  close() {
    const focused = this.yaml.contains(document.activeElement);
    this.shown = undefined;
    this.yaml.hidden = true;
    this.side.append(this.user);
    if (focused) /** @type {HTMLElement | null} */ (this.tree.querySelector("[aria-current]"))?.focus();
  }
}

/** @param {{resource: string, namespace?: string, name: string}} one */
const nameOf = (one) => `${one.resource} ${one.namespace ?? ""}/${one.name}`;

/** @param {Managed} managed */
function drawYAML({ managers, lines }) {
  const names = managers.map((one) => one.manager + (one.subresource ? ` (${one.subresource})` : ""));
  const legend = element("ul", { class: "legend", "aria-label": t("Managers") }, ...managers.map((one, i) =>
    element("li", { class: `m${i % 6}` }, `${names[i]}: ${one.operation}`)));
  const pre = element("pre", { tabindex: "0" }, ...lines.map(({ text, managers: of }) =>
    element("span", { class: of ? `m${of[0] % 6}` : "" }, text,
      of ? element("span", { class: "by" }, `  # ${of.map((i) => names[i]).join(", ")}`) : "", "\n")));
  return [legend, pre];
}
