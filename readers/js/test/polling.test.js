import assert from "node:assert/strict";
import { test } from "node:test";
import { clockAheadMs, effectiveStatus, findRow, newFeed, parseReport, poll } from "../lookout-reader.js";
import { aClock, aHistoryText, aNetwork, aPage, aReportText, aWindow, never, response } from "../testing/world.js";

function start(answer, options = {}) {
  const clock = aClock();
  const network = aNetwork(clock, (...asked) => answer(...asked, clock));
  const updates = [];
  const polling = poll({
    baseUrl: "https://liveness.example/",
    protocol: "protocol",
    onUpdate: (update) => updates.push(update),
    random: () => 0,
    fetch: network.fetch,
    now: clock.now,
    monotonic: clock.monotonic,
    setTimeout: clock.setTimeout,
    clearTimeout: clock.clearTimeout,
    ...options,
  });
  return { clock, network, updates, polling };
}

function fresh(url, _options, _times, clock) {
  const text = url.endsWith("/history") ? aHistoryText(clock.now()) : aReportText(clock.now());
  return response(200, text, { etag: `"${clock.monotonic()}"` });
}

function ppoi(update) {
  return effectiveStatus(findRow(update.report, "ppoi", 1), update.now, update.receivedAgoMs);
}

test("C10: the live report is asked for every 30 s and the history every 120 s unless told", async () => {
  const { clock, network, polling } = start(fresh);
  await clock.pass(241);
  polling.stop();
  const times = (end) => network.asked.filter(({ url }) => url.endsWith(end)).map(({ at }) => at);
  assert.deepEqual(times("/api/v1/protocol/liveness"), [0, 30, 60, 90, 120, 150, 180, 210, 240]);
  assert.deepEqual(times("/api/v1/protocol/liveness/history"), [0, 120, 240]);
});

test("C10: nobody can ask faster than the floors", async () => {
  const { clock, network, polling } = start(fresh, { live: 0.001, history: -5 });
  await clock.pass(60);
  polling.stop();
  const times = (end) => network.asked.filter(({ url }) => url.endsWith(end)).map(({ at }) => at);
  assert.deepEqual(times("/liveness"), [0, 15, 30, 45, 60]);
  assert.deepEqual(times("/history"), [0, 60]);
});

test("C10: either endpoint can be left out", async () => {
  const { clock, network, polling } = start(fresh, { history: false });
  await clock.pass(300);
  polling.stop();
  assert.deepEqual([...new Set(network.asked.map(({ url }) => url))], ["https://liveness.example/api/v1/protocol/liveness"]);
});

test("C10: If-None-Match and, from a server, a descriptive User-Agent are sent", async () => {
  const { clock, network, polling } = start(fresh, { history: false, userAgent: "wallet.example backend (ops@wallet.example)" });
  await clock.pass(30);
  polling.stop();
  assert.deepEqual(network.asked.map(({ headers }) => headers["If-None-Match"]), [undefined, '"0"']);
  for (const { headers } of network.asked) assert.equal(headers["User-Agent"], "wallet.example backend (ops@wallet.example)");
});

test("C10: a page does not try to name its User-Agent, and asks nothing while it is hidden", async () => {
  globalThis.document = aPage();
  try {
    const { clock, network, polling } = start(fresh, { history: false });
    await clock.pass(1);
    assert.equal(network.asked[0].headers["User-Agent"], undefined);
    globalThis.document.show(false);
    await clock.pass(100);
    polling.stop();
    assert.equal(network.asked.length, 1);
  } finally {
    delete globalThis.document;
  }
});

test("C10: there is never more than one request at a time", async () => {
  const slowly = async (url, options, times, clock) => {
    await new Promise((resolve) => clock.setTimeout(resolve, 9_000));
    return fresh(url, options, times, clock);
  };
  const { clock, network, polling } = start(slowly, { live: 15, history: 60 });
  await clock.pass(600);
  polling.stop();
  assert.equal(network.most(), 1);
  assert.ok(network.asked.length > 20);
});

test("C4: a 304 renews no row, and its expiry is told when it comes", async () => {
  const { clock, updates, polling } = start(
    (url, options, times, clock) => (times === 1 ? fresh(url, options, times, clock) : response(304)),
    { history: false },
  );
  await clock.pass(149);
  assert.equal(ppoi(updates.at(-1)), "current");
  const before = updates.length;
  await clock.pass(1);
  assert.equal(ppoi(updates.at(-1)), "stale");
  assert.equal(updates.at(-1).reportProblem, null);
  assert.ok(updates.length > before);
  polling.stop();
});

