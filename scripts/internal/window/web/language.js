// @ts-check
// The menu of languages. The server reads the cookie; the storage's event reaches the other tabs.

import { find } from "./dom.js";

const choice = /** @type {HTMLSelectElement} */ (find("#language"));
choice.addEventListener("change", () => {
  document.cookie = `language=${choice.value}; path=/; max-age=31536000; samesite=strict`;
  localStorage.setItem("language", choice.value);
  location.reload();
});
addEventListener("storage", (event) => event.key === "language" && location.reload());
