// An overview in words: what every face says first (C16).

import { NO_REPORT, STOPPED_MS } from "./overview.js";
import { OVERVIEW_TEXTS, STATUS_NAMES } from "./sentences.js";
import { capitalize, effectIn, findingOf, join, placeText, saidOf, shortOf, wellText } from "./short.js";

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
  const finding = findingOf(overview);
  const { kind, trouble, unknown, cause, watched } = finding;
  const short = shortOf(overview, finding, language);
  const advice = adviceText(trouble, unknown, language);
  if (kind === "silent") return { text: short, short, advice };
  if (kind === "problems") {
    const parts = problemParts(overview, finding, short, language);
    return {
      ...parts,
      advice: advice || (trouble.length === 0 ? text("advice.nothing") : ""),
      also: [parts.also, cause && causeText(overview, cause, language)].filter(Boolean).join(". "),
    };
  }
  if (kind === "cause")
    return {
      text: causeText(overview, cause, language),
      short,
      also: watched.some(({ status }) => status === "current") ? text("band.doubted") : "",
      advice: cause === "asleep" ? "" : text("advice.nothing"),
      cause,
    };
  if (kind === "nothing")
    return { text: nothingText(overview, watched, language), short, advice: text("advice.nothing") };
  if (kind === "well") return { text: text("band.well", { what: wellText(overview, language) }), short };
  return { text: short, short };
}

function problemParts(overview, finding, short, language) {
  const { text } = language;
  const said = saidOf(overview, finding, language);
  const sentences = said.map(({ effect, chainIds }) => placeText(overview, effect, chainIds, language));
  const left = sentences.length - 1 - ALSO_MOST;
  const others = [...sentences.slice(1, 1 + ALSO_MOST), ...(left > 0 ? [text("problems.more", { count: left })] : [])];
  const rest = overview.doubts.length > 0 ? "" : othersText(overview, said[0].chainIds, language);
  const [first] = finding.trouble;
  return {
    text: capitalize(sentences[0], language),
    short,
    since: first ? sinceText(overview, first, language) : "",
    also: others.length > 0 ? text("also", { problems: join("list.long", others, language) }) : rest,
  };
}

function causeText({ ageMs, now }, cause, { text, instant }) {
  if (cause !== "stopped") return text(`cause.${cause}`);
  if (ageMs < SINCE_MS) return text("cause.stopped", { seconds: STOPPED_MS / 1000 });
  return text("cause.stopped.since", { since: instant(now - ageMs, now) });
}

/**
 * What may happen to an activity of an overview, without its name: "may be late". Of a service of the operator's own
 * it is the operator to say what its failure means; otherwise its status is said.
 */
export function effectWord(overview, state, language = englishOf(overview.about)) {
  return effectIn(overview, state, language);
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
