// Why nothing is known of a check.

import { FUTURE_MS, clocksOf, wrongClock } from "./clocks.js";
import { obstaclesOf } from "./gate.js";

// One is made within 30 s, may be 60 s in caches, and is asked for every 30.
const REPORT_OLD_MS = 120_000;
// Lookout answered, but nothing that this reader can use. Any other failure may be this device's network.
const ANSWERED = ["not-available", "unexpected", "wrong-version", null];

/** As obstaclesOf, with the cause of what is unknown. `reportCode` is what is wrong with the last request. */
export function explainObstacles(report, { reportCode = null, ...needs }) {
  const cause = findCause(report, reportCode, clocksOf(report, needs));
  return obstaclesOf(report, needs).map((check) => ({ ...check, cause: check.severity === "unknown" ? cause : null }));
}

/** Null if nothing was asked yet. */
function findCause(report, reportCode, clocks) {
  const { generatedAt = null } = report ?? {};
  if (wrongClock(clocks) || generatedAt - clocks.now > FUTURE_MS) return "device-clock";
  const ageMs = Math.max(clocks.now - generatedAt, clocks.receivedAgoMs ?? 0);
  if (generatedAt !== null && ageMs < REPORT_OLD_MS) return "not-observed";
  if (!report && reportCode === null) return null;
  return ANSWERED.includes(reportCode) ? "monitor-silent" : "network";
}
