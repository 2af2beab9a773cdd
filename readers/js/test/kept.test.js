// Updates and documents that somebody keeps: they are judged by the clock of the call, however they were copied.

import assert from "node:assert/strict";
import { test } from "node:test";
import { canUse, effectiveStatus, findRow, obstaclesOf, parseReport } from "../src/index.js";
import { overviewOf, rollUp } from "../src/page.js";
import { fresh, start } from "../testing/polled.js";
import { aReportText } from "../testing/world.js";

const NEEDS = { chain: 1, services: ["ppoi", "messaging"] };
const DAY_S = 86_400;

/** An update that was just received, and its clock. */
async function received() {
  const { clock, updates, polling } = start(fresh, { history: false });
  await clock.pass(1);
  polling.stop();
  return { clock, update: updates[0] };
}

const COPIES = {
  "the update itself": (update) => update,
  "a spread": (update) => ({ ...update }),
};

for (const [name, keep] of Object.entries(COPIES)) {
  test(`C4: ${name} is judged by its reader's clocks at each call, in the calls of 2.0.0 too`, async () => {
    const { clock, update } = await received();
    const kept = keep(update);
    const calls = {
      canUse: () => canUse(kept.report, NEEDS),
      "canUse of 2.0.0": () => canUse(kept.report, { ...kept, ...NEEDS }),
      effectiveStatus: () => effectiveStatus(findRow(kept.report, "ppoi", 1)) === "current",
      "effectiveStatus of 2.0.0": () => {
        const row = findRow(kept.report, "ppoi", 1);
        return effectiveStatus(row, kept.now, kept.receivedAgoMs) === "current";
      },
      obstaclesOf: () => obstaclesOf(kept.report, { ...kept, ...NEEDS }).length === 0,
      rollUp: () => rollUp(kept.report, { ...kept, chains: [1], services: ["ppoi"] }).healthy,
      overviewOf: () => overviewOf(kept.report, { ...kept, chains: [] }).services.messaging === "current",
    };
    for (const [call, isWell] of Object.entries(calls)) assert.ok(isWell(), call);
    await clock.pass(DAY_S);
    for (const [call, isWell] of Object.entries(calls)) assert.ok(!isWell(), call);
  });
}

test("C4: by a clock that is set back a report is as old as its reader knows", async () => {
  const { clock, update } = await received();
  await clock.pass(DAY_S);
  clock.setWallClock(-DAY_S * 1000);
  assert.equal(canUse(update.report, NEEDS), false);
});

for (const [name, copy] of [
  ["JSON", (update) => JSON.parse(JSON.stringify(update))],
  [
    "2.0.0's JSON, which has instants",
    (update, at) => JSON.parse(JSON.stringify({ ...update, now: at, receivedAgoMs: 0 })),
  ],
  ["a deep copy", (update) => structuredClone(update)],
]) {
  test(`C4: a copy by ${name} is judged by the wall clock`, (context) => {
    context.mock.timers.enable({ apis: ["Date"], now: Date.parse("2026-11-15T12:00:00Z") });
    const kept = copy({ report: parseReport(aReportText(Date.now())), clockAheadMs: null }, Date.now());
    const can = () => canUse(kept.report, { ...kept, ...NEEDS });
    assert.equal(can(), true);
    context.mock.timers.setTime(Date.now() + DAY_S * 1000);
    assert.equal(can(), false);
  });
}
