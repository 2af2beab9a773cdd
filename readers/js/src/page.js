/** All of the reader: beside what a wallet needs, what a status page shows, and the parts of a poller. */

export { countedChains, parseAbout } from "./about.js";
export { explainObstacles } from "./cause.js";
export { SCHEMA_VERSION } from "./document.js";
export { takeAnswer } from "./endpoints.js";
export { clockAheadMs, newFeed } from "./feed.js";
export { effectWord, headlineOf } from "./headline.js";
export { WINDOWS, bucketBeginsAt, bucketsOf, coverageOf, incidentsOf } from "./history.js";
export * from "./index.js";
export { parseHttpDate, parseInstant } from "./instants.js";
export { overviewOf } from "./overview.js";
export { rollUp } from "./rollup.js";
export { MAINNETS, SHARED_SERVICE, TEST_NETWORK } from "./services.js";
export { CHARACTERS, EFFECTIVE_STATUSES, KNOWN_STATUSES } from "./statuses.js";
