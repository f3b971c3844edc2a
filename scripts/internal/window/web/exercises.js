// @ts-check
// The exercises: the list of all chapters, and one exercise with its buttons. Each button types its command.

import { load } from "./connection.js";
import { difference, element, find, showState, t } from "./dom.js";

/** @typedef {import("./dom.js").State} State */
/** @typedef {{id: string, title: string, chapter: string, minutes: number, passed: boolean, begun: boolean}} One */
/** @typedef {{current: string, next: string, passed: number, exercises: One[], chapters: Record<string, string>}} Progress */
/** @typedef {One & {story: string, path: string, difference: string, editor: string,
 *    card?: Card, verdict?: import("./loop.js").Verdict}} Task */
/** @typedef {{passed: boolean, time: string, check?: string, lines: {label: string, text: string}[]}} Card */

const actions = [
  { name: t("Begin"), target: "exercise", does: t("puts the starter into work/, or goes on") },
  { name: t("Check"), target: "check", does: t("lets the lab judge what you wrote") },
  { name: t("Hint"), target: "hint", does: t("gives a hint that fits the last failure") },
  { name: t("Solution"), target: "solution", does: t("shows what makes a solution of your files") },
  { name: t("Goto"), target: "goto", does: t("begins it with everything before it solved") },
];

// The words after a command in which it speaks the reader's language.
const chosen = /** @type {HTMLSelectElement} */ (find("#language")).value;
const language = chosen === "en" ? "" : ` LANGUAGE=${chosen}`;

/**
 * @param {Card} card
 * @returns {HTMLElement}
 */
function cardOf(card) {
  return element("section", { class: "card", "aria-label": t("The last verdict") },
    element("strong", {}, card.passed ? t("✓ passed") : t("✗ failed"), ` ${card.check ?? ""}`),
    element("dl", {}, ...card.lines.flatMap((line) => [element("dt", {}, line.label), element("dd", {}, line.text)])));
}

export class Exercises {
  /**
   * @param {HTMLElement} place
   * @param {string} page
   * @param {import("./dom.js").Run} run
   * @param {(id: string) => void} replay
   */
  constructor(place, page, run, replay) {
    this.place = place;
    this.page = page;
    this.run = run;
    this.replay = replay;
    this.id = "";
    /** @type {Map<string, State>} */
    this.states = new Map();
    /** @type {Map<string, number>} when the command of an exercise began */
    this.began = new Map();
  }

  /**
   * Loads the present files and progress from the server, and shows an exercise.
   * @param {string} [id]
   */
  async refresh(id = this.id) {
    this.id = id;
    const answer = await load("/exercises");
    if (!answer.ok) return this.place.replaceChildren(element("p", { role: "alert" }, await answer.text()));
    /** @type {Progress} */
    const progress = await answer.json();
    const here = progress.exercises.find((one) => !one.passed && this.page.startsWith(one.chapter + "/"));
    this.id ||= progress.current || here?.id || progress.next || progress.exercises[0]?.id || "";
    const task = await load(`/exercises/${encodeURIComponent(this.id)}`);
    if (!task.ok) return this.place.replaceChildren(element("p", { role: "alert" }, await task.text()));
    this.place.replaceChildren(this.one(await task.json()), this.all(progress));
  }

  /** @param {Task} task */
  one(task) {
    const verdict = element("div", { class: "verdict", role: "status" });
    const state = this.states.get(task.id);
    // The card of this run has more words than the code with which its command ended.
    const judged = task.card && Date.parse(task.card.time) > (this.began.get(task.id) ?? Infinity);
    if (state) showState(verdict, judged && state.is === "failed" ? { ...state, says: "" } : state);
    const buttons = actions.map((action) => {
      const command = `make ${action.target} EX=${task.id}${language}`;
      return element("div", { class: "action" },
        element("button", { type: "button", click: () => this.act(task.id, action.target, command) }, action.name),
        element("code", {}, command), element("span", {}, action.does));
    });
    const open = task.editor
      ? element("button", { type: "button", click: () => this.open(task) }, t("Open in your editor"))
      : element("button", { type: "button", click: () => navigator.clipboard.writeText(task.path) }, t("Copy the path"));
    return element("section", { "aria-label": t("The exercise") },
      element("h2", {}, `${task.id} ${task.title}`),
      element("p", { class: "note" }, t("{1} minutes", task.minutes), " · ",
        task.passed ? t("✓ passed") : task.begun ? t("begun") : t("not begun")),
      element("p", { class: "story" }, task.story),
      element("p", {}, open, " ", element("code", {}, task.editor ? `${task.editor} ${task.path}` : task.path)),
      ...buttons, verdict, task.card ? cardOf(task.card) : "",
      task.verdict ? element("p", {}, element("button", { type: "button", click: () => this.replay(task.id) },
        t("Watch the last check step by step")), " ", task.verdict.passed ? t("✓ passed") : t("✗ failed"),
        ` ${task.verdict.check}`) : "",
      task.difference
        ? element("details", {}, element("summary", {}, t("What you have changed since the beginning")), difference(task.difference))
        : element("p", { class: "note" }, task.begun ? t("You have changed nothing yet.") : ""));
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
            click: () => this.refresh(one.id).then(() => this.place.scrollTo(0, 0)) }, `${one.passed ? t("✓ passed") : t("○ open")}  ${one.id} ${one.title}`)))));
    }
    return section;
  }

  /**
   * @param {string} id
   * @param {string} target
   * @param {string} command
   */
  act(id, target, command) {
    this.began.set(id, Date.now());
    this.run(`${target} ${id}`, command, (state) => {
      this.states.set(id, state);
      this.refresh();
    });
  }

  /** @param {Task} task */
  async open(task) {
    const answer = await load(`/exercises/${encodeURIComponent(task.id)}/open`, { method: "POST" });
    if (!answer.ok) alert(await answer.text());
  }
}
