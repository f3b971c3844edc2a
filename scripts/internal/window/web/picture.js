// @ts-check
// Draws Mermaid pictures for the page that holds this frame.

const dark = matchMedia("(prefers-color-scheme: dark)").matches;
const mermaid = /** @type {any} */ (globalThis).mermaid;
mermaid.initialize({
  startOnLoad: false,
  securityLevel: "strict",
  theme: dark ? "dark" : "neutral",
  fontFamily: "system-ui, sans-serif",
});

let number = 0;
addEventListener("message", async (event) => {
  if (event.origin !== location.origin || typeof event.data?.text !== "string") return;
  const answer = { id: event.data.id, svg: "", error: "" };
  try {
    answer.svg = (await mermaid.render(`picture-${number++}`, event.data.text)).svg;
  } catch (error) {
    answer.error = String(error);
  }
  parent.postMessage(answer, location.origin);
});
parent.postMessage({ ready: true }, location.origin);
