// A clock, a network and a page for the poller, all of them under the test's hand.

const NOON = Date.parse("2026-11-15T12:00:00.000Z");

/** A clock that moves only when told to, with its timers. */
export function aClock() {
  let elapsed = 0;
  let set = 0;
  let timers = [];
  return {
    now: () => NOON + elapsed + set,
    monotonic: () => elapsed,
    setWallClock: (ms) => (set = ms),
    setTimeout: (callback, ms) => {
      const timer = { callback, at: elapsed + ms };
      timers.push(timer);
      return timer;
    },
    clearTimeout: (timer) => (timers = timers.filter((other) => other !== timer)),
    timers: () => timers.length,
    async pass(seconds) {
      const end = elapsed + seconds * 1000;
      await settle();
      for (;;) {
        const next = timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
        if (next === undefined) break;
        elapsed = Math.max(elapsed, next.at);
        timers = timers.filter((timer) => timer !== next);
        next.callback();
        await settle();
      }
      elapsed = end;
    },
  };
}

/** Everything that waits for nothing but other promises. */
export function settle() {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A network that answers with what `answer(url, options, times)` says, and remembers what it was asked. */
export function aNetwork(clock, answer) {
  const asked = [];
  let underWay = 0;
  let most = 0;
  return {
    asked,
    most: () => most,
    async fetch(url, options) {
      asked.push({ url, headers: options.headers, cache: options.cache, at: clock.monotonic() / 1000 });
      most = Math.max(most, ++underWay);
      try {
        return await answer(url, options, asked.length);
      } finally {
        underWay--;
      }
    },
  };
}

export function response(status, text = "", headers = {}) {
  return new Response(status === 304 || status === 204 ? null : text, { status, headers });
}

export function never(_url, { signal }) {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

export function instant(at) {
  return new Date(at).toISOString();
}

export function aReportText(at, status = "current") {
  const checks = ["messaging", "ppoi", "broadcasters"].map((service) => ({
    service,
    chainId: service === "messaging" ? null : 1,
    status,
    reason: "synced",
    observedAt: instant(at),
    lastSuccessAt: instant(at),
    expiresAt: instant(at + 150_000),
    metrics: {},
  }));
  return JSON.stringify({ schemaVersion: 1, generatedAt: instant(at), checks });
}

export function aHistoryText(at) {
  const to = Math.floor(at / 300_000) * 300_000;
  const rows = [{ service: "ppoi", chainId: 1, buckets: "ccc", uptime: { "24h": null, "7d": null, "14d": null } }];
  const borders = { from: instant(to - 600_000), to: instant(to) };
  return JSON.stringify({
    schemaVersion: 1,
    generatedAt: instant(at),
    bucketSeconds: 300,
    retentionDays: 14,
    ...borders,
    rows,
  });
}

/** A page whose tab can be hidden. */
export function aPage() {
  const listeners = new Set();
  return {
    visibilityState: "visible",
    addEventListener: (_type, listener) => listeners.add(listener),
    removeEventListener: (_type, listener) => listeners.delete(listener),
    listeners: () => listeners.size,
    show(visible) {
      this.visibilityState = visible ? "visible" : "hidden";
      for (const listener of [...listeners]) listener();
    },
  };
}

/** A window that can lose and find its network, and be put away and brought back. */
export function aWindow() {
  const listeners = new Set();
  const dispatch = (type) => {
    for (const [wanted, listener] of [...listeners]) if (wanted === type) listener();
  };
  return {
    addEventListener: (type, listener) => listeners.add([type, listener]),
    removeEventListener(type, listener) {
      for (const entry of listeners) if (entry[0] === type && entry[1] === listener) listeners.delete(entry);
    },
    listeners: () => listeners.size,
    online: () => dispatch("online"),
    pagehide: () => dispatch("pagehide"),
    pageshow: () => dispatch("pageshow"),
  };
}
