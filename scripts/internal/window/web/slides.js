// The slides, and the presenter's view of them. All tabs of the window show the same slide: its number is in the local
// storage, whose events reach the other tabs.

import "./language.js";
import "./styles.js";
import { announceState, element, find, showState, t } from "./dom.js";
import { drawPictures } from "./pictures.js";
import { PageTerminal } from "./terminal.js";

/**
 * @typedef {{name: string, rows: Row[]}} Sheet
 * @typedef {{from: number, minutes: number, what: string, types: string, then: string, late: string, slides: number[] | null}} Row
 * @typedef {{number: number, step: number, sheet: string, began: number}} Place
 */

const presenter = document.documentElement.classList.contains("presenter");
/** @type {HTMLElement[]} */
const slides = [...document.querySelectorAll(".slide")].filter((slide) => slide instanceof HTMLElement);
/** @type {Sheet[]} */
let sheets = [];
/** @type {Place} */
let place = { number: 1, step: 0, sheet: "", began: 0 };

/** The numbers of the slides in the run sheet, in its order. */
function deck() {
  const sheet = sheets.find((one) => one.name === place.sheet);
  if (!sheet) return slides.map((_, at) => at + 1);
  return sheet.rows.flatMap((row) => row.slides ?? []).filter((number) => slides[number - 1]);
}

// A picture grows: a line `%% step a b` of its text names what the next step adds. The arrows to a node appear with the
// node.
/** @type {Map<Element, {svg: string, steps: string[][]}>} */
const growing = new Map();
for (const figure of document.querySelectorAll("figure.picture")) {
  const steps = [...(figure.textContent ?? "").matchAll(/^\s*%% step (.*)$/gm)].map((line) => line[1].trim().split(/\s+/));
  if (steps.length) growing.set(figure, { svg: "", steps });
}

// Recorded output appears line by line. It is an excerpt of a page, on which a command has printed it.
for (const code of document.querySelectorAll(".slide .included code")) {
  const from = code.closest(".block")?.querySelector(".kind");
  if (!from?.textContent?.endsWith(".md")) continue;
  from.textContent = t("Recorded run, from {1}", from.textContent);
  const lines = (code.textContent ?? "").split("\n");
  code.replaceChildren(...lines.map((line) => element("span", { class: "line" }, line + "\n")));
}

/** @param {HTMLElement} slide */
function stepsOf(slide) {
  const pictures = [...slide.querySelectorAll("figure.picture")].map((figure) => growing.get(figure)?.steps.length ?? 0);
  return Math.max(0, slide.querySelectorAll(".line").length - 1, ...pictures);
}

/**
 * Shows a picture up to a step.
 * @param {Element} figure
 */
function grow(figure) {
  const picture = growing.get(figure);
  const image = figure.querySelector("img");
  if (!picture || !image) return;
  picture.svg ||= decodeURIComponent(image.src.slice(image.src.indexOf(",") + 1));
  const rules = picture.steps.slice(place.step).flat().map((name) => `[id*="flowchart-${name}-"], [id*="L_${name}_"],
    [id*="L_"][id*="_${name}_"], [data-id*="L_${name}_"], [data-id*="L_"][data-id*="_${name}_"] { visibility: hidden }`);
  const svg = picture.svg.replace(/<\/svg>\s*$/, `<style>${rules.join("\n")}</style></svg>`);
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
}

// A slide is as large as possible. The test in a browser refuses slides that do not fit at the smallest of these sizes.
const sizes = [38, 36, 34, 32, 30, 28];

/** @param {HTMLElement} slide */
function enlarge(slide) {
  for (const size of sizes) {
    slide.style.setProperty("--size", String(size));
    slide.style.setProperty("--code", String(Math.min(32, Math.floor(size * 24 / 28))));
    const cut = [slide, ...slide.querySelectorAll("pre")].some((one) => one.scrollHeight > one.clientHeight + 1 ||
      one.scrollWidth > one.clientWidth + 1);
    if (!cut) return;
  }
}

