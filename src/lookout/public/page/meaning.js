/** What the rows mean for people with a wallet, in sentences that say no more than the rows do (C11, C12). */

import { EFFECTIVE_STATUSES, KNOWN_STATUSES } from "./lookout-reader.js";
import { chainName, compareChains, hasText, list, serviceName, sinceText, text } from "./words.js";

const NAMED_IN_HEADLINE = 3;
const NAMED_IN_SENTENCE = 5;
const TROUBLE_STATUSES = KNOWN_STATUSES.filter((status) => status !== "current");
const DEGRADED = new Map([["partial-coverage", "partial"], ["behind", "far-behind"], ["incomplete", "incomplete"], ["inconsistent", "incomplete"]]);
const UNKNOWN = new Map([["incompatible-reference", "incomparable"], ["no-observation", "empty"]]);

/**
 * Of the counted checks (with their rows, null if there is none; `unreached` if they did not answer the last time or two,
 * which is too little to call them down): the headline, and the sentences from worst to best.
 * `chains` are those that are counted. Nothing of a report that is `inDoubt` is well now.
 */
export function meaningOf(checks, { chains, inDoubt, now }) {
  const watched = checks.filter(({ status }) => status !== "unmonitored");
  const bad = watched.filter(({ status }) => status !== "current");
  const isNothingKnown = watched.every(({ status }) => status === "stale" || status === "unknown") && !bad.some(({ unreached }) => unreached);
  return {
    headline: headlineFor(watched, bad, { chains, inDoubt, isNothingKnown }),
    sentences: isNothingKnown && bad.every(({ status }) => status === "stale") ? [] : sentencesOf(bad, chains, now),
  };
}

function headlineFor(watched, bad, { chains, inDoubt, isNothingKnown }) {
  if (watched.length === 0) return text("headline.unmonitored");
  if (bad.length === 0) return text(inDoubt ? "headline.doubted" : "headline.current");
  const trouble = bad.filter(({ status }) => TROUBLE_STATUSES.includes(status));
  if (trouble.length > 0) {
    const key = trouble.every(({ status }) => status === "catching-up") ? "headline.catching-up" : "headline.trouble";
    return text(key, placesOf(trouble, chains));
  }
  if (isNothingKnown) return text(bad.some(({ status }) => status === "stale") ? "headline.stale" : "headline.nothing");
  return text(bad.every(({ unreached }) => unreached) ? "headline.unreached" : "headline.unknown", placesOf(bad, chains));
}

/** Where: the shared services by their names, the chains by theirs if they are few. */
function placesOf(checks, chains) {
  const shared = checks.filter(({ chainId }) => chainId === null).map(({ service }) => serviceName(service));
  const on = new Set(checks.map(({ chainId }) => chainId).filter((chainId) => chainId !== null));
  const named = chainsText([...on], chains, NAMED_IN_HEADLINE);
  return { count: shared.length + on.size, places: list([...shared, ...(named === "" ? [] : [named])]) };
}

/** These chains of all that are counted. */
function chainsText(some, all, most) {
  if (some.length <= most) return list(some.sort(compareChains).map(chainName));
  return text("chains.part", { count: some.length, all: all.length });
}

/** A chain, or several of which the same is to be said, with what it means there. */
function sentencesOf(bad, chains, now) {
  const found = new Map();
  for (const check of bad) {
    const { service, chainId, status } = check;
    const { words, isAboutService } = wordsOf(check, now);
    const key = JSON.stringify([chainId === null || !isAboutService ? service : "", words, chainId === null]);
    if (!found.has(key)) found.set(key, { status, service, isAboutService, words, on: [] });
    found.get(key).on.push(chainId);
  }
  const severity = ({ status }) => EFFECTIVE_STATUSES.indexOf(status);
  return [...found.values()]
    .sort((a, b) => severity(a) - severity(b))
    .map(({ status, service, isAboutService, words, on }) => ({ status, place: placeText(service, isAboutService, on, chains), words }));
}

function placeText(service, isAboutService, on, chains) {
  if (on.includes(null)) return serviceName(service);
  const chain = chainsText(on, chains, NAMED_IN_SENTENCE);
  return isAboutService ? chain : text("check", { service: serviceName(service), chain });
}

/** What a check's state means; in the service's own words where there are some: then they name the service. */
function wordsOf(check, now) {
  const situation = situationOf(check);
  const own = `means.${check.service}.${situation}`;
  if (hasText(own)) return { words: text(own), isAboutService: true };
  const any = `means.${situation}`;
  if (situation !== "unreached") return { words: text(hasText(any) ? any : `sentence.${check.status}`), isAboutService: false };
  return { words: unreachedText("means.unreached", check.row, now), isAboutService: false };
}

/** "not reached since 14:02", by the key's text; or that it never was. */
export function unreachedText(key, { lastSuccessAt }, now) {
  return lastSuccessAt === null ? text(`${key}.never`) : text(key, { since: sinceText(lastSuccessAt, now) });
}

function situationOf({ status, row, unreached }) {
  if (row === null) return "missing";
  if (status === "catching-up") return "behind";
  if (status === "degraded") return DEGRADED.get(row.reason) ?? "degraded";
  if (status !== "unknown" || row.publishedStatus !== "unknown") return status;
  return unreached ? "unreached" : (UNKNOWN.get(row.reason) ?? "unknown");
}
