import assert from "node:assert/strict";
import { test } from "node:test";
import { fresh, start } from "../testing/polled.js";
import { aPage, aWindow, never, response } from "../testing/world.js";

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

test("C3, C9: a page that shows again is told what expired before anything is asked", async () => {
  const page = aPage();
  const { clock, network, told, polling } = start(
    (url, options, times, clock) => (times === 1 ? fresh(url, options, times, clock) : never(url, options)),
    { history: false, document: page },
  );
  await clock.pass(10);
  page.show(false);
  await clock.pass(3600);
  assert.deepEqual(told, ["current"]); // nothing was told to a page that nobody saw
  page.show(true);
  assert.deepEqual([told, network.asked.length], [["current", "stale"], 1]); // and nothing was waited for
  polling.stop();
});

test("C9: online again, what failed is asked for at once, but no faster than the floors and Retry-After", async () => {
  const window = aWindow();
  const failures = [
    () => response(503),
    () => Promise.reject(new TypeError("Failed to fetch")),
    () => response(429, "", { "retry-after": "60" }),
  ];
  const answer = (_url, _options, times) => (failures[times - 1] ?? failures[0])();
  const { clock, network, polling } = start(answer, { history: false, live: 60, window });
  await clock.pass(14);
  window.online();
  await clock.pass(0);
  assert.equal(network.asked.length, 1);
  await clock.pass(1);
  assert.deepEqual(
    network.asked.map(({ at }) => at),
    [0, 15],
  );
  await clock.pass(20);
  window.online();
  await clock.pass(0);
  assert.deepEqual(
    network.asked.map(({ at }) => at),
    [0, 15, 35],
  );
  await clock.pass(25);
  window.online();
  await clock.pass(34);
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
