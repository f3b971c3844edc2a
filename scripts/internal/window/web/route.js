// @ts-check
// The route of 90 minutes as a checklist: a page is done when its reader has seen its end, an exercise when it has passed.

import { load } from "./connection.js";
import { find, t } from "./dom.js";

const key = "workshop route";

/**
 * Returns the pages that were read.
 * @returns {Set<string>}
 */
function pagesRead() {
  try {
    return new Set(JSON.parse(localStorage.getItem(key) ?? "[]"));
  } catch { // another program of this address has written it
    return new Set();
  }
}

export class Route {
  /**
   * @param {HTMLElement} place
   * @param {string} page
   * @param {(id: string) => void} open opens an exercise
   */
  constructor(place, page, open) {
    this.place = place;
    /** @type {HTMLElement[]} */
    this.steps = [...place.querySelectorAll("li")];
    /** @type {Set<string>} the pages that were read */
    this.read = pagesRead();
    /** @type {Set<string>} */
    this.passed = new Set();
    for (const { dataset } of this.steps) if (dataset.page === page) this.follow(page, dataset.until ?? "");
    for (const button of place.querySelectorAll("button")) {
      button.addEventListener("click", () => {
        place.removeAttribute("open");
        open(button.dataset.exercise ?? "");
      });
    }
    this.draw();
    load("/exercises").then(async (answer) => answer.ok && this.take(await answer.json()));
  }

  /**
   * Marks a page as read when the reader sees a place.
   * @param {string} page
   * @param {string} until
   */
  follow(page, until) {
    const place = document.getElementById(until) ?? [...document.querySelectorAll("main .block")]
      .find((block) => block.textContent?.includes(until));
    if (!place) return;
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      this.read.add(page);
      localStorage.setItem(key, JSON.stringify([...this.read]));
      this.draw();
    });
    observer.observe(place);
  }

  /** @param {import("./exercises.js").Progress} progress */
  take({ exercises }) {
    this.passed = new Set(exercises.filter((one) => one.passed).map((one) => one.id));
    this.draw();
  }

  draw() {
    let done = 0;
    for (const step of this.steps) {
      const { page = "", exercise = "" } = step.dataset;
      const isDone = page ? this.read.has(page) : this.passed.has(exercise);
      if (isDone) done++;
      find(".is", step).textContent = isDone ? t("✓ done") : t("○ open");
    }
    find(".count", this.place).textContent = t("{1} of {2} done", done, this.steps.length);
  }
}
