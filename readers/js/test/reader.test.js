// One reader for many listeners: who starts it, who ends it, and when it wakes.

import assert from "node:assert/strict";
import { test } from "node:test";
import v8 from "node:v8";
import vm from "node:vm";
import { canUse, createReader } from "../src/index.js";
import { fresh, ppoi, start } from "../testing/polled.js";
import { aClock, aNetwork, aPage, aReportText, aWindow, never, response, settle } from "../testing/world.js";

const NOON_MS = aClock().now();

/** A reader to which nobody listens yet. */
function aReader(answer = fresh, options = {}) {
  const clock = aClock();
  const network = aNetwork(clock, (...asked) => answer(...asked, clock));
  const reader = createReader({
    baseUrl: "https://liveness.example",
    protocol: "protocol",
    history: false,
    random: () => 0,
    fetch: network.fetch,
    now: clock.now,
    monotonic: clock.monotonic,
    setTimeout: clock.setTimeout,
    clearTimeout: clock.clearTimeout,
    ...options,
  });
  return { clock, network, reader };
}

test("C10: many listeners share one poller, which starts with the first and rests with the last", async () => {
  const window = aWindow();
  const { clock, network, reader } = aReader(fresh, { window });
  await clock.pass(100);
  assert.deepEqual([network.asked.length, clock.timers(), window.listeners()], [0, 0, 0]);
  const heard = [[], [], []];
  const endings = heard.map((updates) => reader.subscribe((update) => updates.push(update)));
  await clock.pass(31);
  assert.equal(network.asked.length, 2);
  assert.deepEqual(
    heard.map(({ length }) => length),
    [2, 2, 2],
  );
  assert.ok(
    heard.every((updates) => updates[1] === heard[0][1]),
    "all are given the same value",
  );
  endings[0]();
  endings[0](); // once more changes nothing
  await clock.pass(30);
  assert.deepEqual(
    heard.map(({ length }) => length),
    [2, 3, 3],
  );
  endings[1]();
  endings[2]();
  assert.deepEqual([clock.timers(), window.listeners()], [0, 0]);
  await clock.pass(1000);
  assert.equal(network.asked.length, 3);
  reader.subscribe(() => {});
  await clock.pass(0);
  assert.equal(network.asked.length, 4); // it starts again
  reader.stop();
});

test("C10: listeners that come and go do not ask faster than the floors", async () => {
  const { clock, network, reader } = aReader();
  for (let second = 0; second < 60; second++) {
    const end = reader.subscribe(() => {});
    await clock.pass(0.5);
    end();
    await clock.pass(0.5);
  }
  assert.ok(network.asked.length <= 4, String(network.asked.length));
});

test("the same function can listen twice, and each is ended on its own", async () => {
  const { clock, reader } = aReader();
  let times = 0;
  const listener = () => times++;
  const ends = [reader.subscribe(listener), reader.subscribe(listener)];
  await clock.pass(1);
  ends[0]();
  await clock.pass(30);
  reader.stop();
  assert.equal(times, 3);
});

test("a listener that throws ends nobody else, nor the polling, and its error is reported", async () => {
  const caught = [];
  const before = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", (error) => caught.push(error.message));
  try {
    const { clock, reader } = aReader();
    let heard = 0;
    reader.subscribe(() => {
      throw new Error("a bug of the page");
    });
    reader.subscribe(() => heard++);
    await clock.pass(61);
    reader.stop();
    assert.deepEqual([heard, caught.length], [3, 3]);
  } finally {
    process.removeAllListeners("uncaughtException");
    for (const one of before) process.on("uncaughtException", one);
  }
});

test("a listener may end itself or another while it is called", async () => {
  const { clock, reader } = aReader();
  const heard = [];
  const endFirst = reader.subscribe(() => {
    heard.push("first");
    endFirst();
  });
  reader.subscribe(() => heard.push("second"));
  await clock.pass(31);
  reader.stop();
  assert.deepEqual(heard, ["first", "second", "second"]);
});

