// The examples of docs/readers.md and of the README, run as they stand against a network of our own.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import * as wallet from "lookout-reader";
import * as page from "lookout-reader/page";
import { aHistoryText, aReportText, response, settle } from "../testing/world.js";

const DOCS = new URL("../../../docs/readers.md", import.meta.url);
const README = new URL("../README.md", import.meta.url);

function examples(file) {
  return [...readFileSync(file, "utf8").matchAll(/```js\n(.+?)```/gs)].map(([, code]) => code);
}

const ADDRESSES = {
  "lookout-reader": new URL("../src/index.js", import.meta.url).href,
  "lookout-reader/page": new URL("../src/page.js", import.meta.url).href,
  "lookout-reader/testing": new URL("../src/testing.js", import.meta.url).href,
};

/** Runs an example with these globals in place of the real ones, and gives back what it logged. */
async function run(code, globals, meanwhile) {
  const folder = mkdtempSync(join(tmpdir(), "reader-"));
  const file = join(folder, "example.mjs");
  writeFileSync(
    file,
    code.replace(/"(lookout-reader[^"]*)"/, (_, name) => JSON.stringify(ADDRESSES[name])),
  );
  const logged = [];
  const replaced = { ...globals, console: { ...console, log: (...words) => logged.push(words.join(" ")) } };
  const before = Object.fromEntries(
    Object.keys(replaced).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]),
  );
  try {
    for (const [name, value] of Object.entries(replaced)) {
      Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
    }
    await import(pathToFileURL(file).href);
    await new Promise((resolve) => setTimeout(resolve, 20));
    await meanwhile?.();
  } finally {
    for (const [name, descriptor] of Object.entries(before)) {
      if (descriptor) Object.defineProperty(globalThis, name, descriptor);
      else delete globalThis[name];
    }
    rmSync(folder, { recursive: true });
  }
  return logged;
}

const [rollUpExample, historyExample, ...more] = examples(DOCS);
const serve = (text) => async () => response(200, text(Date.now()));

test("C11: the roll-up tells each service and the whole", async () => {
  assert.equal(more.length, 0);
  const logged = await run(rollUpExample, { fetch: serve(aReportText) }, () => process.emit("SIGTERM"));
  assert.deepEqual(logged, [
    "messaging current",
    "ppoi unknown", // chain 137 is missing
    "broadcasters unknown",
    "indexer unknown",
    "hosted-indexer unknown",
    "overall unknown no trouble reading",
  ]);
});

test("C13: the history is told with its coverage", async () => {
  const logged = await run(historyExample, { fetch: serve(aHistoryText) });
  assert.deepEqual(logged, ["no figure yet", "from 3 of 2017 buckets; 3 were recorded", "so far current"]);
});

/** With an AppState and a NetInfo as React Native has them: nothing is asked in the background, and at once online. */
async function runNative(code) {
  const listeners = new Set();
  const networks = new Set();
  const listen = (all, listener) => (all.add(listener), () => all.delete(listener));
  const AppState = {
    currentState: "background",
    addEventListener: (_type, listener) => ({ remove: listen(listeners, listener) }),
  };
  const NetInfo = { addEventListener: (listener) => listen(networks, listener) };
  const asked = [];
  const fetch = async (url) => {
    asked.push(url);
    if (asked.length === 1) throw new TypeError("Network request failed");
    return response(200, aReportText(Date.now()));
  };
  const inNode = code
    .replace(/import .* from "(@react-native-community|react-native).*\n/g, "")
    .replace(/: (string|\(\) => void)/g, "")
    .replace("export const reader", "globalThis.nativeReader");
  await run(inNode, { AppState, NetInfo, fetch, nativeReader: null }, async () => {
    const { nativeReader } = globalThis;
    nativeReader.subscribe(() => {});
    await settle();
    assert.deepEqual([asked.length, listeners.size, networks.size], [0, 1, 1]);
    AppState.currentState = "active";
    for (const listener of listeners) listener("active");
    await settle();
    assert.equal(asked.length, 1);
    for (const listener of networks) listener({ isConnected: true });
    await settle();
    assert.deepEqual([asked.length, nativeReader.latest().reportProblem], [2, null]);
    nativeReader.stop();
    assert.deepEqual([listeners.size, networks.size], [0, 0]);
  });
}

test("the README's examples run, and its functions are all there are", async () => {
  const [first, testing, ...rest] = examples(README);
  assert.equal(rest.length, 0);
  const stopped = first.replace("// later: reader.stop();", "setTimeout(() => reader.stop(), 10);");
  assert.notEqual(stopped, first);
  assert.deepEqual(await run(stopped, { fetch: serve(aReportText) }), ["loading", "nothing is known to be broken"]);
  const degraded = await run(stopped, { fetch: serve((at) => aReportText(at, "degraded")) });
  assert.deepEqual(degraded, ["loading", "ppoi is degraded", "messaging is degraded"]);
  assert.deepEqual(await run(testing, {}), ["bad"]);
  const [, native] = [...readFileSync(README, "utf8").matchAll(/```ts\n(.+?)```/gs)].map(([, code]) => code);
  await runNative(native);
  const text = readFileSync(README, "utf8");
  for (const [name, value] of Object.entries(page)) {
    if (typeof value === "function") assert.ok(text.includes(`\`${name}\``), name);
  }
  const own = text.slice(text.indexOf("| asking |"), text.indexOf("| obstacles with causes"));
  for (const [, name] of own.matchAll(/`(\w+)`/g)) assert.ok(name in wallet, `${name} is in lookout-reader`);
});

test("the README has every code of a failure", () => {
  const types = readFileSync(new URL("../src/page.d.ts", import.meta.url), "utf8");
  const [, union] = /export type FailureCode =([^;]+);/.exec(types);
  const text = readFileSync(README, "utf8");
  for (const [, code] of union.matchAll(/"([\w-]+)"/g)) assert.ok(text.includes(`\`${code}\``), code);
});

test("every export has its type, and every type its export", () => {
  for (const [file, exported, pattern] of [
    ["src/page.d.ts", page, /export declare (?:function|const) (\w+)/g],
    ["src/index.d.ts", wallet, /^ {2}(\w+),$(?=[^}]*} from [^\n]*\nexport type)/gm],
  ]) {
    const types = readFileSync(new URL(`../${file}`, import.meta.url), "utf8");
    const declared = [...types.matchAll(pattern)].map(([, name]) => name);
    assert.deepEqual([...new Set(declared)].sort(), Object.keys(exported).sort());
  }
});
