// One status for many rows, for status pages: it is no gate.

import { checkKey, isIdentified } from "./document.js";
import { readableRows, summarizeCheck } from "./gate.js";
import { MAINNETS, SERVICES, SHARED_SERVICE, TEST_NETWORK } from "./services.js";
import { EFFECTIVE_STATUSES } from "./statuses.js";

/**
 * One status for each service and for all, over the chains of the client's allowlist (C11). These are the `services` that
 * you name; or the contract's five and whatever else the report has, of no chain or on these chains. A row that is
 * missing or unreadable counts as unknown, and with anything but current rows nothing is healthy. Unmonitored rows are
 * neither failure nor health: this is no gate, for which there is canUse. A service that has a row of no chain is expected
 * on no chain, but what it has on these chains counts. Sepolia is left out, even if listed, unless `includeTestNetwork`.
 * `receivedAgoMs` is as in effectiveStatus.
 */
export function rollUp(report, { now, receivedAgoMs = 0, chains = MAINNETS, services, includeTestNetwork = false }) {
  const rows = readableRows(report);
  const allowed = [...new Set(chains)].filter((chainId) => includeTestNetwork || chainId !== TEST_NETWORK);
  const scope = new Set([null, ...allowed]);
  const isEvery = services === undefined;
  const expected = isEvery ? SERVICES : [...services];
  const found = isEvery ? [...rows.values()].filter(({ chainId }) => scope.has(chainId)) : [];
  const summaries = [...new Set([...expected, ...found.map(({ service }) => service)])].map((service) => {
    const checks = scopeOf(service, allowed, rows, expected.includes(service)).map((chainId) =>
      summarizeCheck(rows, { service, chainId }, now, receivedAgoMs),
    );
    return { service, ...judge(checks.map((check) => check.effective)), checks };
  });
  const statuses = summaries.map((summary) => summary.status);
  if (isEvery && report?.readable && report.rows.some(isAnyones)) statuses.push("unknown");
  const counts = Object.fromEntries(countByStatus(summaries.flatMap(({ checks }) => checks)));
  return { ...judge(statuses), chains: allowed, services: summaries, counts };
}

function judge(statuses) {
  const status = worstOf(statuses);
  return { status, healthy: status === "current" };
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

/** How many checks came to each status, from the worst one on. */
export function countByStatus(checks) {
  return EFFECTIVE_STATUSES.map((status) => [status, checks.filter(({ effective }) => effective === status).length]);
}

export function worstOf(statuses) {
  return EFFECTIVE_STATUSES.find((status) => statuses.includes(status)) ?? "unknown";
}
