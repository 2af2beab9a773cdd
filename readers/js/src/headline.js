// One sentence for the rows of the chains that count.

import { clocksOf } from "./clocks.js";
import { isIdentified } from "./document.js";
import { countByStatus, countChecks, requireChain, worstOf } from "./rollup.js";
import { STATUS_NAMES } from "./sentences.js";
import { MAINNETS, TEST_NETWORK } from "./services.js";

/**
 * The checks of these chains, and those of no chain, in one sentence that says no more than they do (C11). Chains among
 * the `testNetworks` are left out. Nothing of a report that is `inDoubt` is current now. Without `showUnmonitored` what
 * nobody watches is left out, as it is no part of the deployment.
 */
export function headlineOf(
  report,
  { chains = MAINNETS, testNetworks = [TEST_NETWORK], inDoubt = false, showUnmonitored = true, ...given } = {},
) {
  const counted = [...new Set(chains)].filter((chainId) => !testNetworks.includes(chainId));
  const { checks: all, doubts } = countChecks(report, counted, undefined, clocksOf(report, given));
  const checks = showUnmonitored ? all : all.filter(({ effective }) => effective !== "unmonitored");
  const scope = new Set([null, ...counted]);
  const leftOut = report.rows.filter((row) => isIdentified(row) && !scope.has(row.chainId));
  const [[worst, number] = ["unmonitored", 0], ...others] = countByStatus(checks).filter(([, count]) => count > 0);
  const status = requireChain(worstOf([worst === "current" && inDoubt ? "unknown" : worst, ...doubts]), checks);
  const unmonitored = checks.filter(({ effective }) => effective === "unmonitored").length;
  return {
    text: headlineText(
      worst,
      number,
      checks.length - unmonitored,
      unmonitored > 0,
      whereText(leftOut, testNetworks),
      status,
    ),
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
  if (status === "unmonitored") return `No chain is watched${where}`;
  if (worst === "current" && status !== worst) return `No problem${where} when last seen`;
  const noun = isPartOfAll ? "watched check" : "check";
  const part = number === watched ? `All ${watched}` : `${number} of ${watched}`;
  const subject = watched === 1 ? `The only ${noun}` : `${part} ${noun}s`;
  return `${subject}${where}: ${STATUS_NAMES[worst]}`;
}
