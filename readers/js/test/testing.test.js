import assert from "node:assert/strict";
import { test } from "node:test";
import { canUse, parseHistory, parseReport } from "../src/index.js";
import { STATES, documentOf, fakeReader, handlers, historyOf } from "../src/testing.js";

const NEEDS = { chain: 1, services: ["messaging", "ppoi", "broadcasters", "indexer"] };

const SHOWN = {
  loading: ["unknown", null],
  fine: null,
  unavailable: ["bad", null],
  degraded: ["warn", null],
  "catching-up": ["warn", null],
  unknown: ["unknown", "not-observed"],
  unmonitored: ["unknown", "not-observed"],
  stale: ["unknown", "not-observed"],
  "dead-monitor": ["unknown", "monitor-silent"],
  "new-status": ["unknown", "not-observed"],
  "new-reason": ["warn", null],
  dissent: null,
  "reason:not-everywhere": ["unknown", "not-observed"],
  "reason:incomplete": ["warn", null],
  "other-version": ["unknown", "monitor-silent"],
};

for (const [state, expected] of Object.entries(SHOWN)) {
  test(`C4: what stands in the way in the state ${state}`, async () => {
    const reader = fakeReader(state);
    const found = reader.obstacles(NEEDS).find(({ service }) => service === "indexer");
    assert.deepEqual(found ? [found.severity, found.cause] : null, expected);
    assert.equal(reader.canUse(NEEDS), expected === null);
    assert.equal((await reader.read()).report === null, state === "loading" || state === "other-version");
  });
}

test("a state that is set is told, and whoever waits goes on", async () => {
  const reader = fakeReader("unavailable");
  const told = [];
  const end = reader.subscribe(({ report, reportCode }) => told.push([canUse(report, NEEDS), reportCode]));
  const usable = reader.whenUsable(NEEDS);
  for (const state of ["dead-monitor", "no-network", "fine"]) reader.show(state);
  await usable;
  end();
  reader.show("stale");
  assert.deepEqual(told, [
    [false, null],
    [false, "no-answer"],
    [true, null],
  ]);
  assert.throws(() => reader.show("fien"), /fien is none of fine, /);
});

test("every document but the one of another version is one that readers read", () => {
  for (const state of STATES) assert.equal(parseReport(documentOf(state)).readable, state !== "other-version");
  assert.ok(parseHistory(historyOf()).readable);
});

test("handlers answer both endpoints, each time with what is the state then", async () => {
  let state = "fine";
  const http = { get: (url, resolve) => ({ url, resolve }) };
  const [live, history] = handlers(http, "https://liveness.example/", "protocol", () => state);
  assert.equal(live.url, "https://liveness.example/api/v1/protocol/liveness");
  assert.ok(canUse(parseReport(await live.resolve().text()), NEEDS));
  state = "unavailable";
  assert.ok(!canUse(parseReport(await live.resolve().text()), NEEDS));
  state = "no-network";
  assert.equal(live.resolve().type, "error");
  assert.ok(parseHistory(await history.resolve().text()).readable);
});