/** Shows the place. */
function show() {
  const numbers = deck();
  if (!numbers.includes(place.number)) {
    place.number = numbers.find((number) => number > place.number) ?? numbers.at(-1) ?? 1;
    place.step = 0;
  }
  const slide = slides[place.number - 1];
  slides.forEach((one) => (one.hidden = one !== slide));
  slide.querySelectorAll("figure.picture").forEach(grow);
  enlarge(slide);
  slide.querySelectorAll(".line").forEach((line, at) => line.classList.toggle("later", at > place.step));
  const steps = stepsOf(slide);
  find("#place").textContent = steps
    ? t("{1} / {2}, step {3} of {4}", place.number, slides.length, place.step, steps) : `${place.number} / ${slides.length}`;
  history.replaceState(null, "", `#${place.number}`);
  if (presenter) showDesk(slide, numbers);
}

/**
 * Goes to a place, in all tabs.
 * @param {Partial<Place>} to
 */
function go(to) {
  place = { ...place, ...to };
  show();
  localStorage.setItem("slides", JSON.stringify(place));
}

/** @param {number} by */
function move(by) {
  const numbers = deck();
  const step = place.step + by;
  if (step >= 0 && step <= stepsOf(slides[place.number - 1])) return go({ step });
  const number = numbers[numbers.indexOf(place.number) + by];
  if (number) go({ number, step: by > 0 ? 0 : stepsOf(slides[number - 1]) });
}

function recall() {
  try {
    place = { ...place, ...JSON.parse(localStorage.getItem("slides") ?? "{}") };
  } catch {
    localStorage.removeItem("slides");
  }
}

/** @param {number} minutes */
function time(minutes) {
  return `${Math.floor(minutes / 60)}:${String(Math.floor(minutes % 60)).padStart(2, "0")}`;
}

/**
 * Shows the parts of the presenter's view beside the slide.
 * @param {HTMLElement} slide
 * @param {number[]} numbers
 */
function showDesk(slide, numbers) {
  find("#notes").replaceChildren(...[...slide.querySelectorAll("blockquote")].map((note) => note.cloneNode(true)));
  const next = slides[(numbers[numbers.indexOf(place.number) + 1] ?? 0) - 1];
  find("#next").textContent = next?.querySelector("h2")?.textContent ?? t("none: this is the last one");
  const rows = sheets.find((one) => one.name === place.sheet)?.rows ?? [];
  const at = rows.findIndex((row) => row.slides?.includes(place.number));
  const row = rows[at];
  find("#row").textContent = row ? `${time(row.from)}–${time(row.from + row.minutes)} ${row.what}` : t("choose a run sheet below");
  find("#types").textContent = row?.types ?? "";
  const checked = rows.slice(Math.max(at, 0)).find((one) => one.then);
  find("#checkpoint").textContent = checked?.then ?? "";
  find("#late").textContent = checked?.late ?? "";
  find("#rows").replaceChildren(...rows.map((one) => element("li", {},
    element("button", { type: "button", class: "plain", ...(one === row ? { "aria-current": "true" } : {}),
      click: () => one.slides && go({ number: one.slides[0], step: 0 }) }, `${time(one.from)} ${one.what}`))));
  tick();
}

/** Shows the clock: how long the session has taken, and how late the row is. */
function tick() {
  find("#now").textContent = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (!place.began) return;
  const minutes = (Date.now() - place.began) / 60000;
  const rows = sheets.find((one) => one.name === place.sheet)?.rows ?? [];
  const row = rows.find((one) => one.slides?.includes(place.number));
  const left = row ? Math.round(row.from + row.minutes - minutes) : 0;
  const elapsed = find("#elapsed");
  elapsed.textContent = !row ? t("{1} since the beginning", time(minutes))
    : left < 0 ? t("{1} since the beginning, {2} min over", time(minutes), -left)
    : t("{1} since the beginning, {2} min left", time(minutes), left);
  elapsed.classList.toggle("overdue", left < 0);
}