test("the snapshot is one and the same value until something changes", async () => {
  const { clock, reader } = aReader((url, options, times, clock) =>
    times === 1 ? fresh(url, options, times, clock) : never(url, options),
  );
  const first = reader.getSnapshot();
  assert.equal(reader.getSnapshot(), first);
  assert.equal(first.report, null);
  const heard = [];
  reader.subscribe((update) => heard.push(update));
  await clock.pass(10);
  const second = reader.getSnapshot();
  assert.equal(ppoi(second), "current");
  assert.equal(heard[0], second);
  await clock.pass(25);
  assert.equal(reader.getSnapshot(), second);
  reader.stop();
});

test("C3: the snapshot is right though nobody listens and no timer runs", async () => {
  const { clock, reader } = aReader();
  const end = reader.subscribe(() => {});
  await clock.pass(1);
  end();
  const seen = reader.getSnapshot();
  await clock.pass(148);
  assert.equal(reader.getSnapshot(), seen);
  await clock.pass(1);
  assert.equal(ppoi(reader.getSnapshot()), "stale");
  assert.equal(reader.getSnapshot(), reader.getSnapshot());
});

test("C3: who asked for a snapshot in between does not keep a change from those who listen", async () => {
  const { clock, reader } = aReader(
    (url, options, times, clock) => (times === 1 ? fresh(url, options, times, clock) : never(url, options)),
    {
      timeoutS: 60,
      live: 100,
    },
  );
  const heard = [];
  reader.subscribe((update) => heard.push(ppoi(update)));
  await clock.pass(1);
  clock.setWallClock(3_600_000);
  assert.equal(ppoi(reader.getSnapshot()), "stale");
  await clock.pass(150);
  reader.stop();
  assert.deepEqual(heard, ["current", "stale"]);
});

test("it wakes every 5 s while something is current, and then only when there is something to do", async () => {
  let wakes = 0;
  const clock = aClock();
  const { polling, told } = start(
    (url, options, times, own) => (times === 1 ? fresh(url, options, times, own) : response(304)),
    {
      history: false,
      live: 600,
      setTimeout: (call, ms) => clock.setTimeout(() => (wakes++, call()), ms),
      clearTimeout: clock.clearTimeout,
      now: clock.now,
      monotonic: clock.monotonic,
    },
  );
  await clock.pass(599);
  assert.deepEqual([wakes, told], [30, ["current", "stale"]]);
  polling.stop();
});

/** A device that slept for an hour: no timer ran, its monotonic clock stood still, and the network hangs. */
async function asleep(options) {
  const woken = aReader(
    (url, options, times, clock) => (times === 1 ? fresh(url, options, times, clock) : never(url, options)),
    options,
  );
  const heard = [];
  woken.reader.subscribe((update) => heard.push(ppoi(update)));
  await woken.clock.pass(1);
  woken.clock.setWallClock(3_600_000);
  return { ...woken, heard };
}

test("C3: after an hour of sleep listeners are told within 5 s, though the network hangs", async () => {
  const { clock, heard, reader } = await asleep({ live: 600 });
  await clock.pass(5);
  reader.stop();
  assert.deepEqual(heard, ["current", "stale"]);
});

for (const kind of ["read", "refresh"]) {
  test(`C3: ${kind} tells listeners what has expired before it waits for the network`, async () => {
    const { heard, reader } = await asleep({ live: 600 });
    reader[kind]();
    assert.deepEqual(heard, ["current", "stale"]);
    reader.stop();
  });
}

const failing = () => Promise.reject(new TypeError("Failed to fetch"));
for (const [name, answer, onLine, times] of [
  ["no network read asks again at once", failing, undefined, 2],
  ["a device that says that it is offline read asks again at once", failing, false, 2],
  ["no answer in time read asks again at once", never, undefined, 2],
  ["what may be a 429 that a page cannot read it does not", failing, true, 1],
  ["a 503 it does not", () => response(503), undefined, 1],
]) {
  test(`C9: after ${name}`, () =>
    withOnLine(onLine, async () => {
      const { clock, network, reader } = aReader(answer);
      const reading = reader.read();
      await clock.pass(10);
      await reading;
      reader.read();
      await clock.pass(0);
      reader.stop();
      assert.equal(network.asked.length, times);
    }));
}

