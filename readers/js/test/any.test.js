// Whatever is sent: nothing throws, nothing is made healthier than it was, and no row hides another.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bucketsOf,
  checkKey,
  coverageOf,
  effectiveStatus,
  incidentsOf,
  parseHistory,
  parseReport,
  rollUp,
  rowsByCheck,
} from "../src/page.js";
import { readVectors } from "../testing/vectors.js";
import { instant } from "../testing/world.js";

const REAL = ["replay-11", "replay-12"].flatMap((name) => Object.values(readVectors(`${name}.expected`)));
const NOW = Date.parse("2026-11-15T12:00:00.000Z");
const SERVICES = ["messaging", "ppoi", "broadcasters", "indexer", "hosted-indexer"];

/** Mulberry32: small, seeded, good enough to choose by. */
function chanceOf(seed) {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    below: (count) => Math.floor(next() * count),
    of: (values) => values[Math.floor(next() * values.length)],
  };
}

function aRow(chance, service, chainId) {
  const observedAt = NOW - chance.below(400_000) + 40_000;
  return {
    service,
    chainId,
    status: chance.of([
      "current",
      "current",
      "current",
      "catching-up",
      "degraded",
      "unavailable",
      "unknown",
      "unmonitored",
    ]),
    reason: "synced",
    observedAt: instant(observedAt),
    lastSuccessAt: instant(observedAt),
    expiresAt: instant(observedAt + 150_000),
    metrics: { position: 1, head: 2 },
  };
}

function aReport(chance) {
  const checks = [];
  for (const service of SERVICES) {
    for (const chainId of service === "messaging" ? [null] : [1, 42161, 137, 56, 11155111])
      checks.push(aRow(chance, service, chainId));
  }
  return { schemaVersion: 1, generatedAt: instant(NOW), checks };
}

function aHistory(chance) {
  const length = 1 + chance.below(40);
  const rows = SERVICES.map((service) => ({
    service,
    chainId: service === "messaging" ? null : 1,
    buckets: Array.from({ length }, () => chance.of("ccckdu?.-")).join(""),
    uptime: { "24h": 1, "7d": 0.5, "14d": null },
  }));
  const borders = { from: instant(NOW - (length - 1) * 300_000), to: instant(NOW) };
  return { schemaVersion: 1, generatedAt: instant(NOW), bucketSeconds: 300, retentionDays: 14, ...borders, rows };
}

const STRANGE = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  2 ** 53,
  1e300,
  "",
  "current",
  "c".repeat(7),
  "\ud800",
  "😀",
  [],
  {},
  [[]],
  { current: 1 },
  "2026-11-15T11:59:59.000Z",
  "9999-12-31T23:59:59.999Z",
];

/** The same document with one value, anywhere in it, replaced, removed or added. */
function mutated(chance, document) {
  const copy = structuredClone(document);
  const places = [];
  const visit = (parent) => {
    for (const key of Object.keys(parent)) {
      places.push([parent, key]);
      if (typeof parent[key] === "object" && parent[key] !== null) visit(parent[key]);
    }
  };
  visit(copy);
  for (let times = 1 + chance.below(4); times > 0; times--) {
    const [parent, key] = chance.of(places);
    const kind = chance.below(4);
    if (kind === 0 && !Array.isArray(parent)) delete parent[key];
    else if (kind === 1 && Array.isArray(parent)) parent.splice(chance.below(parent.length + 1), 0, chance.of(STRANGE));
    else parent[key] = chance.of(STRANGE);
  }
  return copy;
}

function broken(chance, text) {
  const at = chance.below(text.length);
  const kind = chance.below(4);
  if (kind === 0) return text.slice(0, at);
  if (kind === 1) return text.slice(0, at) + chance.of([...'{}[]",:0cx\u0000']) + text.slice(at + 1);
  if (kind === 2) return text.slice(at) + text.slice(0, at);
  return text.slice(0, at) + text.slice(at + 1 + chance.below(20));
}

/** Whether the published row itself says current and fresh: an oracle that shares no code with the reader. */
function isTrulyCurrent(raw) {
  if (typeof raw !== "object" || raw === null || raw.status !== "current") return false;
  const [observedAt, expiresAt] = [Date.parse(raw.observedAt), Date.parse(raw.expiresAt)];
  const named = typeof raw.service === "string" && raw.service !== "" && (raw.chainId === null || raw.chainId > 0);
  return named && observedAt <= NOW + 30_000 && expiresAt > NOW && observedAt > NOW - 300_000 && expiresAt > observedAt;
}

function callEverything(text) {
  const report = parseReport(text);
  const summary = rollUp(report, { now: NOW });
  const history = parseHistory(text);
  if (history.readable) {
    for (const row of history.rows) {
      bucketsOf(history, row);
      incidentsOf(history, row);
      for (const window of ["24h", "7d", "14d"]) coverageOf(history, row, window);
    }
  }
  return { report, summary, history };
}

test("C4, C6, C7: any mutated report never throws, and nothing in it is healthier than published", () => {
  const chance = chanceOf(20261115);
  let healthy = 0;
  for (let round = 0; round < 600; round++) {
    const whole = aReport(chance);
    if (round % 4 === 0)
      for (const row of whole.checks)
        Object.assign(row, { status: "current", observedAt: instant(NOW), expiresAt: instant(NOW + 150_000) });
    const document = mutated(chance, whole);
    const text = chance.below(5) ? JSON.stringify(document) : broken(chance, JSON.stringify(document));
    const { report, summary } = callEverything(text);
    if (!report.readable) {
      assert.equal(summary.healthy, false);
      continue;
    }
    const raws = JSON.parse(text).checks;
    assert.equal(report.rows.length, raws.length);
    report.rows.forEach((row, index) => {
      if (effectiveStatus(row, NOW) === "current") assert.ok(isTrulyCurrent(raws[index]), JSON.stringify(raws[index]));
    });
    if (summary.healthy) {
      healthy++;
      for (const service of SERVICES) {
        for (const chainId of service === "messaging" ? [null] : [1, 42161, 137, 56]) {
          const found = raws.filter((raw) => raw?.service === service && raw?.chainId === chainId);
          assert.equal(found.length, 1);
          assert.ok(isTrulyCurrent(found[0]) || found[0].status === "unmonitored");
        }
      }
    }
  }
  assert.ok(healthy > 10); // the other side was seen too
});

