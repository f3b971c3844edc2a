// @ts-check
// The window's page: its tabs, its blocks and its keys.

import "./language.js";
import "./styles.js";
import { load } from "./connection.js";
import { announce, announceState, element, find, showState, t } from "./dom.js";
import { readOnly } from "./editor.js";
import { Exercises } from "./exercises.js";
import { Loop } from "./loop.js";
import { drawPictures } from "./pictures.js";
import { keepPosition } from "./position.js";
import { Route } from "./route.js";
import { PageTerminal } from "./terminal.js";

const page = document.body.dataset.page ?? "";
const aside = find("aside");
/** @type {HTMLElement[]} */
const tabs = [...document.querySelectorAll('[role="tab"]')].filter((tab) => tab instanceof HTMLElement);
/** @type {Map<string, PageTerminal>} */
const terminals = new Map();
/** @type {Map<string, (state: import("./dom.js").State) => void>} */
const waiting = new Map();

// The terminal of the last command of the exercises.
let asking = "commands";

// Shows the terminal in which the last command may ask.
function answer() {
  showBeside(asking);
  terminals.get(asking)?.focus();
}

// Runs the command of a button of the exercises, and shows the terminal, unless the terminal is busy.
/** @type {import("./dom.js").Run} */
function run(id, command, onState) {
  asking = "commands";
  select(asking);
  terminals.get(asking)?.focus(); // the command may ask
  runBeside(id, command, (state) => {
    if (state.is === "refused") select("exercises");
    onState(state);
  });
}

// Runs a command in the terminal of the buttons, and keeps the shown tab.
/** @type {import("./dom.js").Run} */
function runBeside(id, command, onState) {
  waiting.set(id, onState);
  terminals.get("commands")?.runCommand(id, command);
}

// Runs the reader's program anew, in its terminal.
/** @type {import("./dom.js").Run} */
function runProgram(id, command, onState) {
  select("program");
  waiting.set(id, onState);
  terminals.get("program")?.runCommand(id, command, true);
}

for (const tab of tabs) {
  const name = tab.dataset.terminal;
  if (!name) continue;
  const panel = element("div", { class: "panel terminal", role: "tabpanel", id: `panel-${name}`, hidden: true });
  aside.append(panel);
  const isOfButtons = ["commands", "more", "program"].includes(name);
  terminals.set(name, new PageTerminal(panel, name, isOfButtons ? "" : page, (state) => {
    tab.hidden = false;
    if (state.is === "moved") {
      asking = "more";
      if (waiting.has(state.id) && !find("#panel-commands").hidden) answer();
      announce(state.says ?? "");
      return;
    }
    const place = isOfButtons ? null : document.querySelector(`[data-block="${state.id}"] .verdict`);
    if (place) showState(place, state);
    waiting.get(state.id)?.(state);
    announceState(state);
  }));
}
const loop = new Loop(find("#panel-loop"), runBeside, "loop");
const exercises = new Exercises(find("#panel-exercises"), page, { inTerminal: run, beside: runBeside, program: runProgram,
  back: () => select("exercises"), answer, replay: (id) => {
    loop.open(id);
    showLoop();
  }, progress: (progress) => route?.take(progress) });
const steps = document.getElementById("route");
const route = steps && new Route(steps, page, openExercise);

/** @param {string} id */
async function openExercise(id) {
  showBeside("exercises");
  await exercises.refresh(id);
  exercises.place.scrollTo(0, 0); // the story
}

/**
 * @param {HTMLElement} tab
 * @returns {string}
 */
function nameOf(tab) {
  return tab.dataset.terminal ?? tab.dataset.panel ?? "";
}

/**
 * Shows a tab.
 * @param {string} name
 */
function select(name) {
  for (const tab of tabs) {
    const chosen = nameOf(tab) === name;
    tab.ariaSelected = String(chosen);
    if (chosen) tab.hidden = false;
    tab.tabIndex = chosen ? 0 : -1;
    find(`#panel-${CSS.escape(nameOf(tab))}`).hidden = !chosen;
  }
  terminals.get(name)?.show();
  if (name === "exercises") exercises.refresh();
  if (name === "loop") loop.show();
  else loop.widen(false);
  sessionStorage.setItem("tab", name);
}

for (const tab of tabs) {
  tab.setAttribute("aria-controls", `panel-${nameOf(tab)}`);
  tab.id = `tab-${nameOf(tab)}`;
  find(`#panel-${CSS.escape(nameOf(tab))}`).setAttribute("aria-labelledby", tab.id);
  tab.addEventListener("click", () => {
    select(nameOf(tab));
    terminals.get(nameOf(tab))?.focus();
  });
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const shown = tabs.filter((other) => !other.hidden);
    const next = shown[(shown.indexOf(tab) + step + shown.length) % shown.length];
    select(nameOf(next));
    next.focus();
  });
}
const last = sessionStorage.getItem("tab");
select(last && tabs.some((tab) => nameOf(tab) === last && !tab.hidden) ? last : "page");

