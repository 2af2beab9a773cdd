/** What people do with a wallet, and what the rows say of it: no more than they know (C11, C12). */

import { EFFECTIVE_STATUSES, KNOWN_STATUSES, SERVICES } from "lookout-reader/page";
import {
  SHOW_UNMONITORED,
  and,
  capitalize,
  chainName,
  compareChains,
  effectOf,
  hasText,
  isTestNetwork,
  list,
  serviceName,
  sinceText,
  statusWord,
  text,
} from "./words.js";

/** In the order of what people do. Without one of the `needs` being watched, nothing is said to be well. */
const ACTIVITIES = [
  { id: "send", services: ["broadcasters", "messaging"], needs: ["broadcasters"] },
  { id: "balances", services: ["indexer", "hosted-indexer"], needs: ["indexer", "hosted-indexer"] },
  { id: "proofs", services: ["ppoi"], needs: ["ppoi"] },
];
const LISTED = ["indexer", "hosted-indexer"]; // a gap in their lists leaves proofs pending
const PARTS_AT_MOST = 3;
const NAMED_AT_MOST = 3;
const TROUBLE_STATUSES = KNOWN_STATUSES.filter((status) => status !== "current");
const DEGRADED = new Map([
  ["partial-coverage", "partial"],
  ["behind", "far-behind"],
  ["incomplete", "incomplete"],
  ["inconsistent", "inconsistent"],
]);
const UNKNOWN = new Map([
  ["incompatible-reference", "incomparable"],
  ["no-observation", "empty"],
]);

/**
 * The networks in order, test networks last: what can be done on each, and all checks that count there; messaging does
 * on each. What is the operator's own and of no chain is under `chainId` null.
 */
export function networksOf(checks) {
  const chainIds = [...new Set(checks.map(({ chainId }) => chainId))].filter((chainId) => chainId !== null);
  const shared = checks.filter(({ chainId }) => chainId === null);
  const ofEach = chainIds.length === 0 ? [] : shared.filter(({ service }) => SERVICES.includes(service));
  const alone = shared.filter((check) => !ofEach.includes(check));
  const networks = chainIds
    .sort((a, b) => isTestNetwork(a) - isTestNetwork(b) || compareChains(a, b))
    .map((chainId) => makeNetwork(chainId, [...ofEach, ...checks.filter((check) => check.chainId === chainId)]));
  return (alone.length === 0 ? networks : [...networks, makeNetwork(null, alone)]).filter(
    ({ answers }) => answers.length > 0,
  );
}

function makeNetwork(chainId, all) {
  const checks = SHOW_UNMONITORED ? all : all.filter(({ status }) => status !== "unmonitored");
  const own = [...new Set(checks.map(({ service }) => service))].filter((service) => !SERVICES.includes(service));
  const answers = [...ACTIVITIES, ...own.map((service) => ({ id: null, services: [service], needs: [service] }))]
    .map(({ id, services, needs }) =>
      makeAnswer(
        id,
        services,
        needs,
        checks.filter((check) => services.includes(check.service) || (id === "proofs" && hasGap(check))),
      ),
    )
    .filter(({ checks: found, status }) => found.length > 0 && (SHOW_UNMONITORED || status !== "unmonitored"));
  return { chainId, checks, answers, status: worstOf(answers.map(({ status }) => status)) };
}

function makeAnswer(id, [service], needs, checks) {
  const watched = checks.filter(({ status }) => status !== "unmonitored");
  const bad = watched.filter(({ status }) => status !== "current").sort((a, b) => rankOf(a) - rankOf(b));
  const isSeen = watched.some((check) => needs.includes(check.service));
  const status = bad.length > 0 ? bad[0].status : isSeen ? "current" : "unmonitored";
  const [label, activity] =
    id === null ? [serviceName(service), serviceName(service)] : [text(`answer.${id}`), text(`activity.${id}`)];
  return { id, service, checks, bad, status, label, activity };
}

function hasGap(check) {
  return LISTED.includes(check.service) && situationOf(check) === "incomplete";
}

function rankOf({ status }) {
  return EFFECTIVE_STATUSES.indexOf(status);
}

