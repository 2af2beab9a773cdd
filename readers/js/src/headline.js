// An overview in words: what every face says first (C16).

import { ACTIVITIES, NO_REPORT, STOPPED_MS } from "./overview.js";
import { OVERVIEW_TEXTS, STATUS_NAMES } from "./sentences.js";

const NAMED_MOST = 3; // networks
const ALSO_MOST = 3; // problems
const APART_MS = 600_000;
const SINCE_MS = 120_000; // then it is said since when there has been no report, not for how long
const DAY_MS = 86_400_000;

/**
 * What an overview says, in parts without a full stop at their end; a part is empty if there is nothing to say. `text`
 * is the headline, `short` the same without networks, for a title or a badge, and `line` all but the advice. `cause` is
 * the doubt that is the headline, if it is one, and `doubts` are the others, in sentences. A page in another `language` brings its texts and names.
 */
export function headlineOf(overview, language = englishOf(overview.about)) {
  const doubts = overview.doubts.filter((doubt) => !NO_REPORT.includes(doubt));
  const parts = { since: "", also: "", advice: "", cause: null, ...partsOf(overview, language) };
  return {
    ...parts,
    doubts: doubts.map((doubt) => language.text(`trouble.${doubt}`)),
    line: [parts.text, parts.since, parts.also].filter(Boolean).join(". "),
  };
}

function partsOf(overview, language) {
  const { text } = language;
  const twice = (key) => ({ text: text(key), short: text(key) });
  const { networks, problems, doubts } = overview;
  const trouble = problems.filter(({ effect }) => effect !== "unknown");
  const unknown = problems.filter(({ effect }) => effect === "unknown");
  const isWatched = ({ status }) => status !== "unmonitored";
  const watched = networks.filter(({ counted }) => counted).flatMap(({ activities }) => activities.filter(isWatched));
  const cause = doubts.find((doubt) => NO_REPORT.includes(doubt)) ?? null;
  const advice = adviceText(trouble, unknown, language);
  if (overview.nothingReached) return { ...twice("band.silent"), advice };
  // A report that does not come explains what is not known.
  if (trouble.length > 0) {
    const parts = problemParts(overview, trouble, cause ? [] : unknown, advice, language);
    return { ...parts, also: [parts.also, cause && causeText(overview, cause, language)].filter(Boolean).join(". ") };
  }
  if (cause !== null) return causeParts(overview, cause, watched, language);
  if (watched.length === 0) {
    const isAny = networks.some(({ activities }) => activities.some(isWatched));
    return twice(isAny ? "band.none.main" : "band.none");
  }
  if (watched.every(({ effect }) => effect === "unknown") && !unknown.some(({ unreached }) => unreached))
    return {
      text: nothingText(overview, watched, language),
      short: text("band.nothing"),
      advice: text("advice.nothing"),
    };
  if (unknown.length > 0) return problemParts(overview, [], unknown, advice, language);
  if (doubts.length > 0) return twice("band.doubted");
  return {
    text: text("band.well", { what: wellText(overview, language) }),
    short: capitalize(text("may.well"), language),
  };
}

function problemParts(overview, trouble, unknown, advice, language) {
  const { text } = language;
  const said = [
    ...trouble.map((problem) => ({ effect: effectText(overview, problem, language), chainIds: problem.chainIds })),
    ...joinUnknown(unknown, language),
  ];
  const sentences = said.map(({ effect, chainIds }) => place(overview, effect, chainIds, language));
  const left = sentences.length - 1 - ALSO_MOST;
  const others = [...sentences.slice(1, 1 + ALSO_MOST), ...(left > 0 ? [text("problems.more", { count: left })] : [])];
  const rest = overview.doubts.length > 0 ? "" : othersText(overview, said[0].chainIds, language);
  return {
    text: capitalize(sentences[0], language),
    short: capitalize(said[0].effect, language),
    since: trouble.length > 0 ? sinceText(overview, trouble[0], language) : "",
    also: others.length > 0 ? text("also", { problems: join("list.long", others, language) }) : rest,
    advice,
  };
}

function causeParts(overview, cause, watched, language) {
  const { text } = language;
  return {
    text: causeText(overview, cause, language),
    short: text(`cause.${cause}.short`),
    also: watched.some(({ status }) => status === "current") ? text("band.doubted") : "",
    advice: cause === "asleep" ? "" : text("advice.nothing"),
    cause,
  };
}

function causeText({ ageMs, now }, cause, { text, instant }) {
  if (cause !== "stopped") return text(`cause.${cause}`);
  if (ageMs < SINCE_MS) return text("cause.stopped", { seconds: STOPPED_MS / 1000 });
  return text("cause.stopped.since", { since: instant(now - ageMs, now) });
}

/** Everything about which nothing is known on the same networks as one. */
function joinUnknown(unknown, language) {
  const together = new Map();
  for (const problem of unknown) {
    const key = problem.chainIds.join();
    if (!together.has(key)) together.set(key, { names: [], chainIds: problem.chainIds });
    together.get(key).names.push(activityText(problem, language));
  }
  return Array.from(together.values(), ({ names, chainIds }) => ({
    effect: language.text("effect.unknown", { what: and(names, language) }),
    chainIds,
  }));
}

function effectText(overview, problem, language) {
  const { activity, effect } = problem;
  if (activity !== null) return language.text(`effect.${activity}.${effect}`);
  const service = activityText(problem, language);
  return language.text("effect.own", { service, effect: effectWord(overview, problem, language) });
}

/**
 * What may happen to an activity of an overview, without its name: "may be late". Of a service of the operator's own
 * it is the operator to say what its failure means; otherwise its status is said.
 */
