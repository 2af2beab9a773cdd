// What people can do on each network, what may go wrong there and since when: the one place from which every face takes
// its state (C16), and with headline.js its words. The Python reader has the same, by the same vectors.

import { countedChains } from "./about.js";
import { FUTURE_MS, clocksOf, wrongClock } from "./clocks.js";
import { checkKey, rowsByCheck } from "./document.js";
import { summarizeCheck } from "./gate.js";
import { bucketBeginsAt } from "./history.js";
import { countChecks, requireChain, worstOf } from "./rollup.js";
import { SERVICES, SHARED_SERVICE, TEST_NETWORK } from "./services.js";
import { CHARACTERS, CURRENT_CHARACTER, EFFECTIVE_STATUSES, KNOWN_STATUSES } from "./statuses.js";

/** With their services, in the order of what people do. A service of the operator's own is no activity of these. */
export const ACTIVITIES = /* @__PURE__ */ Object.freeze({
  send: ["broadcasters", "messaging"],
  balances: ["indexer", "hosted-indexer"],
  proofs: ["ppoi"],
});
/** What may happen to an activity, the most serious first; "trouble" is of a service of the operator's own. */
const EFFECTS = /* @__PURE__ */ Object.freeze([
  "fail",
  "stop",
  "refused",
  "wrong",
  "trouble",
  "late",
  "slow",
  "unknown",
  "well",
  "unwatched",
]);
/** Of all doubts those that are the reason why there is no new report. */
export const NO_REPORT = ["offline", "silent", "none", "busy", "unreadable", "refused", "asleep", "stopped"];

export const STOPPED_MS = 100_000;
const ANSWERED_OLD_MS = 90_000; // a monitor makes a report every 30 s, and caches keep one for up to 60 s
const ASLEEP_MS = 45_000; // a reader asks every 30 s at the latest, and waits up to 10 s for the answer
const UNREACHED_MS = 150_000; // as long as a row holds: later, the reader may have stopped asking
const HISTORY_OLD_BUCKETS = 2;
const DOUBTS = {
  offline: "offline",
  "no-answer": "silent",
  timeout: "silent",
  "not-available": "none",
  "too-many-requests": "busy",
  unreadable: "unreadable",
  "wrong-version": "unreadable",
};
const BY_REASON = { "balances incomplete": "stop", "balances inconsistent": "wrong", "proofs inconsistent": "refused" };
const TROUBLE_STATUSES = /* @__PURE__ */ KNOWN_STATUSES.filter((status) => status !== "current");
const NO_ABOUT = { chains: [], services: [], notes: [], showUnmonitored: true, testNetworks: [TEST_NETWORK] };

/**
 * The state of a deployment: of the `chains` (all that the description or the rows have, if none are given) without
 * test networks. `reportCode` is of the last request, null if it succeeded, and `answeredAgoMs` how long ago that was.
 *
 * `status` is the worst of all that counts: unknown instead of current if in doubt, unmonitored if nothing current was
 * seen on a chain (C16). `problems` are in the order of what people do, what is not known last. `services` has the worst
 * status by service, and `missing` the checks that the report lacks. `ageMs` is the report's, null if it has no date.
 */
