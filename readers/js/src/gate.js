// What stands in the way of what a wallet needs.

import { clocksOf } from "./clocks.js";
import { checkKey, rowsByCheck } from "./document.js";
import { judgeRow } from "./report.js";
import { SERVICES, SHARED_SERVICE } from "./services.js";

const SEVERITIES = { unavailable: "bad", degraded: "warn", "catching-up": "warn" };

/** Whether every one of the `services` is current on this chain: true only if nothing stands in the way. */
export function canUse(report, needs) {
  return obstaclesOf(report, needs).length === 0;
}

/**
 * What stands in the way of using the `services` on this `chain` now: each check that is not current. One that is
 * unmonitored, unknown, unreadable or not in the report is not current. A service with one row for all chains, such as
 * messaging, is found by itself.
 */
export function obstaclesOf(report, { chain, services, ...given }) {
  if (!Array.isArray(services) || services.length === 0) throw new TypeError("services: no list of names given");
  if (typeof (chain ?? 0) !== "number") throw new TypeError(`chain: ${chain} (${typeof chain}) is not a number`);
  const rows = readableRows(report);
  const clocks = clocksOf(report, given);
  return [...services] // a hole is a service that nobody can read
    .flatMap((service) =>
      chainsOf(rows, service, chain).map((chainId) => summarizeCheck(rows, { service, chainId }, clocks)),
    )
    .filter(({ effective }) => effective !== "current")
    .map((check) => ({ ...check, severity: SEVERITIES[check.effective] ?? "unknown" }));
}

/**
 * Where the service has to be current; one that is not the contract's may have a row for each chain, or a shared one.
 */
function chainsOf(rows, service, chain) {
  if (service === SHARED_SERVICE) return [null];
  const found = [chain, null].filter(
    (chainId) => !SERVICES.includes(service) && rows.has(checkKey({ service, chainId })),
  );
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
