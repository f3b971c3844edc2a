// @ts-check
// The connection to the server: a bar at the top says that the window is closed.

import { element, prose, t } from "./dom.js";

/** What a reader does when no server answers. */
export const closed = t("The window is closed: run `make open`, and use its new address.");

const bar = element("p", { class: "closed", role: "alert", hidden: true });
document.body.prepend(bar);

/**
 * Shows a sentence in the bar; without a sentence, hides the bar.
 * @param {string} [sentence]
 */
function show(sentence = "") {
  bar.replaceChildren(...prose(sentence));
  bar.hidden = !sentence;
}

/** The second secret of the window. Other ports of this machine get the cookie, but not this. */
const secret = () => localStorage.getItem("secret") ?? "";

/**
 * Asks the server. The answer when no server is there has the code 503.
 * @param {string} path
 * @param {RequestInit} [options]
 */
export async function load(path, options) {
  try {
    const answer = await fetch(path, { ...options, headers: { Authorization: `Bearer ${secret()}` } });
    if (answer.status === 403) show(t((await answer.clone().text()).trim()));
    else show();
    return answer;
  } catch {
    show(closed);
    return new Response(closed, { status: 503 });
  }
}

/**
 * Opens a WebSocket.
 * @param {string} path
 */
export function dial(path) {
  const socket = new WebSocket(`ws://${location.host}${path}`);
  socket.addEventListener("open", () => socket.send(secret()));
  return socket;
}

/** Asks whether the server still answers this web page. */
export function ask() {
  return load("/known");
}
