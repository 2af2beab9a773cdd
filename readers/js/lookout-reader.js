/**
 * Reads Lookout's live report and history by the reader's rules (clauses C1 to C13 of Lookout's contract), so that
 * nothing stale or unknown ever looks healthy.
 *
 * Instants are milliseconds since 1970, as Date.now() gives them. Parsing never throws: what cannot be read is a value
 * with `readable: false` and a `problem` in words.
 */

export const SCHEMA_VERSION = 1;

/** The contract's services, which every report has; messaging is one check for all chains. */
export const SERVICES = Object.freeze(["messaging", "ppoi", "broadcasters", "indexer", "hosted-indexer"]);
export const SHARED_SERVICE = "messaging";

/** The default allowlist of a roll-up; a client may bring its own (C11). */
export const MAINNETS = Object.freeze([1, 42161, 137, 56]);
export const TEST_NETWORK = 11155111;

/** The windows of uptime and coverage, in seconds. */
export const WINDOWS = Object.freeze({ "24h": 86_400, "7d": 604_800, "14d": 1_209_600 });

// ---- Written by `make schemas`, from readers/python/src/lookout_reader/statuses.py and words.py
const STATUSES = [
  { word: "unavailable", character: "u", text: "It did not answer usefully several times in a row." },
  { word: "degraded", character: "d", text: "It answers, but with serious trouble. Do not rely on it where time matters." },
  { word: "catching-up", character: "k", text: "It answers, but is behind. Expect old data; this is not an outage." },
  { word: "stale", character: null, text: "There is no recent reading: what was seen is too old to tell." },
  { word: "unknown", character: "?", text: "There is too little to judge by: it may or may not work." },
  { word: "current", character: "c", text: "It answers, and what was checked is as it should be." },
  { word: "unmonitored", character: ".", text: "Nobody watches this here. That is not a failure." },
];
const KNOWN_CHARACTERS = "udkc";
const TROUBLE = /[udk]+/g;
const UNKNOWN_CHARACTER = /[^ckdu?.]/gu; // with u, a character is one however encoded

const REASON_TEXTS = Object.freeze({
  "synced": "It has come as far as it should.",
  "behind": "It trails what it should have reached.",
  "responding": "Everything that was asked has answered.",
  "partial-coverage": "Only some of those asked have answered.",
  "unreachable": "It could not be reached, or its answer could not be understood.",
  "not-configured": "The operator has set up nothing to watch here.",
  "no-observation": "Nothing was seen yet, or it holds nothing for this chain.",
  "incompatible-reference": "It answered, but there was nothing safe to compare its answer with.",
});

/** What to show people beside the data (C12); `services` are those it is about, null for all. */
export const NOTES = Object.freeze(
  [
    ["one-view", null, "This is what one monitor sees from one place. It is not an official status."],
    ["not-a-signal", null, "It is not a signal that it is safe to transact."],
    ["history", null, "The history does not tell what is up now."],
    ["partial", ["broadcasters"], "Degraded broadcasters are a partial reading: some did not answer, others may work."],
    ["peers", ["messaging"], "Peers are connections. They do not prove that a message is delivered."],
    ["wallet-sync", ["indexer", "hosted-indexer"], "Whether an indexer is up to date does not tell whether your wallet is synced."],
    ["proofs", ["ppoi"], "An up-to-date node tells nothing about your wallet's proofs, compliance or balance."],
    ["others", ["ppoi", "hosted-indexer"], "This is run by other people, not by the operator of the monitor."],
  ].map(([id, services, text]) => Object.freeze({ id, services: services && Object.freeze(services), text })),
);
// ---- Until here

/** What a row can come to, from worst to best; unmonitored is neither (see rollUp). */
export const EFFECTIVE_STATUSES = Object.freeze(STATUSES.map(({ word }) => word));
const CHARACTERS = Object.fromEntries(STATUSES.map(({ word, character }) => [word, character]));
const NO_DATA = "-";
const BUCKET_STATUSES = { ...Object.fromEntries(STATUSES.map(({ word, character }) => [character, word])), [NO_DATA]: null };
/** Those that are a reading of the service, from worst to best: what uptime counts. */
export const KNOWN_STATUSES = Object.freeze(EFFECTIVE_STATUSES.filter((status) => KNOWN_CHARACTERS.includes(CHARACTERS[status])));

const FUTURE_MS = 30_000;
const OLD_MS = 300_000;
const DEEPEST = 100; // objects and lists in one another
const MOST_ENTRIES = 2_000; // of a list of a description; what comes after is not read

// ---- Instants

