/** What the rows mean for people with a wallet, in sentences that say no more than the rows do (C11, C12). */

import { EFFECTIVE_STATUSES, KNOWN_STATUSES } from "lookout-reader/page";
import { chainName, checkName, compareChains, compareServices, hasText, list, serviceName, sinceText, text } from "./words.js";

const NAMED_IN_HEADLINE = 3;
const NAMED_IN_SENTENCE = 5;
const TROUBLE_STATUSES = KNOWN_STATUSES.filter((status) => status !== "current");
const DEGRADED = new Map([["partial-coverage", "partial"], ["behind", "far-behind"], ["incomplete", "incomplete"], ["inconsistent", "inconsistent"]]);
const UNKNOWN = new Map([["incompatible-reference", "incomparable"], ["no-observation", "empty"]]);
const ADVICE = new Map([["broadcasters", "transactions"], ["messaging", "transactions"], ["indexer", "transactions"], ["hosted-indexer", "transactions"], ["ppoi", "proofs"]]);

/**
 * Of the counted checks (with their rows, null if there is none; `unreached` if they gave no usable answer the last time or
 * two, which is too little to call them down): the headline, the sentences from worst to best, and what people can do.
 * `chains` are those that are counted, and `others` the checks on all others. Nothing of a report that is `inDoubt` is well now.
 */
export function meaningOf(checks, others, { chains, inDoubt, now }) {
  const watched = checks.filter(({ status }) => status !== "unmonitored");
  const bad = watched.filter(({ status }) => status !== "current").sort(compareTroubles);
  const isNothingKnown = watched.every(({ status }) => status === "stale" || status === "unknown") && !bad.some(({ unreached }) => unreached);
  const failing = bad.filter(({ status, unreached }) => unreached || TROUBLE_STATUSES.includes(status));
  return {
    ...(bad.length === 0 && !inDoubt && 0 < watched.length && watched.length < checks.length / 2 ? { status: "unmonitored" } : {}), // few of many are no green mark
    headline: headlineFor(watched, bad, { others, chains, inDoubt, isNothingKnown, all: checks.length, now }),
    unwatched: watched.length === 0 ? "" : unwatchedText(checks, chains),
    sentences: isNothingKnown && bad.every(({ status }) => status === "stale") ? [] : sentencesOf(bad, chains, now),
    advice: (isNothingKnown && watched.length > 0 ? ["nothing"] : [...new Set(failing.map(({ service }) => ADVICE.get(service)).filter(Boolean))]).map((what) => text(`advice.${what}`)),
  };
}

/** What nobody watches, by service, with how many chains that is if it is watched on others. */
function unwatchedText(checks, chains) {
  const places = [...new Set(checks.map(({ service }) => service))].sort(compareServices).flatMap((service) => {
    const all = checks.filter((check) => check.service === service);
    const those = all.filter(({ status }) => status === "unmonitored");
    if (those.length === 0) return [];
    return those.length === all.length ? serviceName(service) : servicePlace(those, chains);
  });
  return places.length === 0 ? "" : text("scope.unmonitored", { places: list(places) });
}

/** The worst first, and what is as bad in the order of the cards. */
function compareTroubles(one, other) {
  return EFFECTIVE_STATUSES.indexOf(one.status) - EFFECTIVE_STATUSES.indexOf(other.status) || compareChains(one.chainId, other.chainId) || compareServices(one.service, other.service);
}

/** Whether there was no usable answer from it, be it the first time or for long. */
export function isUnanswered({ status, row, unreached }) {
  return unreached || (status === "unavailable" && row.reason === "unreachable");
}

/** Whether none of several gave a usable answer, which the monitor's own connection would explain as well. */
export function isNothingReached(checks) {
  const watched = checks.filter(({ status }) => status !== "unmonitored");
  return watched.length > 1 && watched.every(isUnanswered);
}

function headlineFor(watched, bad, { others, chains, inDoubt, isNothingKnown, all, now }) {
  if (watched.length === 0) return text(others.every(({ status }) => status === "unmonitored") ? "headline.unmonitored" : "headline.unmonitored.main");
  if (bad.length === 0) {
    if (inDoubt) return text("headline.doubted");
    return watched.length === all ? text("headline.current") : text("headline.current.part", { count: watched.length, all });
  }
  const trouble = bad.filter(({ status }) => TROUBLE_STATUSES.includes(status));
  if (trouble.length > 0) {
    if (isNothingReached([...watched, ...others])) return text("headline.silent");
    const key = trouble.every(({ status }) => status === "catching-up") ? "headline.catching-up" : "headline.trouble";
    return text(key, placesOf(trouble, watched.length, chains));
  }
  if (isNothingKnown) {
    const seenAt = bad.filter(({ status }) => status === "stale").map(({ row }) => row.observedAt);
    return seenAt.length === 0 ? text("headline.nothing") : text("headline.stale", { since: sinceText(Math.max(...seenAt), now) });
  }
  return text(bad.every(({ unreached }) => unreached) ? "headline.unreached" : "headline.unknown", placesOf(bad, watched.length, chains));
}

/** Where: each check by its name if they are few, else each service with its chains, the one chain, or how many of `all`. */
function placesOf(checks, all, chains) {
  const count = checks.length;
  if (count <= NAMED_IN_HEADLINE) return { count, places: list(checks.map(checkName)) };
  const found = new Map(); // the checks of a service; one of no chain is apart from those on chains
  for (const check of checks) {
    const key = JSON.stringify([check.service, check.chainId === null]);
    found.set(key, [...(found.get(key) ?? []), check]);
  }
  if (found.size <= NAMED_IN_HEADLINE) return { count, places: list(Array.from(found.values(), (those) => servicePlace(those, chains))) };
  const [{ chainId }] = checks;
  const isOneChain = chainId !== null && checks.every((check) => check.chainId === chainId);
  const places = isOneChain ? text("check", { service: text("services", { count }), chain: chainName(chainId) }) : text("checks.part", { count, all });
  return { count, places };
}

function servicePlace(checks, chains) {
  if (checks.length === 1) return checkName(checks[0]);
  return text("check", { service: serviceName(checks[0].service), chain: text("chains.part", { count: checks.length, all: chains.length }) });
}

/** These chains of all that are counted. */
function chainsText(some, all) {
  if (some.length <= NAMED_IN_SENTENCE) return list(some.sort(compareChains).map(chainName));
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
  return Array.from(found.values(), ({ status, service, isAboutService, words, on }) => ({ status, place: placeText(service, isAboutService, on, chains), words }));
}

function placeText(service, isAboutService, on, chains) {
  if (on.includes(null)) return serviceName(service);
  const chain = chainsText(on, chains);
  return isAboutService ? chain : text("check", { service: serviceName(service), chain });
}

/** What a check's state means; in the service's own words where there are some: then they name the service. */
function wordsOf(check, now) {
  const situation = situationOf(check);
  const own = `means.${check.service}.${situation}`;
  // Of a reason that nobody knows, the status alone is said (C5).
  const isStatusAlone = check.status === "unavailable" && check.row.reason !== "unreachable";
  if (hasText(own) && !isStatusAlone) return { words: text(own), isAboutService: true };
  const any = `means.${situation}`;
  if (situation !== "unreached") return { words: text(hasText(any) ? any : `sentence.${check.status}`), isAboutService: false };
  return { words: unansweredText("means.unreached", check.row, now), isAboutService: false };
}

/** "last good one 14:02", by the key's text, or that there never was one. It may have answered since, with nothing to compare. */
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
