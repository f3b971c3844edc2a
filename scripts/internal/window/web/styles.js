// @ts-check
// The terminal makes style elements while it runs. The content security policy accepts them when they have the nonce of
// the page, which only the page's own scripts can read.

const nonce = /** @type {HTMLScriptElement} */ (document.querySelector("script[nonce]")).nonce;
const create = Document.prototype.createElement;
/**
 * @this {Document}
 * @param {string} name
 * @param {ElementCreationOptions} [options]
 */
Document.prototype.createElement = function (name, options) {
  const made = create.call(this, name, options);
  if (made instanceof HTMLStyleElement) made.nonce = nonce;
  return made;
};
