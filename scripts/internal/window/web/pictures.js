// @ts-check
// Replaces the text of each Mermaid block by its picture. A frame draws the pictures; the page shows each result as an
// image.

import { element, t } from "./dom.js";

/**
 * Draws all pictures of the page.
 * @param {(figure: Element) => void} drawn
 */
export function drawPictures(drawn = () => {}) {
  const figures = [...document.querySelectorAll("figure.picture")];
  if (figures.length === 0) return;
  const frame = /** @type {HTMLIFrameElement} */ (element("iframe", { src: "/picture", class: "drawing",
    title: t("Draws the pictures of this page"), "aria-hidden": "true", tabindex: "-1" }));
  addEventListener("message", (event) => {
    if (event.origin !== location.origin || event.source !== frame.contentWindow) return;
    if (event.data.ready) {
      figures.forEach((figure, id) => frame.contentWindow?.postMessage({ id, text: figure.textContent }, location.origin));
    } else if (event.data.svg) {
      show(figures[event.data.id], event.data.svg);
      drawn(figures[event.data.id]);
    }
  });
  document.body.append(frame);
}

/**
 * @param {Element} figure
 * @param {string} svg
 */
function show(figure, svg) {
  svg = svg.replaceAll("<br>", "<br/>"); // Mermaid writes HTML, and an image is XML
  const image = /** @type {HTMLImageElement} */ (element("img", { alt: t("A picture, as text below.") }));
  const text = figure.textContent ?? "";
  const size = /viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"/.exec(svg);
  if (size) {
    image.width = Math.ceil(Number(size[1]));
    image.height = Math.ceil(Number(size[2]));
    svg = svg.replace(/width="100%"/, `width="${image.width}" height="${image.height}"`);
  }
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
  figure.replaceChildren(image, element("details", {}, element("summary", {}, t("The picture as text")), element("pre", {}, text)));
}
