// For the tests of what is built with this reader: documents of every state, and a reader whose state is set.

import { explainObstacles } from "./cause.js";
import { takeAnswer } from "./endpoints.js";
import { failure, newFeed } from "./feed.js";
import { canUse } from "./gate.js";
import made from "./states.js";

const INSTANT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z/g;
const BUCKET_MS = 300_000;
const HOLDS_MS = 30_000; // like a monitor's report: then there is a new one

/** The names of the documents; a reader can also be "loading", or without a network ("no-network"). */
export const STATES = /* @__PURE__ */ Object.freeze(Object.keys(made.states));

/** The live report of a state, as a monitor would write it now. */
export function documentOf(state, at = Date.now()) {
  if (!STATES.includes(state)) throw new TypeError(`state: ${state} is none of ${STATES.join(", ")}`);
  const { ageMs = 0, indexer, ...changes } = made.states[state];
  const others = made.fine.checks.slice(0, -1);
  const checks = indexer ? [...others, indexer] : made.fine.checks;
  return moveTo({ ...made.fine, ...changes, checks }, at - made.madeAt - ageMs);
}

/** A history, as a monitor would write it now. */
export function historyOf(at = Date.now()) {
  return moveTo(made.history, Math.floor((at - Date.parse(made.history.to)) / BUCKET_MS) * BUCKET_MS);
}

function moveTo(document, byMs) {
  const move = (text, fraction) => {
    const moved = new Date(Date.parse(text) + byMs).toISOString();
    return fraction ? moved : moved.replace(/\.\d{3}Z$/, "Z");
  };
  return JSON.stringify(document).replace(INSTANT, move);
}

/** Handlers for MSW (give its `http`) of both endpoints; `state` is a name, or a function that gives one. */
export function handlers(http, baseUrl, protocol, state = "fine") {
  const url = `${baseUrl.replace(/\/+$/, "")}/api/v1/${encodeURIComponent(protocol)}/liveness`;
  const headers = { "Content-Type": "application/json; charset=utf-8" };
  return [
    http.get(url, () => {
      const name = typeof state === "function" ? state() : state;
      return name === "no-network" ? Response.error() : new Response(documentOf(name), { headers });
    }),
    http.get(`${url}/history`, () => new Response(historyOf(), { headers })),
  ];
}

/** A reader that asks for nothing: `show(state)` sets what it knows, and tells its listeners. */
export function fakeReader(state = "fine") {
  const listeners = new Set();
  let feed;
  let shown;
  let shownAt;
  let snapshot;

  function set(next) {
    shown = next;
    shownAt = Date.now();
    if (next === "loading") feed = newFeed("live", 30);
    else if (next === "no-network") feed = takeAnswer(feed ?? newFeed("live", 30), failure("no-answer"), shownAt, 0);
    else feed = takeAnswer(newFeed("live", 30), { httpCode: 200, text: documentOf(next, shownAt) }, shownAt, 0);
    const { document: report, problem: reportProblem, code: reportCode, clockAheadMs, bytes } = feed;
    const none = { history: null, historyProblem: null, historyCode: null };
    snapshot = Object.freeze(
      Object.defineProperties(
        { report, reportProblem, reportCode, clockAheadMs, ...none },
        { now: { get: Date.now }, receivedAgoMs: { get: receivedAgoMs }, reportBytes: { value: bytes } },
      ),
    );
  }

  function getSnapshot() {
    if (Date.now() - shownAt > HOLDS_MS && shown !== "no-network") set(shown);
    return snapshot;
  }

  function receivedAgoMs() {
    return feed.document === null ? null : Date.now() - shownAt;
  }

  function show(next) {
    set(next);
    for (const listener of [...listeners]) listener(snapshot);
  }

  function subscribe(listener) {
    const call = (update) => listener(update);
    listeners.add(call);
    return () => listeners.delete(call);
  }

  function whenUsable(needs, { signal } = {}) {
    return new Promise((resolve, reject) => {
      if (canUse(getSnapshot().report, needs)) return resolve();
      const end = subscribe(({ report }) => {
        if (!canUse(report, needs)) return;
        end();
        resolve();
      });
      signal?.addEventListener("abort", () => {
        end();
        reject(signal.reason ?? new Error("aborted"));
      });
    });
  }

  set(state);
  return Object.freeze({
    show,
    subscribe,
    getSnapshot,
    latest: getSnapshot,
    receivedAgoMs,
    canUse: (needs) => canUse(getSnapshot().report, needs),
    obstacles: (needs) => explainObstacles(getSnapshot().report, { ...needs, reportCode: feed.code }),
    whenUsable,
    read: async () => getSnapshot(),
    refresh: async () => getSnapshot(),
    stop: () => listeners.clear(),
  });
}
