// Asking both endpoints again and again, politely, for as many listeners as there are.

import { explainObstacles } from "./cause.js";
import { keepClocks } from "./clocks.js";
import { FLOORS_S, advanceFeed, askedToWaitS, boundSeconds, newFeed } from "./feed.js";
import { canUse } from "./gate.js";
import { judgeRow, nextChangeMs } from "./report.js";
import { request } from "./request.js";

const AGENT = "lookout-reader-js/3.0.0";
const TIMEOUT_LEAST_S = 1;
const TIMEOUT_MOST_S = 60;
const TIMER_MOST_MS = 86_400_000;
const CURRENT_TIMER_MOST_MS = 5_000; // a device that slept, or whose clock was set, shows nothing current for longer

/**
 * Asks while somebody listens, one request at a time, and calls every listener after every answer and whenever the
 * passing of time changes what a row is worth. In between it sleeps. Each of the `parsers` reads one kind of document;
 * a kind that has none is not asked for.
 */
export function makeReader(
  parsers,
  {
    baseUrl,
    protocol,
    live = 30,
    history = 120,
    timeoutS = 10,
    deadlineS = 5,
    userAgent = AGENT,
    fetch,
    signal,
    now = () => Date.now(),
    monotonic = () => (globalThis.performance ?? Date).now(),
    random = Math.random,
    setTimeout = globalThis.setTimeout,
    clearTimeout = globalThis.clearTimeout,
    document = globalThis.document,
    window = globalThis,
  },
) {
  if (!/^https?:\/\/[^/]/i.test(baseUrl)) throw new TypeError(`baseUrl: ${baseUrl} is not http or https`);
  if (typeof protocol !== "string" || !protocol) throw new TypeError("protocol: no name given");
  const timeoutMs = boundSeconds("timeoutS", timeoutS, TIMEOUT_LEAST_S, TIMEOUT_MOST_S) * 1000;
  const deadlineMs = boundSeconds("deadlineS", deadlineS, 0, TIMEOUT_MOST_S) * 1000;
  const liveUrl = `${baseUrl.replace(/\/+$/, "")}/api/v1/${encodeURIComponent(protocol)}/liveness`;
  const urls = { live: liveUrl, history: `${liveUrl}/history` };
  const feeds = { live: newFeed("live", live || 0), history: newFeed("history", history || 0) };
  const kinds = Object.keys(parsers).filter((kind) => (kind === "live" ? live : history) !== false);
  const dueAt = { live: -Infinity, history: -Infinity };
  const floorAt = { ...dueAt }; // when it may be asked for at the earliest
  const listeners = new Set();
  const events = [
    [document, "visibilitychange", wake],
    [window, "pageshow", wake],
    [window, "pagehide", giveUp],
    [window, "online", askAgain],
  ].filter(([target]) => target?.addEventListener); // React Native's window has none
  let answered = null; // when the live report was last asked for with an answer or without, by both clocks
  let receivedAt = null; // of the report that is held, by the clock that is never set
  let snapshot = null;
  let worth; // of the snapshot's rows
  let published = getSnapshot();
  let timer;
  let asking = null; // the request under way, as a promise
  let aborting;
  const life = new AbortController(); // until it is stopped

  function receivedAgoMs() {
    return agoMs(receivedAt);
  }

  function agoMs(at) {
    return at === null ? null : Math.max(monotonic() - at, 0);
  }

  /** One of the clocks may stand still while a device sleeps. */
  function answeredAgoMs() {
    return answered === null ? null : Math.max(agoMs(answered.at), now() - answered.now);
  }

  /** The clocks of a report that arrived then. */
  function readClocks(at) {
    return { now: now(), receivedAgoMs: agoMs(at), clockAheadMs: feeds.live.clockAheadMs };
  }

  /** Whoever copies an update has no instant of it, by which it would be judged for ever. */
  function latest() {
    const at = receivedAt;
    const update = {
      report: feeds.live.document,
      reportProblem: feeds.live.problem,
      history: feeds.history.document,
      historyProblem: feeds.history.problem,
      clockAheadMs: feeds.live.clockAheadMs,
      reportCode: feeds.live.code,
      historyCode: feeds.history.code,
    };
    return Object.freeze(
      Object.defineProperties(update, {
        now: { get: now },
        receivedAgoMs: { get: () => agoMs(at) },
        answeredAgoMs: { get: answeredAgoMs },
        reportBytes: { value: feeds.live.bytes },
      }),
    );
  }

  /** The same value until there is an answer, or a row is worth something else. */
  function getSnapshot() {
    const clocks = readClocks(receivedAt);
    const found = feeds.live.document?.rows.map((row) => judgeRow(row, clocks)).join();
    if (snapshot === null || found !== worth) snapshot = latest();
    worth = found;
    return snapshot;
  }

  function publish() {
    if (getSnapshot() === published) return;
    published = snapshot;
    for (const call of [...listeners]) {
      try {
        call(published);
      } catch (error) {
        // On its own, so that it is reported as what it is and ends nobody else.
        (globalThis.queueMicrotask ?? setTimeout)(() => {
          throw error;
        });
      }
    }
  }

  /** Asks once. A failure of what a user wanted is not counted: taps must not lengthen the polling. */
  async function ask(kind, isWanted) {
    await null; // what time has changed is published first
    const dueBefore = dueAt[kind];
    const askedAt = monotonic();
    const own = (aborting = new AbortController());
    const answer = await request(
      urls[kind],
      feeds[kind],
      { fetch, userAgent, timeoutMs, setTimeout, clearTimeout },
      own,
    );
    const answeredAt = monotonic();
    const answeredNow = now();
    if (kind === "live") answered = { at: answeredAt, now: answeredNow };
    dueAt[kind] = floorAt[kind] = Math.max(
      askedAt + FLOORS_S[kind] * 1000,
      answeredAt + askedToWaitS(answer, answeredNow) * 1000,
    );
    if (aborting === own) {
      if (answer.reachedNobody) floorAt[kind] = answeredAt;
      const before = feeds[kind];
      const after = advanceFeed(parsers[kind], before, answer, answeredNow, random());
      const isCounted = !isWanted || after.problem === null;
      feeds[kind] = isCounted ? after : Object.freeze({ ...after, failures: before.failures });
      dueAt[kind] = isCounted ? answeredAt + after.waitS * 1000 : Math.max(dueBefore, floorAt[kind]);
      if (kind === "live" && after.document !== before.document) {
        const at = (receivedAt = after.arrivals > before.arrivals ? answeredAt : receivedAt);
        keepClocks(after.document, () => readClocks(at));
      }
      snapshot = null;
      publish();
    }
    asking = null;
    wake();
  }

  /** Publishes what time has changed, asks for what is due, and sleeps until there is something to do. */
  function wake() {
    clearTimeout(timer);
    if (listeners.size === 0 || document?.visibilityState === "hidden") return;
    publish();
    const [next] = [...kinds].sort((one, other) => dueAt[one] - dueAt[other]);
    const dueMs = (dueAt[next] ?? Infinity) - monotonic(); // of nothing, if both are left out
    if (dueMs <= 0) asking ??= ask(next);
    const mostMs = worth?.includes("current") ? CURRENT_TIMER_MOST_MS : TIMER_MOST_MS;
    const changeMs = nextChangeMs(feeds.live.document?.rows ?? [], readClocks(receivedAt));
    timer = setTimeout(wake, Math.ceil(Math.min(changeMs, asking ? Infinity : dueMs, mostMs)));
  }

  /** Drops the request under way. In the back/forward cache, too, no answer is waited for. */
  function giveUp() {
    aborting?.abort();
    aborting = null;
  }

  /** Online again: asks at once for what has failed, but no faster than the floors unless nobody was reached. */
  function askAgain() {
    for (const kind of kinds) if (feeds[kind].problem !== null) dueAt[kind] = Math.min(dueAt[kind], floorAt[kind]);
    wake();
  }

  /** Adds a listener, and gives back what removes it. The first one starts the asking, and the last one ends it. */
  function subscribe(listener) {
    const call = (update) => listener(update); // the same function may listen twice
    if (life.signal.aborted) return () => {};
    listeners.add(call);
    if (listeners.size === 1) {
      for (const [target, type, handler] of events) target.addEventListener(type, handler);
      Promise.resolve().then(wake); // nothing is published before this has returned
    }
    return () => {
      if (listeners.delete(call) && listeners.size === 0) rest();
    };
  }

  function rest() {
    clearTimeout(timer);
    for (const [target, type, handler] of events) target.removeEventListener(type, handler);
  }

  /**
   * Publishes what time has changed, asks for these unless that was less than the floors ago (C10), and gives what is
   * known then, or when the deadline has passed.
   */
  function bringUpToDate(wanted) {
    publish();
    return new Promise((resolve) => {
      const late = setTimeout(answer, deadlineMs);
      function answer() {
        clearTimeout(late);
        resolve(getSnapshot());
      }
      askFor(wanted).then(answer);
    });
  }

  async function askFor(wanted) {
    for (const kind of wanted) {
      while (asking) await asking;
      if (!life.signal.aborted && floorAt[kind] <= monotonic()) await (asking = ask(kind, true));
    }
  }

  function obstacles(needs) {
    return explainObstacles(feeds.live.document, { ...needs, reportCode: feeds.live.code });
  }

  /** Resolved when nothing stands in the way any more; until then it listens. */
  function whenUsable(needs, { signal: waiting } = {}) {
    return new Promise((resolve, reject) => {
      if (canUse(feeds.live.document, needs)) return resolve();
      const signals = [life.signal, waiting].filter(Boolean);
      const end = subscribe(check);
      for (const one of signals) one.addEventListener("abort", check);
      check();

      function check() {
        const aborted = signals.find((one) => one.aborted);
        if (!aborted && !canUse(feeds.live.document, needs)) return;
        end();
        for (const one of signals) one.removeEventListener("abort", check);
        if (aborted) reject(aborted.reason ?? new Error("aborted"));
        else resolve();
      }
    });
  }

  function stop() {
    life.abort();
    giveUp();
    listeners.clear();
    rest();
    signal?.removeEventListener("abort", stop);
  }

  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop);
  return Object.freeze({
    latest,
    receivedAgoMs,
    getSnapshot,
    subscribe,
    canUse: (needs) => canUse(feeds.live.document, needs),
    obstacles,
    whenUsable,
    read: () => bringUpToDate(["live"]),
    refresh: () => bringUpToDate(kinds),
    stop,
  });
}
