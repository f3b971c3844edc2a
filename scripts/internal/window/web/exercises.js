// @ts-check
// The exercises: the list of all chapters, and one exercise with its buttons. Each button types its command.

import { load } from "./connection.js";
import { difference, draw, element, find, prose, showState, t } from "./dom.js";
import { Editor, readOnly } from "./editor.js";

/** @typedef {import("./dom.js").State} State */
/** @typedef {{id: string, title: string, chapter: string, minutes: number, passed: boolean, begun: boolean, after?: string}} One */
/** @typedef {{current: string, next: string, passed: number, exercises: One[], chapters: Record<string, string>}} Progress */
/** @typedef {One & {story: string, path: string, inFolder: string, page?: string, difference: string, editor: string, program: string, hint: string,
 *    afterHint: string, files: import("./editor.js").File[] | null, beside: Record<string, string> | null,
 *    card?: Card, verdict?: import("./loop.js").Verdict}} Task */
/** @typedef {{passed: boolean, time: string, check?: string, lines: {label: string, text: string}[]}} Card */

const actions = [
  { name: t("Begin"), target: "exercise", does: t("puts the starter into work/, or goes on") },
  { name: t("Check"), target: "check", does: t("lets the lab judge what you wrote") },
  { name: t("Hint"), target: "hint", does: t("gives a hint that fits the last failure") },
  { name: t("Solution"), target: "solution", does: t("shows what makes a solution of your files") },
  { name: t("Goto"), target: "goto", does: t("begins it with everything before it solved") },
];

// The capstone is specified by its reader, so it has other actions.
const capstone = "capstone";
const capstoneActions = [
  { ...actions[0], does: t("asks in the terminal for the kind and its fields, or goes on; `SPEC=FILE` takes them from a file") },
  ...actions.slice(1, 3),
];
/** @param {string} id */
const actionsOf = (id) => id === capstone ? capstoneActions : actions;

// The words after a command in which it speaks the reader's language.
const chosen = /** @type {HTMLSelectElement} */ (find("#language")).value;
const language = chosen === "en" ? "" : ` LANGUAGE=${chosen}`;

/**
 * @param {string} id
 * @param {string} target
 */
const commandOf = (id, target) => `make ${target} EX=${id}${language}`;

/**
 * @param {Card} card
 * @param {boolean} old whether another check runs, or was refused
 * @returns {HTMLElement}
 */
function cardOf(card, old) {
  return element("section", { class: old ? "card old" : "card", "aria-label": t("The last verdict") },
    element("strong", {}, card.passed ? t("✓ passed") : t("✗ failed"), ` ${card.check ?? ""}`),
    element("dl", {}, ...card.lines.flatMap((line) => [element("dt", {}, line.label), element("dd", {}, line.text)])));
}

/** @param {State} state */
const isRunning = (state) => state.is === "running" || state.is === "moved";

/** @param {State} state of a command; its terminal is not shown after a check and a hint, which do not ask */
const mayAsk = (state) => !/^(check|hint) /.test(state.id);

/**
 * Returns the places of the last check in the reader's files.
 * @param {Task} task
 */
const placesOf = (task) => (task.files ?? []).flatMap((file) => (file.places ?? []).map((place) => ({ file, place })));

/**
 * @typedef {object} Doors What the exercises open elsewhere in the window.
 * @property {import("./dom.js").Run} inTerminal runs a command, and shows its terminal
 * @property {import("./dom.js").Run} beside runs a command, and keeps the shown tab
 * @property {import("./dom.js").Run} program runs the reader's program in its terminal
 * @property {() => void} answer shows the terminal in which the last command may ask
 * @property {(id: string) => void} replay
 * @property {() => void} back shows the exercises
 * @property {(progress: Progress) => void} progress receives the progress after each reading
 */

