// One sentence for the rows of the chains that count.

import { checkKey, rowsByCheck } from "./document.js";
import { summarizeCheck } from "./gate.js";
import { countByStatus, worstOf } from "./rollup.js";
import { MAINNETS, SERVICES, SHARED_SERVICE, TEST_NETWORK } from "./services.js";

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
  const checks = Array.from(asked.values(), (check) => summarizeCheck(rows, check, now, receivedAgoMs));
  const leftOut = Array.from(rows.values(), ({ chainId }) => chainId).filter((chainId) => !scope.has(chainId));
  const [[worst, number], ...others] = countByStatus(checks).filter(([, count]) => count > 0);
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
  const worst = new Map();
  for (const { service, effective } of checks) worst.set(service, worstOf([effective, worst.get(service)]));
  return Object.fromEntries(worst);
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