export function overviewOf(
  report,
  { about = NO_ABOUT, history = null, chains, reportCode = null, answeredAgoMs = 0, ...given } = {},
) {
  const read = clocksOf(report ?? {}, given);
  const wrong = wrongClock(read);
  const clocks = wrong === null ? read : { ...read, now: NaN }; // by a clock that is known to be wrong nothing is judged
  const rows = report ? rowsByCheck(report) : new Map();
  const past = history ? rowsByCheck(history) : new Map();
  const known = [...new Map([...rows, ...past]).values()];
  const named = chains ?? countedChains(about, chainIdsOf(known));
  const counted = [...new Set(named)].filter((chainId) => !about.testNetworks.includes(chainId));
  const found = countChecks(report, counted, undefined, clocks);
  // Without a report the history says which checks there are.
  const shown = new Set(found.checks.map(checkKey));
  const others = (rows.size > 0 ? [...rows.values()] : known).filter((row) => !shown.has(checkKey(row)));
  const mark = (check) => ({ ...check, unreached: isUnreached(check, clocks) });
  const summarize = (isWanted) =>
    others.filter(({ chainId }) => isWanted(chainId)).map((row) => mark(summarizeCheck(rows, row, clocks)));
  const isShown = ({ effective }) => about.showUnmonitored || effective !== "unmonitored";
  const tests = summarize((chainId) => about.testNetworks.includes(chainId)).filter(isShown);
  const unseen = rows.size > 0 ? [] : summarize((chainId) => chainId === null || counted.includes(chainId));
  const checks = [...found.checks.map(mark), ...unseen].filter(isShown);
  const nothingReached = isNothingReached([...checks, ...tests]);
  const ageMs = ageOf(report, read);
  const doubts = doubtsOf({ report, wrong, ageMs, reportCode, answeredAgoMs, nothingReached });
  const context = { about, history, past, clocks };
  const networks = networksOf(context, checks, tests);
  const worst = worstIn(checks.map(({ effective }) => effective));
  const services = new Map();
  for (const { service, effective } of checks) services.set(service, worstIn([effective, services.get(service)]));
  const status = worst === "current" && doubts.length > 0 ? "unknown" : worst;
  return {
    status: requireChain(worstOf([status, ...found.doubts]), checks),
    doubts,
    problems: problemsOf(context, networks),
    networks,
    services: Object.fromEntries(services),
    missing: checks.filter(({ presence }) => presence === "missing"),
    nothingReached,
    ageMs,
    now: read.now,
    about,
  };
}

function chainIdsOf(rows) {
  return rows.map(({ chainId }) => chainId);
}

function worstIn(statuses) {
  return EFFECTIVE_STATUSES.find((status) => statuses.includes(status)) ?? "unmonitored";
}

/** What a row of this status may do to the activity. */
function effectOf(activity, status, reason) {
  if (status === "current") return "well";
  if (!TROUBLE_STATUSES.includes(status)) return status === "unmonitored" ? "unwatched" : "unknown";
  if (activity === "send") return status === "unavailable" ? "fail" : "slow";
  return activity === null ? "trouble" : (BY_REASON[`${activity} ${reason}`] ?? "late");
}

// ---- What keeps a reader from knowing

function doubtsOf({ report, wrong, ageMs, reportCode, answeredAgoMs, nothingReached }) {
  const doubts = [];
  if (wrong !== null) doubts.push(wrong);
  if (reportCode !== null) doubts.push(DOUBTS[reportCode] ?? "refused");
  if (!report) return doubts;
  if (ageMs === null) doubts.push("undated");
  else if (wrong === null && ageMs < -FUTURE_MS) doubts.push("future");
  else if (wrong === null && reportCode === null && ageMs >= STOPPED_MS)
    doubts.push(
      ...(answeredAgoMs > ASLEEP_MS ? ["asleep"] : ageMs - answeredAgoMs < ANSWERED_OLD_MS ? [] : ["stopped"]),
    );
  if (nothingReached) doubts.push("own");
  if (report.unreadableRows > 0) doubts.push("rows");
  return doubts;
}

/** How old the report is, and no less than it has been here. */
function ageOf(report, { now, receivedAgoMs }) {
  if (!report || report.generatedAt === null || !Number.isFinite(now)) return null;
  const age = now - report.generatedAt;
  return Math.trunc(age < -FUTURE_MS ? age : Math.max(age, receivedAgoMs ?? 0));
}

/** Whether none of several gave a usable answer, which the monitor's own connection would explain as well. */
function isNothingReached(checks) {
  const watched = checks.filter(({ effective }) => effective !== "unmonitored");
  const isSilent = ({ unreached, effective, row }) =>
    unreached || (effective === "unavailable" && row.reason === "unreachable");
  return watched.length > 1 && watched.every(isSilent);
}

