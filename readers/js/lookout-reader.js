// Written by `make schemas`, from src/.
const SCHEMA_VERSION = 1;
const WRONG_VERSION = "its schemaVersion is not 1";
const ROWS_MOST = 10_000; // counted before any is read
const PARTS_MOST = 100_000; // objects and lists, of which a row has two: counted before the text is parsed
const DEEPEST = 100; // objects and lists in one another: a bound of its own, since every parser's is another

function unreadable(problem) {
  return Object.freeze({ readable: false, problem });
}

function readJson(text) {
  try {
    const json = typeof text === "string" ? text : new TextDecoder("utf-8", { fatal: true }).decode(text);
    if (json.split(/[[{]/, PARTS_MOST + 1).length <= PARTS_MOST) {
      const fields = JSON.parse(json);
      if (!isTooDeep(fields, DEEPEST)) return isObject(fields) ? { fields } : { problem: "it is not a JSON object" };
    }
  } catch {
  }
  return { problem: "it is not JSON" };
}

function readDocument(text, list) {
  const { fields, problem } = readJson(text);
  if (problem) return { problem };
  if (fields.schemaVersion !== SCHEMA_VERSION) return { problem: WRONG_VERSION };
  if (!Array.isArray(fields[list])) return { problem: `its ${list} are not a list` };
  return fields[list].length > ROWS_MOST ? { problem: `its ${list} are too many` } : { fields };
}

function isTooDeep(value, levels) {
  return typeof value === "object" && value !== null && (levels === 0 || Object.values(value).some((inner) => isTooDeep(inner, levels - 1)));
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function whole(value, least) {
  return Number.isSafeInteger(value) && value >= least ? value + 0 : null; // + 0: no -0
}


function readRows(raws, readRest) {
  const rows = raws.map((raw) => readRow(raw, readRest));
  const keys = rows.map((row) => isIdentified(row) && checkKey(row));
  const times = new Map();
  for (const key of keys) times.set(key, (times.get(key) ?? 0) + 1);
  const read = rows.map((row, index) =>
    keys[index] && times.get(keys[index]) > 1 ? unreadableRow(row, "another row has the same service and chainId") : row,
  );
  return { rows: Object.freeze(read), unreadableRows: read.filter((row) => !row.readable).length };
}

function readRow(raw, readRest) {
  if (!isObject(raw)) return unreadableRow({ service: null }, "the row is not an object");
  const service = raw.service && typeof raw.service === "string" ? raw.service : null;
  const chainId = raw.chainId === null ? null : (whole(raw.chainId, 1) ?? undefined);
  const check = { service, chainId };
  if (service === null) return unreadableRow(check, "its service is not a name");
  if (chainId === undefined) return unreadableRow(check, "its chainId is neither a positive whole number nor null");
  const rest = readRest(raw);
  return typeof rest === "string" ? unreadableRow(check, rest) : Object.freeze({ readable: true, ...check, ...rest });
}

function unreadableRow({ service, chainId }, problem) {
  return Object.freeze({ readable: false, service, chainId, problem });
}

function isIdentified(row) {
  return row.service !== null && row.chainId !== undefined;
}

function checkKey({ service, chainId }) {
  return JSON.stringify([service, chainId]);
}

function rowsByCheck(document) {
  return new Map(document.rows.filter(isIdentified).map((row) => [checkKey(row), row]));
}

function findRow(document, service, chainId) {
  if (!document?.readable) return null;
  return document.rows.find((row) => row.service === service && row.chainId === chainId) ?? null;
}

const INSTANT = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/;

function parseInstant(value) {
  const [, second, fraction = ""] = (typeof value === "string" && INSTANT.exec(value)) || [];
  const at = Date.parse(`${second}Z`);
  if (!(at >= 0 && new Date(at).toISOString().startsWith(second))) return null;
  return at + Number(fraction.slice(0, 3).padEnd(3, "0"));
}

function parseHttpDate(value) {
  const at = Date.parse(value); // which reads much else too: that is not what would be written
  return at >= 0 && new Date(at).toUTCString() === value ? at : null;
}

const SERVICES = /* @__PURE__ */ Object.freeze(["messaging", "ppoi", "broadcasters", "indexer", "hosted-indexer"]);
const SHARED_SERVICE = "messaging";

const MAINNETS = /* @__PURE__ */ Object.freeze([1, 42161, 137, 56]);
const TEST_NETWORK = 11155111;

const MOST_ENTRIES = 2_000; // of a list; what comes after is not read

function parseAbout(text) {
  const { problem, fields } = readJson(text);
  if (problem) return unreadable(problem);
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

function countedChains(about, chainIds) {
  const known = new Set([null, ...about.chains.map(({ id }) => id)]);
  const others = [...new Set(chainIds)].filter((chainId) => !known.has(chainId)).sort((a, b) => a - b);
  return [...about.chains.map(({ id }) => id), ...others].filter((chainId) => !about.testNetworks.includes(chainId));
}

function readNote(raw) {
  const [from, until] = [parseInstant(raw.from), parseInstant(raw.until)];
  const chains = listOf(raw.chains).map((chainId) => whole(chainId, 1));
  const services = listOf(raw.services);
  const isScopeWhole = !chains.includes(null) && services.every((service) => typeof service === "string");
  if (textOf(raw.text) === "" || from === null || (until === null && (raw.until ?? null) !== null) || !isScopeWhole) return null;
  const scope = { services: Object.freeze(services), chains: Object.freeze(chains) };
  return Object.freeze({ id: textOf(raw.id), text: raw.text, ...scope, from, until, addedAt: parseInstant(raw.addedAt) });
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

const EFFECTIVE_STATUSES = /* @__PURE__ */ Object.freeze(["unavailable", "degraded", "catching-up", "stale", "unknown", "current", "unmonitored"]);
const KNOWN_STATUSES = /* @__PURE__ */ Object.freeze(["unavailable", "degraded", "catching-up", "current"]);
const CHARACTERS = "udk ?c.";
const CURRENT_CHARACTER = "c";
const KNOWN_CHARACTERS = "udkc";
const TROUBLE = /[udk]+/g;
const UNKNOWN_CHARACTER = /[^ckdu?.]/gu;

const FUTURE_MS = 30_000;
const OLD_MS = 300_000;

function parseReport(text) {
  const { problem, fields } = readDocument(text, "checks");
  if (problem) return unreadable(problem);
  return Object.freeze({ readable: true, generatedAt: parseInstant(fields.generatedAt), ...readRows(fields.checks, readCheck) });
}

function readCheck(raw) {
  return {
    publishedStatus: textOrNull(raw.status),
    reason: textOrNull(raw.reason),
    observedAt: parseInstant(raw.observedAt),
    lastSuccessAt: parseInstant(raw.lastSuccessAt),
    expiresAt: parseInstant(raw.expiresAt),
    metrics: readMetrics(raw.metrics),
  };
}

function textOrNull(value) {
  return typeof value === "string" ? value : null;
}

function readMetrics(raw) {
  const metrics = {};
  for (const key of ["position", "head", "responding", "monitored", "peers", "missing", "extra"]) {
    const value = isObject(raw) ? whole(raw[key], 0) : null;
    if (value !== null) metrics[key] = value;
  }
  return Object.freeze(metrics);
}

function effectiveStatus(row, now, receivedAgoMs = 0, clockAheadMs = 0) {
  if (!row?.readable) return "unknown";
  const { publishedStatus, observedAt, expiresAt } = row;
  if (publishedStatus === "unmonitored") return "unmonitored"; // C1
  if (!KNOWN_STATUSES.includes(publishedStatus) || !Number.isFinite(now)) return "unknown"; // C1
  if (observedAt === null || expiresAt === null) return "unknown"; // C2
  if (observedAt - now > FUTURE_MS || expiresAt <= observedAt || clockAheadMs < -FUTURE_MS) return "unknown"; // C2
  if (!(Math.max(now - observedAt, receivedAgoMs) < Math.min(expiresAt - observedAt, OLD_MS))) return "stale"; // C3
  return publishedStatus; // C4
}

function nextChangeMs({ report, now, receivedAgoMs }) {
  let next = Infinity;
  for (const row of report?.rows ?? []) {
    const { observedAt, expiresAt } = row;
    const lifetimeMs = Math.min(expiresAt - observedAt, OLD_MS);
    const worth = effectiveStatus(row, now, receivedAgoMs);
    for (const wait of [observedAt - FUTURE_MS - now, observedAt + lifetimeMs - now, lifetimeMs - receivedAgoMs]) {
      if (wait > 0 && wait < next && effectiveStatus(row, now + wait, receivedAgoMs + wait) !== worth) next = wait;
    }
  }
  return next;
}

const JITTER = 0.1;
const BACKOFF_JITTER = 0.5;
const BACKOFF_MOST_S = 200; // before chance
const WAIT_MOST_S = 300;
const RETRY_AFTER_MOST_S = 600;
const EVERY_MOST_S = 86_400; // what timers can count
const FLOORS_S = { live: 15, history: 60 };
const BODIES_MOST = { live: 2 * 1024 * 1024, history: 16 * 1024 * 1024 };

const PROBLEMS = {
  offline: "no answer",
  "no-answer": "no answer",
  timeout: "no answer in time",
  "too-long": "an answer that is too long",
  "no-copy": "unchanged, but there is no copy here",
  "too-many-requests": "too many requests",
  "not-available": "not available yet",
};
const CODES = { 304: "no-copy", 429: "too-many-requests", 503: "not-available" };

function failure(code) {
  return { problem: PROBLEMS[code], code };
}

function newFeed(kind, everyS) {
  return Object.freeze({
    kind,
    everyS: boundSeconds(kind, everyS, FLOORS_S[kind], EVERY_MOST_S),
    document: null,
    etag: null,
    problem: null,
    code: null,
    failures: 0,
    waitS: 0,
    arrivals: 0,
    arrivedAt: null,
    clockAheadMs: null,
  });
}

function boundSeconds(name, value, least, most) {
  if (typeof value !== "number" || Number.isNaN(value)) throw new TypeError(`${name}: ${value} is not a number of seconds`);
  return Math.min(Math.max(value, least), most);
}

function advanceFeed(parse, feed, answer, now, chance) {
  const { problem = null, code = null, document = feed.document } = judgeAnswer(parse, feed, answer);
  const { everyS } = feed;
  const ahead = clockAheadMs(answer, now);
  const after = { ...feed, document, problem, code, clockAheadMs: ahead ?? feed.clockAheadMs };
  if (problem === null) {
    after.failures = 0;
    after.waitS = everyS + everyS * JITTER * chance;
    if (document !== feed.document) {
      after.etag = /^[ -~]+$/.test(answer.etag ?? "") ? answer.etag : null; // what can be sent back
      if (!isSame(feed, after)) {
        after.arrivals++;
        after.arrivedAt = now;
        after.clockAheadMs = ahead ?? guessClockAheadMs(feed, document, now);
      }
    }
  } else {
    after.failures++;
    const backoffS = Math.min(everyS * 2 ** Math.min(after.failures, 10), Math.max(everyS, BACKOFF_MOST_S));
    const askedS = askedToWaitS(answer, now);
    after.waitS = Math.max(
      Math.min(backoffS + backoffS * BACKOFF_JITTER * chance, Math.max(WAIT_MOST_S, everyS + everyS * JITTER)),
      askedS + askedS * JITTER * chance,
    );
  }
  return Object.freeze(after);
}

function askedToWaitS({ retryAfter, date }, now) {
  const until = parseHttpDate(retryAfter);
  const waitS = until === null ? seconds(retryAfter) : (until - (parseHttpDate(date) ?? now)) / 1000;
  return Math.min(Math.max(waitS, 0), RETRY_AFTER_MOST_S);
}

function seconds(text) {
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}

function isSame(held, { document, etag }) {
  if (held.document === null) return false;
  if (etag !== null && etag === held.etag) return true;
  const { generatedAt } = document;
  return generatedAt === held.document.generatedAt && (generatedAt !== null || (etag ?? held.etag) === null);
}

function judgeAnswer(parse, feed, { problem, code = "no-answer", httpCode, text }) {
  if (problem !== undefined) return { problem, code };
  if (httpCode === 304 && feed.document !== null) return {};
  if (httpCode !== 200) return CODES[httpCode] ? failure(CODES[httpCode]) : { problem: `an unexpected answer, HTTP ${httpCode}`, code: "unexpected" };
  if (text?.length > BODIES_MOST[feed.kind]) return failure("too-long");
  const document = parse(text);
  if (document.readable) return { document };
  return { problem: `unreadable: ${document.problem}`, code: document.problem === WRONG_VERSION ? "wrong-version" : "unreadable" };
}


const AHEAD_MS = 90_000; // 60 s of it a cache may explain
const REPORTS_AHEAD_MS = 150_000; // a report is made every 30 s
const APART_MOST_MS = 120_000;
const STEADY_MS = 60_000;

function clockAheadMs({ date, age }, now) {
  const at = parseHttpDate(date);
  return at === null ? null : Math.max(now - at - seconds(age) * 1000, Math.min(now - at, 0));
}

function guessClockAheadMs(held, { generatedAt }, now) {
  const aheadMs = now - generatedAt;
  const apartMs = now - held.arrivedAt;
  const isSteady = apartMs < APART_MOST_MS && Math.abs(apartMs - (generatedAt - held.document?.generatedAt)) < STEADY_MS;
  const isWrong = aheadMs < -FUTURE_MS || (aheadMs > REPORTS_AHEAD_MS && isSteady);
  return generatedAt !== null && isWrong ? aheadMs : null;
}

function wrongClock({ clockAheadMs }) {
  if (clockAheadMs > AHEAD_MS) return "ahead";
  return clockAheadMs < -FUTURE_MS ? "behind" : null;
}

const WINDOWS = /* @__PURE__ */ Object.freeze({ "24h": 86_400, "7d": 604_800, "14d": 1_209_600 });
const NO_DATA = "-";

function parseHistory(text) {
  const { problem, fields } = readDocument(text, "rows");
  if (problem) return unreadable(problem);
  const bucketSeconds = whole(fields.bucketSeconds, 1);
  const from = parseInstant(fields.from);
  const to = parseInstant(fields.to);
  const ended = bucketSeconds === null || from === null || to === null ? -1 : (to - from) / (bucketSeconds * 1000);
  if (!Number.isInteger(ended) || ended < 0) return unreadable("its from, to and bucketSeconds do not fit together");
  const length = ended + 1;
  return Object.freeze({
    readable: true,
    generatedAt: parseInstant(fields.generatedAt),
    bucketSeconds,
    retentionDays: whole(fields.retentionDays, 1),
    from,
    to,
    length,
    ...readRows(fields.rows, (raw) => readPast(raw, length)),
  });
}

function readPast(raw, length) {
  if (!isObject(raw.uptime)) return "its uptime is missing";
  if (typeof raw.buckets !== "string") return "its buckets are not text";
  const buckets = raw.buckets.replace(UNKNOWN_CHARACTER, NO_DATA); // C5
  if (buckets.length !== length) return "its buckets have the wrong length";
  const uptime = {};
  for (const window of Object.keys(WINDOWS)) uptime[window] = share(raw.uptime[window]);
  return { buckets, uptime: Object.freeze(uptime) };
}

function share(value) {
  return typeof value === "number" && value >= 0 && value <= 1 ? value + 0 : null;
}

function bucketBeginsAt(history, index) {
  return history.from + index * history.bucketSeconds * 1000;
}

function bucketsOf(history, row) {
  return Array.from(charactersOf(row), (character, index) => ({
    beginsAt: bucketBeginsAt(history, index),
    endsAt: bucketBeginsAt(history, index + 1),
    character,
    status: statusOf(character),
    filling: index === history.length - 1,
  }));
}

function coverageOf(history, row, window) {
  const characters = charactersOf(row);
  const buckets = Math.floor(WINDOWS[window] / history.bucketSeconds) + 1; // H12
  const existing = Math.min(buckets, history.length);
  let known = 0;
  for (let index = history.length - existing; index < characters.length; index++) {
    if (KNOWN_CHARACTERS.includes(characters[index])) known++;
  }
  return { window, known, existing, buckets, share: known / buckets, shareOfExisting: known / existing };
}

function incidentsOf(history, row) {
  const characters = charactersOf(row);
  return Array.from(characters.matchAll(TROUBLE), ({ index, 0: run }) => {
    const end = index + run.length;
    return {
      beginsAt: bucketBeginsAt(history, index),
      endsAt: end === characters.length ? null : bucketBeginsAt(history, end),
      worst: statusOf([...CHARACTERS].find((character) => run.includes(character))),
      buckets: run.length,
      beginSeen: characters[index - 1] === CURRENT_CHARACTER,
      endSeen: characters[end] === CURRENT_CHARACTER,
    };
  });
}

function statusOf(character) {
  return EFFECTIVE_STATUSES[CHARACTERS.indexOf(character)] ?? null;
}

function charactersOf(row) {
  return row?.readable ? row.buckets : "";
}

async function request(url, feed, { fetch = globalThis.fetch, userAgent, timeoutMs, setTimeout, clearTimeout }, aborting) {
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(() => resolve({ ...failure("timeout"), reachedNobody: true }), timeoutMs)));
  try {
    return await Promise.race([exchange(url, feed, fetch, userAgent, aborting.signal), late]);
  } catch {
    const isOnline = globalThis.navigator?.onLine; // undefined where no CORS hides an answer
    return { ...failure(isOnline === false ? "offline" : "no-answer"), reachedNobody: !isOnline };
  } finally {
    clearTimeout(timer);
    aborting.abort(); // what is still on its way
  }
}

async function exchange(url, { kind, etag }, fetch, userAgent, signal) {
  const headers = { Accept: "application/json" };
  const options = { headers, credentials: "omit", referrerPolicy: "no-referrer", signal };
  const isReactNative = globalThis.navigator?.product === "ReactNative";
  if (!isReactNative && (typeof document === "object" || typeof importScripts === "function")) {
    if (!fetch.polyfill) options.cache = "no-cache";
  } else {
    if (etag !== null) headers["If-None-Match"] = etag;
    if (!isReactNative) headers["User-Agent"] = userAgent;
  }
  const response = await fetch(url, options);
  if (/^https:/i.test(url) && /^http:/i.test(response.url)) return failure("no-answer"); // whoever led there
  const header = (name) => response.headers.get(name);
  const text = response.status === 200 ? await bodyOf(response, BODIES_MOST[kind]) : "";
  if (text === null) return failure("too-long");
  return { httpCode: response.status, text, etag: header("etag"), retryAfter: header("retry-after"), date: header("date"), age: header("age") };
}

async function bodyOf(response, most) {
  if (!response.body?.getReader || typeof TextDecoder !== "function") {
    return response.text ? response.text() : new Uint8Array(await response.arrayBuffer());
  }
  const reader = response.body.getReader();
  const parts = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    length += value.length;
    if (length > most) return null;
  }
  const whole = new Uint8Array(length); // React Native has no Blob of bytes
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

const AGENT = "lookout-reader-js/2.0.0";
const TIMEOUT_LEAST_S = 1;
const TIMEOUT_MOST_S = 60;
const TIMER_MOST_MS = 86_400_000;
const CURRENT_TIMER_MOST_MS = 5_000; // a device that slept, or whose clock was set, shows nothing current for longer

function makeReader(parsers, {
  baseUrl,
  protocol,
  live = 30,
  history = 120,
  timeoutS = 10,
  userAgent = AGENT,
  fetch,
  signal,
  now = () => Date.now(),
  monotonic = () => (globalThis.performance ?? Date).now(),
  random = Math.random,
  setTimeout = globalThis.setTimeout,
  clearTimeout = globalThis.clearTimeout,
  document = globalThis.document,
  window = globalThis,
}) {
  if (!/^https?:\/\/[^/]/i.test(baseUrl)) throw new TypeError(`baseUrl: ${baseUrl} is not http or https`);
  if (typeof protocol !== "string" || !protocol) throw new TypeError("protocol: no name given");
  const timeoutMs = boundSeconds("timeoutS", timeoutS, TIMEOUT_LEAST_S, TIMEOUT_MOST_S) * 1000;
  const liveUrl = `${baseUrl.replace(/\/+$/, "")}/api/v1/${encodeURIComponent(protocol)}/liveness`;
  const urls = { live: liveUrl, history: `${liveUrl}/history` };
  const feeds = { live: newFeed("live", live || 0), history: newFeed("history", history || 0) };
  const kinds = Object.keys(parsers).filter((kind) => (kind === "live" ? live : history) !== false);
  const dueAt = { live: -Infinity, history: -Infinity };
  const floorAt = { ...dueAt }; // when it may be asked for at the earliest
  const listeners = new Set();
  const events = [
    [document, "visibilitychange", wake],
    [window, "pageshow", wake],
    [window, "pagehide", giveUp],
    [window, "online", askAgain],
  ].filter(([target]) => target?.addEventListener); // React Native's window has none
  let receivedAt = null; // of the report that is held, by the clock that is never set
  let snapshot = null;
  let worth; // of the snapshot's rows
  let published = getSnapshot();
  let timer;
  let asking = null; // the request under way, as a promise
  let aborting;
  let isStopped = false;

  function receivedAgoMs() {
    return receivedAt === null ? null : Math.max(monotonic() - receivedAt, 0);
  }

  function latest() {
    return Object.freeze({
      now: now(),
      report: feeds.live.document,
      reportProblem: feeds.live.problem,
      history: feeds.history.document,
      historyProblem: feeds.history.problem,
      clockAheadMs: feeds.live.clockAheadMs,
      receivedAgoMs: receivedAgoMs(),
      reportCode: feeds.live.code,
      historyCode: feeds.history.code,
    });
  }

  function getSnapshot() {
    const update = latest();
    const found = update.report?.rows.map((row) => effectiveStatus(row, update.now, update.receivedAgoMs, update.clockAheadMs)).join();
    if (snapshot === null || found !== worth) snapshot = update;
    worth = found;
    return snapshot;
  }

  function publish() {
    if (getSnapshot() === published) return;
    published = snapshot;
    for (const call of [...listeners]) {
      try {
        call(published);
      } catch (error) {
        (globalThis.queueMicrotask ?? setTimeout)(() => {
          throw error;
        });
      }
    }
  }

  async function ask(kind) {
    await null; // what time has changed is published first
    const askedAt = monotonic();
    const own = (aborting = new AbortController());
    const answer = await request(urls[kind], feeds[kind], { fetch, userAgent, timeoutMs, setTimeout, clearTimeout }, own);
    const answeredAt = monotonic();
    const answeredNow = now();
    dueAt[kind] = floorAt[kind] = Math.max(askedAt + FLOORS_S[kind] * 1000, answeredAt + askedToWaitS(answer, answeredNow) * 1000);
    if (aborting === own) {
      const before = feeds[kind];
      const after = (feeds[kind] = advanceFeed(parsers[kind], before, answer, answeredNow, random()));
      dueAt[kind] = answeredAt + after.waitS * 1000;
      if (answer.reachedNobody) floorAt[kind] = answeredAt;
      if (kind === "live" && after.arrivals > before.arrivals) receivedAt = answeredAt;
      snapshot = null;
      publish();
    }
    asking = null;
    wake();
  }

  function wake() {
    clearTimeout(timer);
    if (listeners.size === 0 || document?.visibilityState === "hidden") return;
    publish();
    const [next] = [...kinds].sort((one, other) => dueAt[one] - dueAt[other]);
    const dueMs = (dueAt[next] ?? Infinity) - monotonic(); // of nothing, if both are left out
    if (dueMs <= 0) asking ??= ask(next);
    const mostMs = worth?.includes("current") ? CURRENT_TIMER_MOST_MS : TIMER_MOST_MS;
    timer = setTimeout(wake, Math.ceil(Math.min(nextChangeMs(latest()), asking ? Infinity : dueMs, mostMs)));
  }

  function giveUp() {
    aborting?.abort();
    aborting = null;
  }

  function askAgain() {
    for (const kind of kinds) if (feeds[kind].problem !== null) dueAt[kind] = Math.min(dueAt[kind], floorAt[kind]);
    wake();
  }

  function subscribe(listener) {
    const call = (update) => listener(update); // the same function may listen twice
    if (isStopped) return () => {};
    listeners.add(call);
    if (listeners.size === 1) {
      for (const [target, type, handler] of events) target.addEventListener(type, handler);
      Promise.resolve().then(wake); // nothing is published before this has returned
    }
    return () => {
      if (listeners.delete(call) && listeners.size === 0) rest();
    };
  }

  function rest() {
    clearTimeout(timer);
    for (const [target, type, handler] of events) target.removeEventListener(type, handler);
  }

  async function bringUpToDate(wanted) {
    publish();
    for (const kind of wanted) {
      while (asking) await asking;
      if (!isStopped && floorAt[kind] <= monotonic()) await (asking = ask(kind));
    }
    return getSnapshot();
  }

  function stop() {
    isStopped = true;
    giveUp();
    listeners.clear();
    rest();
    signal?.removeEventListener("abort", stop);
  }

  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop);
  return Object.freeze({
    latest,
    receivedAgoMs,
    getSnapshot,
    subscribe,
    read: () => bringUpToDate(["live"]),
    refresh: () => bringUpToDate(kinds),
    stop,
  });
}

const PARSERS = { live: parseReport, history: parseHistory };

function poll(options) {
  const reader = createReader(options);
  reader.subscribe((update) => options.onUpdate?.(update));
  return reader;
}

function createReader(options) {
  return makeReader(PARSERS, options);
}

function takeAnswer(feed, answer, now, chance) {
  return advanceFeed(PARSERS[feed.kind], feed, answer, now, chance);
}

function canUse(report, needs) {
  return obstaclesOf(report, needs).length === 0;
}

function obstaclesOf(report, { chain, services, ...clocks }) {
  if (!Array.isArray(services) || services.length === 0) throw new TypeError("services: no list of names given");
  if (typeof (chain ?? 0) !== "number") throw new TypeError(`chain: ${chain} (${typeof chain}) is not a number`);
  const rows = readableRows(report);
  return [...services] // a hole is a service that nobody can read
    .flatMap((service) => chainsOf(rows, service, chain).map((chainId) => summarizeCheck(rows, { service, chainId }, clocks)))
    .filter(({ effective }) => effective !== "current");
}

function chainsOf(rows, service, chain) {
  if (service === SHARED_SERVICE) return [null];
  const found = [chain, null].filter((chainId) => !SERVICES.includes(service) && rows.has(checkKey({ service, chainId })));
  return found.length === 0 ? [chain] : found;
}

function readableRows(report) {
  return report?.readable ? rowsByCheck(report) : new Map();
}

function summarizeCheck(rows, { service, chainId }, { now, receivedAgoMs, clockAheadMs }) {
  const row = rows.get(checkKey({ service, chainId })) ?? null;
  const presence = row === null ? "missing" : row.readable ? "readable" : "unreadable";
  return { service, chainId, effective: effectiveStatus(row, now, receivedAgoMs, clockAheadMs), presence, row };
}

function rollUp(report, { chains = MAINNETS, services, includeTestNetwork = false, ...clocks }) {
  const allowed = [...new Set(chains)].filter((chainId) => includeTestNetwork || chainId !== TEST_NETWORK);
  const named = services && [...services];
  const { checks, doubts } = countChecks(report, allowed, named, clocks);
  const summaries = [...new Set([...(named ?? SERVICES), ...checks.map(({ service }) => service)])].map((service) => {
    const own = checks.filter((check) => check.service === service);
    return { service, ...judge(own.map(({ effective }) => effective)), checks: own };
  });
  const counts = Object.fromEntries(countByStatus(checks));
  return { ...judge([...doubts, ...summaries.map(({ status }) => status)]), chains: allowed, services: summaries, counts };
}

function countChecks(report, chains, services, clocks) {
  const rows = readableRows(report);
  const scope = new Set([null, ...chains]);
  const expected = (services ?? SERVICES).flatMap((service) => {
    if (service === SHARED_SERVICE) return { service, chainId: null };
    const isShared = !SERVICES.includes(service) && rows.has(checkKey({ service, chainId: null }));
    return isShared ? [] : chains.map((chainId) => ({ service, chainId }));
  });
  const found = [...rows.values()].filter(({ service, chainId }) => scope.has(chainId) && (services?.includes(service) ?? true));
  const counted = new Map([...expected, ...found].map((check) => [checkKey(check), check]));
  return {
    checks: Array.from(counted.values(), (check) => summarizeCheck(rows, check, clocks)),
    doubts: !services && report?.rows?.some((row) => !isIdentified(row) && !SERVICES.includes(row.service)) ? ["unknown"] : [],
  };
}

function judge(statuses) {
  const status = worstOf(statuses);
  return { status, healthy: status === "current" };
}

function countByStatus(checks) {
  return EFFECTIVE_STATUSES.map((status) => [status, checks.filter(({ effective }) => effective === status).length]);
}

function worstOf(statuses) {
  return EFFECTIVE_STATUSES.find((status) => statuses.includes(status)) ?? "unknown";
}

function headlineOf(report, { chains = MAINNETS, testNetworks = [TEST_NETWORK], inDoubt = false, ...clocks }) {
  const counted = [...new Set(chains)].filter((chainId) => !testNetworks.includes(chainId));
  const { checks, doubts } = countChecks(report, counted, undefined, clocks);
  const scope = new Set([null, ...counted]);
  const leftOut = report.rows.filter((row) => isIdentified(row) && !scope.has(row.chainId));
  const [[worst, number], ...others] = countByStatus(checks).filter(([, count]) => count > 0);
  const status = worstOf([worst === "current" && inDoubt ? "unknown" : worst, ...doubts]);
  const unmonitored = checks.filter(({ effective }) => effective === "unmonitored").length;
  return {
    text: headlineText(worst, number, checks.length - unmonitored, unmonitored > 0, whereText(leftOut, testNetworks), status),
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
  const worst = new Map();
  for (const { service, effective } of checks) worst.set(service, worstOf([effective, worst.get(service)]));
  return Object.fromEntries(worst);
}

function whereText(leftOut, testNetworks) {
  if (leftOut.length === 0) return "";
  return leftOut.every(({ chainId }) => testNetworks.includes(chainId)) ? " outside test networks" : " on these chains";
}

function headlineText(worst, number, watched, isPartOfAll, where, status) {
  if (worst === "unmonitored") return `Nothing is watched${where}`;
  if (worst === "current" && status !== worst) return `Everything${where} was current when last seen`;
  const noun = isPartOfAll ? "watched check" : "check";
  const part = number === watched ? `All ${watched}` : `${number} of ${watched}`;
  const subject = watched === 1 ? `The only ${noun}` : `${part} ${noun}s`;
  return `${subject}${where} ${number === 1 ? "is" : "are"} ${worst.replace(/-/g, " ")}`;
}

const STATUS_TEXTS = {
  "unavailable": "It did not answer usefully several times in a row.",
  "degraded": "It answers, but with serious trouble. Do not rely on it where time matters.",
  "catching-up": "It answers, but is behind. Expect old data; this is not an outage.",
  "stale": "There is no recent reading: what was seen is too old to tell.",
  "unknown": "There is too little to judge by: it may or may not work.",
  "current": "It answers, and what was checked is as it should be.",
  "unmonitored": "Nobody watches this here. That is not a failure.",
};

const REASON_TEXTS = {
  "synced": "It has come as far as it should.",
  "behind": "It trails what it should have reached.",
  "responding": "Everything that was asked has answered.",
  "partial-coverage": "Some of them were heard, others were not.",
  "unreachable": "It could not be reached, or its answer could not be understood.",
  "not-configured": "The operator has set up nothing to watch here.",
  "no-observation": "Nothing was seen yet, or it holds nothing for this chain.",
  "incompatible-reference": "It answered, but there was nothing safe to compare its answer with.",
  "incomplete": "It has come as far as it should, but lacks entries that the chain has.",
  "inconsistent": "It has come as far as it should, but has entries that the chain does not have.",
};

const NOTES = /* @__PURE__ */ Object.freeze(
  /* @__PURE__ */ [
    ["one-view", null, "This is what one monitor sees from one place. It is not an official status."],
    ["not-a-signal", null, "It is not a signal that it is safe to transact."],
    ["history", null, "The history does not tell what is up now."],
    ["partial", ["broadcasters"], "Degraded broadcasters are a partial reading: some were not heard, others may work."],
    ["peers", ["messaging"], "Peers are connections. They do not prove that a message is delivered."],
    ["wallet-sync", ["indexer", "hosted-indexer"], "Whether an indexer is up to date does not tell whether your wallet is synced."],
    ["proofs", ["ppoi"], "An up-to-date node tells nothing about your wallet's proofs, compliance or balance."],
    ["others", ["ppoi", "hosted-indexer"], "This is run by other people, not by the operator of the monitor."],
  ].map(([id, services, text]) => Object.freeze({ id, services: services && Object.freeze(services), text })),
);

function statusText(effective) {
  return textIn(STATUS_TEXTS, effective) ?? STATUS_TEXTS.unknown;
}

function reasonText(reason) {
  return textIn(REASON_TEXTS, reason);
}

function textIn(texts, key) {
  return Object.keys(texts).includes(key) ? texts[key] : null;
}

function notesFor(service, runByOthers = null) {
  return NOTES.filter(({ id, services }) => {
    if (services === null) return true;
    return id === "others" && runByOthers !== null ? runByOthers : services.includes(service);
  });
}
export {
  EFFECTIVE_STATUSES,
  KNOWN_STATUSES,
  MAINNETS,
  NOTES,
  SCHEMA_VERSION,
  SERVICES,
  SHARED_SERVICE,
  TEST_NETWORK,
  WINDOWS,
  bucketBeginsAt,
  bucketsOf,
  canUse,
  checkKey,
  clockAheadMs,
  countedChains,
  coverageOf,
  createReader,
  effectiveStatus,
  findRow,
  headlineOf,
  incidentsOf,
  newFeed,
  notesFor,
  obstaclesOf,
  parseAbout,
  parseHistory,
  parseHttpDate,
  parseInstant,
  parseReport,
  poll,
  reasonText,
  rollUp,
  rowsByCheck,
  statusText,
  takeAnswer,
  wrongClock,
};
