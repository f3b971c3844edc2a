// @ts-check
// The loop of programs: columns for users, the API server and each program, and an arrow for each event that is
// delivered and each request, at its time. The view is live, stands at one arrow, or replays the kept records.

import { Comparison } from "./compare.js";
import { dial, load } from "./connection.js";
import { announce, draw, element, prose, t } from "./dom.js";
import { clockOf, drawFields, gap, isLease, isRead, isUnanswered, kindOf, Ledger, nameAndProcess, nameOf, objectOf,
  speakerOf, timeOf } from "./ledger.js";
import { Objects } from "./objects.js";

/** @typedef {import("./ledger.js").Entry} Entry */
/** @typedef {{exercise: string, passed: boolean, check: string, message: string, at?: number, namespace?: string,
 *    time: string}} Verdict */

const cluster = "cluster";
// How many arrows before and after the chosen arrow are drawn.
const before = 240;
const after = 60;
// The time for which the column of an ended program stays after its last record.
const keptAfterEnd = 60_000;

export class Loop {
  /**
   * @param {HTMLElement} place
   * @param {import("./dom.js").Run} run
   * @param {string} memory the name under which a reload finds the source again; without a name, it begins live
   */
  constructor(place, run, memory = "") {
    this.place = place;
    this.ledger = new Ledger();
    this.shared = this.ledger.shared();
    this.memory = memory;
    this.source = sessionStorage.getItem(memory) ?? cluster;
    /** @type {Verdict[]} */
    this.verdicts = [];
    /** @type {Entry | undefined} The arrow at which the view stands; none while it is live. */
    this.at = undefined;
    this.away = "";
    this.ended = false;
    this.following = true; // the newest arrow is in sight, and stays in sight while the view is live
    this.identity = ""; // of the cluster whose records are shown
    this.since = "";
    this.missing = "";
    this.told = "";
    /** @type {number | undefined} */
    this.playing = undefined;
    /** @type {number | undefined} */
    this.drawing = undefined;
    /** @type {string | undefined} the time of the check whose records are shown */
    this.judged = undefined;
    /** @type {WebSocket | undefined} */
    this.socket = undefined;
    this.choice = /** @type {HTMLSelectElement} */ (element("select", { "aria-label": t("What is shown"),
      change: () => this.open(this.choice.value) }));
    this.only = /** @type {HTMLSelectElement} */ (element("select", { class: "only", "aria-label": t("The object"), hidden: true,
      change: () => this.draw() }));
    /** @type {Set<string> | undefined} the keys of the chosen object and of what it owns */
    this.family = undefined;
    this.pauser = button(t("Pause"), "Space", () => this.pause());
    this.player = button(t("Replay"), "R", () => this.play());
    this.reads = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox", change: () => this.draw() }));
    this.leases = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox", change: () => this.draw() }));
    this.withEnded = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox", change: () => this.draw() }));
    /** @type {Set<string>} */
    this.gone = new Set(); // the columns of programs that ended some time ago
    this.status = element("p", { class: "loop-status" });
    this.heads = element("div", { class: "heads", "aria-hidden": "true" });
    this.lines = element("div", { class: "lines", "aria-hidden": "true" });
    this.rows = element("ol", { class: "arrows", role: "listbox", tabindex: "0", "aria-label": t("The loop, oldest first"),
      keydown: (event) => this.key(/** @type {KeyboardEvent} */ (event)) });
    this.scroller = element("div", { class: "scroller", scroll: () => {
      this.following = this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight < 80;
    } }, this.lines, this.rows);
    new ResizeObserver(() => this.follow()).observe(this.scroller);
    this.detail = element("p", { class: "loop-detail" });
    this.wide = element("button", { type: "button", id: "wide", "aria-pressed": "false",
      click: () => this.widen(this.wide.ariaPressed !== "true") }, t("Wide"));
    this.objects = new Objects(run, (identity) => this.compare(identity));
    this.comparison = new Comparison(run, () => this.rows.focus());
    this.comparer = button(t("Compare with the solution"), "C", () => this.comparison.open(this.source));
    this.place.replaceChildren(
      element("div", { class: "loop-bar" }, this.choice, this.only, this.pauser,
        button(t("◀ Step back"), "←", () => this.step(-1)), button(t("Step forward ▶"), "→", () => this.step(1)), this.player, this.comparer,
        element("label", {}, this.reads, t("Reads")), element("label", {}, this.leases, t("Leases")),
        element("label", {}, this.withEnded, t("Ended programs")), this.wide),
      this.status,
      this.comparison.place,
      element("div", { class: "loop-main" },
        element("section", { class: "loop-lanes", "aria-label": t("Arrows between users, the API server and programs") }, this.heads, this.scroller, this.detail),
        this.objects.place));
    setInterval(() => this.look(), 3000);
  }

