// The reader in the forms and the environments that it is for, once they are built. Real environments are in Lookout's
// own tests: here, what they lack.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import vm from "node:vm";
import * as wallet from "lookout-reader";
import * as page from "lookout-reader/page";
import { aClock, aReportText, response } from "../testing/world.js";

const require = createRequire(import.meta.url);
const read = (path) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");

const built = existsSync(new URL("../commonjs/index.js", import.meta.url)) ? test : test.skip;

built("every form has the same names, and the wallet's are among all", async () => {
  const single = await import("../lookout-reader.js");
  assert.deepEqual(Object.keys(require("lookout-reader")).sort(), Object.keys(wallet).sort());
  assert.deepEqual(Object.keys(require("lookout-reader/page")).sort(), Object.keys(page).sort());
  assert.deepEqual(Object.keys(single).sort(), Object.keys(page).sort());
  for (const name of Object.keys(wallet)) assert.ok(name in page, name);
});

built("as a script it is one global", () => {
  const context = vm.createContext({});
  context.self = context;
  const before = Object.keys(context);
  vm.runInContext(read("commonjs/index.js"), context);
  assert.deepEqual(
    Object.keys(context).filter((name) => !before.includes(name)),
    ["lookoutReader"],
  );
  assert.deepEqual(Object.keys(context.lookoutReader).sort(), Object.keys(wallet).sort());
});

built("every file that the package names is there", () => {
  const { exports, main, module, types, files } = JSON.parse(read("package.json"));
  const paths = (value) => (typeof value === "string" ? [value] : Object.values(value).flatMap(paths));
  for (const path of [...paths(exports), main, module, types]) {
    assert.ok(read(path).length > 0, path);
    assert.ok(files.includes(path.split("/")[1]) || path === "./package.json", `${path} is not packed`);
  }
});

built("no module has a dependency, or anything to do when it is loaded", () => {
  const { dependencies, sideEffects } = JSON.parse(read("package.json"));
  assert.deepEqual([dependencies, sideEffects], [undefined, false]);
  assert.doesNotMatch(read("lookout-reader.js"), /^import |require\(/m);
});

built("the bill of materials is of this version, and lists nothing else", () => {
  const { version } = JSON.parse(read("package.json"));
  const { metadata, components, dependencies } = JSON.parse(read("sbom.cdx.json"));
  const purl = `pkg:npm/lookout-reader@${version}`;
  assert.deepEqual([metadata.component.version, metadata.component.purl, components], [version, purl, []]);
  assert.deepEqual(dependencies, [{ ref: purl, dependsOn: [] }]);
});

/** What React Native has: a window without events, a fetch on XMLHttpRequest, and much that is not implemented. */
function aReactNative(clock, answer, more = {}) {
  const asked = [];
  const notImplemented = (name) => () => {
    throw new Error(`${name} is not implemented`);
  };
  const context = vm.createContext({
    AbortController,
    module: { exports: {} },
    navigator: { product: "ReactNative" },
    performance: { now: clock.monotonic },
    setTimeout: clock.setTimeout,
    clearTimeout: clock.clearTimeout,
    URL: class {
      get protocol() {
        return notImplemented("URL.protocol")();
      }
    },
    async fetch(url, options) {
      // As whatwg-fetch does it.
      asked.push({ url: options.cache === "no-cache" ? `${url}?_=1` : url, headers: { ...options.headers } });
      const { status, headers, text } = await answer(asked.length, options);
      return {
        status,
        headers,
        url,
        text: async () => text,
        arrayBuffer: notImplemented("FileReader.readAsArrayBuffer"),
      };
    },
  });
  context.fetch.polyfill = true;
  Object.assign(context, more);
  context.window = context.global = context.self = context;
  vm.runInContext("Date", context).now = clock.now;
  vm.runInContext(read("commonjs/index.js"), context);
  return { asked, reader: context.module.exports };
}

built(
  "C3, C4, C9, C10: in React Native it loads, polls, backs off, lets rows expire and leaves nothing behind",
  async () => {
    const clock = aClock();
    const headers = (etag) => new Headers(etag ? { etag } : {});
    const answer = async (times) =>
      times === 1
        ? { status: 200, headers: headers('"one"'), text: aReportText(clock.now()) }
        : { status: times === 2 ? 304 : 503, headers: headers(), text: "" };
    const { asked, reader: native } = aReactNative(clock, answer);
    const reader = native.createReader({
      baseUrl: "https://liveness.example",
      protocol: "protocol",
      history: false,
      random: () => 0,
    });
    const heard = [];
    reader.subscribe((update) => heard.push(update));
    const can = () =>
      native.canUse(reader.getSnapshot().report, {
        ...reader.getSnapshot(),
        chain: 1,
        services: ["ppoi", "messaging"],
      });
    await clock.pass(31);
    assert.ok(can());
    assert.deepEqual(asked, [
      { url: "https://liveness.example/api/v1/protocol/liveness", headers: { Accept: "application/json" } },
      {
        url: "https://liveness.example/api/v1/protocol/liveness",
        headers: { Accept: "application/json", "If-None-Match": '"one"' },
      },
    ]);
    await clock.pass(600);
    assert.ok(!can());
    assert.deepEqual([reader.latest().reportCode, asked.length], ["not-available", 8]);
    assert.equal(heard.filter(({ reportCode }) => reportCode === null).length, 2);
    reader.stop();
    assert.equal(clock.timers(), 0);
  },
);

built("C4: in Expo, whose answers are streams and whose Blob takes no bytes, it reads", async () => {
  const clock = aClock();
  const { reader: native } = aReactNative(clock, () => assert.fail("Expo has a fetch of its own"), {
    TextDecoder,
    Blob: class {
      constructor() {
        throw new Error("Creating blobs from 'ArrayBuffer' and 'ArrayBufferView' are not supported");
      }
    },
    async fetch() {
      const bytes = new TextEncoder().encode(aReportText(clock.now()));
      const body = new ReadableStream({
        start(controller) {
          for (const part of [bytes.slice(0, 100), bytes.slice(100)]) controller.enqueue(part);
          controller.close();
        },
      });
      return response(200, body);
    },
  });
  const reader = native.createReader({ baseUrl: "https://liveness.example", protocol: "protocol" });
  const update = await reader.read();
  assert.equal(update.reportProblem, null);
  assert.ok(native.canUse(update.report, { ...update, chain: 1, services: ["ppoi"] }));
});

built("C10: in a service worker, which has no document, the browser's cache asks", async () => {
  const clock = aClock();
  const asked = [];
  const context = vm.createContext({
    AbortController,
    TextDecoder,
    importScripts() {},
    performance: { now: clock.monotonic },
    setTimeout: clock.setTimeout,
    clearTimeout: clock.clearTimeout,
    fetch: async (_url, options) => (asked.push(options), response(200, aReportText(clock.now()), { etag: '"one"' })),
    addEventListener() {},
    removeEventListener() {},
  });
  context.self = context;
  vm.runInContext("Date", context).now = clock.now;
  vm.runInContext(read("commonjs/index.js"), context);
  const reader = context.lookoutReader.createReader({ baseUrl: "https://liveness.example", protocol: "protocol" });
  await reader.read();
  await clock.pass(15);
  const update = await reader.read();
  assert.deepEqual([update.reportProblem, asked.length], [null, 2]);
  for (const { cache, headers } of asked) {
    assert.equal(cache, "no-cache");
    assert.deepEqual(Object.keys(headers), ["Accept"]);
  }
});