test("C7: a bad row added anywhere changes no other row", () => {
  const chance = chanceOf(7);
  for (let round = 0; round < 100; round++) {
    for (const [make, list, parse] of [
      [aReport, "checks", parseReport],
      [aHistory, "rows", parseHistory],
    ]) {
      const document = make(chance);
      const before = rowsByCheck(parse(JSON.stringify(document)));
      document[list].splice(
        chance.below(document[list].length + 1),
        0,
        chance.of([...STRANGE, { service: 7 }, { service: "ppoi" }]),
      );
      const after = parse(JSON.stringify(document));
      assert.equal(after.unreadableRows, 1);
      for (const [key, row] of before) assert.deepEqual(rowsByCheck(after).get(key), row);
    }
  }
});

test("C7: a row that is broken in place changes no other row", () => {
  const chance = chanceOf(8);
  for (let round = 0; round < 100; round++) {
    const document = aHistory(chance);
    const before = parseHistory(JSON.stringify(document));
    const index = chance.below(document.rows.length);
    document.rows[index] = mutated(chance, { row: document.rows[index] }).row ?? null;
    const after = parseHistory(JSON.stringify(document));
    const twin = checkKey(after.rows[index]);
    before.rows.forEach((row, other) => {
      if (other !== index && checkKey(row) !== twin) assert.deepEqual(after.rows[other], row);
    });
  }
});

test("C6: any text, bytes or value at all never throws", () => {
  const chance = chanceOf(9);
  for (let round = 0; round < 400; round++) {
    const document = mutated(chance, chance.of([aReport(chance), aHistory(chance), ...REAL]));
    callEverything(broken(chance, JSON.stringify(document)));
    const bytes = Uint8Array.from({ length: chance.below(60) }, () => chance.below(256));
    assert.equal(parseReport(bytes).readable, false);
    assert.equal(parseHistory(bytes).readable, false);
  }
  for (const value of [undefined, null, 7, NaN, {}, [], Symbol("x"), () => {}, 10n, new Date(), new ArrayBuffer(4)]) {
    assert.equal(parseReport(value).readable, false);
    assert.equal(parseHistory(value).readable, false);
  }
});

test("C6: bytes are read as UTF-8, with or without a mark of it", () => {
  const text = JSON.stringify(aReport(chanceOf(1)));
  const bytes = new TextEncoder().encode(text);
  assert.deepEqual(parseReport(bytes), parseReport(text));
  assert.deepEqual(parseReport(Uint8Array.from([0xef, 0xbb, 0xbf, ...bytes])), parseReport(text));
  assert.equal(parseReport(Uint8Array.from([...bytes, 0xff])).readable, false);
});

test("C9: 16 MiB of nothing but parts are refused before they are parsed", () => {
  for (const part of ["{}", "[]"]) {
    const text = `{"schemaVersion":1,"checks":[${`${part},`.repeat(5_500_000)}${part}]}`;
    const began = process.cpuUsage();
    assert.equal(parseReport(text).problem, "it is not JSON");
    const { user, system } = process.cpuUsage(began);
    assert.ok(user + system < 1_000_000, `${user + system} microseconds`); // parsing it takes many seconds
  }
});

test("reading takes time in proportion to the size", () => {
  const documents = (rows) => {
    const checks = Array.from({ length: rows }, (_, index) => aRow(chanceOf(index), "indexer", index + 1));
    const long = checks.map(({ service, chainId }) => ({
      service,
      chainId,
      buckets: "ccccccckdu?-".repeat(337).slice(0, 4033),
      uptime: {},
    }));
    const borders = { from: instant(NOW - 4032 * 300_000), to: instant(NOW) };
    return [
      JSON.stringify({ schemaVersion: 1, checks }),
      JSON.stringify({ schemaVersion: 1, bucketSeconds: 300, ...borders, rows: long }),
      checks.map(({ chainId }) => chainId),
    ];
  };
  const took = ([live, past, chains]) => {
    const times = [1, 2, 3].map(() => {
      const began = process.cpuUsage();
      rollUp(parseReport(live), { now: NOW, chains });
      const history = parseHistory(past);
      assert.equal(history.unreadableRows, 0);
      for (const row of history.rows) {
        incidentsOf(history, row);
        coverageOf(history, row, "14d");
      }
      const { user, system } = process.cpuUsage(began);
      return user + system;
    });
    return Math.min(...times);
  };
  const [quarter, full] = [documents(150), documents(600)];
  took(quarter);
  const ratio = took(full) / took(quarter);
  assert.ok(ratio < 12, `four times the size took ${ratio.toFixed(1)} times as long`);
});

test("C11: a report of 10,000 services is rolled up without comparing each with each", () => {
  let seen = 0;
  const rows = Array.from({ length: 10_000 }, (_, index) => ({
    readable: true,
    get service() {
      seen++;
      return `service-${index}`;
    },
    chainId: 1,
  }));
  const { services } = rollUp({ readable: true, rows }, { chains: [1], now: NOW });
  assert.equal(services.length, 10_005);
  assert.ok(seen < 1_000_000, String(seen));
});