test("C2: by a clock known to be 10 minutes slow nothing can be used, though the report looks fresh", async () => {
  const { clock, reader } = aReader((_url, _options, _times, clock) =>
    response(200, aReportText(clock.now()), { date: new Date(clock.now() + 600_000).toUTCString() }),
  );
  const heard = [];
  reader.subscribe((update) =>
    heard.push([ppoi(update), canUse(update.report, { ...update, chain: 1, services: ["ppoi"] })]),
  );
  await clock.pass(1);
  reader.stop();
  assert.deepEqual(heard, [["unknown", false]]);
});

test("C9: read asks once, and starts nothing", async () => {
  const { clock, network, reader } = aReader(fresh, { history: 60 });
  const update = await reader.read();
  assert.equal(ppoi(update), "current");
  assert.equal(update, reader.getSnapshot());
  assert.deepEqual(
    network.asked.map(({ url }) => url),
    ["https://liveness.example/api/v1/protocol/liveness"],
  );
  await clock.pass(1000);
  assert.deepEqual([network.asked.length, clock.timers()], [1, 0]);
});

test("C10: a user who taps again and again is answered at once, and asks no faster than every 15 seconds", async () => {
  const { clock, network, reader } = aReader();
  const [first, twin] = await Promise.all([reader.read(), reader.read()]);
  assert.equal(first, twin);
  for (let second = 0; second < 60; second++) {
    assert.equal(ppoi(await reader.read()), "current");
    await clock.pass(1);
  }
  assert.deepEqual(
    network.asked.map(({ at }) => at),
    [0, 15, 30, 45],
  );
});

test("C9: read tells what is wrong, and gives what was good before", async () => {
  const { clock, reader } = aReader((url, options, times, clock) =>
    times === 1 ? fresh(url, options, times, clock) : response(429, "", { "retry-after": "60" }),
  );
  await reader.read();
  await clock.pass(20);
  const second = await reader.read();
  assert.deepEqual(
    [second.reportCode, second.reportProblem, ppoi(second)],
    ["too-many-requests", "too many requests", "current"],
  );
  await clock.pass(59);
  assert.equal(await reader.read(), second); // as asked
});

test("C9: refresh asks for everything now, whatever the back-off, but not before the floors", async () => {
  const answer = (url, options, times, clock) => (times < 3 ? response(503) : fresh(url, options, times, clock));
  const { clock, network, reader } = aReader(answer, { live: 120, history: 120 });
  reader.subscribe(() => {});
  await clock.pass(20);
  assert.equal(network.asked.length, 2);
  const update = await reader.refresh();
  assert.deepEqual([network.asked.length, update.reportCode, update.historyCode], [3, null, "not-available"]);
  await clock.pass(41);
  assert.equal((await reader.refresh()).historyCode, null);
  assert.equal(network.most(), 1);
  reader.stop();
});

test("C15: taps while the network is down do not lengthen the polling", async () => {
  let isDown = false;
  const { clock, network, reader } = aReader((...asked) => (isDown ? failing() : fresh(...asked)));
  reader.subscribe(() => {});
  await clock.pass(31);
  isDown = true;
  for (const seconds of [31, 2, 2, 9]) {
    await clock.pass(seconds);
    await reader.read();
  }
  assert.deepEqual(
    network.asked.map(({ at }) => at),
    [0, 30, 60, 62, 64, 66, 75, 75],
  );
  isDown = false;
  await clock.pass(30); // as after the second failure of its own
  reader.stop();
  assert.deepEqual([network.asked.at(-1).at, reader.latest().reportProblem], [105, null]);
});

for (const [name, deadlineS, answeredAfterS] of [
  ["5 seconds", undefined, 5],
  ["its deadline", 2, 2],
]) {
  test(`C4: on a network that hangs read answers after ${name} with what is known`, async () => {
    const answer = (...asked) => (asked[2] === 1 ? fresh(...asked) : never(...asked));
    const { clock, network, reader } = aReader(answer, deadlineS && { deadlineS });
    reader.subscribe(() => {});
    await clock.pass(35);
    let answered = null; // while the polling's own request hangs
    reader.read().then((update) => (answered = ppoi(update)));
    await clock.pass(answeredAfterS - 0.1);
    assert.equal(answered, null);
    await clock.pass(0.1);
    await settle();
    assert.deepEqual([answered, network.most()], ["current", 1]);
    reader.stop();
    await settle();
    assert.equal(clock.timers(), 0);
  });
}