for (const [name, failure] of [
  ["a TypeError, as a 429 without CORS headers gives", () => Promise.reject(new TypeError("Failed to fetch"))],
  ["a 429", () => response(429, "error code: 1015", { "retry-after": "60" })],
  ["a 503", () => response(503, '{"error":"unavailable"}')],
  ["a captive portal", () => response(200, "<html>Sign in</html>", { "content-type": "text/html" })],
  ["unreadable JSON", () => response(200, '{"schemaVersion":1,')],
  ["an unknown schemaVersion", () => response(200, '{"schemaVersion":2,"checks":[]}')],
  ["a body that breaks off", () => ({ status: 200, headers: new Headers(), text: () => Promise.reject(new TypeError("terminated")) })],
  ["no answer at all", never],
]) {
  test(`C9: after ${name} the last good report stays, what is wrong is told, rows expire, and the wait grows`, async () => {
    const { clock, network, updates, polling } = start(
      (url, options, times, clock) => (times === 1 ? fresh(url, options, times, clock) : failure(url, options)),
      { history: false },
    );
    await clock.pass(1);
    const { report } = updates[0];
    await clock.pass(60);
    assert.notEqual(updates.at(-1).reportProblem, null);
    assert.equal(updates.at(-1).report, report);
    assert.equal(ppoi(updates.at(-1)), "current");
    await clock.pass(1200);
    assert.equal(updates.at(-1).report, report);
    assert.equal(ppoi(updates.at(-1)), "stale");
    const waits = network.asked.slice(1).map(({ at }, index) => at - network.asked[index].at);
    assert.deepEqual(waits, [...waits].sort((a, b) => a - b));
    assert.ok(waits[1] >= 60 && waits[2] >= 120 && waits[3] >= 200 && waits[4] >= 200, String(waits));
    polling.stop();
  });
}

test("C3, C9: a row that expires while a request hangs is told within a second", async () => {
  const { clock, network, updates, polling } = start(
    (url, options, times, clock) => (times === 1 ? response(200, aReportText(clock.now() - 110_000)) : never(url, options)),
    { history: false, timeoutS: 60 },
  );
  await clock.pass(39);
  assert.deepEqual([network.asked.length, ppoi(updates.at(-1))], [2, "current"]);
  await clock.pass(1);
  assert.deepEqual([network.asked.length, ppoi(updates.at(-1)), updates.length], [2, "stale", 2]);
  await clock.pass(10);
  assert.equal(updates.length, 2); // once
  polling.stop();
  await clock.pass(0);
  assert.equal(clock.timers(), 0);
});

test("C3, C9: a page that shows again is told what expired before anything is asked", async () => {
  const page = aPage();
  const { clock, network, updates, polling } = start(
    (url, options, times, clock) => (times === 1 ? fresh(url, options, times, clock) : never(url, options)),
    { history: false, document: page },
  );
  await clock.pass(10);
  page.show(false);
  await clock.pass(3600);
  assert.equal(ppoi(updates.at(-1)), "current"); // nothing was told to a page that nobody saw
  page.show(true);
  assert.deepEqual([ppoi(updates.at(-1)), network.asked.length], ["stale", 1]); // and nothing was waited for
  polling.stop();
});

for (const [name, again] of [
  ["a 304", () => response(304)],
  ["the same report", (text) => response(200, text, { etag: '"one"' })],
  ["the same report without an ETag", (text) => response(200, text)],
  ["nothing", () => Promise.reject(new TypeError("Failed to fetch"))],
]) {
  test(`C3: a clock that is an hour slow makes no old report current when it gets there: ${name}`, async () => {
    let text;
    const { clock, updates, polling } = start(
      (_url, _options, times, clock) => {
        text ??= aReportText(clock.now() + 3_600_000);
        return times === 1 ? response(200, text, { etag: '"one"' }) : again(text);
      },
      { history: false },
    );
    clock.setWallClock(-3_600_000);
    await clock.pass(1);
    assert.equal(ppoi(updates.at(-1)), "unknown");
    await clock.pass(4000);
    polling.stop();
    assert.deepEqual([...new Set(updates.map(ppoi))], ["unknown", "stale"]);
  });
}

test("C3: how long ago the report first arrived is told, by the clock that is never set", async () => {
  const { clock, updates, polling } = start(
    (url, options, times, clock) => (times === 2 ? response(304) : fresh(url, options, times, clock)),
    { history: false },
  );
  assert.deepEqual([polling.receivedAgoMs(), polling.latest().receivedAgoMs], [null, null]);
  await clock.pass(10);
  clock.setWallClock(7_200_000);
  assert.deepEqual([polling.receivedAgoMs(), polling.latest().receivedAgoMs], [10_000, 10_000]);
  await clock.pass(25);
  assert.equal(polling.receivedAgoMs(), 35_000); // a 304 renewed nothing
  await clock.pass(30);
  polling.stop();
  assert.equal(polling.receivedAgoMs(), 5_000);
  assert.deepEqual([updates[0].receivedAgoMs, updates.at(-1).receivedAgoMs], [0, 0]);
});

