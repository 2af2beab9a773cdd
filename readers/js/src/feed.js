// What is held of one endpoint, and what follows from an answer: no network, no clock, no chance of its own.

import { FUTURE_MS } from "./clocks.js";
import { WRONG_VERSION } from "./document.js";
import { parseHttpDate } from "./instants.js";
import { OLD_MS } from "./report.js";

const JITTER = 0.1;
const BACKOFF_JITTER = 0.5;
const BACKOFF_MOST_S = 200; // C15
const RETRY_AFTER_MOST_S = 60; // C15
const HISTORY_KEPT_MS = 600_000; // C14
const EVERY_MOST_S = 86_400; // what timers can count
export const FLOORS_S = { live: 15, history: 60 };
export const BODIES_MOST = { live: 2 * 1024 * 1024, history: 16 * 1024 * 1024 };

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

/** A failure in words and as a code. */
export function failure(code) {
  return { problem: PROBLEMS[code], code };
}

/** What is held of one endpoint before anything was asked: `kind` is "live" or "history". The floors hold (C10). */
export function newFeed(kind, everyS) {
  return Object.freeze({
    kind,
    everyS: boundSeconds(kind, everyS, FLOORS_S[kind], EVERY_MOST_S),
    document: null,
    bytes: null,
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

export function boundSeconds(name, value, least, most) {
  if (typeof value !== "number" || Number.isNaN(value))
    throw new TypeError(`${name}: ${value} is not a number of seconds`);
  return Math.min(Math.max(value, least), most);
}

/** As takeAnswer, for a document that `parse` reads. */
export function advanceFeed(parse, feed, answer, now, chance) {
  const { problem = null, code = null, document = feed.document } = judgeAnswer(parse, feed, answer);
  const { everyS } = feed;
  const isOlder = document !== feed.document && isOlderCopy(feed, document, now);
  const ahead = isOlder ? null : clockAheadMs(answer, now);
  const after = { ...feed, problem, code, clockAheadMs: ahead ?? feed.clockAheadMs };
  if (problem === null) {
    after.failures = 0;
    after.waitS = everyS + everyS * JITTER * chance;
    if (document !== feed.document && !isOlder) {
      after.document = document;
      after.bytes = feed.kind === "live" ? answer.text : null; // a history is long
      after.etag = /^[ -~]+$/.test(answer.etag ?? "") ? answer.etag : null; // what can be sent back
      if (!isSame(feed, after)) {
        after.arrivals++;
        after.arrivedAt = now;
        after.clockAheadMs = ahead ?? guessClockAheadMs(feed, document, now);
      }
    }
  } else {
    after.failures++;
    const askedS = askedToWaitS(answer, now);
    after.waitS = Math.max(backoffS(feed, after.failures, chance), askedS + askedS * JITTER * chance);
  }
  return Object.freeze(after);
}

/** The seconds to wait after so many failures in a row (C15). */
function backoffS({ kind, everyS }, failures, chance) {
  const leastS = Math.min(Math.max(FLOORS_S[kind], everyS * 2 ** (failures - 2)), BACKOFF_MOST_S);
  const waitS = leastS + leastS * BACKOFF_JITTER * chance;
  return Math.min(waitS, 2 * BACKOFF_MOST_S - waitS); // beyond the most, chance shortens: all readers wait differently
}

/**
 * Whether a document is an older copy than the one that is held, as a cache may have that serves after an error
 * (C14). A held one that is old, or of another time by this clock, is given up for whatever comes.
 */
function isOlderCopy({ kind, document: held, arrivedAt }, { generatedAt }, now) {
  if ((held?.generatedAt ?? null) === null || generatedAt >= held.generatedAt) return false;
  if (kind === "history") return now >= arrivedAt && now - arrivedAt < HISTORY_KEPT_MS;
  return now - held.generatedAt < OLD_MS && held.generatedAt - now <= FUTURE_MS;
}

/** The seconds that an answer asks to wait for. */
export function askedToWaitS({ retryAfter, date }, now) {
  const until = parseHttpDate(retryAfter);
  const waitS = until === null ? seconds(retryAfter) : (until - (parseHttpDate(date) ?? now)) / 1000;
  return Math.min(Math.max(waitS, 0), RETRY_AFTER_MOST_S);
}

function seconds(text) {
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}

/** Whether a document is the one that was held already, sent once more: nothing about it may be renewed then. */
function isSame(held, { document, etag }) {
  if (held.document === null) return false;
  if (etag !== null && etag === held.etag) return true;
  // Without a date and an ETag nothing says that they differ.
  const { generatedAt } = document;
  return generatedAt === held.document.generatedAt && (generatedAt !== null || (etag ?? held.etag) === null);
}

/** The document that is now the last good one, or what is wrong. */
function judgeAnswer(parse, feed, { problem, code = "no-answer", httpCode, text }) {
  if (problem !== undefined) return { problem, code };
  if (httpCode === 304 && feed.document !== null) return {};
  if (httpCode !== 200)
    return CODES[httpCode]
      ? failure(CODES[httpCode])
      : { problem: `an unexpected answer, HTTP ${httpCode}`, code: "unexpected" };
  if (text?.length > BODIES_MOST[feed.kind]) return failure("too-long");
  const document = parse(text);
  if (document.readable) return { document };
  return {
    problem: `unreadable: ${document.problem}`,
    code: document.problem === WRONG_VERSION ? "wrong-version" : "unreadable",
  };
}

// ---- The device's clock

const REPORTS_AHEAD_MS = 150_000; // a report is made every 30 s
const APART_MOST_MS = 120_000;
const STEADY_MS = 60_000;

/**
 * By how much this reader's clock seems to be ahead of the server's, from an answer's `Date`; null if unknown. `Age`
 * only explains a `Date` that is old: some caches send it with a new one.
 */
export function clockAheadMs({ date, age }, now) {
  const at = parseHttpDate(date);
  return at === null ? null : Math.max(now - at - seconds(age) * 1000, Math.min(now - at, 0));
}

/**
 * The same where no `Date` can be read, as in a page of another origin: from a report that just arrived. One from the
 * future came too early; and one that is old is no old copy if it and the one before came as far apart as they were
 * made.
 */
function guessClockAheadMs(held, { generatedAt }, now) {
  const aheadMs = now - generatedAt;
  const apartMs = now - held.arrivedAt;
  const isSteady =
    apartMs < APART_MOST_MS && Math.abs(apartMs - (generatedAt - held.document?.generatedAt)) < STEADY_MS;
  const isWrong = aheadMs < -FUTURE_MS || (aheadMs > REPORTS_AHEAD_MS && isSteady);
  return generatedAt !== null && isWrong ? aheadMs : null;
}
