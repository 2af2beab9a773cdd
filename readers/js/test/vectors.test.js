// The cases of tests/data/vectors/reader, which the Python reader runs too: a case added there runs in both.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  NOTES,
  agreementText,
  bucketsOf,
  canUse,
  coverageOf,
  effectiveStatus,
  explainObstacles,
  findRow,
  countedChains,
  headlineOf,
  parseAbout,
  incidentsOf,
  newFeed,
  notesFor,
  obstaclesOf,
  overviewOf,
  parseHistory,
  parseHttpDate,
  parseInstant,
  parseReport,
  reasonText,
  rollUp,
  statusText,
  takeAnswer,
  wrongClock,
} from "../src/page.js";
import { readVectors } from "../testing/vectors.js";

function vectors(name) {
  return readVectors(`reader/${name}`);
}

function each(name, clauses, run) {
  const { cases, ...shared } = vectors(name);
  for (const one of cases) test(`${clauses}: ${one.name ?? JSON.stringify(one.text)}`, () => run(one, shared));
}

function textOf(one) {
  if (one.hex) return Uint8Array.from(one.hex.match(/../g), (byte) => parseInt(byte, 16));
  if (one.nested) return `{"schemaVersion":1,"checks":[],"x":${"[".repeat(one.nested)}${"]".repeat(one.nested)}}`;
  if (one.parts) return JSON.stringify({ schemaVersion: 1, checks: [], x: Array(one.parts).fill([]) });
  if (one.repeated) return one.repeated[0].repeat(one.repeated[1]);
  if (one.rows) return JSON.stringify({ ...one.document, [one.list]: Array(one.rows).fill({}) });
  return one.text ?? JSON.stringify(one.document);
}

function identity(row) {
  return { service: row.service, chainId: row.chainId === undefined ? "unread" : row.chainId };
}

function aReport(rows) {
  return parseReport(JSON.stringify({ schemaVersion: 1, generatedAt: "2026-11-15T11:59:31.000Z", checks: rows }));
}

function rowsOf(one, fields) {
  return one.rows.map((row) => row && { service: row[0], chainId: row[1], ...fields[row[2]] });
}

function aHistory(buckets, { bucketSeconds = 300, from = "2026-11-01T00:00:00Z" } = {}) {
  const to = new Date(Date.parse(from) + (buckets.length - 1) * bucketSeconds * 1000).toISOString();
  const rows = [{ service: "indexer", chainId: 1, buckets, uptime: {} }];
  const history = parseHistory(JSON.stringify({ schemaVersion: 1, bucketSeconds, from, to, rows }));
  return { history, row: findRow(history, "indexer", 1) };
}

for (const name of ["reader-status", "status-edges"]) {
  each(name, "C1, C2, C3, C4, C5", (one, { now }) => {
    const at = "now" in one ? NaN : Date.parse(now);
    assert.equal(effectiveStatus(aReport([one.row]).rows[0], at, one.receivedAgoMs, one.clockAheadMs), one.effective);
  });
}

each("reports", "C5, C6, C7, C8", (one, { now }) => {
  const report = parseReport(textOf(one));
  if (one.expect.problem) return assert.deepEqual({ ...report }, { readable: false, problem: one.expect.problem });
  if (one.expect.unreadable) return assert.equal(report.unreadableRows, one.expect.unreadable);
  assert.equal(report.generatedAt, parseInstant(one.expect.generatedAt));
  const found = report.rows.map((row) => ({
    ...identity(row),
    effective: effectiveStatus(row, Date.parse(now)),
    problem: row.problem ?? null,
  }));
  assert.deepEqual(found, one.expect.rows);
  assert.equal(report.unreadableRows, one.expect.rows.filter((row) => row.problem).length);
});

each("metrics", "C5", (one) => {
  const [row] = aReport([{ service: "indexer", chainId: 1, metrics: one.metrics }]).rows;
  assert.deepEqual({ ...row.metrics }, one.expect);
});

each("instants", "C2", (one) => assert.equal(parseInstant(one.text), one.at));
each("http-dates", "C9", (one) => assert.equal(parseHttpDate(one.text), one.at));

each("histories", "C5, C6, C7, C8, C13", (one) => {
  const history = parseHistory(textOf(one));
  if (one.expect.problem) return assert.deepEqual({ ...history }, { readable: false, problem: one.expect.problem });
  assert.equal(history.length, one.expect.length);
  const found = history.rows.map((row) =>
    row.readable
      ? { ...identity(row), buckets: row.buckets, uptime: { ...row.uptime }, problem: null }
      : { ...identity(row), problem: row.problem },
  );
  assert.deepEqual(found, one.expect.rows);
  for (const row of history.rows.filter((found) => found.readable)) {
    const buckets = bucketsOf(history, row);
    assert.deepEqual([buckets[0].beginsAt, buckets.at(-1).beginsAt], [history.from, history.to]);
    assert.deepEqual(
      buckets.filter((bucket) => bucket.filling),
      [buckets.at(-1)],
    );
  }
});