const INSTANT = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?Z$/;
const HTTP_DATE = /^[A-Z][a-z]{2}, (\d{2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT$/;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Milliseconds since 1970 of `YYYY-MM-DDTHH:mm:ss.sssZ`, with or without the fraction; null for anything else. */
export function parseInstant(value) {
  const parts = typeof value === "string" ? INSTANT.exec(value) : null;
  if (parts === null) return null;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number);
  const ms = Number((parts[7] ?? "").slice(0, 3).padEnd(3, "0"));
  return utc(year, month - 1, day, hour, minute, second, ms);
}

/** Milliseconds since 1970 of a `Date` header; null for anything else. */
export function parseHttpDate(value) {
  const parts = typeof value === "string" ? HTTP_DATE.exec(value) : null;
  if (parts === null) return null;
  return utc(Number(parts[3]), MONTHS.indexOf(parts[2]), ...[parts[1], ...parts.slice(4)].map(Number), 0);
}

function utc(year, month, day, hour, minute, second, ms) {
  if (year < 1970 || month < 0) return null;
  const at = Date.UTC(year, month, day, hour, minute, second, ms);
  // Date carries over what does not exist, such as the 31st of June: then the parts differ.
  const found = new Date(at);
  const same = found.getUTCMonth() === month && found.getUTCDate() === day && found.getUTCHours() === hour;
  return same && found.getUTCMinutes() === minute && found.getUTCSeconds() === second ? at : null;
}

// ---- Documents

/** The live report in `text` (a string or UTF-8 bytes), or why it cannot be read. Never throws (C6). */
export function parseReport(text) {
  const raw = readDocument(text);
  if (raw.problem !== null) return unreadable(raw.problem);
  if (!Array.isArray(raw.fields.checks)) return unreadable("its checks are not a list");
  const rows = withoutTwins(raw.fields.checks.map(readRow));
  return Object.freeze({
    readable: true,
    generatedAt: parseInstant(raw.fields.generatedAt),
    rows: Object.freeze(rows),
    unreadableRows: rows.filter((row) => !row.readable).length,
  });
}

/** The history in `text` (a string or UTF-8 bytes), or why it cannot be read. Never throws (C6). */
export function parseHistory(text) {
  const raw = readDocument(text);
  if (raw.problem !== null) return unreadable(raw.problem);
  const bucketSeconds = whole(raw.fields.bucketSeconds, 1);
  const from = parseInstant(raw.fields.from);
  const to = parseInstant(raw.fields.to);
  const ended = bucketSeconds === null || from === null || to === null ? -1 : (to - from) / (bucketSeconds * 1000);
  if (!Number.isInteger(ended) || ended < 0) return unreadable("its from, to and bucketSeconds do not fit together");
  if (!Array.isArray(raw.fields.rows)) return unreadable("its rows are not a list");
  const length = ended + 1;
  const rows = withoutTwins(raw.fields.rows.map((row) => readHistoryRow(row, length)));
  return Object.freeze({
    readable: true,
    generatedAt: parseInstant(raw.fields.generatedAt),
    bucketSeconds,
    retentionDays: whole(raw.fields.retentionDays, 1),
    from,
    to,
    length,
    rows: Object.freeze(rows),
    unreadableRows: rows.filter((row) => !row.readable).length,
  });
}

function unreadable(problem) {
  return Object.freeze({ readable: false, problem });
}

function readDocument(text) {
  const read = readJson(text);
  if (read.problem === null && read.fields.schemaVersion !== SCHEMA_VERSION) return { problem: "its schemaVersion is not 1", fields: null };
  return read;
}

function readJson(text) {
  let fields;
  try {
    fields = JSON.parse(typeof text === "string" ? text : decode(text));
  } catch {
    return { problem: "it is not JSON", fields: null };
  }
  if (isTooDeep(fields)) return { problem: "it is not JSON", fields: null };
  return isObject(fields) ? { problem: null, fields } : { problem: "it is not a JSON object", fields: null };
}

/** A bound of its own, since every parser's is another. */
function isTooDeep(found) {
  let level = [found];
  for (let depth = 0; depth < DEEPEST; depth++) {
    const inner = [];
    for (const outer of level) {
      for (const value of Object.values(outer ?? {})) if (typeof value === "object" && value !== null) inner.push(value);
    }
    if (inner.length === 0) return false;
    level = inner;
  }
  return true;
}

function decode(bytes) {
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function whole(value, least) {
  return Number.isSafeInteger(value) && value >= least ? value + 0 : null; // + 0: no -0
}

// ---- Rows

/** Who a row is about, and what keeps that from being read. */
function readIdentity(raw) {
  if (!isObject(raw)) return { service: null, chainId: undefined, problem: "the row is not an object" };
  const service = typeof raw.service === "string" && raw.service !== "" ? raw.service : null;
  const chainId = raw.chainId === null ? null : (whole(raw.chainId, 1) ?? undefined);
  if (service === null) return { service, chainId, problem: "its service is not a name" };
  if (chainId !== undefined) return { service, chainId, problem: null };
  return { service, chainId, problem: "its chainId is neither a positive whole number nor null" };
}

function unreadableRow({ service, chainId }, problem) {
  return Object.freeze({ readable: false, service, chainId, problem });
}

function readRow(raw) {
  const identity = readIdentity(raw);
  if (identity.problem !== null) return unreadableRow(identity, identity.problem);
  return Object.freeze({
    readable: true,
    service: identity.service,
    chainId: identity.chainId,
    publishedStatus: typeof raw.status === "string" ? raw.status : null,
    reason: typeof raw.reason === "string" ? raw.reason : null,
    observedAt: parseInstant(raw.observedAt),
    lastSuccessAt: parseInstant(raw.lastSuccessAt),
    expiresAt: parseInstant(raw.expiresAt),
    metrics: readMetrics(raw.metrics),
  });
}

/** The metrics that are known; one that is missing is left out and never 0 (C5). */
function readMetrics(raw) {
  const metrics = {};
  for (const key of ["position", "head", "responding", "monitored", "peers"]) {
    const value = isObject(raw) ? whole(raw[key], 0) : null;
    if (value !== null) metrics[key] = value;
  }
  return Object.freeze(metrics);
}

function readHistoryRow(raw, length) {
  const identity = readIdentity(raw);
  if (identity.problem !== null) return unreadableRow(identity, identity.problem);
  if (!isObject(raw.uptime)) return unreadableRow(identity, "its uptime is missing");
  if (typeof raw.buckets !== "string") return unreadableRow(identity, "its buckets are not text");
  const buckets = raw.buckets.replace(UNKNOWN_CHARACTER, NO_DATA); // C5
  if (buckets.length !== length) return unreadableRow(identity, "its buckets have the wrong length");
  const uptime = {};
  for (const window of Object.keys(WINDOWS)) uptime[window] = share(raw.uptime[window]);
  return Object.freeze({
    readable: true,
    service: identity.service,
    chainId: identity.chainId,
    buckets,
    uptime: Object.freeze(uptime),
  });
}

function share(value) {
  return typeof value === "number" && value >= 0 && value <= 1 ? value + 0 : null;
}

/** Of two rows of the same check nobody knows which one is right: neither is read. */
function withoutTwins(rows) {
  const seen = new Map();
  for (const row of rows) if (isIdentified(row)) seen.set(checkKey(row), (seen.get(checkKey(row)) ?? 0) + 1);
  if (seen.size === rows.length) return rows;
  return rows.map((row) =>
    isIdentified(row) && seen.get(checkKey(row)) > 1
      ? unreadableRow(row, "another row has the same service and chainId")
      : row,
  );
}

function isIdentified(row) {
  return row.service !== null && row.chainId !== undefined;
}

/** The key of a check in the map of rowsByCheck. */
export function checkKey({ service, chainId }) {
  return JSON.stringify([service, chainId]);
}

/** The rows of a report or history by check (C8); rows whose check cannot be read are not in it. */
export function rowsByCheck(document) {
  return new Map(document.rows.filter(isIdentified).map((row) => [checkKey(row), row]));
}

/** The row of a check in a report or history, readable or not; null if there is none (C8). */
export function findRow(document, service, chainId) {
  if (!document?.readable) return null;
  return document.rows.find((row) => row.service === service && row.chainId === chainId) ?? null;
}

/**
 * What a row of the live report is worth at `now` (C1 to C4). A row that is unreadable or not there (null) is unknown,
 * and so is every row for a reader without a clock. `receivedAgoMs` is how long ago its report first arrived, by a clock
 * that is never set: a row is at least that old, whatever `now` says.
 */
export function effectiveStatus(row, now, receivedAgoMs = 0) {
  if (!row?.readable || !Number.isFinite(now)) return "unknown";
  const { publishedStatus, observedAt, expiresAt } = row;
  if (publishedStatus === "unmonitored") return "unmonitored"; // C1
  if (!KNOWN_STATUSES.includes(publishedStatus)) return "unknown"; // C1
  if (observedAt === null || expiresAt === null) return "unknown"; // C2
  if (observedAt - now > FUTURE_MS || expiresAt <= observedAt) return "unknown"; // C2
  if (expiresAt <= now || now - observedAt >= OLD_MS) return "stale"; // C3
  if (!(receivedAgoMs < Math.min(expiresAt - observedAt, OLD_MS))) return "stale"; // C3, though the clock be slow
  return publishedStatus; // C4
}

// ---- History

/** When the bucket at `index` began. */
export function bucketBeginsAt(history, index) {
  return history.from + index * history.bucketSeconds * 1000;
}

/** The buckets of a row with their instants; the last one is still filling, and is to be shown as provisional (C13). */
export function bucketsOf(history, row) {
  return Array.from(charactersOf(row), (character, index) => ({
    beginsAt: bucketBeginsAt(history, index),
    endsAt: bucketBeginsAt(history, index + 1),
    character,
    status: BUCKET_STATUSES[character],
    filling: index === history.length - 1,
  }));
}

/**
 * How much of a window was known (the service was read, well or in trouble), which is what its uptime was counted from:
 * of all buckets that the window has, and of those that the history already had.
 */
export function coverageOf(history, row, window) {
  const characters = charactersOf(row);
  const buckets = Math.floor(WINDOWS[window] / history.bucketSeconds) + 1; // H12
  const existing = Math.min(buckets, history.length);
  let known = 0;
  for (let index = history.length - existing; index < characters.length; index++) {
    if (KNOWN_CHARACTERS.includes(characters[index])) known++;
  }
  return { window, known, existing, buckets, share: known / buckets, shareOfExisting: known / existing };
}

/**
 * The runs of buckets that were catching up, degraded or unavailable, oldest first. `beginSeen` and `endSeen` say
 * whether the bucket before or after was current: otherwise it may have begun earlier, or gone on unseen. `endsAt` is
 * null while it lasts.
 */
export function incidentsOf(history, row) {
  const characters = charactersOf(row);
  const incidents = [];
  for (const run of characters.matchAll(TROUBLE)) {
    const end = run.index + run[0].length;
    incidents.push({
      beginsAt: bucketBeginsAt(history, run.index),
      endsAt: end === characters.length ? null : bucketBeginsAt(history, end),
      worst: KNOWN_STATUSES.find((status) => run[0].includes(CHARACTERS[status])),
      buckets: run[0].length,
      beginSeen: characters[run.index - 1] === CHARACTERS.current,
      endSeen: characters[end] === CHARACTERS.current,
    });
  }
  return incidents;
}

function charactersOf(row) {
  return row?.readable ? row.buckets : "";
}

// ---- Roll-up

/**
 * One status for each service and for all, over the chains of the client's allowlist (C11). These are the `services` that
 * you name; or the contract's five and whatever else the report has, of no chain or on these chains. A row that is
 * missing or unreadable counts as unknown, and with anything but current rows nothing is healthy. Unmonitored rows are
 * neither failure nor health. A service that has a row of no chain is expected on no chain, but what it has on these
 * chains counts. Sepolia is left out, even if listed, unless `includeTestNetwork`. `receivedAgoMs` is as in
 * effectiveStatus.
 */
export function rollUp(report, { now, receivedAgoMs = 0, chains = MAINNETS, services, includeTestNetwork = false }) {
  const rows = report?.readable ? rowsByCheck(report) : new Map();
  const allowed = [...new Set(chains)].filter((chainId) => includeTestNetwork || chainId !== TEST_NETWORK);
  const isEvery = services === undefined;
  const expected = isEvery ? SERVICES : [...services];
  const found = isEvery ? [...rows.values()].filter(({ chainId }) => chainId === null || allowed.includes(chainId)) : [];
  const summaries = [...new Set([...expected, ...found.map(({ service }) => service)])].map((service) => {
    const checks = scopeOf(service, allowed, rows, expected.includes(service)).map((chainId) =>
      summarizeCheck({ service, chainId }, rows.get(checkKey({ service, chainId })) ?? null, now, receivedAgoMs),
    );
    const status = worstOf(checks.map((check) => check.effective));
    return { service, status, healthy: status === "current", checks };
  });
  const statuses = summaries.map((summary) => summary.status);
  if (isEvery && report?.readable && report.rows.some(isAnyones)) statuses.push("unknown");
  const status = worstOf(statuses);
  const counts = Object.fromEntries(EFFECTIVE_STATUSES.map((name) => [name, 0]));
  for (const { checks } of summaries) for (const { effective } of checks) counts[effective]++;
  return { status, healthy: status === "current", chains: allowed, services: summaries, counts };
}

/** Where the service counts: on every chain if it is expected there, otherwise where it has rows. */
function scopeOf(service, allowed, rows, isExpected) {
  const hasRow = (chainId) => rows.has(checkKey({ service, chainId }));
  if (isExpected && service !== SHARED_SERVICE && !hasRow(null)) return allowed;
  return [null, ...allowed].filter((chainId) => hasRow(chainId) || (service === SHARED_SERVICE && chainId === null));
}

/** Nobody knows which check it is of. One of the contract's five would be missing, and count as that. */
function isAnyones(row) {
  return !isIdentified(row) && !SERVICES.includes(row.service);
}

function summarizeCheck({ service, chainId }, row, now, receivedAgoMs) {
  const presence = row === null ? "missing" : row.readable ? "readable" : "unreadable";
  return { service, chainId, effective: effectiveStatus(row, now, receivedAgoMs), presence };
}

function worstOf(statuses) {
  return EFFECTIVE_STATUSES.find((status) => statuses.includes(status)) ?? "unknown";
}

// ---- Headline

/**
 * The rows of these chains, and those of no chain, in one sentence that says no more than they do (C11). Chains among the
 * `testNetworks` are left out. Nothing of a report that is `inDoubt` is current now.
 */
export function headlineOf(report, { now, receivedAgoMs = 0, chains = MAINNETS, testNetworks = [TEST_NETWORK], inDoubt = false }) {
  const counted = [...new Set(chains)].filter((chainId) => !testNetworks.includes(chainId));
  const scope = new Set([null, ...counted]);
  const rows = rowsByCheck(report);
  const expected = SERVICES.flatMap((service) => (service === SHARED_SERVICE ? [null] : counted).map((chainId) => ({ service, chainId })));
  const asked = new Map([...expected, ...rows.values()].filter(({ chainId }) => scope.has(chainId)).map((check) => [checkKey(check), check]));
  const checks = Array.from(asked, ([key, check]) => summarizeCheck(check, rows.get(key) ?? null, now, receivedAgoMs));
  const leftOut = Array.from(rows.values(), ({ chainId }) => chainId).filter((chainId) => !scope.has(chainId));
  const counts = EFFECTIVE_STATUSES.map((status) => [status, checks.filter(({ effective }) => effective === status).length]);
  const [[worst, number], ...others] = counts.filter(([, count]) => count > 0);
  const status = worst === "current" && inDoubt ? "unknown" : worst;
  const unmonitored = checks.filter(({ effective }) => effective === "unmonitored").length;
  return {
    text: headlineText(worst, number, checks.length - unmonitored, unmonitored > 0, whereText(leftOut, testNetworks), inDoubt),
    status,
    healthy: status === "current",
    checks: checks.filter(({ effective }) => effective === worst),
    others: Object.fromEntries(others),
    services: worstByService(checks),
    chains: counted,
    missing: checks.filter(({ presence }) => presence === "missing"),
  };
}

function worstByService(checks) {
  const found = new Map(checks.map(({ service }) => [service, []]));
  for (const { service, effective } of checks) found.get(service).push(effective);
  return Object.fromEntries(Array.from(found, ([service, statuses]) => [service, worstOf(statuses)]));
}

function whereText(leftOut, testNetworks) {
  if (leftOut.length === 0) return "";
  return leftOut.every((chainId) => testNetworks.includes(chainId)) ? " outside test networks" : " on these chains";
}

function headlineText(worst, number, watched, isPartOfAll, where, inDoubt) {
  if (worst === "unmonitored") return `Nothing is watched${where}`;
  if (worst === "current" && inDoubt) return `Everything${where} was current when last seen`;
  const noun = isPartOfAll ? "watched check" : "check";
  const part = number === watched ? `All ${watched}` : `${number} of ${watched}`;
  const subject = watched === 1 ? `The only ${noun}` : `${part} ${noun}s`;
  return `${subject}${where} ${number === 1 ? "is" : "are"} ${worst.replace(/-/g, " ")}`;
}

// ---- About a deployment

/**
 * The public description of a deployment (`/about.json`) in `text`, or why it cannot be read. Never throws; what it has
 * besides is ignored (C5). `testNetworks` are the chains that no summary counts (C11).
 */
export function parseAbout(text) {
  const { problem, fields } = readJson(text);
  if (problem !== null) return unreadable(problem);
  const byId = new Map(); // of two with one id the later counts
  for (const chain of objectsOf(fields.chains)) {
    const id = whole(chain.id, 1);
    if (id !== null) byId.set(id, Object.freeze({ id, name: textOf(chain.name) || `chain ${id}`, testNetwork: chain.testNetwork === true }));
  }
  const chains = [...byId.values()];
  const services = objectsOf(fields.services)
    .filter(({ name }) => textOf(name) !== "")
    .map(({ name, title, runByOthers }) => Object.freeze({ name, title: textOf(title) || name, runByOthers: runByOthers === true }));
  const testNetworks = new Set([TEST_NETWORK, ...chains.filter((chain) => chain.testNetwork).map(({ id }) => id)]);
  return Object.freeze({
    readable: true,
    chains: Object.freeze(chains),
    services: Object.freeze(services),
    title: textOf(fields.title),
    operator: textOf(fields.operator),
    contact: textOf(fields.contact),
    notes: Object.freeze(objectsOf(fields.notes).map(readNote).filter((note) => note !== null)),
    testNetworks: Object.freeze([...testNetworks]),
  });
}

/** A note of the operator, null also if it cannot be said what it is about, or when it is over. */
function readNote(raw) {
  const [from, until] = [parseInstant(raw.from), parseInstant(raw.until)];
  const chains = listOf(raw.chains).map((chainId) => whole(chainId, 1));
  const services = listOf(raw.services);
  const isScopeWhole = !chains.includes(null) && services.every((service) => typeof service === "string");
  if (textOf(raw.text) === "" || from === null || (until === null && (raw.until ?? null) !== null) || !isScopeWhole) return null;
  const scope = { services: Object.freeze(services), chains: Object.freeze(chains) };
  return Object.freeze({ id: textOf(raw.id), text: raw.text, ...scope, from, until, addedAt: parseInstant(raw.addedAt) });
}

/**
 * The chains that a summary of documents with rows of these chains counts: all of the description but its test networks.
 * One that has rows and is not in the description is counted too.
 */
export function countedChains(about, chainIds) {
  const known = new Set([null, ...about.chains.map(({ id }) => id)]);
  const others = [...new Set(chainIds)].filter((chainId) => !known.has(chainId)).sort((a, b) => a - b);
  return [...about.chains.map(({ id }) => id), ...others].filter((chainId) => !about.testNetworks.includes(chainId));
}

function textOf(value) {
  return typeof value === "string" ? value : "";
}

function listOf(value) {
  return Array.isArray(value) ? value.slice(0, MOST_ENTRIES) : [];
}

function objectsOf(value) {
  return listOf(value).filter(isObject);
}

// ---- Words

/** An effective status in a sentence. */
export function statusText(effective) {
  return (STATUSES.find(({ word }) => word === effective) ?? STATUSES.find(({ word }) => word === "unknown")).text;
}

/** A reason in a sentence; null for one that this reader does not know: then the status alone counts (C5). */
export function reasonText(reason) {
  return Object.hasOwn(REASON_TEXTS, reason) ? REASON_TEXTS[reason] : null;
}

/**
 * The notes to show beside a service's row, the general ones first (C12). Whether others run it is the operator's to say
 * (parseAbout); without that, it is as at the launch.
 */
export function notesFor(service, runByOthers = null) {
  return NOTES.filter(({ id, services }) => {
    if (services === null) return true;
    return id === "others" && runByOthers !== null ? runByOthers : services.includes(service);
  });
}

// ---- Polling: what follows from an answer

const JITTER = 0.1;
const BACKOFF_JITTER = 0.5;
const BACKOFF_MOST_S = 200; // before chance
const WAIT_MOST_S = 300;
const RETRY_AFTER_MOST_S = 600;
const EVERY_MOST_S = 86_400; // what timers can count
const PRINTABLE = /^[ -~]+$/; // what can be sent back
const KINDS = Object.freeze({
  live: Object.freeze({ floorS: 15, path: "liveness", parse: parseReport }),
  history: Object.freeze({ floorS: 60, path: "liveness/history", parse: parseHistory }),
});

/** What is held of one endpoint before anything was asked: `kind` is "live" or "history". The floors hold (C10). */
export function newFeed(kind, everyS) {
  if (typeof everyS !== "number" || Number.isNaN(everyS)) throw new TypeError(`${kind}: ${everyS} is not a number of seconds`);
  const bounded = Math.min(Math.max(everyS, KINDS[kind].floorS), EVERY_MOST_S);
  return Object.freeze({ kind, everyS: bounded, document: null, etag: null, problem: null, failures: 0, waitS: 0, arrivals: 0 });
}

/**
 * The feed after an answer: `{httpCode, text, etag, retryAfter, date}`, or `{problem}` if there was none. A failure of
 * any kind leaves the last good document as it is, and lengthens the wait (C9). `chance` is random, from 0 to 1.
 * `arrivals` grows only with a document that is another than the one before.
 */
export function takeAnswer(feed, answer, now, chance) {
  const { problem, document } = judgeAnswer(feed, answer);
  if (problem === null) {
    const etag = answer.httpCode === 304 ? feed.etag : sendable(answer.etag);
    const waitS = feed.everyS + Math.max(feed.everyS * JITTER * chance, 0);
    const arrivals = feed.arrivals + (answer.httpCode === 304 || isSame(feed, document, etag) ? 0 : 1);
    return Object.freeze({ ...feed, document, etag, problem, failures: 0, waitS, arrivals });
  }
  const failures = feed.failures + 1;
  const mostS = Math.max(WAIT_MOST_S, feed.everyS + feed.everyS * JITTER);
  const backoffS = Math.min(feed.everyS * 2 ** Math.min(failures, 10), Math.max(feed.everyS, BACKOFF_MOST_S));
  const askedS = askedToWaitS(answer, now);
  const waitS = Math.max(
    Math.min(backoffS + Math.max(backoffS * BACKOFF_JITTER * chance, 0), mostS),
    askedS + Math.max(askedS * JITTER * chance, 0),
  );
  return Object.freeze({ ...feed, problem, failures, waitS });
}

function askedToWaitS({ retryAfter, date }, now) {
  return Math.min(retryAfterSeconds(retryAfter, parseHttpDate(date) ?? now), RETRY_AFTER_MOST_S);
}

function sendable(etag) {
  return typeof etag === "string" && PRINTABLE.test(etag) ? etag : null;
}

/** Whether a document is the one that is held already, sent once more: nothing about it may be renewed then. */
function isSame(held, document, etag) {
  if (held.document === null) return false;
  if (etag !== null && etag === held.etag) return true;
  // Without a date and an ETag nothing says that they differ.
  const { generatedAt } = document;
  return generatedAt === held.document.generatedAt && (generatedAt !== null || (etag === null && held.etag === null));
}

function judgeAnswer(feed, answer) {
  if (answer.problem !== undefined) return { problem: answer.problem };
  if (answer.httpCode === 200) {
    const document = KINDS[feed.kind].parse(answer.text);
    return document.readable ? { problem: null, document } : { problem: `unreadable: ${document.problem}` };
  }
  if (answer.httpCode === 304 && feed.document !== null) return { problem: null, document: feed.document };
  if (answer.httpCode === 304) return { problem: "unchanged, but there is no copy here" };
  if (answer.httpCode === 429) return { problem: "too many requests" };
  if (answer.httpCode === 503) return { problem: "not available yet" };
  return { problem: `an unexpected answer, HTTP ${answer.httpCode}` };
}

function retryAfterSeconds(value, answeredAt) {
  if (typeof value === "string" && /^\d{1,9}$/.test(value)) return Number(value);
  const until = parseHttpDate(value);
  return until === null ? 0 : Math.max(0, (until - answeredAt) / 1000);
}

/**
 * By how much this reader's clock seems to be ahead of the server's, from an answer's `Date` (and `Age`, if a cache
 * kept it); null if unknown. To be shown, and for nothing else: no rule uses it.
 */
export function clockAheadMs(answer, now) {
  const date = parseHttpDate(answer.date);
  const age = /^\d{1,9}$/.test(answer.age ?? "") ? Number(answer.age) : 0;
  return date === null ? null : now - (date + age * 1000);
}

// ---- Polling: asking

const TICK_S = 1;
const TIMEOUT_LEAST_S = 1;
const TIMEOUT_MOST_S = 60;
const BODY_MOST = 64 * 1024 * 1024;
const AGENT = "lookout-reader-js/0.1.0";

/**
 * Asks both endpoints again and again, politely, one request at a time, and calls `onUpdate` after every answer and
 * whenever the passing of time changes what a row is worth. Returns `{latest, receivedAgoMs, stop}`.
 */
export function poll(options) {
  const settings = withDefaults(options);
  const feeds = {};
  const dueAt = {};
  const floorAt = {}; // when it may be asked for at the earliest
  for (const kind of ["live", "history"]) {
    if (settings[kind] === false) continue;
    feeds[kind] = newFeed(kind, settings[kind]);
    dueAt[kind] = -Infinity;
  }
  const stopping = new AbortController();
  let ahead = null;
  let receivedAt = null; // of the report that is held, by the clock that is never set
  let reported = "";
  let timer = null;
  let wake = () => {};

  function receivedAgoMs() {
    return receivedAt === null ? null : Math.max(settings.monotonic() - receivedAt, 0);
  }

  function latest() {
    return Object.freeze({
      now: settings.now(),
      report: feeds.live?.document ?? null,
      reportProblem: feeds.live?.problem ?? null,
      history: feeds.history?.document ?? null,
      historyProblem: feeds.history?.problem ?? null,
      clockAheadMs: ahead,
      receivedAgoMs: receivedAgoMs(),
    });
  }

  function worth(update) {
    return (update.report?.rows ?? []).map((row) => effectiveStatus(row, update.now, update.receivedAgoMs)).join();
  }

  function publish(update) {
    reported = worth(update);
    try {
      settings.onUpdate(update);
    } catch (error) {
      // On its own, so that an error in onUpdate is reported as what it is and does not end the polling.
      queueMicrotask(() => {
        throw error;
      });
    }
  }

  function publishChanges() {
    const update = latest();
    if (worth(update) !== reported) publish(update);
  }

  async function ask(kind) {
    const feed = feeds[kind];
    const askedAt = settings.monotonic();
    const answer = await request(urlOf(settings, kind), feed.etag, settings, stopping.signal);
    if (stopping.signal.aborted) return;
    feeds[kind] = takeAnswer(feed, answer, settings.now(), settings.random());
    const answeredAt = settings.monotonic();
    dueAt[kind] = answeredAt + feeds[kind].waitS * 1000;
    floorAt[kind] = Math.max(askedAt + KINDS[kind].floorS * 1000, answeredAt + askedToWaitS(answer, settings.now()) * 1000);
    if (kind === "live") {
      if (feeds.live.arrivals > feed.arrivals) receivedAt = answeredAt;
      ahead = clockAheadMs(answer, settings.now()) ?? ahead;
    }
    publish(latest());
  }

  function isHidden() {
    return settings.document?.visibilityState === "hidden";
  }

  /** Every second, whether or not a request is under way: what time has changed is published, and what is due is asked. */
  function tick() {
    settings.clearTimeout(timer);
    timer = isHidden() ? null : settings.setTimeout(tick, TICK_S * 1000);
    publishChanges();
    wake();
  }

  async function run() {
    await null; // nothing is published before poll has returned
    if (!stopping.signal.aborted) tick();
    while (!stopping.signal.aborted) {
      const kind = Object.keys(feeds).find((name) => dueAt[name] <= settings.monotonic());
      if (kind !== undefined && !isHidden()) await ask(kind);
      else await new Promise((resolve) => (wake = resolve));
    }
  }

  function whenOnline() {
    for (const [kind, feed] of Object.entries(feeds)) {
      if (feed.problem !== null) dueAt[kind] = Math.min(dueAt[kind], floorAt[kind]);
    }
    wake();
  }

  settings.document?.addEventListener("visibilitychange", tick);
  settings.window?.addEventListener("online", whenOnline);
  run();
  return Object.freeze({
    latest,
    receivedAgoMs,
    stop() {
      stopping.abort();
      settings.clearTimeout(timer);
      settings.document?.removeEventListener("visibilitychange", tick);
      settings.window?.removeEventListener("online", whenOnline);
      wake();
    },
  });
}

function withDefaults(options) {
  const settings = {
    live: 30,
    history: 120,
    onUpdate: () => {},
    fetch: (...request) => globalThis.fetch(...request),
    now: () => Date.now(),
    monotonic: () => performance.now(),
    random: () => Math.random(),
    setTimeout: (...timer) => globalThis.setTimeout(...timer),
    clearTimeout: (timer) => globalThis.clearTimeout(timer),
    document: globalThis.document,
    window: globalThis.window,
    timeoutS: 10,
    userAgent: AGENT,
    ...Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)),
  };
  const { protocol: scheme } = new URL(settings.baseUrl);
  if (scheme !== "https:" && scheme !== "http:") throw new TypeError(`baseUrl: ${settings.baseUrl} is not http or https`);
  if (typeof settings.protocol !== "string" || settings.protocol === "") throw new TypeError("protocol: no name given");
  const { timeoutS } = settings;
  if (typeof timeoutS !== "number" || Number.isNaN(timeoutS)) throw new TypeError(`timeoutS: ${timeoutS} is not a number of seconds`);
  return { ...settings, timeoutS: Math.min(Math.max(timeoutS, TIMEOUT_LEAST_S), TIMEOUT_MOST_S) };
}

