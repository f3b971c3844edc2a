// @ts-check
// Replaces the text of each Mermaid block by its picture. A frame draws them; the page shows the result as an image.

/**
 * Draws all pictures of the page.
 * @param {(figure: Element) => void} drawn
 */
export function drawPictures(drawn = () => {}) {
  const figures = [...document.querySelectorAll("figure.picture")];
  if (figures.length === 0) return;
  const frame = document.createElement("iframe");
  frame.src = "/picture";
  frame.className = "drawing";
  frame.title = "Draws the pictures of this page";
  frame.ariaHidden = "true";
  frame.tabIndex = -1;
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
  const image = document.createElement("img");
  const text = figure.textContent ?? "";
  const size = /viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"/.exec(svg);
  if (size) {
    image.width = Math.ceil(Number(size[1]));
    image.height = Math.ceil(Number(size[2]));
    svg = svg.replace(/width="100%"/, `width="${image.width}" height="${image.height}"`);
  }
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
  image.alt = "A picture, as text below.";
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = "The picture as text";
  const pre = document.createElement("pre");
  pre.textContent = text;
  details.append(summary, pre);
  figure.replaceChildren(image, details);
}