export function worstOf(statuses) {
  return EFFECTIVE_STATUSES.find((status) => statuses.includes(status)) ?? "unmonitored";
}

export function isTrouble({ status }) {
  return TROUBLE_STATUSES.includes(status);
}

// ---- The band

/** The networks that count (C11). Without any, what is of no chain, which alone makes nothing green. */
export function countedNetworks({ networks, checks }) {
  const counted = networks.filter(({ chainId }) => !isTestNetwork(chainId));
  return counted.some(({ chainId }) => chainId !== null)
    ? counted
    : [
        makeNetwork(
          null,
          checks.filter(({ chainId }) => chainId === null),
        ),
      ];
}

/** One status, one sentence and what people can do, of the networks that count. Nothing `inDoubt` is well now. */
export function bandOf(networks, { inDoubt, now, checks: all }) {
  const answers = networks.flatMap((network) => network.answers);
  const watched = answers.filter(({ status }) => status !== "unmonitored");
  const bad = watched.filter(({ bad: found }) => found.length > 0);
  const checks = bad.flatMap(({ bad: found }) => found);
  const status = worstOf(watched.map((answer) => answer.status));
  if (watched.length === 0)
    return {
      status,
      headline: text(all.every(({ status: each }) => each === "unmonitored") ? "band.none" : "band.none.main"),
      advice: "",
    };
  if (bad.length > 0) {
    const isNothingKnown =
      bad.length === watched.length && checks.every((check) => !isTrouble(check) && !check.unreached);
    const headline = isNothingKnown
      ? nothingText(checks, now)
      : isNothingReached(all)
        ? text("band.silent")
        : badText(networks, inDoubt);
    return { status, headline, advice: adviceText(bad, isNothingKnown) };
  }
  if (inDoubt) return { status: "unknown", headline: text("band.doubted"), advice: "" };
  const isMost = watched.length >= answers.length / 2; // few of many are no green band
  const isSeen = networks.some(
    ({ chainId, answers: own }) => chainId !== null && own.some((answer) => answer.status === "current"),
  );
  return {
    status: isMost && isSeen ? status : "unmonitored",
    headline: text("band.well", { what: wellText(networks) }),
    advice: "",
  };
}

function adviceText(bad, isNothingKnown) {
  if (isNothingKnown) return text("advice.nothing");
  const known = bad
    .filter(({ bad: found }) => found.some((check) => isTrouble(check) || check.unreached))
    .map(({ id }) => id);
  const wanted = [
    known.includes("send") || known.includes("balances") ? "transactions" : "",
    known.includes("proofs") ? "proofs" : "",
  ];
  return wanted
    .filter(Boolean)
    .map((what) => text(`advice.${what}`))
    .join(" ");
}

function nothingText(checks, now) {
  const seenAt = checks.filter(({ status }) => status === "stale").map(({ row }) => row.observedAt);
  return seenAt.length === 0
    ? text("band.nothing")
    : text("band.stale", { since: sinceText(Math.max(...seenAt), now) });
}

/** Where there is a problem or too little is known, with what that means; and where there is none. */
function badText(networks, inDoubt) {
  const places = networks.filter(({ chainId }) => chainId !== null);
  const bad = networks.flatMap(partsOf).sort((a, b) => a.rank - b.rank);
  const parts = new Map();
  for (const { place, effects } of bad) {
    const key = JSON.stringify([typeof place, effects]);
    if (!parts.has(key)) parts.set(key, { effects, on: [] });
    parts.get(key).on.push(place);
  }
  const all = [...parts.values()];
  const left = all.slice(PARTS_AT_MOST).flatMap(({ on }) => on).length;
  const well = places.filter(
    ({ answers, status }) => status === "current" && answers.every(({ bad: found }) => found.length === 0),
  );
  const named = bad.filter(({ place }) => typeof place === "number").length;
  const isRest = named > 0 && well.length + named === places.length;
  return [
    ...all
      .slice(0, PARTS_AT_MOST)
      .map(({ effects, on }) => text("band.part", { place: capitalize(placesText(on, places.length)), effects })),
    left === 0 ? "" : text("band.more", { count: left }),
    well.length === 0 || inDoubt
      ? ""
      : isRest
        ? text("band.others", { count: well.length })
        : text("band.others.named", {
            networks: placesText(
              well.map(({ chainId }) => chainId),
              places.length,
            ),
          }),
  ]
    .filter(Boolean)
    .join(" ");
}

