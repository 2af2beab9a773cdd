/** What the history says of the days of a network, and the incidents in it: rules, without a page. */

import { CHARACTERS, EFFECTIVE_STATUSES, KNOWN_STATUSES, SERVICES, incidentsOf } from "lookout-reader/page";

export const DAY_MS = 86_400_000;
const DAYS = 14;
const LEAST_KNOWN = 12; // buckets, for a share (H10)
const LEAST_INCIDENT_MS = 600_000;
const KNOWN = KNOWN_STATUSES.map(characterOf);
const [WELL, UNKNOWN] = ["current", "unknown"].map(characterOf);
const TROUBLE = KNOWN.filter((character) => character !== WELL);
const ORDER = [...new Set([...KNOWN, ...CHARACTERS.replace(" ", ""), "-"])]; // the worst that is known first
const NOT_WELL = ORDER.filter((character) => character !== WELL);

function characterOf(status) {
  return CHARACTERS[EFFECTIVE_STATUSES.indexOf(status)];
}

export function statusOf(character) {
  return EFFECTIVE_STATUSES[CHARACTERS.indexOf(character)] ?? null;
}

export function isTrouble(character) {
  return TROUBLE.includes(character);
}

/** The rows that count for a network: its own, and those of the contract's services that it shares with the others. */
export function rowsFor(chainId, historyRows) {
  const all = [...historyRows.values()].filter((row) => row.readable);
  const hasChains = all.some((row) => row.chainId !== null);
  return all.filter(
    (row) =>
      (row.chainId === chainId && (chainId !== null || !hasChains || !SERVICES.includes(row.service))) ||
      (chainId !== null && row.chainId === null && SERVICES.includes(row.service)),
  );
}

/** The days in UTC that have a cell, the last one being today's. */
export function daysOf({ to, retentionDays }) {
  const today = Math.floor(to / DAY_MS) * DAY_MS;
  const count = Math.min(retentionDays ?? DAYS, DAYS);
  return Array.from({ length: count }, (_, n) => today - (count - 1 - n) * DAY_MS);
}

/** The index of the first bucket that begins at an instant or later. */
export function indexOf({ from, bucketSeconds }, at) {
  return Math.max(0, Math.ceil((at - from) / (bucketSeconds * 1000)));
}

/**
 * In each bucket that is over the worst of these rows. It is current only if a row of the network's own is, and none of
 * its own is unknown: rows that it shares with others only worsen it (C16).
 */
export function worstOf(chainId, rows, { length }) {
  const own = rows.filter((row) => row.chainId === chainId);
  return Array.from({ length: length - 1 }, (_, n) => {
    const worst = firstOf(rows, n, ORDER);
    if (worst !== WELL) return worst;
    return own.some(({ buckets }) => buckets[n] === WELL) && own.every(({ buckets }) => buckets[n] !== UNKNOWN)
      ? WELL
      : firstOf(own, n, NOT_WELL);
  }).join("");
}

/** The first of these characters that one of the rows has in a bucket; the last if there is none. */
function firstOf(rows, n, characters) {
  return characters.find((character) => rows.some(({ buckets }) => buckets[n] === character)) ?? characters.at(-1);
}

/**
 * A day from the bucket at `begin` to the one at `end`: its `troubles`, the worst first, each with its services and how
 * many buckets it lasted; and what most of the `rest` was, so that a little green is no green day.
 */
export function dayOf(rows, worst, begin, end) {
  const indexes = Array.from({ length: Math.min(end, worst.length) - begin }, (_, n) => begin + n);
  const times = (character) => indexes.filter((n) => worst[n] === character).length;
  const rest = ORDER.filter((character) => !isTrouble(character)).reduce(
    (most, character) => (times(character) >= Math.max(times(most), 1) ? character : most),
    "-",
  );
  const troubles = TROUBLE.filter(times).map((character) => ({
    status: statusOf(character),
    buckets: times(character),
    services: rows
      .filter(({ buckets }) => indexes.some((n) => worst[n] === character && buckets[n] === character))
      .map(({ service }) => service),
  }));
  return { troubles, rest: statusOf(rest) };
}

/** The share of the time without a problem, of what is known, never rounded up; null if that is too little. */
export function shareOf(worst) {
  const known = [...worst].filter((character) => KNOWN.includes(character)).length;
  return known < LEAST_KNOWN ? null : Math.floor(((worst.split(WELL).length - 1) / known) * 10_000) / 10_000;
}

/**
 * The incidents of ten minutes or more, the newest first. What a service had on several networks from the same instant
 * to the same instant is one; it has no chains if the service's row is of none.
 */
export function listIncidents(history, historyRows) {
  const found = new Map();
  for (const row of historyRows.values()) {
    for (const incident of incidentsOf(history, row)) {
      const end = incident.endsAt ?? history.to + history.bucketSeconds * 1000;
      if (end - incident.beginsAt < LEAST_INCIDENT_MS) continue;
      const key = JSON.stringify([row.service, incident]);
      if (!found.has(key))
        found.set(key, { ...incident, service: row.service, chains: [], lastedMs: end - incident.beginsAt });
      if (row.chainId !== null) found.get(key).chains.push(row.chainId);
    }
  }
  return [...found.values()].sort((a, b) => b.beginsAt - a.beginsAt);
}

/** The notes about an incident's service and networks, of which the time is in part the same. */
export function notesAbout({ service, chains, beginsAt, endsAt }, notes) {
  return notes.filter(
    (note) =>
      (note.services.length === 0 || note.services.includes(service)) &&
      (note.chains.length === 0 || note.chains.some((chainId) => chains.includes(chainId))) &&
      note.from < (endsAt ?? Infinity) &&
      (note.until ?? Infinity) > beginsAt,
  );
}
