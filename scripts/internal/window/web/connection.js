// @ts-check
// The connection to the server: a bar at the top says that the window is closed.

import { element } from "./dom.js";

/** What a reader does when no server answers. */
export const closed = "The window is closed: run `make open`, and use its new address.";

const bar = element("p", { class: "closed", role: "alert", hidden: true });
document.body.prepend(bar);

/**
 * Shows a sentence in the bar; without a sentence, hides the bar.
 * @param {string} [sentence]
 */
function show(sentence = "") {
  bar.textContent = sentence;
  bar.hidden = !sentence;
}

/**
 * Asks the server. The answer when no server is there has the code 503.
 * @param {string} path
 * @param {RequestInit} [options]
 */
export async function load(path, options) {
  try {
    const answer = await fetch(path, options);
    if (answer.status === 403) show(await answer.clone().text());
    else show();
    return answer;
  } catch {
    show(closed);
    return new Response(closed, { status: 503 });
  }
}

/** Asks whether the server still answers this web page. */
export function ask() {
  return load("/web/icon.svg");
}
