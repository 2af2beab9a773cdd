// A poller on the clock and the network of world.js.

import { effectiveStatus, findRow, poll } from "../src/page.js";
import { aClock, aHistoryText, aNetwork, aReportText, response } from "./world.js";

/** A poller that has begun, with its clock and network, its updates, and what each was worth when it came. */
export function start(answer, options = {}) {
  const clock = aClock();
  const network = aNetwork(clock, (...asked) => answer(...asked, clock));
  const updates = [];
  const told = [];
  const polling = poll({
    baseUrl: "https://liveness.example/",
    protocol: "protocol",
    onUpdate: (update) => {
      updates.push(update);
      told.push(ppoi(update));
    },
    random: () => 0,
    fetch: network.fetch,
    now: clock.now,
    monotonic: clock.monotonic,
    setTimeout: clock.setTimeout,
    clearTimeout: clock.clearTimeout,
    ...options,
  });
  return { clock, network, updates, told, polling };
}

export function fresh(url, _options, _times, clock) {
  const text = url.endsWith("/history") ? aHistoryText(clock.now()) : aReportText(clock.now());
  return response(200, text, { etag: `"${clock.monotonic()}"` });
}

export function ppoi(update) {
  return effectiveStatus(findRow(update.report, "ppoi", 1));
}
