/** The status page: asks by the reader's rules, and shows what the answers are worth by the page's own clock. */

import { EFFECTIVE_STATUSES, overviewOf, parseAbout, poll, rowsByCheck, wrongClock } from "lookout-reader/page";
import { readAddress } from "./address.js";
import { makeBand } from "./band.js";
import { h, setText } from "./dom.js";
import { makeFoot } from "./foot.js";
import { DIRECTION, LANGUAGE } from "./language.js";
import { makeLimits } from "./limits.js";
import { makeNetworks } from "./networks.js";
import { makePast } from "./past.js";
import { ABOUT, ABOUT_TEXT, chainName, checkName, statusWord, text } from "./words.js";

const LIVE_S = 15;
const HISTORY_S = 60;
const ABOUT_MS = 60_000;
const SHOWN_AT_FIRST = 30; // networks
const SHOWN_MORE = 100;
const FILTER_FROM = 30; // rows
const NO_ROWS = new Map();
const PAPER = window.matchMedia("print");

document.documentElement.lang = LANGUAGE;
document.documentElement.dir = DIRECTION;
const accent = document.querySelector("meta[name=theme-color]");
if (accent !== null) document.documentElement.style.setProperty("--accent", accent.content);

const filter = { words: [], only: false };
let limit = SHOWN_AT_FIRST;
let said = newsOf(ABOUT);
let chosen = readChain(); // the network that comes first
let isReached = false; // whether what the address names was shown
const polling = poll({ ...endpoint(), live: LIVE_S, history: HISTORY_S, onUpdate: refresh });
const memory = new WeakMap(); // the rows of a document by check

const band = makeBand();
const networks = makeNetworks(showMore);
const past = makePast();
const limits = makeLimits();
const nothing = h("p", { class: "hint", role: "status" });
const controls = filterElement();
const content = [band.element, controls, nothing, networks.element, past.element, limits.element, makeFoot()];

setInterval(refresh, 1000);
setInterval(checkDescription, ABOUT_MS);
// A page that was hidden or put away comes back with what it showed then.
document.addEventListener("visibilitychange", refresh);
window.addEventListener("pageshow", refresh);
window.addEventListener("hashchange", followAddress);
PAPER.addEventListener("change", refresh);

function endpoint() {
  const path = document.querySelector("meta[name=lookout-live]").content;
  const [, before, protocol] = /^(.*)\/api\/v1\/([^/]+)\/liveness$/.exec(path);
  return { baseUrl: new URL(before || "/", location.href).href, protocol: decodeURIComponent(protocol) };
}

/** Brings the page up to now. A bug takes everything off the page: what stands still must not look well. */
function refresh() {
  try {
    show(polling.latest());
  } catch (error) {
    document.getElementById("page").replaceChildren(h("h1", { class: "failed" }, text("page.failed")));
    throw error;
  }
}

/** Takes over new notes and places; loads the page again if anything else of the deployment's description has changed. */
async function checkDescription() {
  if (document.visibilityState === "hidden") return;
  try {
    const answer = await fetch("/about.json", { cache: "no-cache" });
    const description = await answer.text();
    const about = parseAbout(description);
    if (!answer.ok || !about.readable) return;
    if (withoutNews(description) !== withoutNews(ABOUT_TEXT)) location.reload();
    said = newsOf(about);
  } catch {
    // Without an answer the page stays: it might not come back.
  }
}

/** What a monitor changes while a page is open. */
function newsOf({ notes, places, chains }) {
  return { notes, places, chains };
}

function withoutNews(description) {
  const { chains, ...rest } = JSON.parse(description);
  return JSON.stringify({
    ...rest,
    notes: null,
    places: null,
    chains: chains.map((each) => ({ ...each, noBlockSince: null })),
  });
}

/** Whatever comes of it depends on the documents and the clock, never on how they came. */
function show(update) {
  if (update.report === null && update.reportProblem === null) return; // the first answer is on its way
  const page = document.getElementById("page");
  if (band.element.parentElement !== page) page.replaceChildren(...content);
  const overview = overviewOf(update.report, {
    now: update.now,
    receivedAgoMs: update.receivedAgoMs,
    clockAheadMs: update.clockAheadMs,
    about: { ...ABOUT, ...said },
    history: update.history,
    reportCode: update.reportCode,
    answeredAgoMs: update.answeredAgoMs,
  });
  const { networks: all, now } = overview;
  const { shown, left } = chooseNetworks(all);
  const clockIsWrong = wrongClock(update) !== null;
  const historyRows = rowsOf(update.history);
  const view = { ...update, now, clockIsWrong, historyRows, overview, networks: all, shown, left, ...said };
  view.onPaper = PAPER.matches;
  controls.hidden = (update.report?.rows.length ?? historyRows.size) <= FILTER_FROM;
  setText(nothing, all.length > 0 && shown.length === 0 ? text("filter.none") : "");
  band.update(view);
  networks.update(view);
  past.update(view);
  limits.update(view);
  if (update.history !== null && !isReached) reachAddress();
}

function rowsOf(document) {
  if (document === null) return NO_ROWS;
  if (!memory.has(document)) memory.set(document, rowsByCheck(document));
  return memory.get(document);
}

// ---- The address

/** An address of an instant is about the past: it leaves the networks as they are. */
function readChain() {
  const chain = readAddress("chain");
  return chain === null || readAddress("at") !== null ? null : Number(chain);
}

/** Opens the network, the day or the incident that the address names, once there is a history. */
function reachAddress() {
  isReached = true;
  if (chosen !== null) networks.open(chosen);
  past.reach();
}

function followAddress() {
  const language = readAddress("lang");
  if (language !== null && language !== LANGUAGE) location.reload();
  chosen = readChain();
  isReached = false;
  refresh();
}

// ---- What is shown

/** Those that match the filter, the chosen one first. Where not all are shown, the worst come before the rest. */
function chooseNetworks(all) {
  const wanted = all.filter(isWanted);
  const sorted =
    wanted.length <= limit
      ? wanted
      : [...wanted].sort((a, b) => EFFECTIVE_STATUSES.indexOf(a.status) - EFFECTIVE_STATUSES.indexOf(b.status));
  const first = sorted.filter(({ chainId }) => chosen !== null && chainId === chosen);
  return {
    shown: [...first, ...sorted.filter((network) => !first.includes(network))].slice(0, limit),
    left: Math.max(0, wanted.length - limit),
  };
}

function isWanted({ chainId, checks, activities }) {
  if (filter.only && activities.every(({ bad }) => bad.length === 0)) return false;
  const found = [
    `${chainName(chainId)} ${chainId}`,
    ...checks.map((check) => `${check.service} ${checkName(check)} ${check.effective} ${statusWord(check.effective)}`),
  ]
    .join(" ")
    .toLowerCase();
  return filter.words.every((word) => found.includes(word));
}

function showMore() {
  limit += SHOWN_MORE;
  refresh();
}

function filterElement() {
  const words = h("input", {
    type: "search",
    placeholder: text("filter.placeholder"),
    "aria-label": text("filter.label"),
    autocomplete: "off",
    spellcheck: "false",
    input: () => {
      filter.words = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      refresh();
    },
  });
  const only = h("input", {
    type: "checkbox",
    id: "only",
    change: () => {
      filter.only = only.checked;
      refresh();
    },
  });
  return h("search", { class: "filter" }, words, h("label", { for: "only" }, only, text("filter.only")));
}
