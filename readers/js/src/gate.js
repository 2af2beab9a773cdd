// What stands in the way of what a wallet needs.

import { FUTURE_MS, clocksOf, wrongClock } from "./clocks.js";
import { checkKey, rowsByCheck } from "./document.js";
import { judgeRow } from "./report.js";
import { SERVICES, SHARED_SERVICE } from "./services.js";

const SEVERITIES = { unavailable: "bad", degraded: "warn", "catching-up": "warn" };
// One is made within 30 s, may be 60 s in caches, and is asked for every 30.
const REPORT_OLD_MS = 120_000;
// Lookout answered, but nothing that this reader can use. Any other failure may be this device's network.
const ANSWERED = ["not-available", "unexpected", "wrong-version", null];

/** Whether every one of the `services` is current on this chain: true only if nothing stands in the way. */
export function canUse(report, needs) {
  return obstaclesOf(report, needs).length === 0;
}

/**
 * What stands in the way of using the `services` on this `chain` now: each check that is not current. One that is
 * unmonitored, unknown, unreadable or not in the report is not current. A service with one row for all chains, such as
 * messaging, is found by itself. `reportCode` is what is wrong with the last request.
 */
export function obstaclesOf(report, { chain, services, reportCode = null, ...given }) {
  if (!Array.isArray(services) || services.length === 0) throw new TypeError("services: no list of names given");
  if (typeof (chain ?? 0) !== "number") throw new TypeError(`chain: ${chain} (${typeof chain}) is not a number`);
  const rows = readableRows(report);
  const clocks = clocksOf(report, given);
  return [...services] // a hole is a service that nobody can read
    .flatMap((service) => chainsOf(rows, service, chain).map((chainId) => summarizeCheck(rows, { service, chainId }, clocks)))
    .filter(({ effective }) => effective !== "current")
    .map((check) => {
      const severity = SEVERITIES[check.effective] ?? "unknown";
      return { ...check, severity, cause: severity === "unknown" ? findCause(report, reportCode, clocks) : null };
    });
}

/** Why nothing is known of a check; null if nothing was asked yet. */
function findCause(report, reportCode, clocks) {
  const { generatedAt = null } = report ?? {};
  if (wrongClock(clocks) || generatedAt - clocks.now > FUTURE_MS) return "device-clock";
  const ageMs = Math.max(clocks.now - generatedAt, clocks.receivedAgoMs ?? 0);
  if (generatedAt !== null && ageMs < REPORT_OLD_MS) return "not-observed";
  if (!report && reportCode === null) return null;
  return ANSWERED.includes(reportCode) ? "monitor-silent" : "network";
}

/** Where the service has to be current; one that is not the contract's may have a row for each chain, or a shared one. */
function chainsOf(rows, service, chain) {
  if (service === SHARED_SERVICE) return [null];
  const found = [chain, null].filter((chainId) => !SERVICES.includes(service) && rows.has(checkKey({ service, chainId })));
  return found.length === 0 ? [chain] : found;
}

export function readableRows(report) {
  return report?.readable ? rowsByCheck(report) : new Map();
}

export function summarizeCheck(rows, { service, chainId }, clocks) {
  const row = rows.get(checkKey({ service, chainId })) ?? null;
  const presence = row === null ? "missing" : row.readable ? "readable" : "unreadable";
  return { service, chainId, effective: judgeRow(row, clocks), presence, row };
}