  /**
   * Replaces the page by the loop, or shows the page again.
   * @param {boolean} on
   */
  widen(on) {
    document.documentElement.classList.toggle("wide", on);
    this.wide.ariaPressed = String(on);
  }

  /** Shows the view. The view connects when it is shown for the first time, and when a check has run again. */
  async show() {
    const answer = await load("/loop/sources");
    if (answer.ok) this.verdicts = await answer.json() ?? [];
    if (!this.verdict()) this.source = cluster;
    this.choice.replaceChildren(element("option", { value: cluster }, t("Local cluster, live")),
      ...this.verdicts.map((one) => element("option", { value: one.exercise },
        one.passed ? t("Last check of {1}: passed", one.exercise) : t("Last check of {1}: failed", one.exercise))));
    this.choice.value = this.source;
    this.following = true;
    if (!this.socket || this.judged !== this.verdict()?.time) this.connect();
    this.draw();
    this.look();
  }

  /**
   * Shows another source: the local cluster live, or a check at the moment at which the program differed.
   * @param {string} source
   */
  open(source) {
    this.source = source;
    if (this.memory) sessionStorage.setItem(this.memory, source);
    this.socket?.close();
    this.socket = undefined;
    return this.show();
  }

  /** Begins with the first record of the source. */
  connect() {
    this.stop();
    this.judged = this.verdict()?.time;
    this.ledger = new Ledger();
    this.at = undefined;
    this.ended = false;
    this.away = "";
    this.since = "";
    this.objects.close();
    this.comparison.close();
    this.listen();
  }

  /**
   * Begins anew when the local cluster is another one than before, and reports what is missing in the cluster.
   * @param {string} identity
   */
  compare(identity) {
    const other = identity && this.identity && identity !== this.identity;
    this.identity = identity || this.identity;
    if (this.source !== cluster) return;
    if (other) {
      this.connect();
      this.since = new Date().toLocaleTimeString("en-GB");
    }
    const was = this.gone.size;
    this.findGone();
    if (other || was !== this.gone.size || this.missing !== this.objects.away) this.draw();
    this.missing = this.objects.away;
  }

  /** Takes records. After a lost connection, records that are known already arrive again. */
  listen() {
    this.socket?.close();
    const socket = dial(`/loop/records/${encodeURIComponent(this.source)}`);
    this.socket = socket;
    socket.addEventListener("message", (event) => {
      if (socket === this.socket) this.take(JSON.parse(event.data));
    });
    socket.addEventListener("close", () => {
      if (socket === this.socket && !this.ended) setTimeout(() => socket === this.socket && this.listen(), 1000);
    });
  }

  /** @param {{records?: Entry[], away?: string, end?: boolean}} message */
  take(message) {
    const came = this.away && !message.away;
    this.away = message.away ?? "";
    this.ledger.add(message.records ?? []);
    if (message.end) {
      this.ended = true;
      this.at = this.marked();
    }
    if (came || message.records?.some((entry) => !this.isFolded(entry))) this.look();
    this.drawing ??= setTimeout(() => {
      this.drawing = undefined;
      this.draw();
    }, 100);
  }