export class Exercises {
  /**
   * @param {HTMLElement} place
   * @param {string} page
   * @param {Doors} doors
   */
  constructor(place, page, doors) {
    this.place = place;
    this.page = page;
    this.doors = doors;
    this.id = "";
    /** @type {Map<string, State>} */
    this.states = new Map();
    /** @type {Map<string, number>} when the command of an exercise began */
    this.began = new Map();
    this.checkAgain = false;
    this.top = element("div");
    /** @type {Record<string, string>} the files that may be read beside the open file */
    this.files = {};
    /** @typedef {{path: string, text: string, view: import("./vendor/codemirror/codemirror.mjs").EditorView, scroll?: any}} Read */
    /** @type {Map<string, Read>} */
    this.known = new Map();
    /** @type {Read | undefined} */
    this.shown = undefined;
    this.choice = /** @type {HTMLSelectElement} */ (element("select", { change: () => this.read() }));
    this.reader = element("div");
    this.beside = element("section", { class: "beside", "aria-label": t("Files beside it"), hidden: true },
      element("label", {}, t("Read beside it (read-only):"), " ", this.choice), this.reader);
    this.below = element("div");
    this.buttons = element("section", { class: "buttons", "aria-label": t("Buttons") });
    this.results = element("section", { "aria-label": t("The result") });
    const code = element("section", { class: "editor", "aria-label": t("The file") });
    this.editor = new Editor(code, (check) => this.saved(check), () => this.showBeside());
    this.checksOnSave = /** @type {HTMLInputElement} */ (element("input", { type: "checkbox",
      change: () => localStorage.setItem("check on save", this.checksOnSave.checked ? "yes" : "") }));
    this.checksOnSave.checked = localStorage.getItem("check on save") === "yes";
    this.onSave = element("p", { hidden: true }, element("label", {}, this.checksOnSave, " ", t("Check each time the file is saved")));
    place.addEventListener("keydown", (event) => { // the editor has taken the key when its file has a next error
      const first = event.key === "F8" && !event.defaultPrevented && this.editor.task && placesOf(this.editor.task)[0];
      if (!first) return;
      this.editor.goTo(first.file, first.place);
      event.preventDefault();
    });
    place.append(this.buttons, this.top, code, this.beside, this.results, this.onSave, this.below);
  }

  /**
   * Loads the present files and progress from the server, and shows an exercise.
   * @param {string} [chosen] the exercise that the reader has chosen now
   */
  async refresh(chosen = "") {
    this.id = chosen || this.id;
    const answer = await load("/exercises");
    if (!answer.ok) return this.fail(await answer.text());
    /** @type {Progress} */
    const progress = await answer.json();
    this.doors.progress(progress);
    const here = progress.exercises.find((one) => !one.passed && this.page.startsWith(one.chapter + "/"));
    const { current } = progress;
    if (chosen) sessionStorage.setItem("exercise", JSON.stringify({ chosen, current }));
    /** @type {{chosen?: string, current?: string}} the choice before a reload; it ends when another exercise begins */
    const last = JSON.parse(sessionStorage.getItem("exercise") ?? "{}");
    const kept = last.current === current && progress.exercises.find((one) => one.id === last.chosen);
    this.id ||= (kept ? kept.id : "") || current || here?.id || progress.next || progress.exercises[0]?.id || "";
    const task = await load(`/exercises/${encodeURIComponent(this.id)}`);
    if (!task.ok) return this.fail(await task.text());
    await this.show(await task.json(), progress);
  }

  /** @param {string} sentence */
  fail(sentence) {
    draw(this.top, element("p", { role: "alert" }, ...prose(sentence)));
    for (const part of [this.buttons, this.results, this.below]) draw(part);
    this.onSave.hidden = true;
  }

  /**
   * @param {Task} task
   * @param {Progress} progress
   */
  async show(task, progress) {
    const focused = document.activeElement instanceof HTMLButtonElement ? document.activeElement.textContent : "";
    draw(this.top, this.about(task));
    draw(this.buttons, ...actionsOf(task.id).map((action) => this.button(task.id, action)));
    draw(this.results, ...this.result(task, progress));
    this.onSave.hidden = !task.begun;
    draw(this.below, this.commands(task), this.changes(task), this.all(progress));
    if (focused && document.activeElement === document.body) {
      [...this.place.querySelectorAll("button")].find((button) => button.textContent === focused)?.focus();
    }
    await this.editor.open(task);
  }