test("C9: online again, what failed is asked for at once, but no faster than the floors and Retry-After", async () => {
  const window = aWindow();
  const failures = [() => response(503), () => Promise.reject(new TypeError("Failed to fetch")), () => response(429, "", { "retry-after": "500" })];
  const { clock, network, polling } = start((_url, _options, times) => (failures[times - 1] ?? failures[0])(), { history: false, window });
  await clock.pass(14);
  window.online();
  await clock.pass(0);
  assert.equal(network.asked.length, 1);
  await clock.pass(1);
  assert.deepEqual(network.asked.map(({ at }) => at), [0, 15]);
  await clock.pass(20);
  window.online();
  await clock.pass(0);
  assert.deepEqual(network.asked.map(({ at }) => at), [0, 15, 35]);
  await clock.pass(100);
  window.online();
  await clock.pass(399);
  assert.equal(network.asked.length, 3);
  await clock.pass(1);
  assert.equal(network.asked.length, 4);
  polling.stop();
  assert.equal(window.listeners(), 0);
});

test("C10: being online again asks for nothing that has not failed", async () => {
  const window = aWindow();
  const { clock, network, polling } = start(fresh, { history: false, live: 600, window });
  await clock.pass(100);
  window.online();
  await clock.pass(1);
  polling.stop();
  assert.equal(network.asked.length, 1);
});

test("C6: bytes that are no UTF-8 are unreadable, as they are to every reader", async () => {
  const text = aReportText(Date.now()).replace("{", '{"new":"?",');
  const bytes = new TextEncoder().encode(text).map((byte, index) => (index === text.indexOf("?") ? 0xff : byte));
  const { clock, updates, polling } = start(() => response(200, bytes), { history: false });
  await clock.pass(1);
  polling.stop();
  assert.equal(updates[0].reportProblem, "unreadable: it is not JSON");
});

test("a fetch of one's own may give text only", async () => {
  const { clock, updates, polling } = start(
    (_url, _options, _times, clock) => ({ status: 200, headers: new Headers(), text: async () => aReportText(clock.now()) }),
    { history: false },
  );
  await clock.pass(1);
  polling.stop();
  assert.equal(ppoi(updates[0]), "current");
});

test("the clock's offset is taken from the live report only, and in a page nothing from the browser's own copies", async () => {
  const served = (url, options, times, clock) => {
    const date = new Date(clock.now() - (url.endsWith("/history") ? 3_600_000 : 0)).toUTCString();
    return response(200, url.endsWith("/history") ? aHistoryText(clock.now()) : aReportText(clock.now()), { date });
  };
  const { clock, network, updates, polling } = start(served);
  await clock.pass(1);
  polling.stop();
  assert.deepEqual(updates.map((update) => update.clockAheadMs), [0, 0]);
  assert.deepEqual(network.asked.map(({ cache }) => cache), [undefined, undefined]);
  globalThis.document = aPage();
  try {
    const page = start(served);
    await page.clock.pass(1);
    page.polling.stop();
    assert.deepEqual(page.network.asked.map(({ cache }) => cache), ["no-cache", "no-cache"]);
  } finally {
    delete globalThis.document;
  }
});

for (const [timeoutS, givenUpAfterS] of [
  [Infinity, 60],
  [1e12, 60],
  [0, 1],
  [-5, 1],
  [20, 20],
]) {
  test(`C9: with a timeout of ${timeoutS} s a request is given up after ${givenUpAfterS} s`, async () => {
    const { clock, updates, polling } = start(never, { history: false, timeoutS });
    await clock.pass(givenUpAfterS - 0.1);
    assert.equal(updates.length, 0);
    await clock.pass(0.1);
    assert.equal(updates[0].reportProblem, "no answer in time");
    polling.stop();
  });
}

test("C9: one endpoint's failure is not the other's", async () => {
  const { clock, updates, polling } = start((url, ...rest) => (url.endsWith("/history") ? response(503) : fresh(url, ...rest)));
  await clock.pass(300);
  polling.stop();
  const last = updates.at(-1);
  assert.deepEqual([last.reportProblem, last.historyProblem, last.history], [null, "not available yet", null]);
  assert.equal(ppoi(last), "current");
});