  verdict() {
    return this.verdicts.find((one) => one.exercise === this.source);
  }

  /** Reports whether the source is the check of an exercise: a bug and the capstone have no solution that runs. */
  hasSolution() {
    return Boolean(this.verdict() && /^\d+\.\d+$/.test(this.source));
  }

  /** Returns the arrow at which a check differed, or the last one. */
  marked() {
    const verdict = this.verdict();
    return verdict && this.arrows().findLast((entry) => !verdict.at || entry.n <= verdict.at);
  }

  /**
   * Reports whether a record is not drawn. Reads, records of leases, and programs that ended have a box. A failure of a
   * program that runs is always drawn.
   * @param {Entry} entry
   */
  isFolded(entry) {
    if (this.gone.has(this.laneOf(entry)) && !this.withEnded.checked) return true;
    return !isUnanswered(entry) && (isRead(entry) && !this.reads.checked || isLease(entry) && !this.leases.checked);
  }

  /**
   * Reports whether a record is about another object than the chosen one and those that it owns.
   * @param {Entry} entry
   */
  isOther(entry) {
    return entry.is !== "note" && this.family?.has(objectOf(entry)) === false;
  }

  /** Returns the records to draw. */
  arrows() {
    const at = this.verdict()?.at;
    return this.ledger.all.filter((entry) => !this.isFolded(entry) && !this.isOther(entry) || entry.n === at);
  }

  /** Lists the custom resources, when there is a choice. */
  listObjects() {
    const roots = this.ledger.roots();
    const chosen = this.only.value;
    draw(this.only, element("option", { value: "" }, t("All objects")),
      ...[...roots].sort().map(([key, { kind, resource, name }]) => element("option", { value: key }, `${kind ?? resource} ${name}`)));
    this.only.value = roots.has(chosen) ? chosen : "";
    this.only.hidden = roots.size < 2;
    this.family = this.only.value ? this.ledger.family(this.only.value) : undefined;
  }

  /** @param {Entry} entry */
  laneOf(entry) {
    return entry.by?.pid && this.shared.has(nameOf(entry)) ? nameAndProcess(entry.by) : nameOf(entry);
  }

  /** Finds the programs that ended some time ago, while another one runs. */
  findGone() {
    this.shared = this.ledger.shared();
    this.gone = new Set();
    const running = new Set(this.objects.programs.map((one) => one.pid));
    if (this.source !== cluster || running.size === 0) return;
    const operators = this.ledger.operators();
    /** @type {Map<string, Entry>} */
    const newest = new Map();
    for (const entry of this.ledger.all) if (entry.by?.pid && operators.has(nameOf(entry))) newest.set(this.laneOf(entry), entry);
    for (const [lane, entry] of newest) {
      if (!running.has(entry.by?.pid ?? 0) && Date.now() - timeOf(entry) > keptAfterEnd) this.gone.add(lane);
    }
  }

