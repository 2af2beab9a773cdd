import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { newFeed, poll } from "../src/page.js";
import { fresh, ppoi, start } from "../testing/polled.js";
import { aReportText, never, response } from "../testing/world.js";

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
  assert.deepEqual(
    [...new Set(network.asked.map(({ url }) => url))],
    ["https://liveness.example/api/v1/protocol/liveness"],
  );
});

test("C10: If-None-Match and, from a server, a descriptive User-Agent are sent", async () => {
  const { clock, network, polling } = start(fresh, {
    history: false,
    userAgent: "wallet.example backend (ops@wallet.example)",
  });
  await clock.pass(30);
  polling.stop();
  assert.deepEqual(
    network.asked.map(({ headers }) => headers["If-None-Match"]),
    [undefined, '"0"'],
  );
  for (const { headers } of network.asked)
    assert.equal(headers["User-Agent"], "wallet.example backend (ops@wallet.example)");
});

test("C10: unless told, the User-Agent has the version of the package", async () => {
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  const { clock, network, polling } = start(fresh);
  await clock.pass(1);
  polling.stop();
  assert.equal(network.asked[0].headers["User-Agent"], `lookout-reader-js/${version}`);
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
  [
    "a body that breaks off",
    () => ({ status: 200, headers: new Headers(), text: () => Promise.reject(new TypeError("terminated")) }),
  ],
  ["no answer at all", never],
]) {
  test(`C9, C15: after ${name} the last report stays, what is wrong is told, rows expire, the wait grows`, async () => {
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
    const waits = network.asked.slice(2).map(({ at }, index) => at - network.asked[index + 1].at);
    const hangsS = name === "no answer at all" ? 10 : 0;
    const askedS = name === "a 429" ? 60 : 0;
    assert.deepEqual(
      waits.slice(0, 6),
      [15, 30, 60, 120, 200, 200].map((leastS) => hangsS + Math.max(leastS, askedS)),
    );
    polling.stop();
  });
}

test("C3, C9: a row that expires while a request hangs is told within a second", async () => {
  const { clock, network, updates, polling } = start(
    (url, options, times, clock) =>
      times === 1 ? response(200, aReportText(clock.now() - 110_000)) : never(url, options),
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

test("C6: bytes that are no UTF-8 are unreadable, as they are to every reader", async () => {
  const text = aReportText(Date.now()).replace("{", '{"new":"?",');
  const bytes = new TextEncoder().encode(text).map((byte, index) => (index === text.indexOf("?") ? 0xff : byte));
  const { clock, updates, polling } = start(() => response(200, bytes), { history: false });
  await clock.pass(1);
  polling.stop();
  assert.equal(updates[0].reportProblem, "unreadable: it is not JSON");
});

const MIB = 1024 * 1024;
const TOO_LONG = 2 * MIB + 1;

/** A body that never ends, a MiB at a time, and how much of it was taken. */
function endless(signal) {
  const taken = { mib: 0, cancelled: false };
  const body = new ReadableStream({
    start: (controller) =>
      signal.addEventListener("abort", () => ((taken.cancelled = true), controller.error(new TypeError()))),
    pull: (controller) => controller.enqueue(new Uint8Array((taken.mib++, MIB))),
  });
  return { taken, response: new Response(body) };
}

for (const [name, answer] of [
  ["is no stream", () => ({ status: 200, headers: new Headers(), arrayBuffer: async () => new ArrayBuffer(TOO_LONG) })],
  ["is a stream", () => response(200, " ".repeat(TOO_LONG))],
  ["is text alone", () => ({ status: 200, headers: new Headers(), text: async () => " ".repeat(TOO_LONG) })],
]) {
  test(`C9: a report of more than 2 MiB that ${name} is a failure like any other`, async () => {
    const { clock, updates, polling } = start(answer, { history: false });
    await clock.pass(1);
    polling.stop();
    assert.equal(updates[0].reportProblem, "an answer that is too long");
  });
}

test("C9: of a body that never ends no more than 2 MiB are taken, and the request is given up", async () => {
  let taken;
  const { clock, updates, polling } = start(
    (_url, { signal }) => {
      const made = endless(signal);
      taken = made.taken;
      return made.response;
    },
    { history: false },
  );
  for (let turn = 0; turn < 1000 && updates.length === 0; turn++) await clock.pass(0);
  polling.stop();
  assert.equal(updates[0].reportProblem, "an answer that is too long");
  assert.ok(taken.mib >= 3 && taken.mib < 8, String(taken.mib));
  assert.ok(taken.cancelled);
});

test("C9: what a redirect led to from https to http is no answer", async () => {
  const redirected = (url) => (_url, _options, _times, clock) => ({
    status: 200,
    url,
    headers: new Headers(),
    text: async () => aReportText(clock.now()),
  });
  for (const [url, problem] of [
    ["http://liveness.example/", "no answer"],
    ["https://elsewhere.example/", null],
  ]) {
    const { clock, updates, polling } = start(redirected(url), { history: false });
    await clock.pass(1);
    polling.stop();
    assert.equal(updates[0].reportProblem, problem);
  }
});

test("a fetch of one's own may give text only", async () => {
  const { clock, updates, polling } = start(
    (_url, _options, _times, clock) => ({
      status: 200,
      headers: new Headers(),
      text: async () => aReportText(clock.now()),
    }),
    { history: false },
  );
  await clock.pass(1);
  polling.stop();
  assert.equal(ppoi(updates[0]), "current");
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
  const { clock, updates, polling } = start((url, ...rest) =>
    url.endsWith("/history") ? response(503) : fresh(url, ...rest),
  );
  await clock.pass(300);
  polling.stop();
  const last = updates.at(-1);
  assert.deepEqual([last.reportProblem, last.historyProblem, last.history], [null, "not available yet", null]);
  assert.equal(ppoi(last), "current");
});

test("C9: it recovers", async () => {
  const { clock, updates, polling } = start(
    (url, options, times, clock) => (times < 3 ? response(503) : fresh(url, options, times, clock)),
    {
      history: false,
    },
  );
  await clock.pass(200);
  polling.stop();
  assert.deepEqual(
    updates.slice(0, 3).map((update) => update.reportProblem),
    ["not available yet", "not available yet", null],
  );
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