function urlOf({ baseUrl, protocol }, kind) {
  return `${baseUrl.replace(/\/+$/, "")}/api/v1/${encodeURIComponent(protocol)}/${KINDS[kind].path}`;
}

/** An answer, or `{problem}`: to a script a 429 without CORS headers is like a network that is down. */
async function request(url, etag, settings, stopped) {
  const aborting = new AbortController();
  const abort = () => aborting.abort();
  stopped.addEventListener("abort", abort);
  let late = false;
  let long = false;
  const timer = settings.setTimeout(() => {
    late = true;
    abort();
  }, settings.timeoutS * 1000);
  try {
    const headers = { Accept: "application/json" };
    if (etag !== null) headers["If-None-Match"] = etag;
    if (isServer()) headers["User-Agent"] = settings.userAgent;
    // A copy that the browser kept would have an old Date, and be an old report.
    const caching = isServer() ? {} : { cache: "no-cache" };
    const response = await settings.fetch(url, {
      headers,
      credentials: "omit",
      referrerPolicy: "no-referrer",
      signal: aborting.signal,
      ...caching,
    });
    if (url.startsWith("https:") && response.url?.startsWith("http:")) throw new TypeError("a redirect from https to http");
    const text = response.status === 200 ? await bodyOf(response) : "";
    if (text === null) {
      long = true;
      throw new TypeError("a body without end");
    }
    const header = (name) => response.headers.get(name);
    return {
      httpCode: response.status,
      text,
      etag: header("etag"),
      retryAfter: header("retry-after"),
      date: header("date"),
      age: header("age"),
    };
  } catch {
    abort(); // what is still on its way
    return { problem: long ? "an answer that is too long" : late ? "no answer in time" : "no answer" };
  } finally {
    settings.clearTimeout(timer);
    stopped.removeEventListener("abort", abort);
  }
}

/**
 * As bytes, which are held to be UTF-8 when they are read: text() would replace what is not. Null if it is too long: no
 * more than that is kept where the body is a stream, which it is not everywhere.
 */
async function bodyOf(response) {
  if (Number(response.headers.get("content-length")) > BODY_MOST) return null;
  if (typeof response.body?.getReader !== "function") {
    const whole = typeof response.arrayBuffer === "function" ? new Uint8Array(await response.arrayBuffer()) : await response.text();
    return whole.length > BODY_MOST ? null : whole;
  }
  const reader = response.body.getReader();
  const parts = [];
  let length = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value);
    length += part.value.length;
    if (length > BODY_MOST) return null;
  }
  const body = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    body.set(part, at);
    at += part.length;
  }
  return body;
}

/** A page may not name its own User-Agent, and asking to would cost it a preflight that fails. */
function isServer() {
  return typeof globalThis.document === "undefined" && Boolean(globalThis.process?.versions?.node);
}