each("coverage", "H12, C8", (one) => {
  const buckets = one.runs.map(([character, times]) => character.repeat(times)).join("");
  const { history, row } = aHistory(buckets, one);
  for (const [window, expected] of Object.entries(one.expect)) {
    const { known, existing, buckets: all, share, shareOfExisting } = coverageOf(history, row, window);
    assert.deepEqual({ known, existing, buckets: all }, expected);
    assert.deepEqual([share, shareOfExisting], [known / all, known / existing]);
  }
});

each("incidents", "C13", (one, shared) => {
  const { history, row } = aHistory(one.buckets, shared);
  const expected = one.expect.map((incident) => ({
    ...incident,
    beginsAt: parseInstant(incident.beginsAt),
    endsAt: parseInstant(incident.endsAt),
  }));
  assert.deepEqual(incidentsOf(history, row), expected);
});

each("rollup", "C11", (one, { now, fields }) => {
  const report = aReport(rowsOf(one, fields));
  const { chains, services, includeTestNetwork, receivedAgoMs, clockAheadMs } = one;
  const clocks = { now: Date.parse(now), receivedAgoMs, clockAheadMs };
  const found = rollUp(report, { ...clocks, chains, services, includeTestNetwork });
  assert.deepEqual(
    {
      status: found.status,
      healthy: found.healthy,
      chains: found.chains,
      services: Object.fromEntries(found.services.map((summary) => [summary.service, summary.status])),
      counts: Object.fromEntries(Object.entries(found.counts).filter(([, count]) => count > 0)),
    },
    one.expect,
  );
  if (services || includeTestNetwork || report.unreadableRows > 0) return; // an overview counts others
  assert.equal(overviewOf(report, { ...clocks, chains: found.chains }).status, found.status);
});

each("gate", "C1, C2, C3, C4, C8", (one, { now, fields }) => {
  const report = aReport(rowsOf(one, fields));
  const { chain, services, receivedAgoMs, clockAheadMs } = one;
  const needs = { chain, services, now: Date.parse(now), receivedAgoMs, clockAheadMs };
  if (one.mistake)
    return assert.throws(
      () => canUse(report, needs),
      (error) => error instanceof TypeError && error.message.startsWith(one.mistake),
    );
  const found = obstaclesOf(report, needs);
  for (const { service, chainId, row } of found) assert.deepEqual(row, findRow(report, service, chainId));
  assert.deepEqual(
    found.map(({ service, chainId, effective, presence }) => [service, chainId, effective, presence]),
    one.expect,
  );
  assert.equal(canUse(report, needs), one.expect.length === 0);
});

each("obstacles", "C2, C3, C4", ({ report: given, expect, ...one }, { now }) => {
  const fields = given && { schemaVersion: 1, generatedAt: given.generatedAt, checks: given.row ? [given.row] : [] };
  const report = given && parseReport(JSON.stringify(fields));
  const { reportCode, receivedAgoMs, clockAheadMs } = one;
  const needs = { chain: 1, services: ["ppoi"], now: Date.parse(now), reportCode, receivedAgoMs, clockAheadMs };
  const found = explainObstacles(report, needs).map(({ effective, severity, cause }) => [effective, severity, cause]);
  assert.deepEqual(found, expect ? [expect] : []);
});

test("C4, C6: without a report, a clock or a chain nothing can be used", () => {
  const now = Date.parse("2026-11-15T12:00:00.000Z");
  const row = { status: "current", observedAt: "2026-11-15T11:59:30.000Z", expiresAt: "2026-11-15T12:02:00.000Z" };
  const report = aReport([
    { service: "ppoi", chainId: 1, ...row },
    { service: "messaging", chainId: null, ...row },
  ]);
  assert.ok(canUse(report, { chain: 1, services: ["ppoi", "messaging"], now }));
  for (const nothing of [null, undefined, parseReport("<html>")])
    assert.ok(!canUse(nothing, { chain: 1, services: ["ppoi"], now }));
  const needs = { chain: 1, services: ["messaging"] };
  for (const clock of [null, NaN, String(now)]) assert.ok(!canUse(report, { ...needs, now: clock }));
  for (const chain of [undefined, null, NaN]) assert.ok(!canUse(report, { chain, services: ["ppoi"], now }));
});

