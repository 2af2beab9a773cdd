// By what rows are judged: clocks that are read at each call, since whoever keeps an instant keeps what is green, too.

export const FUTURE_MS = 30_000;
const AHEAD_MS = 90_000; // 60 s of it a cache may explain

// One for all copies of this module in a program, of which the package's two CommonJS files have one each.
const CLOCKS = /* @__PURE__ */ (() => (globalThis[Symbol.for("lookout.clocks")] ??= new WeakMap()))();

/** From now on a report and its rows are judged by these clocks of the reader that received it. */
export function keepClocks(report, readClocks) {
  for (const part of [report, ...report.rows]) CLOCKS.set(part, readClocks);
}

/**
 * By what a report or a row is judged at this moment: by the clocks of its reader, or, as a copy, by the wall clock.
 * Only tests give a `now`. What 2.0.0 took from a kept update (`{ ...update }`) can make a row older, but not younger.
 */
export function clocksOf(part, given = {}) {
  if (given.now !== undefined && !("report" in given)) return given;
  const known = CLOCKS.get(part)?.() ?? { now: Date.now() };
  return {
    now: Math.max(known.now, given.now ?? known.now),
    receivedAgoMs: Math.max(known.receivedAgoMs ?? 0, given.receivedAgoMs ?? 0),
    clockAheadMs: known.clockAheadMs ?? given.clockAheadMs,
  };
}

/** Whether an update's clock is known to be wrong, as far as no cache explains it: "ahead", "behind" or null. */
export function wrongClock({ clockAheadMs }) {
  if (clockAheadMs > AHEAD_MS) return "ahead";
  return clockAheadMs < -FUTURE_MS ? "behind" : null;
}
