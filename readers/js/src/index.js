/**
 * Reads Lookout's live report and history by the reader's rules (clauses C1 to C16 of Lookout's contract), so that
 * nothing stale or unknown ever looks healthy. This is what a wallet needs; page.js has more, for status pages.
 *
 * Instants are milliseconds since 1970, as Date.now() gives them. Parsing never throws: what cannot be read is a value
 * with `readable: false` and a `problem` in words.
 */

export { wrongClock } from "./clocks.js";
export { checkKey, findRow, rowsByCheck } from "./document.js";
export { createReader, poll } from "./endpoints.js";
export { canUse, obstaclesOf } from "./gate.js";
export { parseHistory } from "./history.js";
export { effectiveStatus, parseReport } from "./report.js";
export { NOTES } from "./sentences.js";
export { SERVICES } from "./services.js";
export { agreementText, notesFor, reasonText, statusText } from "./words.js";