/** Whether it gave no usable answer the last time or two, so that it is asked again before it is called down. */
function isUnreached({ row }, { now, receivedAgoMs }) {
  if (!row?.readable || row.publishedStatus !== "unknown" || row.reason !== "unreachable") return false;
  const ageMs = row.observedAt === null ? NaN : now - row.observedAt;
  return ageMs >= -FUTURE_MS && ageMs < UNREACHED_MS && (receivedAgoMs ?? 0) < UNREACHED_MS;
}

// ---- Networks and problems

/** In the operator's order, test networks last; then what has no chain, under `chainId` null. */
function networksOf(context, counted, tests) {
  const { about } = context;
  const shared = counted.filter(({ chainId }) => chainId === null);
  const ofAll = shared.filter(({ service }) => SERVICES.includes(service));
  const place = placesOf(about.chains.map(({ id }) => id));
  const networks = [];
  for (const [checks, isCounted] of [
    [counted, true],
    [tests, false],
  ]) {
    const byChain = groupBy(checks, ({ chainId }) => chainId);
    const ids = [...byChain.keys()].filter((chainId) => chainId !== null);
    for (const chainId of ids.sort((a, b) => place(a) - place(b) || a - b))
      networks.push(makeNetwork(context, chainId, [...ofAll, ...byChain.get(chainId)], isCounted));
  }
  const alone = counted.every(({ chainId }) => chainId === null)
    ? shared
    : shared.filter((check) => !ofAll.includes(check));
  return [...networks, makeNetwork(context, null, alone, true)].filter(({ activities }) => activities.length > 0);
}

function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(item);
  }
  return groups;
}

/** In which place something is of a list; what is not in it comes last. */
function placesOf(list) {
  const places = new Map(list.map((each, index) => [each, index]));
  return (each) => places.get(each) ?? places.size;
}

function makeNetwork(context, chainId, checks, counted) {
  const place = placesOf(context.about.services.map(({ name }) => name));
  const own = [...new Set(checks.map(({ service }) => service))].filter((service) => !SERVICES.includes(service));
  const activities = [
    ...Object.entries(ACTIVITIES),
    ...own.sort((a, b) => place(a) - place(b)).map((service) => [null, [service]]),
  ]
    .map(([activity, services]) => makeActivity(context, activity, services, checks))
    .filter((state) => state !== null);
  return { chainId, counted, status: worstIn(activities.map(({ status }) => status)), checks, activities };
}

/** `bad` are the checks that are watched and not current, the worst first; `service` is that of an operator's own. */
function makeActivity(context, activity, services, all) {
  const checks = [
    ...all.filter(({ service }) => services.includes(service)),
    ...(activity === "proofs" ? all.filter(hasGap) : []),
  ];
  if (checks.length === 0) return null;
  const watched = checks.filter(({ effective }) => effective !== "unmonitored");
  const bad = watched.filter(({ effective }) => effective !== "current").sort((a, b) => rankOf(a) - rankOf(b));
  const isSeen = watched.some(({ service }) => service !== SHARED_SERVICE); // messaging alone sends nothing
  const status = bad[0]?.effective ?? (isSeen ? "current" : "unmonitored");
  const effects = bad.map(({ effective, row }) => effectOf(activity, effective, row?.reason));
  const effect = EFFECTS.find((each) => effects.includes(each)) ?? effectOf(activity, status);
  const since = joinSince(bad.filter((_, n) => effects[n] === effect).map((check) => sinceOf(context, check)));
  return { activity, service: services[0], status, effect, checks, bad, since };
}

/** A gap in an indexer's list leaves proofs pending. */
function hasGap({ service, effective, row }) {
  return ACTIVITIES.balances.includes(service) && effective === "degraded" && row.reason === "incomplete";
}

function rankOf({ effective }) {
  return EFFECTIVE_STATUSES.indexOf(effective);
}