const NEEDS = { chain: 1, services: ["ppoi"] };

test("C4: a reader says what stands in the way, how bad that is and why", async () => {
  const answers = [fresh, () => response(200, aReportText(NOON_MS + 30_000, "unavailable")), failing];
  const { clock, reader } = aReader((...asked) => answers[Math.min(asked[2], 3) - 1](...asked));
  const found = () => reader.obstacles(NEEDS).map(({ service, severity, cause }) => [service, severity, cause]);
  reader.subscribe(() => {});
  const told = [[found(), reader.canUse(NEEDS)]];
  for (const seconds of [1, 30, 300]) {
    await clock.pass(seconds);
    told.push([found(), reader.canUse(NEEDS)]);
  }
  reader.stop();
  assert.deepEqual(told, [
    [[["ppoi", "unknown", null]], false],
    [[], true],
    [[["ppoi", "bad", null]], false],
    [[["ppoi", "unknown", "network"]], false],
  ]);
});

test("C4: a promise waits until what is needed can be used again, and leaves nothing behind", async () => {
  const { clock, network, reader } = aReader((url, options, times, clock) =>
    times === 1 ? response(200, aReportText(clock.now(), "degraded")) : fresh(url, options, times, clock),
  );
  let resolvedAt = null;
  reader.whenUsable(NEEDS).then(() => (resolvedAt = clock.monotonic() / 1000));
  await clock.pass(29);
  assert.equal(resolvedAt, null);
  await clock.pass(2);
  assert.deepEqual([resolvedAt, clock.timers(), network.asked.length], [30, 0, 2]);
  await reader.whenUsable(NEEDS); // at once, and nothing is asked
  assert.equal(network.asked.length, 2);
});

test("a promise that waits is given up by its signal or with its reader", async () => {
  const { clock, reader } = aReader(failing);
  const aborting = new AbortController();
  const waiting = [reader.whenUsable(NEEDS, { signal: aborting.signal }), reader.whenUsable(NEEDS)];
  const ends = waiting.map((end) => end.catch(({ name }) => name));
  await clock.pass(1);
  aborting.abort();
  assert.equal(await ends[0], "AbortError");
  reader.stop();
  assert.equal(await ends[1], "AbortError");
  assert.equal(clock.timers(), 0);
  await assert.rejects(reader.whenUsable(NEEDS), { name: "AbortError" });
  await assert.rejects(reader.whenUsable({ chain: 1, services: [] }), TypeError);
});

test("the bytes of the last report are at hand, as they came", async () => {
  const { clock, reader } = aReader((...asked) => (asked[2] === 1 ? fresh(...asked) : failing()));
  assert.equal(reader.latest().reportBytes, null);
  const sent = aReportText(clock.now());
  const { reportBytes } = await reader.read();
  await clock.pass(40);
  assert.equal(new TextDecoder().decode(reportBytes), sent);
  assert.equal((await reader.read()).reportBytes, reportBytes);
});

test("an AbortSignal stops it, before or after it began", async () => {
  const aborting = new AbortController();
  const { clock, network, reader } = aReader(never, { signal: aborting.signal });
  const heard = [];
  reader.subscribe((update) => heard.push(update));
  await clock.pass(1);
  aborting.abort();
  await clock.pass(100);
  assert.deepEqual([network.asked.length, heard.length, clock.timers()], [1, 0, 0]);
  const late = aReader(fresh, { signal: aborting.signal });
  late.reader.subscribe(() => {});
  await late.clock.pass(100);
  assert.equal(late.network.asked.length, 0);
  assert.equal((await late.reader.read()).report, null);
});

test("C9: a fetch that does not listen to its signal is given up all the same", async () => {
  const { clock, network, reader } = aReader(() => new Promise(() => {}));
  reader.subscribe(() => {});
  await clock.pass(10);
  assert.equal(reader.latest().reportCode, "timeout");
  await clock.pass(24);
  assert.equal(network.asked.length, 2);
  reader.stop();
});

