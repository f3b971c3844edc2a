// The slides, and the presenter's view of them. All tabs of the window show the same slide: its number is in the local
// storage, whose events reach the other tabs.

import "./language.js";
import "./styles.js";
import { announceState, element, find, showState, t } from "./dom.js";
import { Loop } from "./loop.js";
import { drawPictures } from "./pictures.js";
import { PageTerminal } from "./terminal.js";

/**
 * @typedef {{name: string, rows: Row[]}} Sheet
 * @typedef {{from: number, minutes: number, what: string, types: string, then: string, late: string, exercise: string,
 *   solution: number, slides: number[] | null}} Row
 * @typedef {{number: number, row: number}} Stop
 * @typedef {Stop & {step: number, sheet: string, began: number, added: Record<number, number>}} Place
 */

const presenter = document.documentElement.classList.contains("presenter");
/** @type {HTMLElement[]} */
const slides = [...document.querySelectorAll(".slide")].filter((slide) => slide instanceof HTMLElement);
/** @type {Sheet[]} */
let sheets = [];
/** @type {Place} */
let place = { number: 1, row: -1, step: 0, sheet: "", began: 0, added: {} };
const stage = find("#stage");
// A row without slides, such as a break, shows its name and the time that is left.
const pauseTitle = element("h2");
const pauseTime = element("p", { class: "countdown" });
const pause = element("section", { class: "slide", hidden: true }, pauseTitle, pauseTime);
stage.append(pause);

const rows = () => sheets.find((one) => one.name === place.sheet)?.rows ?? [];

/**
 * The stops of the run sheet, in its order: a slide of a row, or, with the number 0, a row without slides.
 * @returns {Stop[]}
 */
function deck() {
  if (!rows().length) return slides.map((_, at) => ({ number: at + 1, row: -1 }));
  return rows().flatMap((one, row) => one.slides?.map((number) => ({ number, row })) ?? (one.minutes ? [{ number: 0, row }] : []));
}

/** @param {Stop[]} stops */
const here = (stops) => stops.findIndex((one) => one.number === place.number && (one.number > 0 || one.row === place.row));

/** @param {Stop} stop */
const slideOf = (stop) => slides[stop.number - 1] ?? pause;

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
 * @param {number} step
 */
