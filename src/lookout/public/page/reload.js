/** Loads the page again while page.js, or something that it needs, did not come, or after it has failed. */

const EVERY_MS = 30_000;

setInterval(() => {
  if (document.visibilityState === "visible" && document.querySelector(".ready-made, .failed") !== null)
    location.reload();
}, EVERY_MS);
