// Both endpoints together.

import { advanceFeed } from "./feed.js";
import { parseHistory } from "./history.js";
import { makeReader } from "./reader.js";
import { parseReport } from "./report.js";

const PARSERS = { live: parseReport, history: parseHistory };

/** A reader that asks at once and until it is stopped, and calls `onUpdate` with whatever is new. */
export function poll(options) {
  const reader = createReader(options);
  reader.subscribe((update) => options.onUpdate?.(update));
  return reader;
}

/** A reader of both endpoints, or of the one that the options leave. */
export function createReader(options) {
  return makeReader(PARSERS, options);
}

/**
 * The feed after an answer: `{httpCode, text, etag, retryAfter, date}`, or `{problem, code}` if there was none. A
 * failure of any kind leaves the last good document as it is, and lengthens the wait (C9). `chance` is random, from 0
 * to 1. `arrivals` grows only with a document that is another than the one before.
 */
export function takeAnswer(feed, answer, now, chance) {
  return advanceFeed(PARSERS[feed.kind], feed, answer, now, chance);
}