  /** Shows the newest arrow again after a change of the list, unless the user has scrolled away from it. */
  follow() {
    if (!this.at && this.following) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  pause() {
    const live = this.at === undefined;
    const playing = this.playing !== undefined;
    this.stop();
    if (live) this.at = this.arrows().at(-1);
    else if (!playing && !this.ended) {
      this.at = undefined;
      this.following = true;
    }
    this.draw();
  }

  /** @param {number} by */
  step(by) {
    this.stop();
    this.move(by);
  }

  /** @param {number} by */
  move(by) {
    const arrows = this.arrows();
    const here = this.at ? arrows.indexOf(this.at) : arrows.length - (by < 0 ? 0 : 1);
    this.at = arrows[Math.min(Math.max(here + by, 0), arrows.length - 1)];
    this.draw();
    if (this.at) announce(sentenceOf(this.at));
  }

  /** Plays from the chosen arrow, or from the first arrow, in the original time; a pause lasts at most a second. */
  play() {
    const arrows = this.arrows();
    const playing = this.playing !== undefined;
    this.stop();
    if (playing || arrows.length === 0) return this.draw();
    if (!this.at || this.at === arrows.at(-1) || this.at === this.marked()) this.at = arrows[0];
    const next = () => {
      const now = this.arrows();
      const here = now.indexOf(/** @type {Entry} */ (this.at));
      if (here + 1 >= now.length) {
        this.stop();
        return this.draw();
      }
      const pause = Math.min(Math.max(timeOf(now[here + 1]) - timeOf(now[here]), 80), 1000);
      this.playing = setTimeout(() => {
        this.move(1);
        next();
      }, pause);
    };
    next();
    this.draw();
  }

  stop() {
    clearTimeout(this.playing);
    this.playing = undefined;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    /** @type {Record<string, () => void>} */
    const keys = { ArrowUp: () => this.step(-1), ArrowLeft: () => this.step(-1), ArrowDown: () => this.step(1),
      ArrowRight: () => this.step(1), Home: () => this.step(-Infinity), End: () => this.step(Infinity),
      " ": () => this.pause(), r: () => this.play(), c: () => this.hasSolution() && this.comparison.open(this.source), 
      Enter: () => this.at && (this.source === cluster ? this.objects.open(this.at) : this.objects.point(this.at)) };
    if (!keys[event.key]) return;
    keys[event.key]();
    event.preventDefault();
  }

  /** Reads the objects of the cluster again, but not too often. */
  look() {
    if (this.place.hidden || document.hidden || this.source !== cluster) return;
    this.objects.refresh(this.ledger);
  }

  draw() {
    if (this.place.hidden) return;
    this.findGone();
    this.listObjects();
    const arrows = this.arrows();
    if (this.at && !arrows.includes(this.at)) this.at = arrows.findLast((entry) => entry.n < (this.at?.n ?? 0)) ?? arrows[0];
    const here = this.at ? Math.max(arrows.indexOf(this.at), 0) : arrows.length - 1;
    const shown = arrows.slice(Math.max(here - before, 0), here + after);
    const operators = this.ledger.operators();
    const lanes = [...new Set(shown.filter((entry) => operators.has(nameOf(entry))).map((entry) => this.laneOf(entry)))];
    const template = `var(--clock) 2fr 5fr ${"3fr ".repeat(Math.max(lanes.length - 1, 0))}.5fr`;
    this.place.style.setProperty("--lanes", template);
    this.heads.replaceChildren(...[t("users and tools"), t("API server"), ...lanes].map((name, i) => {
      const head = element("span", { class: i > 1 ? "program" : "", title: name }, name);
      head.style.gridColumn = i > 1 ? String(i + 1) : String(i + 2);
      return head;
    }));
    this.lines.replaceChildren(...["", "", ...lanes].map((_, i) => {
      const line = element("span");
      line.style.gridColumn = String(i + 2);
      return line;
    }));
    const first = Math.max(here - before, 0);
    this.rows.replaceChildren(...shown.map((entry, i) => this.row(entry, shown[i - 1], lanes.indexOf(this.laneOf(entry)), first + i > here)));
    this.mark(shown, this.marked());
    this.rows.setAttribute("aria-activedescendant", this.at ? "arrow-now" : "");
    this.detail.replaceChildren(this.at ? sentenceOf(this.at) : t("Choose an arrow to read what came before it."));
    if (this.at?.name && this.source === cluster) {
      const entry = this.at;
      this.detail.append(" ", button(t("Its YAML"), "Enter", () => this.objects.open(entry)));
    }
    if (this.source !== cluster) this.objects.showPast(this.at ? this.ledger.objectsAt(this.at) : []);
    this.tell(arrows, here);
    if (this.at) this.rows.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
    this.follow();
  }

  /**
   * @param {Entry[]} arrows
   * @param {number} here
   */
  tell(arrows, here) {
    const leases = this.ledger.all.filter((entry) => isLease(entry) && this.isFolded(entry)).length;
    const reads = this.ledger.all.filter((entry) => !isLease(entry) && this.isFolded(entry)).length;
    const others = this.ledger.all.filter((entry) => !this.isFolded(entry) && this.isOther(entry)).length;
    const away = this.source === cluster ? this.away || this.objects.away : this.away;
    const state = this.playing !== undefined ? "playing" : this.at ? "paused" : away ? "stopped" : "live";
    const verdict = this.verdict();
    const name = { playing: t("playing"), paused: t("paused"), stopped: t("stopped"), live: t("live") }[state];
    const words = [away, this.since && t("a new cluster, since {1}", this.since),
      arrows.length ? t("{1} at {2} of {3}", name, here + 1, arrows.length) : t("nothing has passed yet"),
      others ? t("{1} records of other objects folded", others) : "", reads ? t("{1} reads folded", reads) : "", leases ? t("{1} records of leases folded", leases) : "",
      this.gone.size && !this.withEnded.checked ? t("{1} ended programs folded", this.gone.size) : "",
      verdict ? `${verdict.passed ? t("✓ passed") : t("✗ failed")} ${verdict.check}` : "",
      verdict?.namespace ? t("in the namespace {1}", verdict.namespace) : ""];
    const text = words.filter(Boolean).join(" · ");
    if (this.told !== text) this.status.replaceChildren(...prose(text));
    this.told = text;
    this.pauser.textContent = this.at && this.playing === undefined && !this.ended ? t("Go live") : t("Pause");
    this.comparer.hidden = !this.hasSolution();
    this.player.textContent = this.playing === undefined ? t("Replay") : t("Stop");
    this.place.dataset.state = state;
  }

  /**
   * @param {Entry} entry
   * @param {Entry | undefined} last
   * @param {number} lane
   * @param {boolean} later
   */
  row(entry, last, lane, later) {
    const toRight = lane < 0 === (entry.is === "request");
    const label = element("span", { class: "label" }, entry.text);
    const line = element("span", { class: `line ${toRight ? "right" : "left"}` });
    label.style.gridColumn = `${lane < 0 ? 2 : 3} / -1`;
    line.style.gridColumn = lane < 0 ? "2 / 3" : `3 / ${lane + 4}`;
    const by = entry.is === "event" ? t("delivered") : lane >= 0 && entry.later ? t("{1} later", entry.later) : speakerOf(entry);
    label.append(element("span", { class: "by" }, by));
    label.append(...drawFields(entry));
    const row = element("li", { role: "option", class: `arrow ${kindOf(entry)} ${later ? "later" : ""}`,
      "aria-selected": String(entry === this.at), ...(entry === this.at ? { id: "arrow-now" } : {}),
      click: () => {
        this.stop();
        this.at = entry;
        this.draw();
      } },
      element("time", { datetime: entry.time }, clockOf(entry)), label, line);
    if (last && timeOf(entry) - timeOf(last) >= 1000) row.prepend(element("span", { class: "gap" }, t("{1} pass", gap(last, entry))));
    return row;
  }

  /**
   * Marks the arrow at which a check differed.
   * @param {Entry[]} shown
   * @param {Entry | undefined} marked
   */
  mark(shown, marked) {
    const verdict = this.verdict();
    const row = this.rows.children[marked ? shown.indexOf(marked) : -1];
    if (!verdict || !row) return;
    row.classList.add(verdict.passed ? "good" : "bad");
    row.append(element("strong", { class: "mark" }, verdict.passed ? `${t("✓ passed")} ${verdict.check}`
      : `✗ ${verdict.at ? t("here it differed") : t("it failed")}: ${verdict.message}`));
  }
}

/** @param {Entry} entry */
const sentenceOf = (entry) => `${clockOf(entry)}: ${entry.sentence}`;

/**
 * @param {string} text
 * @param {string} key
 * @param {EventListener} act
 */
function button(text, key, act) {
  return element("button", { type: "button", title: t("{1} in the list", key), click: act }, text);
}
