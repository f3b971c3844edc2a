// @ts-check
// Two runs of a check, one below the other, from the act of a user on after which they differ first.

import { load } from "./connection.js";
import { element, showState, t } from "./dom.js";
import { drawFields, kindOf, speakerOf, timeOf } from "./ledger.js";

/** @typedef {import("./ledger.js").Entry & {new?: string[]}} Step */
/** @typedef {{check: string, passed?: boolean, act: string, run: Step[], solution: Step[], extra?: number, missing?: number, away?: string}} Runs */

export class Comparison {
  /**
   * @param {import("./dom.js").Run} run
   * @param {() => void} onClose
   */
  constructor(run, onClose) {
    this.run = run;
    this.onClose = onClose;
    this.source = "";
    this.verdict = element("div", { class: "verdict", role: "status" });
    this.body = element("div", { class: "runs" });
    this.place = element("section", { class: "loop-comparison", "aria-label": t("Two runs of the check"), hidden: true, tabindex: "-1",
      keydown: (event) => /** @type {KeyboardEvent} */ (event).key === "Escape" && this.close() },
      element("header", {}, element("h2", {}, t("Your run and the solution's run")),
        element("button", { type: "button", click: () => this.close() }, t("Close"))), this.verdict, this.body);
  }

  /**
   * Shows two runs of the last check of an exercise. When there is no run of the solution, a command records one.
   * @param {string} source
   */
  async open(source) {
    this.source = source;
    this.place.hidden = false;
    this.place.focus();
    this.verdict.replaceChildren();
    this.body.replaceChildren();
    if (await this.read(source) || source !== this.source) return;
    const command = `make watch EX=${source} SOLUTION=1`;
    this.run(`compare ${source}`, command, (state) => {
      if (source !== this.source) return;
      showState(this.verdict, state);
      this.verdict.append(" ", t("In the terminal “Commands”:"), " ", element("code", {}, command));
      if (state.is !== "running") this.read(source);
    });
  }

  close() {
    if (this.place.hidden) return;
    this.source = "";
    this.place.hidden = true;
    this.onClose();
  }

  /**
   * Reports whether there are two runs.
   * @param {string} source
   */
  async read(source) {
    const answer = await load(`/loop/comparison/${encodeURIComponent(source)}`);
    if (!answer.ok || source !== this.source) return false;
    /** @type {Runs} */
    const runs = await answer.json();
    if (runs.away) return false;
    const act = runs.act ? t("after: {1}", runs.act) : t("from the beginning");
    const differ = runs.extra || runs.missing;
    const verdict = !differ ? t("After each act of the user, both programs made the same changes.")
      : runs.passed ? t("Both programs passed the check: this difference is not a mistake.") : "";
    const [extra, missing] = runs.passed ? [t("Only your run has this."), t("Only the solution's run has this.")]
      : [t("The solution's run lacks this."), t("Your run lacks this.")].map((text) => `${t("The first difference:")} ${text}`);
    this.body.replaceChildren(drawRun(t("Your run"), runs.run, runs.extra, runs.passed, extra),
      drawRun(t("The solution's run"), runs.solution, runs.missing, runs.passed, missing));
    this.verdict.replaceChildren(...[`${runs.check}, ${act}`, verdict].filter(Boolean).map((text) => element("p", { class: "note" }, text)));
    this.body.querySelector(".mark")?.scrollIntoView({ block: "center" });
    return true;
  }
}

/**
 * @param {string} title
 * @param {Step[]} steps
 * @param {number | undefined} marked
 * @param {boolean | undefined} passed
 * @param {string} why
 */
function drawRun(title, steps, marked, passed, why) {
  const rows = steps.map((step) => {
    const row = element("li", { class: `arrow ${kindOf(step)}` }, element("span", { class: "offset" }, `+${timeOf(step) - timeOf(steps[0])} ms`),
      element("span", { class: "label" }, step.is === "event" ? "← " : step.is === "request" ? "→ " : "", step.text,
        element("span", { class: "by" }, step.is === "event" ? t("delivered") : speakerOf(step)), ...drawFields(step)));
    if (step.n === marked) {
      row.classList.add(passed ? "good" : "bad");
      row.append(element("strong", { class: "mark" }, step.new ? `${why} (${step.new.join(", ")})` : why));
    }
    return row;
  });
  return element("section", {}, element("h3", {}, title), element("ol", { class: "arrows" }, ...rows));
}
