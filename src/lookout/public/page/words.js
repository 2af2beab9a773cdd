/** Names, numbers and instants as people read them. */

import { EFFECTIVE_STATUSES, KNOWN_STATUSES, parseAbout } from "./lookout-reader.js";

/** The description of the deployment that the page was made with. */
export const ABOUT_TEXT = document.querySelector("meta[name=lookout-about]").content;
/** What the operator says of the deployment; a server makes nothing that cannot be read. */
export const ABOUT = parseAbout(ABOUT_TEXT);
const { protocol, showUnmonitored } = JSON.parse(ABOUT_TEXT);
export const SHOW_UNMONITORED = showUnmonitored;
/** Empty if the operator gave none: then the title is that of the protocol. */
export const PAGE_TITLE = ABOUT.title === protocol ? "" : ABOUT.title;
const CHAINS = new Map(ABOUT.chains.map((chain) => [chain.id, chain]));
const SERVICES = new Map(ABOUT.services.map((service) => [service.name, service]));
/** What a bucket can say: the current one first and the worst last; and what it says without a reading. */
export const READINGS = [...KNOWN_STATUSES].reverse();
export const NO_READINGS = EFFECTIVE_STATUSES.filter((status) => status !== "stale" && !READINGS.includes(status));
const GOOD_REASONS = { synced: "in step", responding: "answering" };
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

export function chainName(chainId) {
  if (chainId === null) return "Shared";
  return CHAINS.get(chainId)?.name ?? `Chain ${chainId}`;
}

/** What a chain is besides its name; null for a mainnet. */
export function chainKind(chainId) {
  return ABOUT.testNetworks.includes(chainId) ? "test network" : null;
}

export function serviceName(service) {
  return SERVICES.get(service)?.title ?? service;
}

export function isRunByOthers(service) {
  return SERVICES.get(service)?.runByOthers ?? false;
}

export function statusWord(status) {
  return status === null ? "no data" : status.replace("-", " ");
}

/** The reason of a current row in a word or two, so that what is well takes little room; null for any other. */
export function goodReason(reason) {
  return Object.hasOwn(GOOD_REASONS, reason) ? GOOD_REASONS[reason] : null;
}

export function count(number) {
  return number.toLocaleString("en-US");
}

/**
 * How long, in at most two units: "12 s", "3 min", "1 h 5 min", "2 d 3 h". Rounded down: nothing becomes older than
 * it is by rounding.
 */
export function duration(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const minutes = Math.floor(seconds / 60);
  if (seconds < 120) return `${seconds} s`;
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 24 * 60) return two(minutes, 60, "h", "min");
  return two(Math.floor(minutes / 60), 24, "d", "h");
}

/** The length of a bucket, to the second. */
export function bucketLength(seconds) {
  return seconds % 60 === 0 ? duration(seconds * 1000) : `${count(seconds)} s`;
}

function two(amount, per, large, small) {
  const rest = amount % per;
  return `${Math.floor(amount / per)} ${large}${rest === 0 ? "" : ` ${rest} ${small}`}`;
}

/** An uptime, whose four decimals are all there are. */
export function percent(share) {
  return share === 1 ? "100 %" : `${(share * 100).toFixed(2)} %`;
}

/** A coverage in whole percent, never rounded up to all of it or down to none. */
export function wholePercent(share) {
  if (share > 0 && share < 0.01) return "under 1 %";
  return `${Math.floor(share * 100)} %`;
}

// Instants. The page is in English, and so are its days; the zone is the reader's.

export function day(at) {
  const date = new Date(at);
  return `${DAYS[date.getDay()]} ${date.getDate()} ${MONTHS[date.getMonth()]}`;
}

export function clock(at) {
  const date = new Date(at);
  return `${pad(date.getHours())}:${pad(date.getMinutes())}`;
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
  if (date.getTimezoneOffset() === 0) return `${local} UTC`;
  const utcDay = `${DAYS[date.getUTCDay()]} ${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  const utcClock = `${pad(date.getUTCHours())}:${pad(date.getUTCMinutes())}`;
  return `${local} (${utcDay === day(at) ? "" : `${utcDay} `}${utcClock} UTC)`;
}

export function zone() {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** The midnight that begins the local day of an instant, and the one `days` later; a day is not always 24 hours. */
export function midnight(at, days = 0) {
  const date = new Date(at);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate() + days).getTime();
}

function pad(number) {
  return String(number).padStart(2, "0");
}
