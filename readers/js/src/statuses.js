// ---- Written by `make schemas`, from readers/python/src/lookout_reader/statuses.py and words.py

/** What a row can come to, from worst to best; unmonitored is neither (see rollUp). */
export const EFFECTIVE_STATUSES = /* @__PURE__ */ Object.freeze([
  "unavailable",
  "degraded",
  "catching-up",
  "stale",
  "unknown",
  "current",
  "unmonitored",
]);
/** Those that are a reading of the service, from worst to best: what uptime counts. */
export const KNOWN_STATUSES = /* @__PURE__ */ Object.freeze(["unavailable", "degraded", "catching-up", "current"]);
/** The characters of the history, in the order of EFFECTIVE_STATUSES; a status that it does not have is a space. */
export const CHARACTERS = "udk ?c.";
export const CURRENT_CHARACTER = "c";
export const KNOWN_CHARACTERS = "udkc";
export const TROUBLE = /[udk]+/g;
// With u, a character is one however encoded.
export const UNKNOWN_CHARACTER = /[^ckdu?.]/gu;