test("C9: it recovers", async () => {
  const { clock, updates, polling } = start((url, options, times, clock) => (times < 3 ? response(503) : fresh(url, options, times, clock)), {
    history: false,
  });
  await clock.pass(200);
  polling.stop();
  assert.deepEqual(updates.slice(0, 3).map((update) => update.reportProblem), ["not available yet", "not available yet", null]);
});

test("C9: while the page is hidden nothing is asked, and when it shows again at once", async () => {
  const page = aPage();
  const { clock, network, updates, polling } = start(fresh, { history: false, document: page });
  await clock.pass(10);
  page.show(false);
  await clock.pass(3600);
  assert.equal(network.asked.length, 1);
  const told = updates.length;
  page.show(true);
  await clock.pass(0);
  assert.equal(network.asked.length, 2);
  assert.ok(updates.length > told);
  polling.stop();
  assert.equal(page.listeners(), 0);
});

test("C10: hiding and showing the page again and again does not ask faster", async () => {
  const page = aPage();
  const { clock, network, polling } = start(fresh, { history: false, document: page });
  for (let second = 0; second < 60; second++) {
    page.show(false);
    await clock.pass(0.5);
    page.show(true);
    await clock.pass(0.5);
  }
  polling.stop();
  assert.ok(network.asked.length <= 3, String(network.asked.length));
});

test("C9: a page that opens hidden asks when it is first shown", async () => {
  const page = aPage();
  page.show(false);
  const { clock, network, polling } = start(fresh, { history: false, document: page });
  await clock.pass(100);
  assert.equal(network.asked.length, 0);
  page.show(true);
  await clock.pass(0);
  assert.equal(network.asked.length, 1);
  polling.stop();
});

test("C9: after stop nothing is asked, told or left behind, and the request under way is given up", async () => {
  let aborted = false;
  const { clock, network, updates, polling } = start(
    (url, options) => {
      options.signal.addEventListener("abort", () => (aborted = true));
      return never(url, options);
    },
    { history: false },
  );
  await clock.pass(1);
  polling.stop();
  polling.stop();
  await clock.pass(1000);
  assert.deepEqual([aborted, network.asked.length, updates.length, clock.timers()], [true, 1, 0, 0]);
});

test("C9: stopping between two requests leaves nothing behind either", async () => {
  const { clock, network, polling } = start(fresh, { history: undefined }); // as if it were left out
  await clock.pass(10);
  assert.equal(clock.timers(), 1);
  polling.stop();
  assert.equal(clock.timers(), 0);
  await clock.pass(1000);
  assert.equal(network.asked.length, 2);
});

test("C9: an error in onUpdate does not end the polling", async () => {
  const caught = [];
  const listener = (error) => caught.push(error.message);
  const before = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", listener);
  try {
    const { clock, network, polling } = start(fresh, {
      history: false,
      onUpdate: () => {
        throw new Error("a bug of the page");
      },
    });
    await clock.pass(60);
    polling.stop();
    assert.equal(network.asked.length, 3);
    assert.ok(caught.length >= 3 && caught.every((message) => message === "a bug of the page"));
  } finally {
    process.removeListener("uncaughtException", listener);
    for (const one of before) process.on("uncaughtException", one);
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
    assert.equal(updates.at(-1).clockAheadMs, offset); // told, and not used
  });
}

test("C3: a clock that jumps is noticed within a second", async () => {
  const { clock, updates, polling } = start(fresh, { history: false });
  await clock.pass(2);
  assert.equal(ppoi(updates.at(-1)), "current");
  clock.setWallClock(3_600_000);
  await clock.pass(1);
  polling.stop();
  assert.equal(ppoi(updates.at(-1)), "stale");
});

test("C4: without a clock nothing is healthy", () => {
  const at = Date.now();
  const row = findRow(parseReport(aReportText(at)), "ppoi", 1);
  for (const now of [NaN, Infinity, -Infinity, undefined, null, String(at), new Date(at)]) {
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

test("what a caller got wrong is said at once", () => {
  assert.throws(() => poll({ baseUrl: "ftp://liveness.example", protocol: "protocol" }), TypeError);
  assert.throws(() => poll({ baseUrl: "nonsense", protocol: "protocol" }), TypeError);
  assert.throws(() => poll({ baseUrl: "https://liveness.example" }), TypeError);
  assert.throws(() => poll({ baseUrl: "https://liveness.example", protocol: "protocol", live: "30" }), TypeError);
  for (const timeoutS of [NaN, "10", null]) {
    assert.throws(() => poll({ baseUrl: "https://liveness.example", protocol: "protocol", timeoutS }), TypeError);
  }
  assert.throws(() => newFeed("live", NaN), TypeError);
});