export function effectWord({ about }, { service, effect, status }, { text } = englishOf(about)) {
  if (effect !== "trouble") return text(`may.${effect}`);
  const said = about.services.find(({ name }) => name === service)?.effect ?? "";
  return said.replace(/\.+$/, "") || text(`status.${status}`);
}

function activityText({ activity, service }, { text, serviceName }) {
  return activity === null ? serviceName(service) : text(`activity.${activity}`);
}

/** With the networks: by their names if they are few, or how many of all. */
function place({ networks }, what, chainIds, language, counts = false) {
  const { text, chainName } = language;
  const on = chainIds.filter((chainId) => chainId !== null);
  if (on.length === 0) return what;
  const all = networks.filter(({ counted, chainId }) => counted && chainId !== null).length;
  if (on.length === all && all > 2) return text("on", { what, networks: text("networks.all", { count: all }) });
  if (on.length > (counts ? 1 : NAMED_MOST))
    return text("on", { what, networks: text("networks.part", { count: on.length, all }) });
  return text("on", { what, networks: and(on.map(chainName), language) });
}

/** That there is no problem on the other networks, if all of them are current. */
function othersText({ networks }, bad, { text }) {
  const others = networks.filter(({ counted, chainId }) => counted && chainId !== null && !bad.includes(chainId));
  const isWell = others.every(
    ({ status, activities }) =>
      status === "current" && activities.every((state) => ["current", "unmonitored"].includes(state.status)),
  );
  const isOnChain = bad.some((chainId) => chainId !== null);
  return others.length > 0 && isWell && isOnChain ? text("band.others", { count: others.length }) : "";
}

function sinceText({ now }, { since, until }, language) {
  const { text, instant } = language;
  const parts = [];
  if (since !== null) {
    const isApart = since.lastAt - since.at > APART_MS;
    const key = isApart ? "since.first" : since.seen ? "since" : "since.before";
    parts.push(text(key, { since: instant(since.at, now) }));
  }
  if (until !== null) parts.push(text("end.until", { until: instant(until, now) }));
  else if (since !== null) parts.push(text("end.none"));
  return capitalize(join("list", parts, language), language);
}

function nothingText({ now }, watched, { text, instant }) {
  const seen = watched
    .flatMap(({ bad }) => bad)
    .filter(({ effective, row }) => effective === "stale" && row.observedAt !== null)
    .map(({ row }) => row.observedAt);
  return seen.length > 0 ? text("band.stale", { since: instant(Math.max(...seen), now) }) : text("band.nothing");
}

/** What is current, with the networks where it is. */
function wellText(overview, language) {
  const where = new Map(Object.keys(ACTIVITIES).map((activity) => [activity, { on: [] }]));
  for (const { counted, chainId, activities } of overview.networks)
    for (const state of activities.filter(({ status }) => counted && status === "current")) {
      const key = state.activity ?? state.service;
      const on = [...(where.get(key)?.on ?? []), chainId];
      where.set(key, { name: activityText(state, language), on });
    }
  const together = new Map();
  for (const { name, on } of where.values()) {
    if (on.length === 0) continue;
    const names = together.get(on.join())?.names ?? [];
    together.set(on.join(), { on, names: names.includes(name) ? names : [...names, name] }); // two may have one title
  }
  const counts = together.size > 1; // the names of all networks would be too long
  const parts = Array.from(together.values(), ({ on, names }) =>
    place(overview, and(names, language), on, language, counts),
  );
  return join("list", parts, language);
}

function adviceText(trouble, unknown, { text }) {
  const found = [...trouble, ...unknown.filter(({ unreached }) => unreached)];
  const has = (...activities) => found.some(({ activity }) => activities.includes(activity));
  return [
    found.some(({ effect }) => effect === "stop") && "advice.stop",
    has("send", "balances") && "advice.transactions",
    has("proofs") && !has("send", "balances") && "advice.proofs",
  ]
    .filter(Boolean)
    .map((key) => text(key))
    .join(" ");
}

// ---- Words

function join(key, items, { text }) {
  return items.length === 0 ? "" : items.reduce((one, other) => text(key, { one, other }));
}

/** "sending, balances and proofs" */
function and(items, language) {
  if (items.length < 2) return items.join("");
  return language.text("list.last", { one: join("list", items.slice(0, -1), language), other: items.at(-1) });
}

function capitalize(words, { locale }) {
  return words.charAt(0).toLocaleUpperCase(locale) + words.slice(1);
}

/** English texts, and instants in UTC. */
function englishOf(about) {
  const chains = new Map(about.chains.map(({ id, name }) => [id, name]));
  const titles = new Map(about.services.map(({ name, title }) => [name, title]));
  return {
    locale: "en",
    text: englishText,
    chainName: (chainId) => chains.get(chainId) ?? `chain ${chainId}`,
    serviceName: (service) => titles.get(service) ?? service,
    instant: instantText,
  };
}

function englishText(key, slots = {}) {
  if (key.startsWith("status.")) return STATUS_NAMES[key.slice(7)];
  const found = OVERVIEW_TEXTS[key];
  const pattern = typeof found === "string" ? found : found[slots.count === 1 ? "one" : "other"];
  return pattern.replace(/\{(\w+)\}/g, (_, name) => slots[name]);
}

/** "14:25 UTC", with its day if that is not today. */
function instantText(at, now) {
  const [, day, month, clock] = /, 0?(\d+) (\w+) \d+ (\d\d:\d\d)/.exec(new Date(at).toUTCString());
  return Math.floor(at / DAY_MS) === Math.floor(now / DAY_MS) ? `${clock} UTC` : `${day} ${month} ${clock} UTC`;
}
