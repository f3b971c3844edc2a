// @ts-check
// The page behind the address that `make open` prints. It keeps the second secret of the window for all tabs of this
// browser, and opens the workshop.

const { secret } = document.body.dataset;
if (secret) localStorage.setItem("secret", secret);
location.replace("/");
