// The examples of docs/readers.md and of the README, run as they stand against a network of our own.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import * as reader from "../lookout-reader.js";
import { aHistoryText, aPage, aReportText, response } from "../testing/world.js";

const MODULE = new URL("../lookout-reader.js", import.meta.url);

function examples(file) {
  const page = readFileSync(new URL(file, import.meta.url), "utf8");
  return [...page.matchAll(/```js\n(.+?)```/gs)].map(([, code]) => code);
}

/** Runs an example with these globals in place of the real ones, and gives back what it logged. */
async function run(code, globals, meanwhile) {
  const folder = mkdtempSync(join(tmpdir(), "reader-"));
  const file = join(folder, "example.mjs");
  writeFileSync(file, code.replace('"lookout-reader"', JSON.stringify(MODULE.href)));
  const logged = [];
  const replaced = { ...globals, console: { ...console, log: (...words) => logged.push(words.join(" ")) } };
  const before = Object.fromEntries(Object.keys(replaced).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]));
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

const [bannerExample, rollUpExample, historyExample, ...more] = examples("../../../docs/readers.md");
const serve = (text) => async () => response(200, text(Date.now()));

test("C4: the banner warns before anything is known, and is gone when all is current", async () => {
  assert.equal(more.length, 0);
  for (const [status, expected] of [
    ["current", ""],
    ["degraded", "ppoi is degraded."],
    ["nonsense", "broadcasters is unknown."],
  ]) {
    const banner = {
      texts: [],
      set textContent(text) {
        this.texts.push(text);
      },
    };
    const leaving = [];
    const globals = {
      document: { ...aPage(), querySelector: () => banner },
      fetch: serve((at) => aReportText(at, status)),
      addEventListener: (_type, listener) => leaving.push(listener),
    };
    await run(bannerExample, globals, () => leaving.forEach((leave) => leave()));
    assert.match(banner.texts[0], /ppoi is unknown\..+\nbroadcasters is unknown\./);
    assert.ok(banner.texts.at(-1).includes(expected));
    assert.equal(banner.hidden, status === "current");
  }
});

test("C11: the roll-up tells each service and the whole", async () => {
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

test("the README's example runs, and its functions are all there are", async () => {
  const [example] = examples("../README.md");
  const stopped = example.replace("// later: polling.stop();", "setTimeout(() => polling.stop(), 10);");
  assert.notEqual(stopped, example);
  const logged = await run(stopped, { fetch: serve(aReportText) });
  assert.deepEqual(logged, ["ppoi on chain 1 is current ", "ppoi on chain 1 is current "]); // after either document
  const page = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  for (const [name, value] of Object.entries(reader)) {
    if (typeof value === "function") assert.ok(page.includes(`\`${name}\``), name);
  }
});

test("every export has its type, and every type its export", () => {
  const types = readFileSync(new URL("../lookout-reader.d.ts", import.meta.url), "utf8");
  const declared = [...types.matchAll(/export declare (?:function|const) (\w+)/g)].map(([, name]) => name);
  assert.deepEqual([...new Set(declared)].sort(), Object.keys(reader).sort());
});
