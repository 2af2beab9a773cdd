// One status for many rows, for status pages: it is no gate.

import { clocksOf } from "./clocks.js";
import { checkKey, isIdentified } from "./document.js";
import { readableRows, summarizeCheck } from "./gate.js";
import { MAINNETS, SERVICES, SHARED_SERVICE, TEST_NETWORK } from "./services.js";
import { EFFECTIVE_STATUSES } from "./statuses.js";

/**
 * One status for each service and for all, over the chains of the client's allowlist (C11): of the checks that
 * countChecks finds. With anything but current rows nothing is healthy. Unmonitored rows are neither failure nor
 * health, and so is a service without a check on these chains: this is no gate, for which there is canUse. Shared rows
 * alone are healthy only if their services are named. Sepolia is left out, even if listed, unless `includeTestNetwork`.
 */
export function rollUp(report, { chains = MAINNETS, services, includeTestNetwork = false, ...given } = {}) {
  const allowed = [...new Set(chains)].filter((chainId) => includeTestNetwork || chainId !== TEST_NETWORK);
  const named = services && [...services];
  const { checks, doubts } = countChecks(report, allowed, named, clocksOf(report, given));
  const byService = new Map((named ?? SERVICES).map((service) => [service, []]));
  for (const check of checks) {
    if (!byService.has(check.service)) byService.set(check.service, []);
    byService.get(check.service).push(check);
  }
  const summaries = Array.from(byService, ([service, own]) => {
    return {
      service,
      ...judge(own.length === 0 ? "unmonitored" : worstOf(own.map(({ effective }) => effective))),
      checks: own,
    };
  });
  const counts = Object.fromEntries(countByStatus(checks));
  const worst = worstOf([...doubts, ...summaries.map(({ status }) => status)]);
  return { ...judge(named ? worst : requireChain(worst, checks)), chains: allowed, services: summaries, counts };
}

/**
 * What every summary counts. The checks are those of the `services` that are named; or of the contract's five and
 * whatever else the report has, of no chain or on these chains. Each of the five is expected on every chain, and
 * messaging once; another that is named is too, unless it has a row of no chain. A check that is missing or unreadable
 * is unknown. The doubts are "unknown" if nobody knows which check a row is of; one of the five would be missing, and
 * count as that.
 */
export function countChecks(report, chains, services, clocks) {
  const rows = readableRows(report);
  const scope = new Set([null, ...chains]);
  const expected = (services ?? SERVICES).flatMap((service) => {
    if (service === SHARED_SERVICE) return { service, chainId: null };
    const isShared = !SERVICES.includes(service) && rows.has(checkKey({ service, chainId: null }));
    return isShared ? [] : chains.map((chainId) => ({ service, chainId }));
  });
  const named = services && new Set(services);
  const isCounted = ({ service, chainId }) => scope.has(chainId) && (named?.has(service) ?? true);
  const found = [...rows.values()].filter(isCounted);
  const counted = new Map([...expected, ...found].map((check) => [checkKey(check), check]));
  return {
    checks: Array.from(counted.values(), (check) => summarizeCheck(rows, check, clocks)),
    doubts:
      !services && report?.rows?.some((row) => !isIdentified(row) && !SERVICES.includes(row.service))
        ? ["unknown"]
        : [],
  };
}

function judge(status) {
  return { status, healthy: status === "current" };
}

/** How many checks came to each status, from the worst one on. */
export function countByStatus(checks) {
  return EFFECTIVE_STATUSES.map((status) => [status, checks.filter(({ effective }) => effective === status).length]);
}

/**
 * The status of a summary of these checks, of which this is the worst: unmonitored instead of current if no check of a
 * chain is current, since shared rows only worsen a summary.
 */
export function requireChain(worst, checks) {
  const isSeen = checks.some(({ chainId, effective }) => chainId !== null && effective === "current");
  return worst === "current" && !isSeen ? "unmonitored" : worst;
}

export function worstOf(statuses) {
  return EFFECTIVE_STATUSES.find((status) => statuses.includes(status)) ?? "unknown";
}
