// @ts-check
// The place in a page is kept when the reader comes back, and after a reload. A picture that is drawn later moves the parts
// below it, so the place is a part of the page and not a number of pixels.

import { find } from "./dom.js";

const pane = find("main");
const parts = [...pane.children];

/** @param {Element} part */
const topOf = (part) => part.getBoundingClientRect().top - pane.getBoundingClientRect().top;

function keep() {
  const at = parts.findIndex((part) => topOf(part) + part.clientHeight > 0);
  if (at >= 0) history.replaceState({ at, top: topOf(parts[at]) }, "");
}

function restore() {
  const { at = -1, top = 0 } = history.state ?? {};
  if (parts[at]) pane.scrollBy({ top: topOf(parts[at]) - top, behavior: "instant" });
}

/** Shows the place where the reader was, when the page has its final width. */
export function keepPosition() {
  restore();
  keep();
  pane.addEventListener("scrollend", keep);
  addEventListener("popstate", restore);
}