function grow(figure, step = place.step) {
  const picture = growing.get(figure);
  const image = figure.querySelector("img");
  if (!picture || !image) return;
  picture.svg ||= decodeURIComponent(image.src.slice(image.src.indexOf(",") + 1));
  const rules = picture.steps.slice(step).flat().map((name) => `[id*="flowchart-${name}-"], [id*="L_${name}_"],
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
  const stops = deck();
  if (here(stops) < 0) {
    const to = stops.find((one) => one.number > place.number) ?? stops.at(-1) ?? { number: 1, row: -1 };
    place = { ...place, ...to, step: 0 };
  }
  place.row = stops[here(stops)]?.row ?? -1;
  const slide = slideOf(place);
  pauseTitle.textContent = rows()[place.row]?.what ?? "";
  [...slides, pause].forEach((one) => (one.hidden = one !== slide));
  slide.querySelectorAll("figure.picture").forEach((figure) => grow(figure));
  enlarge(slide);
  slide.querySelectorAll(".line").forEach((line, at) => line.classList.toggle("later", at > place.step));
  const steps = stepsOf(slide);
  const number = place.number || "–";
  find("#place").textContent = steps
    ? t("{1} / {2}, step {3} of {4}", number, slides.length, place.step, steps) : `${number} / ${slides.length}`;
  if (place.number) history.replaceState(null, "", `#${place.number}`);
  if (presenter) showDesk(slide, stops);
  else find("#goto").textContent = gotoOf();
  tick();
}

/** The command with which the room leaves an exercise, from its solution slide on. */
function gotoOf() {
  const row = rows()[place.row];
  if (!row?.solution || place.number < row.solution) return "";
  return /make goto EX=[\w.]+/.exec(row.late || row.types)?.[0] ?? "";
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
  const stops = deck();
  const step = place.step + by;
  if (step >= 0 && step <= stepsOf(slideOf(place))) return go({ step });
  const stop = stops[here(stops) + by];
  if (stop) go({ ...stop, step: by > 0 ? 0 : stepsOf(slideOf(stop)) });
}

function recall() {
  try {
    place = { ...place, ...JSON.parse(localStorage.getItem("slides") ?? "{}") };
  } catch {
    localStorage.removeItem("slides");
  }
  if (new Date(place.began).toDateString() !== new Date().toDateString()) place = { ...place, began: 0, added: {} };
}

/** @param {number} minutes */
function time(minutes) {
  return `${Math.floor(minutes / 60)}:${String(Math.floor(minutes % 60)).padStart(2, "0")}`;
}

/** How many minutes were added to the rows before a row. @param {number} row */
const shift = (row) => Object.entries(place.added).reduce((sum, [at, minutes]) => sum + (Number(at) < row ? minutes : 0), 0);

/** The minutes from the beginning to the end of a row. @param {number} row */
const endOf = (row) => rows()[row].from + rows()[row].minutes + shift(row + 1);

/**
 * Shows the parts of the presenter's view beside the slide.
 * @param {HTMLElement} slide
 * @param {Stop[]} stops
 */
function showDesk(slide, stops) {
  find("#notes").replaceChildren(...[...slide.querySelectorAll("blockquote")].map((note) => note.cloneNode(true)));
  const next = stops[here(stops) + 1];
  const title = next?.number ? slideOf(next).querySelector("h2")?.textContent : rows()[next?.row]?.what;
  find("#next").textContent = title ?? t("none: this is the last one");
  preview(next);
  const row = rows()[place.row];
  find("#row").textContent = row ? `${time(row.from + shift(place.row))}–${time(endOf(place.row))} ${row.what}` : t("choose a run sheet below");
  find("#types").textContent = row?.types ?? "";
  const checked = rows().slice(Math.max(place.row, 0)).find((one) => one.then);
  find("#checkpoint").textContent = checked?.then ?? "";
  find("#late").textContent = checked?.late ?? "";
  /** @type {HTMLButtonElement} */ (find("#add")).disabled = !row || place.row in place.added;
  find("#rows").replaceChildren(...rows().map((one, at) => element("li", {},
    element("button", { type: "button", class: "plain", ...(at === place.row ? { "aria-current": "true" } : {}),
      click: () => go({ ...(deck().find((stop) => stop.row === at) ?? {}), step: 0 }) }, `${time(one.from + shift(at))} ${one.what}`))));
}

/** @param {Stop | undefined} next */
function preview(next) {
  find("#preview").replaceChildren();
  if (!next?.number) return;
  const copy = /** @type {HTMLElement} */ (slideOf(next).cloneNode(true));
  copy.hidden = false;
  find("#preview").append(copy);
  enlarge(copy);
}

/** Shows the clock: how long the session has taken, and the time that is left in the row. */
function tick() {
  const row = rows()[place.row];
  const minutes = (Date.now() - place.began) / 60000;
  const left = place.began && row ? endOf(place.row) - minutes : undefined;
  const seconds = Math.max(0, Math.round(60 * (left ?? 0)));
  const countdown = left === undefined ? "" : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  pauseTime.textContent = countdown;
  if (!presenter) {
    find("#countdown").textContent = row?.exercise ? countdown : "";
    return;
  }
  find("#now").textContent = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const elapsed = find("#elapsed");
  const whole = Math.round(left ?? 0);
  elapsed.textContent = !place.began ? "" : left === undefined ? t("{1} since the beginning", time(minutes))
    : whole < 0 ? t("{1} since the beginning, {2} min over", time(minutes), -whole)
    : t("{1} since the beginning, {2} min left", time(minutes), whole);
  elapsed.classList.toggle("overdue", whole < 0);
}

/**
 * Prints all slides of the run sheet, with all of their steps. The browser can save them as a PDF.
 */
async function printDeck() {
  stage.classList.add("printing");
  for (const { number } of deck()) {
    const slide = slides[number - 1];
    if (!slide) continue;
    slide.hidden = false;
    slide.classList.add("printed");
    slide.querySelectorAll("figure.picture").forEach((figure) => grow(figure, Infinity));
    enlarge(slide);
    slide.hidden = true;
  }
  await Promise.all([...stage.querySelectorAll("img")].map((image) => image.decode().catch(() => {})));
  print();
}
addEventListener("afterprint", () => {
  stage.classList.remove("printing");
  slides.forEach((slide) => slide.classList.remove("printed"));
  show();
});

/** @type {PageTerminal | undefined} */
let terminal;
/** @param {boolean} on */
function showTerminal(on) {
  document.documentElement.classList.toggle("with-terminal", on);
  find("#below").hidden = !on;
  find("#terminal").ariaPressed = String(on);
  if (on) terminal?.show();
}

/** @type {Loop | undefined} */
let loop;
/** @type {Map<string, (state: import("./dom.js").State) => void>} */
const waiting = new Map();
/** Shows the loop beside the slide, or hides it. */
function showLoop() {
  const panel = find("#panel-loop");
  panel.hidden = !document.documentElement.classList.toggle("with-loop");
  loop ??= new Loop(panel, (id, command, onState) => {
    showTerminal(true);
    waiting.set(id, onState);
    terminal?.runCommand(id, command);
  });
  if (!panel.hidden) loop.show();
  enlarge(slideOf(place));
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
  const away = event.target instanceof Element && event.target.closest(".xterm, .loop, select, summary");
  if (event.altKey && event.code === "KeyW") find("#stage").focus();
  else if (event.altKey && event.code === "KeyT") terminal?.focus();
  else if (away || event.altKey || event.ctrlKey || event.metaKey) return;
  else if (["ArrowRight", "ArrowDown", "PageDown"].includes(event.key)) move(1);
  else if (["ArrowLeft", "ArrowUp", "PageUp"].includes(event.key)) move(-1);
  else if (event.key === " " && !(event.target instanceof HTMLButtonElement)) move(event.shiftKey ? -1 : 1);
  else if (event.key === "Home") go({ ...deck()[0], step: 0 });
  else if (event.key === "End") go({ ...deck().at(-1), step: 0 });
  else if (event.key === "p" && !presenter) open("/slides/presenter", "presenter");
  else if (event.key === "t" && !presenter) showTerminal(find("#below").hidden);
  else if (event.key === "l" && !presenter) showLoop();
  else if (event.key === "r" && !presenter) slideOf(place).querySelectorAll("section[data-block]").forEach(runBlock);
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
  find("#begin").addEventListener("click", () => go({ began: Date.now(), added: {} }));
  find("#add").addEventListener("click", () => go({ added: { ...place.added, [place.row]: 3 } }));
} else {
  terminal = new PageTerminal(find("#panel-page"), "page", document.body.dataset.page ?? "", (state) => {
    const verdict = document.querySelector(`[data-block="${state.id}"] .verdict`);
    if (verdict) showState(verdict, state);
    waiting.get(state.id)?.(state);
    announceState(state);
  });
  find("#presenter").addEventListener("click", () => open("/slides/presenter", "presenter"));
  find("#terminal").addEventListener("click", () => showTerminal(find("#below").hidden));
  find("#pdf").addEventListener("click", printDeck);
}
find("#back").addEventListener("click", () => move(-1));
find("#on").addEventListener("click", () => move(1));
const choice = /** @type {HTMLSelectElement} */ (find("#sheet"));
choice.addEventListener("change", () => go({ sheet: choice.value, added: {} }));
addEventListener("keydown", press);
addEventListener("resize", () => enlarge(slideOf(place)));
addEventListener("hashchange", () => go(numberOf(location.hash)));
addEventListener("storage", () => {
  recall();
  choice.value = place.sheet;
  show();
});

const answer = await fetch("/slides/sheets");
sheets = answer.ok ? ((await answer.json()) ?? []) : [];
choice.append(...sheets.map((one) => element("option", { value: one.name }, t(one.name))));
recall();
if (location.hash) place = { ...place, ...numberOf(location.hash) };
choice.value = place.sheet;
show();
setInterval(tick, 1000);
drawPictures((figure) => {
  grow(figure);
  if (presenter) show(); // the next slide may have the picture, too
});