  /** @param {Task} task */
  about(task) {
    const copy = element("button", { type: "button", click: () => navigator.clipboard.writeText(task.path) }, t("Copy the path"));
    const open = element("button", { type: "button", click: () => this.open(task) }, t("Open in your editor"));
    return element("section", { "aria-label": t("The exercise") },
      element("h2", {}, `${task.id} ${task.title}`),
      element("p", { class: "note" }, t("{1} minutes", task.minutes), " · ",
        task.passed ? t("✓ passed") : task.begun ? t("begun") : t("not begun"),
        ...(task.after ? [" · ", t("after {1}", task.after)] : []),
        ...(task.page ? [" · ", element("a", { href: `/page/${task.page}` }, t("Its page"))] : [])),
      element("p", { class: "story" }, ...prose(task.story)),
      ...(task.passed && !task.begun && task.inFolder ? [element("p", { class: "note" },
        t("There is no editor here: your program is at {1} now. Begin puts the starter of {2} there again, and saves your files first.",
          task.inFolder, task.id))] : []),
      element("p", {}, copy, " ", ...(task.editor ? [open, " "] : []),
        element("code", {}, task.editor ? `${task.editor} ${task.path}` : task.path)));
  }

  /**
   * Shows the verdict, the hint, and what comes next.
   * @param {Task} task
   * @param {Progress} progress
   */
  result(task, progress) {
    const verdict = element("div", { class: "verdict", role: "status" });
    const state = this.states.get(task.id);
    // The card of this run has more words than the code with which its command ended.
    const judged = task.card && Date.parse(task.card.time) > (this.began.get(task.id) ?? Infinity);
    const isOld = ["running", "moved", "refused"].includes(state?.is ?? "");
    // The end of a hint needs no state beside the card of a check.
    if (state && !(state.is === "done" && task.card)) {
      showState(verdict, judged && state.is === "failed" ? { ...state, says: "" } : state);
    }
    if (state && isRunning(state) && mayAsk(state)) {
      verdict.append(" ", t("The command may ask a question in its terminal, and waits for your answer there."), " ",
        element("button", { type: "button", "data-exercise": task.id, click: () => this.doors.answer() }, t("Go to the terminal")));
    }
    const next = progress.exercises.find((one) => one.id === progress.next);
    const parts = [verdict, ...(task.card ? [cardOf(task.card, isOld && !judged)] : [])];
    if (task.hint) {
      parts.push(element("section", { class: isOld ? "card old" : "card", "aria-label": t("The last hint") },
        element("strong", {}, t("Hint")), element("p", { class: "story" }, ...prose(task.hint)),
        ...(task.afterHint ? [element("p", {}, ...prose(task.afterHint))] : [])));
    }
    const places = placesOf(task);
    if (places.length > 0) {
      parts.push(element("p", { class: "bar" }, ...places.map(({ file, place }) => element("button", { type: "button",
        "data-exercise": task.id, title: place.says, click: () => this.editor.goTo(file, place) },
        t("Line {1} of {2}", place.line, file.name)))));
    }
    const isCompiled = !task.card || task.card.passed || task.card.check;
    if (task.verdict && isCompiled) {
      parts.push(element("p", {}, element("button", { type: "button", "data-exercise": task.id,
        click: () => this.doors.replay(task.id) }, t("Watch the last check step by step")), " ",
        task.verdict.passed ? t("✓ passed") : t("✗ failed"), ` ${task.verdict.check}`));
    }
    if (task.card && !task.card.passed) {
      const command = `make check EX=${task.id}${language} VERBOSE=1`;
      parts.push(element("div", { class: "action" }, element("button", { type: "button",
        click: () => this.doors.inTerminal(`details ${task.id}`, command, () => {}) }, t("All details")),
        element("code", {}, command), element("span", {}, t("shows the requests and the log lines of the last check"))));
    }
    if (task.passed && task.card?.passed !== false && task.id !== capstone && next && next.id !== task.id) {
      parts.push(element("p", {}, this.button(next.id, { name: t("Next: {1}", `${next.id} ${next.title}`), target: "exercise" }),
        " ", element("code", {}, commandOf(next.id, "exercise"))));
    }
    return parts;
  }

  /** @param {Task} task */
  commands(task) {
    const section = element("section", { "aria-label": t("Commands") });
    section.append(element("dl", { class: "typed" }, ...actionsOf(task.id).flatMap((action) => [element("dt", {}, action.name),
      element("dd", {}, element("code", {}, commandOf(task.id, action.target)), " ", ...prose(action.does))])));
    if (task.begun && task.program) {
      section.append(element("div", { class: "action" }, element("button", { type: "button", class: "program",
        click: () => this.doors.program(`program ${task.id}`, task.program, () => {}) }, t("Run your program")),
        element("code", {}, task.program), element("span", {}, t("in a separate terminal; pressed again, it starts anew"))));
    }
    return section;
  }