/**
 * Since when this check has been bad, by the last run of buckets that were so: at `at`, or before if its beginning was
 * not `seen`. `lastAt` is when the last of several began.
 */
function sinceOf({ history, past, clocks }, check) {
  const observedAt = check.row?.observedAt ?? null;
  if (check.effective === "stale" && observedAt !== null) return { at: observedAt, seen: true, lastAt: observedAt };
  const row = past.get(checkKey(check));
  if (!row?.readable) return null;
  const agoMs = clocks.now - history.to;
  if (!(agoMs >= 0 && agoMs < HISTORY_OLD_BUCKETS * history.bucketSeconds * 1000)) return null;
  const isTrouble = TROUBLE_STATUSES.includes(check.effective);
  const wanted = isTrouble
    ? TROUBLE_STATUSES.map((status) => CHARACTERS[EFFECTIVE_STATUSES.indexOf(status)])
    : [CHARACTERS[EFFECTIVE_STATUSES.indexOf("unknown")], "-"];
  let begin = history.length - 1; // the bucket that fills is bad unless it was seen current
  if (row.buckets[begin] !== CURRENT_CHARACTER) while (begin > 0 && wanted.includes(row.buckets[begin - 1])) begin--;
  const seen = [row.buckets[begin], row.buckets[begin - 1]].includes(CURRENT_CHARACTER);
  const at = bucketBeginsAt(history, begin);
  return { at, seen, lastAt: at };
}

/** Since when the first of them is so. */
function joinSince(parts) {
  const known = parts.filter((since) => since !== null);
  if (known.length === 0) return null;
  const [first] = known.sort((a, b) => a.at - b.at || a.seen - b.seen);
  return {
    at: first.at,
    seen: first.seen && known.length === parts.length,
    lastAt: Math.max(...known.map(({ lastAt }) => lastAt)),
  };
}

/** Each effect on each activity once, with all counted networks where it is so. */
function problemsOf(context, networks) {
  const bad = networks
    .filter(({ counted }) => counted)
    .flatMap(({ chainId, activities }) => activities.map((state) => ({ chainId, ...state })))
    .filter((state) => state.bad.length > 0);
  const keyOf = ({ activity, service, effect, status }) =>
    JSON.stringify([activity ?? service, effect, effect === "trouble" ? status : null]);
  const order = Object.keys(ACTIVITIES);
  const placeOf = ({ activity }) => (activity === null ? order.length : order.indexOf(activity));
  const isUnknown = ({ effect }) => effect === "unknown";
  return [...groupBy(bad, keyOf).values()]
    .map((states) => makeProblem(context, states))
    .sort(
      (a, b) =>
        isUnknown(a) - isUnknown(b) || placeOf(a) - placeOf(b) || EFFECTS.indexOf(a.effect) - EFFECTS.indexOf(b.effect),
    );
}

/** `until` is the end that a note of the operator's gives. Of what is `unreached` nothing is known, but it was asked. */
function makeProblem({ about, clocks }, states) {
  const [{ activity, service, effect }] = states;
  const bad = states.flatMap((state) => state.bad);
  return {
    activity,
    service,
    status: worstIn(states.map(({ status }) => status)),
    effect,
    chainIds: chainIdsOf(states),
    since: joinSince(states.map(({ since }) => since)),
    until: effect === "unknown" ? null : endOf(about.notes, bad, clocks.now),
    unreached: bad.some(({ unreached }) => unreached),
  };
}

/** The latest end of the notes that are about these checks now; null if one of them has none. */
function endOf(notes, checks, now) {
  const ends = notes
    .filter(({ from, until }) => from <= now && (until === null || until > now))
    .filter((note) => checks.some((check) => covers(note, check)))
    .map(({ until }) => until);
  return ends.length === 0 || ends.includes(null) ? null : Math.max(...ends);
}

/** A note that names chains is not about rows without a chain. */
function covers({ services, chains }, { service, chainId }) {
  return (services.length === 0 || services.includes(service)) && (chains.length === 0 || chains.includes(chainId));
}
