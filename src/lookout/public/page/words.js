/** Texts, names, numbers and instants as people read them. */

import { parseAbout } from "lookout-reader/page";
import { DIRECTION, LOCALE, TEXTS, TITLES } from "./language.js";

/** The description of the deployment that the page was made with. */
export const ABOUT_TEXT = document.querySelector("meta[name=lookout-about]").content;
/** What the operator says of the deployment; a server makes nothing that cannot be read. */
export const ABOUT = parseAbout(ABOUT_TEXT);
const { protocol } = JSON.parse(ABOUT_TEXT);
/** Empty if the operator gave none: then the title is that of the protocol. */
export const PAGE_TITLE = ABOUT.title === protocol ? "" : ABOUT.title;
const NAMED_CHAINS = new Map(ABOUT.chains.map((chain) => [chain.id, chain]));
const NAMED_SERVICES = new Map(ABOUT.services.map((service) => [service.name, service]));

// ---- Texts

const PROBLEM_KINDS = {
  offline: "offline",
  "no-answer": "silent",
  timeout: "silent",
  "not-available": "none",
  "too-many-requests": "busy",
  unreadable: "unreadable",
  "wrong-version": "unreadable",
};

/** Which of the texts it is that says why there is no newer document, by the reader's code. */
export function problemKind(code) {
  return PROBLEM_KINDS[code] ?? "refused";
}

const plurals = new Intl.PluralRules(LOCALE);

/** The text of a key, with these in its slots. One that has plurals is chosen by `count`. */
export function text(key, slots = {}) {
  const found = TEXTS[key];
  const pattern = typeof found === "string" ? found : (found[plurals.select(slots.count)] ?? found.other);
  return pattern.replace(/\{(\w+)\}/g, (_, name) =>
    typeof slots[name] === "number" ? count(slots[name]) : isolate(slots[name]),
  );
}

export function hasText(key) {
  return Object.hasOwn(TEXTS, key);
}

/** A name in Latin letters would turn an Arabic sentence around itself; so would what has such names in it. */
function isolate(slot) {
  if (DIRECTION === "ltr") return slot;
  return `${/[\u0590-\u08ff]/.test(slot) ? "\u2067" : "\u2068"}${slot}\u2069`;
}

export function list(items) {
  return items.length === 0 ? "" : items.reduce((one, other) => text("list", { one, other }));
}

/** "sending, balances and proofs" */
export function and(items) {
  return items.length < 2 ? items.join("") : text("list.last", { one: list(items.slice(0, -1)), other: items.at(-1) });
}

// ---- Names

export function chainName(chainId) {
  if (chainId === null) return text("shared");
  return NAMED_CHAINS.get(chainId)?.name ?? text("chain.unnamed", { id: String(chainId) });
}

export function isTestNetwork(chainId) {
  return ABOUT.testNetworks.includes(chainId);
}

/** As the operator calls it; in the page's language where that is the name that everybody has for it. */
export function serviceName(service) {
  const title = serviceTitle(service);
  return Object.hasOwn(TITLES, service) && [service, TITLES[service]].includes(title)
    ? text(`service.${service}`)
    : title;
}

export function serviceTitle(service) {
  return NAMED_SERVICES.get(service)?.title ?? service;
}

export function checkName({ service, chainId }) {
  return chainId === null
    ? serviceName(service)
    : text("check", { service: serviceName(service), chain: chainName(chainId) });
}

export function isRunByOthers(service) {
  return NAMED_SERVICES.get(service)?.runByOthers ?? false;
}

export function statusWord(status) {
  return text(`status.${status ?? "no-data"}`);
}

// ---- Numbers

const numbers = new Intl.NumberFormat(LOCALE);
const hundredths = new Intl.NumberFormat(LOCALE, { minimumFractionDigits: 2, maximumFractionDigits: 2 });

export function count(number) {
  return numbers.format(number);
}

/**
 * How long, in at most two units: "12 s", "3 min", "1 h 5 min", "2 d 3 h". Rounded down: nothing becomes older than
 * it is by rounding.
 */
export function duration(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const minutes = Math.floor(seconds / 60);
  if (seconds < 120) return unit(seconds, "s");
  if (minutes < 60) return unit(minutes, "min");
  if (minutes < 24 * 60) return two(minutes, 60, "h", "min");
  return two(Math.floor(minutes / 60), 24, "d", "h");
}

function unit(amount, name) {
  return text(`duration.${name}`, { amount });
}

function two(amount, per, large, small) {
  const rest = amount % per;
  return `${unit(Math.floor(amount / per), large)}${rest === 0 ? "" : ` ${unit(rest, small)}`}`;
}

/** The length of a bucket, to the second. */
export function bucketLength(seconds) {
  return seconds % 60 === 0 ? duration(seconds * 1000) : unit(seconds, "s");
}

/** Of a share of four decimals. */
export function percent(share) {
  return text("percent", { share: share === 1 ? count(100) : hundredths.format((share * 100).toFixed(2)) });
}

// ---- Instants. The zone is the reader's.

const weekdays = new Intl.DateTimeFormat(LOCALE, { weekday: "short", timeZone: "UTC" });
const months = new Intl.DateTimeFormat(LOCALE, { month: "short", timeZone: "UTC" });

function day(at) {
  return utcDay(at - new Date(at).getTimezoneOffset() * 60_000);
}

/** "Tue 10 Nov" */
export function utcDay(at) {
  return text("date", {
    weekday: weekdays.format(at),
    day: String(new Date(at).getUTCDate()),
    month: months.format(at),
  });
}

function clock(at) {
  return new Date(at).toTimeString().slice(0, 5);
}

/** "14:02", with its day if that is another than today: since when something is so. */
export function sinceText(at, now) {
  return midnight(at) === midnight(now) ? clock(at) : `${day(at)} ${clock(at)}`;
}

/** "Tue 10 Nov 14:05–14:10 (13:05 UTC)"; only once for a reader in UTC. */
export function span(beginsAt, endsAt) {
  return withUtc(`${day(beginsAt)} ${clock(beginsAt)}–${clock(endsAt)}`, beginsAt);
}

export function moment(at) {
  return withUtc(`${day(at)} ${clock(at)}`, at);
}

/** With the instant in UTC, and its day where that is another one: "Tue 10 Nov 00:30 (Mon 9 Nov 23:30 UTC)". */
function withUtc(local, at) {
  const date = new Date(at);
  if (date.getTimezoneOffset() === 0) return text("utc", { local });
  const utc = utcDay(at) === day(at) ? utcClock(at) : `${utcDay(at)} ${utcClock(at)}`;
  return text("utc.other", { local, utc });
}

/** Which zone the past is in, and what that is for the reader: "All times here are UTC; your time is UTC +1 h." */
export function zoneText() {
  const ahead = -new Date().getTimezoneOffset();
  if (ahead === 0) return text("zone");
  return text("zone.other", { offset: `${ahead < 0 ? "−" : "+"}${duration(Math.abs(ahead) * 60_000)}` });
}

/** The midnight that begins the local day of an instant. */
export function midnight(at) {
  return new Date(at).setHours(0, 0, 0, 0);
}

/** "2026-11-12", as an address has it. */
export function utcDayName(at) {
  return new Date(at).toISOString().slice(0, 10);
}

export function utcClock(at) {
  return new Date(at).toISOString().slice(11, 16);
}

/** In which the reader says what is so (headlineOf). */
export const READER_LANGUAGE = { locale: LOCALE, text, chainName, serviceName, instant: sinceText };