  /** @param {Task} task */
  changes(task) {
    return task.difference
      ? element("details", {}, element("summary", {}, t("What you have changed since the beginning")), difference(task.difference))
      : element("p", { class: "note" }, task.begun ? t("You have changed nothing yet.") : "");
  }

  /**
   * @param {string} id
   * @param {{name: string, target: string}} action
   */
  button(id, action) {
    return element("button", { type: "button", "data-exercise": id, click: () => this.act(id, action.target) }, action.name);
  }

  /** Lists the files that a reader may read beside the open file. */
  showBeside() {
    const { task, path } = this.editor;
    this.files = { ...(task?.begun ? task.beside : {}) };
    delete this.files[path];
    const names = Object.keys(this.files).sort();
    const chosen = this.choice.value;
    draw(this.choice, element("option", { value: "" }, t("none")), ...names.map((name) => element("option", { value: name }, name)));
    this.choice.value = chosen in this.files ? chosen : "";
    this.beside.hidden = names.length === 0;
    this.read();
  }

  /** Shows the chosen file, at the place where its reader left it. */
  read() {
    const path = this.choice.value;
    const { shown } = this;
    if (shown?.path === path && shown.text === this.files[path]) return;
    if (shown) shown.scroll = shown.view.scrollSnapshot();
    const last = this.known.get(path);
    this.shown = undefined;
    this.reader.replaceChildren();
    if (!path) return;
    const text = this.files[path];
    this.shown = last?.text === text ? last : { path, text, view: readOnly(path, text) };
    this.known.set(path, this.shown);
    this.reader.append(this.shown.view.dom);
    if (this.shown.scroll) this.shown.view.dispatch({ effects: this.shown.scroll });
  }

  /** @param {Progress} progress */
  all(progress) {
    const section = element("section", { "aria-label": t("Progress") },
      element("h2", {}, t("{1} of {2} passed", progress.passed, progress.exercises.length)));
    for (const chapter of new Set(progress.exercises.map((one) => one.chapter))) {
      const mine = progress.exercises.filter((one) => one.chapter === chapter);
      section.append(element("h3", {}, progress.chapters[chapter]),
        element("ol", { class: "exercises" }, ...mine.map((one) => element("li", {},
          element("button", { type: "button", class: "plain", ...(one.id === this.id ? { "aria-current": "true" } : {}),
            click: () => this.refresh(one.id).then(() => this.place.scrollTo(0, 0)) }, `${one.passed ? t("✓ passed") : t("○ open")}  ${one.id} ${one.title}`,
            one.after ? ` (${t("after {1}", one.after)})` : "")))));
    }
    return section;
  }

  /**
   * Types the command of a button. A check and a hint are shown here; other commands print more, or ask.
   * @param {string} id
   * @param {string} target
   */
  act(id, target) {
    const isShown = target === "check" || target === "hint";
    const begins = target === "exercise" || target === "goto";
    if (begins) {
      this.id = id;
      this.editor.commanded = true;
    }
    this.began.set(id, Date.now());
    (isShown ? this.doors.beside : this.doors.inTerminal)(`${target} ${id}`, commandOf(id, target), async (state) => {
      const wasRunning = this.states.get(id)?.is === "running";
      this.states.set(id, state);
      await this.refresh();
      if (isShown && !(wasRunning && isRunning(state))) this.results.scrollIntoView({ block: "nearest" });
      if (isRunning(state)) return;
      if (begins) await this.editor.commandEnded();
      if (target === "check" && this.checkAgain) return this.saved(true);
      if (begins && state.is === "done") {
        this.doors.back();
        this.editor.focus();
        this.place.scrollTo(0, 0); // the story
      }
    });
  }

  /**
   * The file has a new text on the disk.
   * @param {boolean} check
   */
  async saved(check) {
    const state = this.states.get(this.id);
    const running = state !== undefined && isRunning(state);
    this.checkAgain = running && (check || this.checksOnSave.checked);
    if (!running && (check || this.checksOnSave.checked)) {
      return this.act(this.id, "check");
    }
    await this.refresh();
  }

  /** @param {Task} task */
  async open(task) {
    const answer = await load(`/exercises/${encodeURIComponent(task.id)}/open`, { method: "POST" });
    if (!answer.ok) alert(await answer.text());
  }
}