/** @type {PageTerminal | undefined} */
let terminal;
/** @param {boolean} on */
function showTerminal(on) {
  document.documentElement.classList.toggle("with-terminal", on);
  find("#below").hidden = !on;
  find("#terminal").ariaPressed = String(on);
  if (on) terminal?.show();
}

/** @param {Element} block */
function runBlock(block) {
  if (!(block instanceof HTMLElement)) return;
  showTerminal(true);
  block.scrollIntoView({ block: "nearest" });
  terminal?.runBlock(Number(block.dataset.block));
}

/** @param {KeyboardEvent} event */
function press(event) {
  const away = event.target instanceof Element && event.target.closest(".xterm, select, summary");
  if (event.altKey && event.code === "KeyW") find("#stage").focus();
  else if (event.altKey && event.code === "KeyT") terminal?.focus();
  else if (away || event.altKey || event.ctrlKey || event.metaKey) return;
  else if (["ArrowRight", "ArrowDown", "PageDown"].includes(event.key)) move(1);
  else if (["ArrowLeft", "ArrowUp", "PageUp"].includes(event.key)) move(-1);
  else if (event.key === " " && !(event.target instanceof HTMLButtonElement)) move(event.shiftKey ? -1 : 1);
  else if (event.key === "Home") go({ number: deck()[0], step: 0 });
  else if (event.key === "End") go({ number: deck().at(-1), step: 0 });
  else if (event.key === "p" && !presenter) open("/slides/presenter", "presenter");
  else if (event.key === "t" && !presenter) showTerminal(find("#below").hidden);
  else if (event.key === "r" && !presenter) slides[place.number - 1].querySelectorAll("section[data-block]").forEach(runBlock);
  else return;
  event.preventDefault();
}

/** @param {string} hash */
function numberOf(hash) {
  const number = Number(hash.slice(1));
  return slides[number - 1] ? { number, step: 0 } : {};
}

for (const block of document.querySelectorAll("[data-block]")) {
  if (!(block instanceof HTMLElement)) continue;
  find(".run", block).addEventListener("click", () => runBlock(block));
  find(".run", block).hidden = presenter;
}
for (const copy of document.querySelectorAll(".block .copy")) {
  copy.addEventListener("click", () =>
    navigator.clipboard.writeText(copy.closest(".block")?.querySelector("code")?.textContent ?? ""));
}
if (presenter) {
  find("#begin").addEventListener("click", () => go({ began: Date.now() }));
  setInterval(tick, 1000);
} else {
  terminal = new PageTerminal(find("#panel-page"), "page", document.body.dataset.page ?? "", (state) => {
    const verdict = document.querySelector(`[data-block="${state.id}"] .verdict`);
    if (verdict) showState(verdict, state);
    announceState(state);
  });
  find("#presenter").addEventListener("click", () => open("/slides/presenter", "presenter"));
  find("#terminal").addEventListener("click", () => showTerminal(find("#below").hidden));
}
find("#back").addEventListener("click", () => move(-1));
find("#on").addEventListener("click", () => move(1));
const choice = /** @type {HTMLSelectElement} */ (find("#sheet"));
choice.addEventListener("change", () => go({ sheet: choice.value }));
addEventListener("keydown", press);
addEventListener("resize", () => enlarge(slides[place.number - 1]));
addEventListener("hashchange", () => go(numberOf(location.hash)));
addEventListener("storage", () => {
  recall();
  choice.value = place.sheet;
  show();
});

const answer = await fetch("/slides/sheets");
sheets = answer.ok ? ((await answer.json()) ?? []) : [];
choice.append(...sheets.map((one) => element("option", { value: one.name }, one.name)));
recall();
if (location.hash) place = { ...place, ...numberOf(location.hash) };
choice.value = place.sheet;
show();
drawPictures((figure) => grow(figure));
