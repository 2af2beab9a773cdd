// The history: its buckets, how much of a window they cover, and the incidents among them.

import { isObject, readDocument, readRows, unreadable, whole } from "./document.js";
import { parseInstant } from "./instants.js";
import {
  CHARACTERS,
  CURRENT_CHARACTER,
  EFFECTIVE_STATUSES,
  KNOWN_CHARACTERS,
  TROUBLE,
  UNKNOWN_CHARACTER,
} from "./statuses.js";

/** The windows of uptime and coverage, in seconds. */
export const WINDOWS = /* @__PURE__ */ Object.freeze({ "24h": 86_400, "7d": 604_800, "14d": 1_209_600 });
const NO_DATA = "-";
const BUCKETS_MOST = 250_000; // of a row: 14 days of 5 seconds

/** The history in `text` (a string or UTF-8 bytes), or why it cannot be read. Never throws (C6). */
export function parseHistory(text) {
  const { problem, fields } = readDocument(text, "rows");
  if (problem) return unreadable(problem);
  const bucketSeconds = whole(fields.bucketSeconds, 1);
  const from = parseInstant(fields.from);
  const to = parseInstant(fields.to);
  const ended = bucketSeconds === null || from === null || to === null ? -1 : (to - from) / (bucketSeconds * 1000);
  if (!Number.isInteger(ended) || ended < 0) return unreadable("its from, to and bucketSeconds do not fit together");
  const length = ended + 1;
  if (length > BUCKETS_MOST) return unreadable("its buckets are too many");
  return Object.freeze({
    readable: true,
    generatedAt: parseInstant(fields.generatedAt),
    bucketSeconds,
    retentionDays: whole(fields.retentionDays, 1),
    from,
    to,
    length,
    ...readRows(fields.rows, (raw) => readPast(raw, length)),
  });
}

function readPast(raw, length) {
  if (!isObject(raw.uptime)) return "its uptime is missing";
  if (typeof raw.buckets !== "string") return "its buckets are not text";
  const buckets = raw.buckets.replace(UNKNOWN_CHARACTER, NO_DATA); // C5
  if (buckets.length !== length) return "its buckets have the wrong length";
  const uptime = {};
  for (const window of Object.keys(WINDOWS)) uptime[window] = share(raw.uptime[window]);
  return { buckets, uptime: Object.freeze(uptime) };
}

function share(value) {
  return typeof value === "number" && value >= 0 && value <= 1 ? value + 0 : null;
}

/** When the bucket at `index` began. */
export function bucketBeginsAt(history, index) {
  return history.from + index * history.bucketSeconds * 1000;
}

/** The buckets of a row with their instants; the last one is still filling, and is to be shown as provisional (C13). */
export function bucketsOf(history, row) {
  return Array.from(charactersOf(row), (character, index) => ({
    beginsAt: bucketBeginsAt(history, index),
    endsAt: bucketBeginsAt(history, index + 1),
    character,
    status: statusOf(character),
    filling: index === history.length - 1,
  }));
}

/**
 * How much of a window was known (the service was read, well or in trouble), which is what its uptime was counted from:
 * of all buckets that the window has, and of those that the history already had.
 */
export function coverageOf(history, row, window) {
  const characters = charactersOf(row);
  const buckets = Math.floor(WINDOWS[window] / history.bucketSeconds) + 1; // H12
  const existing = Math.min(buckets, history.length);
  let known = 0;
  for (let index = history.length - existing; index < characters.length; index++) {
    if (KNOWN_CHARACTERS.includes(characters[index])) known++;
  }
  return { window, known, existing, buckets, share: known / buckets, shareOfExisting: known / existing };
}

/**
 * The runs of buckets that were catching up, degraded or unavailable, oldest first. `beginSeen` and `endSeen` say
 * whether the bucket before or after was current: otherwise it may have begun earlier, or gone on unseen. `endsAt` is
 * null while it lasts.
 */
export function incidentsOf(history, row) {
  const characters = charactersOf(row);
  return Array.from(characters.matchAll(TROUBLE), ({ index, 0: run }) => {
    const end = index + run.length;
    return {
      beginsAt: bucketBeginsAt(history, index),
      endsAt: end === characters.length ? null : bucketBeginsAt(history, end),
      worst: statusOf([...CHARACTERS].find((character) => run.includes(character))),
      buckets: run.length,
      beginSeen: characters[index - 1] === CURRENT_CHARACTER,
      endSeen: characters[end] === CURRENT_CHARACTER,
    };
  });
}

function statusOf(character) {
  return EFFECTIVE_STATUSES[CHARACTERS.indexOf(character)] ?? null;
}

function charactersOf(row) {
  return row?.readable ? row.buckets : "";
}