/** @type {HTMLElement[]} */
const blocks = [...document.querySelectorAll("section[data-block]")].filter((block) => block instanceof HTMLElement);
for (const block of blocks) {
  find(".run", block).addEventListener("click", () => runBlock(block));
}
for (const copy of document.querySelectorAll(".block .copy")) {
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(copy.closest(".block")?.querySelector("code")?.textContent ?? "");
    announce(t("Copied."));
  });
}

/** @param {HTMLElement} block */
function runBlock(block) {
  const name = block.dataset.terminal ?? "page";
  select(name);
  terminals.get(name)?.runBlock(Number(block.dataset.block));
}

/** @param {number} step */
function move(step) {
  const shown = blocks.filter((block) => !block.closest("details:not([open])"));
  const here = shown.findIndex((block) => block.contains(document.activeElement));
  const next = shown[here < 0 ? 0 : Math.min(Math.max(here + step, 0), shown.length - 1)];
  if (!next) return;
  find(".run", next).focus();
  next.scrollIntoView({ block: "center" });
}

function leave() {
  loop.widen(false);
  find("#page").focus();
}

/**
 * Shows a tab, also where there is only one pane.
 * @param {string} name
 */
function showBeside(name) {
  select(name);
  if (!other.hidden && !document.documentElement.classList.contains("beside")) other.click();
}

/** Goes into the shown terminal, or into that of the page. */
function showTerminal() {
  const name = tabs.find((tab) => tab.ariaSelected === "true")?.dataset.terminal ?? "page";
  showBeside(name);
  terminals.get(name)?.focus();
}

function showLoop() {
  showBeside("loop");
  loop.rows.focus();
}

async function showEditor() {
  showBeside("exercises");
  await exercises.refresh();
  exercises.editor.focus();
}

// A page's link to an exercise opens it beside the page, unless the reader wants another tab of the browser.
find("main").addEventListener("click", async (event) => {
  const link = event.target instanceof Element ? event.target.closest("a[data-exercise]") : null;
  const id = link instanceof HTMLElement ? link.dataset.exercise : "";
  if (!id || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  await openExercise(id);
});

// A file that a page names opens beside the page, unless the reader wants another tab of the browser.
find("main").addEventListener("click", async (event) => {
  const link = event.target instanceof Element ? event.target.closest('a[href^="/file/"]') : null;
  const path = link?.getAttribute("href")?.replace("/file/", "").replace(/#.*/, "") ?? "";
  if (!path || path.endsWith(".png") || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const answer = await load(`/source/${path}`);
  const view = readOnly(path, await answer.text());
  find("#panel-file").replaceChildren(element("h2", {}, path), view.dom);
  showBeside("file");
  view.focus();
});

find("main").addEventListener("click", () =>
  document.querySelectorAll(".chapters").forEach((list) => list.removeAttribute("open")));
addEventListener("keydown", (event) => {
  const list = event.key === "Escape" ? document.querySelector(".chapters[open]") : null;
  if (!list) return;
  list.removeAttribute("open");
  find("summary", list).focus();
});
const help = /** @type {HTMLDialogElement} */ (find("#help"));
find("#keys").addEventListener("click", () => help.showModal());

addEventListener("keydown", (event) => {
  if (!event.altKey || event.ctrlKey || event.metaKey) return;
  const number = /^Digit([1-9])$/.exec(event.code);
  const numbered = number && tabs.filter((tab) => !tab.hidden)[Number(number[1]) - 1];
  if (numbered) select(nameOf(numbered));
  else if (event.code === "KeyN") move(1);
  else if (event.code === "KeyP") move(-1);
  else if (event.code === "KeyR") blocks.filter((block) => block.contains(document.activeElement)).forEach(runBlock);
  else if (event.code === "KeyT") showTerminal();
  else if (event.code === "KeyE") showEditor();
  else if (event.code === "KeyW") leave();
  else if (event.code === "KeyL") showLoop();
  else return;
  event.preventDefault();
});

const projector = find("#projector");
const other = find("#switch");
/** @param {boolean} on */
function project(on) {
  document.documentElement.classList.toggle("projector", on);
  projector.ariaPressed = String(on);
  other.hidden = !on;
  localStorage.setItem("projector", on ? "yes" : "");
  terminals.forEach((terminal) => terminal.resize());
}
projector.addEventListener("click", () => project(projector.ariaPressed !== "true"));
other.addEventListener("click", () => {
  const beside = document.documentElement.classList.toggle("beside");
  other.textContent = beside ? t("Show the page") : t("Show the terminal");
});
project(projector.ariaPressed === "true" || localStorage.getItem("projector") === "yes");
keepPosition();
drawPictures();