/** What is bad on a network, as one part; of what is of no chain each service is one, under its name. */
function partsOf({ chainId, answers }) {
  const bad = answers.filter(({ bad: found }) => found.length > 0);
  if (chainId === null)
    return bad.map((answer) => ({
      place: answer.label,
      effects: effectOf(answer.service) || statusWord(answer.status),
      rank: ACTIVITIES.length,
    }));
  if (bad.length === 0) return [];
  const trouble = bad.filter(({ bad: [check] }) => isTrouble(check));
  const unknown = bad.filter((answer) => !trouble.includes(answer)).map(({ activity }) => activity);
  const effects = [
    ...new Set(trouble.map(effectText)),
    ...(unknown.length === 0 ? [] : [text("effect.unknown", { what: and(unknown) })]),
  ];
  const rank = trouble.length === 0 ? Infinity : answers.indexOf(trouble[0]);
  return [{ place: chainId, effects: list(effects), rank }];
}

function effectText({ id, service, bad: [check] }) {
  if (id === null) return effectOf(service) || text("effect.own", { service: serviceName(service) });
  const key = `effect.${id}.${situationOf(check)}`;
  return text(hasText(key) ? key : `effect.${id}`);
}

/** These networks by their names if they are few, or how many of `all`; or services of no chain. */
function placesText(places, all) {
  if (places.some((place) => typeof place === "string")) return and(places);
  if (places.length === all && all > 1) return text("networks.all", { count: all });
  if (places.length > NAMED_AT_MOST) return text("networks.part", { count: places.length, all });
  return and(places.map(chainName));
}

/** What is watched, with the networks where it is. */
function wellText(networks) {
  const found = new Map(); // the activities by their networks
  const all = networks.filter(({ chainId }) => chainId !== null).length;
  const where = new Map(ACTIVITIES.map(({ id }) => [text(`activity.${id}`), []])); // the networks of each activity
  for (const { chainId, answers } of networks) {
    for (const { activity, status } of answers)
      if (status === "current") where.set(activity, [...(where.get(activity) ?? []), chainId]);
  }
  for (const [activity, on] of where)
    if (on.length > 0) found.set(on.join(), [...(found.get(on.join()) ?? []), activity]);
  return list(
    Array.from(found.values(), (activities) => {
      const on = where.get(activities[0]).filter((chainId) => chainId !== null);
      return on.length === 0
        ? and(activities)
        : text("band.on", { what: and(activities), networks: placesText(on, all) });
    }),
  );
}

// ---- Single checks

/** Whether there was no usable answer from it, be it the first time or for long. */
export function isUnanswered({ status, row, unreached }) {
  return unreached || (status === "unavailable" && row.reason === "unreachable");
}

/** Whether none of several gave a usable answer, which the monitor's own connection would explain as well. */
export function isNothingReached(checks) {
  const watched = checks.filter(({ status }) => status !== "unmonitored");
  return new Set(watched.map(({ key }) => key)).size > 1 && watched.every(isUnanswered);
}

/** "last good one 14:02", by the key's text, or that there never was one. It may have answered since without data. */
export function unansweredText(key, { lastSuccessAt }, now) {
  return lastSuccessAt === null ? text(`${key}.never`) : text(key, { since: sinceText(lastSuccessAt, now) });
}

/** What it is that a check's status stands for: of one status there may be several. */
export function situationOf({ status, row, unreached }) {
  if (row === null) return "missing";
  if (status === "catching-up") return "behind";
  if (status === "degraded") return DEGRADED.get(row.reason) ?? "degraded";
  if (status !== "unknown" || row.publishedStatus !== "unknown") return status;
  if (unreached) return "unreached";
  const situation = UNKNOWN.get(row.reason) ?? "unknown";
  return situation === "empty" && row.lastSuccessAt !== null ? "emptied" : situation;
}
