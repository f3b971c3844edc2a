// @ts-check
// Small helpers for the page's elements.

/**
 * Makes an element with attributes and children.
 * @param {string} name
 * @param {Record<string, string | boolean | EventListener>} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (typeof value === "boolean") made.toggleAttribute(key, value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** @type {WeakMap<Element, string>} */
const drawn = new WeakMap();

/**
 * Shows elements in a place. One that looks as before stays, so that a click, the focus or an open fold in it is not lost.
 * @param {Element} place
 * @param {...Element} elements
 */
export function draw(place, ...elements) {
  elements.forEach((next, at) => {
    const html = next.outerHTML;
    const shown = place.children[at];
    if (shown && drawn.get(shown) === html) return;
    drawn.set(next, html);
    if (shown) shown.replaceWith(next);
    else place.append(next);
  });
  while (place.children.length > elements.length) place.lastElementChild?.remove();
}

/**
 * Returns the element that a selector finds.
 * @param {string} selector
 * @param {ParentNode} [within]
 * @returns {HTMLElement}
 */
export function find(selector, within = document) {
  const found = within.querySelector(selector);
  if (!(found instanceof HTMLElement)) throw new Error(`there is no ${selector}`);
  return found;
}

/**
 * Returns a text in which the parts between backticks are code, and the lines of source code, which may have backticks.
 * @param {string} text
 * @returns {(Node | string)[]}
 */
export const prose = (text) => text.split(/(^(?:[ \t]|\/\/).*$|`[^`\n]+`)/m).map((part, at) =>
  at % 2 === 0 ? part : element("code", {}, /^`.*`$/.test(part) ? part.slice(1, -1) : part));

/** @type {Record<string, string>} The sentences of the window in the reader's language. */
const sentences = JSON.parse(document.getElementById("sentences")?.textContent ?? "{}");

/**
 * Returns a sentence in the reader's language, or in English. Values take the places {1}, {2} and so on.
 * @param {string} sentence
 * @param {...(string | number)} values
 */
export const t = (sentence, ...values) =>
  (sentences[sentence] || sentence).replace(/\{(\d)\}/g, (_, place) => String(values[place - 1]));

/**
 * Announces a sentence to a user of a screen reader.
 * @param {string} text
 */
export function announce(text) {
  find("#announce").textContent = text;
}

/**
 * Shows a difference: added and removed lines have a sign and a colour.
 * @param {string} text
 * @returns {HTMLElement}
 */
export function difference(text) {
  const pre = element("pre", { class: "difference", tabindex: "0" });
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const kind = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : line.startsWith("@") ? "place" : "";
    pre.append(element("span", { class: kind }, line + "\n"));
  }
  return pre;
}

const words = { running: t("… running"), passed: t("✓ passed"), failed: t("✗ failed"), refused: t("! not run"),
  moved: t("… running"), done: t("✓ done") };

/**
 * Announces the end of a command.
 * @param {State} state
 */
export function announceState(state) {
  if (state.is !== "running") announce(`${words[state.is]}: ${state.says ?? ""}`);
}

/**
 * Shows the result of a command.
 * @param {Element} place
 * @param {State} state
 * @typedef {{id: string, is: "running" | "passed" | "failed" | "refused" | "moved" | "done", says?: string, detail?: string}} State
 * @typedef {(id: string, command: string, onState: (state: State) => void) => void} Run
 */
export function showState(place, state) {
  place.className = `verdict ${state.is}`;
  place.replaceChildren(element("strong", {}, words[state.is]), " ", ...prose(state.says ?? ""));
  if (state.detail) {
    place.append(element("details", { open: true }, element("summary", {}, t("What was expected (−) and what came (+)")),
      difference(state.detail)));
  }
}