test("C3, C9: out of the back/forward cache nothing waits or counts as failed, and all is told at once", async () => {
  const [window, page] = [aWindow(), aPage()];
  const answers = [fresh, never, fresh];
  const { clock, network, reader } = aReader(
    (url, options, times, clock) => answers[times - 1](url, options, times, clock),
    { window, document: page },
  );
  const heard = [];
  reader.subscribe((update) => heard.push(update));
  await clock.pass(32); // the second request is under way
  page.show(false);
  window.pagehide();
  await clock.pass(600);
  assert.deepEqual([network.asked.length, heard.length, clock.timers()], [2, 1, 0]);
  page.visibilityState = "visible"; // some browsers say so by pageshow alone
  window.pageshow();
  assert.deepEqual([heard.length, ppoi(heard.at(-1)), heard.at(-1).reportProblem], [2, "stale", null]);
  await clock.pass(0);
  assert.deepEqual([network.asked.length, ppoi(heard.at(-1))], [3, "current"]);
  reader.stop();
});

/** Runs it on a device that says this of its network; undefined where nothing is said. */
async function withOnLine(onLine, run) {
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { value: { onLine }, configurable: true });
  try {
    await run();
  } finally {
    if (before) Object.defineProperty(globalThis, "navigator", before);
    else delete globalThis.navigator;
  }
}

test("C9: a device that is offline is told from a server that is silent", () =>
  withOnLine(false, async () => {
    const { reader } = aReader(() => Promise.reject(new TypeError("Failed to fetch")));
    assert.deepEqual([(await reader.read()).reportCode, reader.latest().reportProblem], ["offline", "no answer"]);
  }));

test("C10: whatwg-fetch is given no cache mode, of which it would make another address", async () => {
  globalThis.document = aPage();
  try {
    const { network, reader, clock } = aReader();
    await reader.read();
    network.fetch.polyfill = true;
    await clock.pass(20);
    await reader.read();
    assert.deepEqual(
      network.asked.map(({ cache }) => cache),
      ["no-cache", undefined],
    );
    for (const { headers } of network.asked) assert.deepEqual(headers, { Accept: "application/json" });
  } finally {
    delete globalThis.document;
  }
});

test("readers that were stopped or left leave nothing behind", async () => {
  const window = aWindow();
  const { clock, reader } = aReader(fresh, { window });
  for (let times = 0; times < 1000; times++) reader.subscribe(() => {})();
  await clock.pass(1);
  assert.deepEqual([clock.timers(), window.listeners()], [0, 0]);
  reader.subscribe(() => {});
  await clock.pass(1);
  reader.stop();
  await settle();
  assert.deepEqual([clock.timers(), window.listeners()], [0, 0]);
  assert.equal(reader.subscribe(() => assert.fail("it was stopped"))(), undefined);
  await clock.pass(100);
});

test("a report with very many rows is no trouble", async () => {
  const { reader, clock } = aReader((_url, _options, _times, clock) => {
    const report = JSON.parse(aReportText(clock.now()));
    report.checks = Array.from({ length: 8_000 }, (_, index) => ({ ...report.checks[1], chainId: index + 1 }));
    return response(200, JSON.stringify(report));
  });
  reader.subscribe(() => {});
  assert.equal(ppoi(await reader.read()), "current");
  await clock.pass(1);
  reader.stop();
});

test("a reader that asks for nothing sleeps", async () => {
  const { clock, network, reader } = aReader(fresh, { live: false });
  let timers = 0;
  reader.subscribe(() => {});
  for (let second = 0; second < 10; second++) {
    await clock.pass(1);
    timers += clock.timers();
  }
  assert.deepEqual([network.asked.length, timers], [0, 10]);
  reader.stop();
});

test("a reader to which nobody listens any more can be collected, with its documents", async () => {
  v8.setFlagsFromString("--expose-gc");
  const collect = vm.runInNewContext("gc");
  const held = await (async () => {
    const { clock, reader } = aReader();
    const end = reader.subscribe(() => {});
    await clock.pass(31);
    end();
    return [new WeakRef(reader), new WeakRef(reader.latest().report)];
  })();
  for (let turn = 0; turn < 50 && held.some((one) => one.deref()); turn++) {
    await settle();
    collect();
  }
  assert.deepEqual(
    held.map((one) => one.deref()),
    [undefined, undefined],
  );
});