test("C4: a list of services with a hole in it lets nothing be used", () => {
  assert.ok(!canUse(null, { chain: 1, services: new Array(1), now: 0 }));
});

test("a chain that is no number is named as it was given", () => {
  for (const [chain, given] of [
    [137n, "137 (bigint)"],
    ["0x89", "0x89 (string)"],
  ]) {
    assert.throws(
      () => canUse(null, { chain, services: ["ppoi"], now: 0 }),
      new TypeError(`chain: ${given} is not a number`),
    );
  }
});

test("what needs nothing is a mistake", () => {
  for (const services of [[], "ppoi", undefined, null]) {
    assert.throws(
      () => canUse(null, { chain: 1, services, now: 0 }),
      new TypeError("services: no list of names given"),
    );
  }
});

each("failures", "C9", ({ feed = "live", answer, code }) => {
  const text = answer.repeated ? textOf(answer) : answer.text;
  assert.equal(takeAnswer(newFeed(feed, 60), { ...answer, text }, 0, 0).code, code);
});

each("clocks", "C2, C3", (one) => {
  let feed = newFeed("live", 30);
  for (const { at, generatedAt, etag, date, age, clockAheadMs, wrong } of one.steps) {
    const text = JSON.stringify({ schemaVersion: 1, generatedAt, checks: [] });
    feed = takeAnswer(feed, { httpCode: 200, text, etag, date, age }, Date.parse(at), 0);
    assert.equal(feed.clockAheadMs, clockAheadMs);
    assert.equal(wrongClock(feed), wrong);
  }
});

each("about", "C5, C11", ({ document, reported, problem, expect }) => {
  const found = parseAbout(JSON.stringify(document));
  if (problem !== undefined) return assert.deepEqual(found, { readable: false, problem });
  assert.deepEqual(
    {
      chains: found.chains.map(({ id, name, testNetwork, noBlockSince }) =>
        [id, name, testNetwork, noBlockSince].filter((value) => value !== null),
      ),
      services: found.services.map(({ name, title, runByOthers, effect }) => [name, title, runByOthers, effect]),
      texts: [found.title, found.operator, found.contact],
      notes: found.notes.map(({ id, text, services, chains, from, until, addedAt }) => [
        id,
        text,
        services,
        chains,
        from,
        until,
        addedAt,
      ]),
      testNetworks: [...found.testNetworks].sort((a, b) => a - b),
      counted: countedChains(found, reported),
      places: found.places.map(({ name, url, own, silentSince, differs }) => [
        name,
        url,
        own,
        silentSince,
        differs.map(({ service, chainId, status, since }) => [service, chainId, status, since]),
      ]),
    },
    { places: [], ...expect },
  );
});

function overviewDocuments(one, { now, to, buckets, chains, own, fields }) {
  const nowAt = Date.parse(now);
  const services = ["ppoi", "broadcasters", "indexer", "hosted-indexer"];
  const checks = services.flatMap((service) => chains.map(([chainId]) => `${service} ${chainId}`));
  const current = Object.fromEntries(["messaging", ...checks].map((check) => [check, "current"]));
  const kinds = Object.entries({ ...current, ...one.changes }).filter(([, kind]) => kind !== null);
  const iso = (at) => new Date(at).toISOString().replace(".000Z", "Z");
  const checkOf = (check) => {
    const [service, chainId] = check.split(" ");
    return { service, chainId: chainId ? Number(chainId) : null };
  };
  const rows = kinds.map(([check, kind]) => {
    const { seenS, ...rest } = fields[kind];
    const seenAt = seenS === null ? null : nowAt - 1000 * (seenS + (one.age ?? 0));
    const isKnown = seenAt !== null && !["unknown", "unmonitored"].includes(rest.status);
    const instants = { observedAt: seenAt && iso(seenAt), expiresAt: isKnown ? iso(seenAt + 150_000) : null };
    return { ...checkOf(check), ...rest, ...instants, lastSuccessAt: null, metrics: {} };
  });
  if (one.broken) rows.push({ service: "bundler", chainId: "one" });
  const generatedAt = one.undated ? null : iso(nowAt - 1000 * (one.age ?? 10));
  const report = { schemaVersion: 1, generatedAt, checks: rows };
  const bucketSeconds = one.bucketSeconds ?? 300;
  const toAt = Date.parse(to) - 1000 * (one.historyAgeS ?? 0);
  const past = {
    schemaVersion: 1,
    bucketSeconds,
    from: iso(toAt - 1000 * bucketSeconds * (buckets - 1)),
    to: iso(toAt),
    rows: kinds.map(([check]) => {
      return { ...checkOf(check), buckets: (one.past?.[check] ?? "").padStart(buckets, "c"), uptime: {} };
    }),
  };
  const about = {
    chains: (one.onlyTests ? chains.slice(-1) : chains).map(([id, name]) => ({ id, name })),
    services: (one.own ?? []).map((name) => ({ name, ...own[name] })),
    notes: one.notes ?? [],
    showUnmonitored: !one.hideUnmonitored,
  };
  return {
    report: one.report === false ? null : parseReport(JSON.stringify(report)),
    history: one.history === false ? null : parseHistory(JSON.stringify(past)),
    about: parseAbout(JSON.stringify(about)),
  };
}

