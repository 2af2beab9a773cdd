import assert from "node:assert/strict";
import { test } from "node:test";
import { clockAheadMs, effectiveStatus, findRow, parseReport, wrongClock } from "../src/page.js";
import { fresh, ppoi, start } from "../testing/polled.js";
import { aHistoryText, aPage, aReportText, response } from "../testing/world.js";

for (const [name, again] of [
  ["a 304", () => response(304)],
  ["the same report", (text) => response(200, text, { etag: '"one"' })],
  ["the same report without an ETag", (text) => response(200, text)],
  ["nothing", () => Promise.reject(new TypeError("Failed to fetch"))],
]) {
  test(`C3: a clock that is an hour slow makes no old report current when it gets there: ${name}`, async () => {
    let text;
    const { clock, told, polling } = start(
      (_url, _options, times, clock) => {
        text ??= aReportText(clock.now() + 3_600_000);
        return times === 1 ? response(200, text, { etag: '"one"' }) : again(text);
      },
      { history: false },
    );
    clock.setWallClock(-3_600_000);
    await clock.pass(1);
    assert.equal(told.at(-1), "unknown");
    await clock.pass(4000);
    polling.stop();
    assert.deepEqual([...new Set(told)], ["unknown"]);
  });
}

test("C3: how long ago the report first arrived is told, by the clock that is never set", async () => {
  const ages = [];
  const answer = (url, options, times, clock) => (times === 2 ? response(304) : fresh(url, options, times, clock));
  const { clock, polling } = start(answer, {
    history: false,
    onUpdate: (update) => ages.push(update.receivedAgoMs),
  });
  assert.deepEqual([polling.receivedAgoMs(), polling.latest().receivedAgoMs], [null, null]);
  await clock.pass(10);
  clock.setWallClock(7_200_000);
  assert.deepEqual([polling.receivedAgoMs(), polling.latest().receivedAgoMs], [10_000, 10_000]);
  await clock.pass(25);
  assert.equal(polling.receivedAgoMs(), 35_000); // a 304 renewed nothing
  await clock.pass(30);
  polling.stop();
  assert.equal(polling.receivedAgoMs(), 5_000);
  assert.deepEqual(ages, [0, 15_000, 30_000, 0]); // at once, when the clock was set, unchanged, anew
});

test("the clock's offset is taken from the live report only, and in a page not from the browser's copies", async () => {
  const served = (url, _options, _times, clock) => {
    const date = new Date(clock.now() - (url.endsWith("/history") ? 3_600_000 : 0)).toUTCString();
    return response(200, url.endsWith("/history") ? aHistoryText(clock.now()) : aReportText(clock.now()), { date });
  };
  const { clock, network, updates, polling } = start(served);
  await clock.pass(1);
  polling.stop();
  assert.deepEqual(
    updates.map((update) => update.clockAheadMs),
    [0, 0],
  );
  assert.deepEqual(
    network.asked.map(({ cache }) => cache),
    [undefined, undefined],
  );
  globalThis.document = aPage();
  try {
    const page = start(served);
    await page.clock.pass(1);
    page.polling.stop();
    assert.deepEqual(
      page.network.asked.map(({ cache }) => cache),
      ["no-cache", "no-cache"],
    );
  } finally {
    delete globalThis.document;
  }
});

for (const [name, offset, expected] of [
  ["an hour behind", -3_600_000, "unknown"],
  ["an hour ahead", 3_600_000, "stale"],
  ["right", 0, "current"],
]) {
  test(`C2, C3: to a reader whose clock is ${name} a fresh row is ${expected}`, async () => {
    const { clock, updates, polling } = start(
      (_url, _options, _times, clock) => {
        const served = clock.now() - offset;
        return response(200, aReportText(served), { date: new Date(served).toUTCString() });
      },
      { history: false },
    );
    clock.setWallClock(offset);
    await clock.pass(1);
    polling.stop();
    assert.equal(ppoi(updates.at(-1)), expected);
    assert.equal(updates.at(-1).clockAheadMs, offset);
  });
}

test("C3: a clock that jumps is noticed at once by who asks, and told within 5 s", async () => {
  const { clock, updates, polling } = start(
    (url, options, times, clock) => (times > 1 ? response(304) : fresh(url, options, times, clock)),
    {
      history: false,
    },
  );
  await clock.pass(2);
  assert.equal(ppoi(polling.getSnapshot()), "current");
  clock.setWallClock(3_600_000);
  assert.deepEqual([ppoi(polling.getSnapshot()), ppoi(polling.latest())], ["stale", "stale"]);
  await clock.pass(5);
  polling.stop();
  assert.equal(ppoi(updates.at(-1)), "stale");
});

test("C2, C3: a clock that is an hour ahead is known to be wrong without any Date", async () => {
  const { clock, updates, polling } = start(
    (_url, _options, _times, clock) => response(200, aReportText(clock.now() - 3_600_000)),
    {
      history: false,
    },
  );
  await clock.pass(31);
  polling.stop();
  assert.deepEqual(updates.map(wrongClock), [null, "ahead"]);
});

test("C4: without a clock nothing is healthy", () => {
  const at = Date.now();
  const row = findRow(parseReport(aReportText(at)), "ppoi", 1);
  for (const now of [NaN, Infinity, -Infinity, null, String(at), new Date(at)]) {
    assert.equal(effectiveStatus(row, now), "unknown");
  }
  assert.equal(effectiveStatus(row, at / 1000), "unknown"); // seconds instead of milliseconds
  assert.equal(effectiveStatus(row, at), "current");
});

test("the clock's offset takes the age of a cached answer into account, and is null without a date", () => {
  const now = Date.parse("2026-11-15T12:00:00.000Z");
  assert.equal(clockAheadMs({ httpCode: 200, date: "Sun, 15 Nov 2026 11:59:30 GMT", age: "30" }, now), 0);
  assert.equal(clockAheadMs({ httpCode: 200, date: null, age: null }, now), null);
  assert.equal(clockAheadMs({ problem: "no answer" }, now), null);
});
