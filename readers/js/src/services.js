/** The contract's services, which every report has; messaging is one check for all chains. */
export const SERVICES = /* @__PURE__ */ Object.freeze([
  "messaging",
  "ppoi",
  "broadcasters",
  "indexer",
  "hosted-indexer",
]);
export const SHARED_SERVICE = "messaging";

/** The default allowlist of a roll-up; a client may bring its own (C11). */
export const MAINNETS = /* @__PURE__ */ Object.freeze([1, 42161, 137, 56]);
export const TEST_NETWORK = 11155111;