each("overviews", "C11, C16", (one, shared) => {
  const { report, ...documents } = overviewDocuments(one, shared);
  const { clockAheadMs, chains, reportCode, answeredAgoMs, expect } = one;
  const given = { now: Date.parse(shared.now), clockAheadMs, chains, reportCode, answeredAgoMs };
  const found = overviewOf(report, { ...documents, ...given });
  const { line, short, advice, cause } = headlineOf(found);
  assert.deepEqual(
    {
      status: found.status,
      doubts: found.doubts,
      line,
      short,
      advice,
      cause,
      bad: found.networks.flatMap(({ chainId, activities }) =>
        activities
          .filter(({ effect }) => effect !== "well")
          .map(({ activity, service, status, effect }) => [chainId, activity ?? service, status, effect]),
      ),
      networks: found.networks.map(({ chainId, counted, status }) => [chainId, counted, status]),
      services: Object.fromEntries(Object.entries(found.services).filter(([, status]) => status !== "current")),
      missing: found.missing.map(({ service, chainId }) => [service, chainId]),
    },
    expect,
  );
});

each("polling", "C9, C10, C14, C15", (one, { now, documents }) => {
  let feed = newFeed(one.feed, one.everyS);
  for (const { answer, expect, atS = 0 } of one.steps) {
    const at = Date.parse(now) + atS * 1000;
    const given = answer.document ? { ...answer, text: JSON.stringify(documents[one.feed][answer.document]) } : answer;
    const before = feed.document;
    const [least, most] = [0, 1].map((chance) => takeAnswer(feed, given, at, chance));
    feed = least;
    assert.deepEqual([least.waitS, most.waitS], expect.waitS);
    const kept = expect.kept && parseInstant(documents[one.feed][expect.kept].generatedAt);
    assert.equal(feed.document?.generatedAt ?? null, kept);
    assert.equal(feed.etag, expect.etag);
    assert.equal(feed.problem, expect.problem);
    if ("arrivals" in expect) assert.equal(feed.arrivals, expect.arrivals);
    if (answer.httpCode !== 200) assert.equal(feed.document, before); // the very same: nothing was renewed
  }
});

test("C12: people are told the same words by every reader", () => {
  const { statuses, reasons, agreements, notes } = vectors("words");
  for (const [status, text] of Object.entries(statuses)) assert.equal(statusText(status), text);
  for (const [reason, text] of Object.entries(reasons)) assert.equal(reasonText(reason), text);
  for (const [metrics, text] of agreements) assert.equal(agreementText(metrics), text);
  assert.deepEqual(
    NOTES.map((note) => ({ ...note, services: note.services && [...note.services] })),
    notes,
  );
});

test("C12: what is to be told stands beside the rows that it is about", () => {
  const general = ["one-view", "not-a-signal", "history"];
  assert.deepEqual(
    notesFor("ppoi").map((note) => note.id),
    [...general, "proofs", "others"],
  );
  assert.deepEqual(
    notesFor("broadcasters").map((note) => note.id),
    [...general, "partial"],
  );
  assert.deepEqual(
    notesFor("messaging").map((note) => note.id),
    [...general, "peers"],
  );
  assert.deepEqual(
    notesFor("hosted-indexer").map((note) => note.id),
    [...general, "wallet-sync", "others"],
  );
  assert.deepEqual(
    notesFor("relays").map((note) => note.id),
    general,
  );
  const [fromOne, ...others] = notesFor("relays");
  assert.equal(fromOne.text, "This is what one monitor sees from one place. It is not an official status.");
  const text = "This is what one monitor sees from 3 places. It is not an official status.";
  assert.deepEqual(notesFor("relays", null, 3), [{ ...fromOne, text }, ...others]);
});

test("C5: an unknown reason or word has no sentence of its own", () => {
  for (const reason of ["moon-phase", "constructor", "__proto__", "", null, undefined, 7])
    assert.equal(reasonText(reason), null);
  assert.equal(statusText("constructor"), statusText("unknown"));
});
