/** The status page: asks by the reader's rules, and shows what the answers are worth by the page's own clock. */

import { NOTES, effectiveStatus, parseAbout, poll, rowsByCheck } from "./lookout-reader.js";
import { h, setText } from "./dom.js";
import { isClockWrong, makeCards, makeHead } from "./now.js";
import { makeIncidents, makePast } from "./past.js";
import { ABOUT, ABOUT_TEXT, SHOW_UNMONITORED, chainName, serviceName } from "./words.js";

const LIVE_S = 15;
const HISTORY_S = 60;
const ABOUT_MS = 60_000;
const SHOWN_AT_FIRST = 20; // of each service
const SHOWN_MORE = 100;
const NO_ROWS = new Map();

const filter = { words: [], only: false };
const limits = new Map();
const polling = poll({ ...endpoint(), live: LIVE_S, history: HISTORY_S, onUpdate: refresh });
const memory = new WeakMap(); // the rows of a document by check

const head = makeHead();
const cards = makeCards((service) => {
  limits.set(service, limitOf(service) + SHOWN_MORE);
  refresh();
});
const past = makePast();
const incidents = makeIncidents();
const nothing = h("p", { class: "hint", role: "status" });
const content = [
  head.element,
  h("section", { class: "now", "aria-labelledby": "now-title" }, h("div", { class: "bar-head" }, h("h2", { id: "now-title" }, "Now"), filterElement()), nothing, cards.element),
  past.element,
  incidents.element,
  foot(),
];

setInterval(refresh, 1000);
setInterval(checkDescription, ABOUT_MS);
// A page that was hidden or put away comes back with what it showed then.
document.addEventListener("visibilitychange", refresh);
window.addEventListener("pageshow", refresh);

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
    document.getElementById("page").replaceChildren(h("h1", {}, "This page has failed, and shows nothing rather than something old"));
    throw error;
  }
}

/** Loads the page again if it was made with another description of the deployment than there is now. */
async function checkDescription() {
  if (document.visibilityState === "hidden") return;
  try {
    const answer = await fetch("/about.json", { cache: "no-cache" });
    const text = await answer.text();
    if (answer.ok && text !== ABOUT_TEXT && parseAbout(text).readable) location.reload();
  } catch {
    // Without an answer the page stays: it might not come back.
  }
}

/** Whatever comes of it depends on the documents and the clock, never on how they came. */
function show(update) {
  if (update.report === null && update.reportProblem === null) return; // the first answer is on its way
  const page = document.getElementById("page");
  if (head.element.parentElement !== page) page.replaceChildren(...content);
  const clockIsWrong = isClockWrong(update);
  // By a clock that is known to be wrong nothing is judged: with none, the reader's rules call every row unknown.
  const judgedAt = clockIsWrong ? NaN : update.now;
  const view = { ...update, clockIsWrong, judgedAt, rows: rowsOf(update.report), historyRows: rowsOf(update.history) };
  const all = checksOf(view);
  const checks = SHOW_UNMONITORED ? all : all.filter(({ status }) => status !== "unmonitored");
  const groups = groupsOf(checks);
  const matched = new Set(groups.flatMap(({ all }) => all.map(({ key }) => key)));
  const shown = { ...view, groups, matching: [...matched].join(), isMatching: (key) => matched.has(key) };
  head.update(shown);
  cards.update(shown);
  past.update(shown);
  incidents.update(shown);
  const isNoMatch = checks.length > 0 && matched.size === 0;
  setText(nothing, isNoMatch ? "Nothing matches the filter." : hiddenText(all.length - checks.length));
}

function hiddenText(number) {
  if (number === 0) return "";
  return number === 1 ? "One check that nobody watches is not shown." : `${number} checks that nobody watches are not shown.`;
}

function rowsOf(document) {
  if (document === null) return NO_ROWS;
  if (!memory.has(document)) memory.set(document, rowsByCheck(document));
  return memory.get(document);
}

// ---- What is shown

/** Every check of the report, or of the history while there is no report. */
function checksOf({ rows, historyRows, judgedAt, receivedAgoMs }) {
  const source = rows.size > 0 ? rows : historyRows;
  return [...source.entries()].map(([key, { service, chainId }]) => {
    const row = rows.get(key) ?? null;
    const status = effectiveStatus(row, judgedAt, receivedAgoMs);
    return { key, service, chainId, status, label: `History of ${serviceName(service)}, ${chainName(chainId)}` };
  });
}

/** The checks that match the filter, by service: `checks` are those shown, `left` how many more there are. */
function groupsOf(checks) {
  const matching = checks.filter(isWanted);
  const present = new Set(matching.map(({ service }) => service));
  const known = ABOUT.services.map(({ name }) => name).filter((name) => present.has(name));
  return [...new Set([...known, ...present])].map((service) => {
    const all = matching.filter((check) => check.service === service);
    const limit = limitOf(service);
    // Where not all are shown, those that are not current come first.
    const sorted = all.length <= limit ? all : [...all.filter(isNotCurrent), ...all.filter((check) => !isNotCurrent(check))];
    return { service, all, checks: sorted.slice(0, limit), left: Math.max(0, all.length - limit) };
  });
}

function limitOf(service) {
  return limits.get(service) ?? SHOWN_AT_FIRST;
}

function isNotCurrent({ status }) {
  return status !== "current";
}

function isWanted(check) {
  if (filter.only && !isNotCurrent(check)) return false;
  if (filter.words.length === 0) return true;
  const { service, chainId, status } = check;
  const text = `${service} ${serviceName(service)} ${chainName(chainId)} ${chainId} ${status}`.toLowerCase();
  return filter.words.every((word) => text.includes(word));
}

function filterElement() {
  const words = h("input", {
    type: "search",
    id: "filter",
    placeholder: "service, chain or status",
    "aria-label": "Show only: service, chain or status",
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
  return h("search", { class: "filter" }, words, h("label", { for: "only" }, only, "only what is not current"));
}

/** Who runs the monitor, as far as the operator says so. */
function operatorElements() {
  const { operator, contact } = ABOUT;
  if (operator === "" && contact === "") return [];
  const by = operator === "" ? "" : `This monitor is run by ${operator}. `;
  const isLink = /^(https?:\/\/|mailto:)/.test(contact);
  const how = contact === "" ? [] : ["Contact: ", isLink ? h("a", { href: contact }, contact) : contact];
  return [h("p", { class: "operator" }, by, ...how)];
}

function foot() {
  const general = NOTES.filter((note) => note.services === null);
  const link = (href, text) => h("a", { href }, text);
  const live = document.querySelector("meta[name=lookout-live]").content;
  const history = document.querySelector("meta[name=lookout-history]").content;
  return h(
    "footer",
    {},
    h("h2", {}, "What this does not say"),
    h("ul", { class: "notes" }, ...general.map(({ text }) => h("li", {}, text))),
    ...operatorElements(),
    h("p", { class: "links" }, link(live, "Live report"), link(history, "History"), link("/openapi.json", "API description")),
  );
}
