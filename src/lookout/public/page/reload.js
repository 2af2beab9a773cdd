/** Loads the page again while only its ready-made rows are there: page.js, or something that it needs, did not come. */

const EVERY_MS = 30_000;

setInterval(() => {
  if (document.visibilityState === "visible" && document.querySelector(".ready-made") !== null) location.reload();
}, EVERY_MS);
