// The live report, and what its rows are worth.

import { FUTURE_MS, clocksOf } from "./clocks.js";
import { isObject, readDocument, readRows, unreadable, whole } from "./document.js";
import { parseInstant } from "./instants.js";
import { KNOWN_STATUSES } from "./statuses.js";

export const OLD_MS = 300_000;
const METRICS = "position head responding monitored peers missing extra breaks gap views agreeing".split(" ");

/** The live report in `text` (a string or UTF-8 bytes), or why it cannot be read. Never throws (C6). */
export function parseReport(text) {
  const { problem, fields } = readDocument(text, "checks");
  if (problem) return unreadable(problem);
  return Object.freeze({
    readable: true,
    generatedAt: parseInstant(fields.generatedAt),
    ...readRows(fields.checks, readCheck),
  });
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

/** The metrics that are known; one that is missing is left out and never 0 (C5). */
function readMetrics(raw) {
  const metrics = {};
  for (const key of METRICS) {
    const value = isObject(raw) ? whole(raw[key], 0) : null;
    if (value !== null) metrics[key] = value;
  }
  return Object.freeze(metrics);
}

/**
 * What a row of the live report is worth now (C1 to C4). A row that is unreadable or not there (null) is unknown, and
 * so is every watched row for a reader without a clock. The other arguments are for tests: an instant, how long ago its
 * report first arrived, by a clock that is never set (a row is at least that old), and by how much the clock is ahead:
 * no row is judged by a clock that is known to be behind.
 */
export function effectiveStatus(row, now, receivedAgoMs = 0, clockAheadMs = 0) {
  return judgeRow(row, clocksOf(row, { now, receivedAgoMs, clockAheadMs }));
}

export function judgeRow(row, { now, receivedAgoMs, clockAheadMs }) {
  if (!row?.readable) return "unknown";
  const { publishedStatus, observedAt, expiresAt } = row;
  if (publishedStatus === "unmonitored") return "unmonitored"; // C1
  if (!KNOWN_STATUSES.includes(publishedStatus) || !Number.isFinite(now)) return "unknown"; // C1
  if (observedAt === null || expiresAt === null) return "unknown"; // C2
  if (observedAt - now > FUTURE_MS || expiresAt <= observedAt || clockAheadMs < -FUTURE_MS) return "unknown"; // C2
  const ageMs = Math.max(now - observedAt, receivedAgoMs ?? 0);
  if (!(ageMs < Math.min(expiresAt - observedAt, OLD_MS))) return "stale"; // C3
  return publishedStatus; // C4
}

/** The milliseconds until the passing of time changes what a row is worth by these clocks; Infinity if it does not. */
export function nextChangeMs(rows, { now, receivedAgoMs, clockAheadMs }) {
  let next = Infinity;
  for (const row of rows) {
    const { observedAt, expiresAt } = row;
    const lifetimeMs = Math.min(expiresAt - observedAt, OLD_MS);
    const worth = judgeRow(row, { now, receivedAgoMs, clockAheadMs });
    // The instants that the rules above compare with.
    for (const wait of [observedAt - FUTURE_MS - now, observedAt + lifetimeMs - now, lifetimeMs - receivedAgoMs]) {
      const then = { now: now + wait, receivedAgoMs: receivedAgoMs + wait, clockAheadMs };
      if (wait > 0 && wait < next && judgeRow(row, then) !== worth) next = wait;
    }
  }
  return next;
}
