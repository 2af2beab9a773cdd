/** The status page: asks by the reader's rules, and shows what the answers are worth by the page's own clock. */

import { effectiveStatus, parseAbout, poll, rowsByCheck } from "lookout-reader/page";
import { readAddress, rowName, writeAddress } from "./address.js";
import { h, setText } from "./dom.js";
import { machineElements, makeFoot } from "./foot.js";
import { DIRECTION, LANGUAGE } from "./language.js";
import { placeNotes, readNotes } from "./notes.js";
import { isClockWrong, makeCards, makeHead } from "./now.js";
import { makeIncidents, makePast } from "./past.js";
import { ABOUT_TEXT, SHOW_UNMONITORED, chainName, checkName, compareChains, compareServices, moreText, parseDayName, serviceName, statusWord, text } from "./words.js";

const LIVE_S = 15;
const HISTORY_S = 60;
const ABOUT_MS = 60_000;
const UNREACHED_MS = 150_000; // as long as a row holds: later, nobody is known to try again
const ROW_AHEAD_MS = 30_000;
const SHOWN_AT_FIRST = 20; // of each group
const GROUPS_AT_FIRST = { chain: 50, service: Infinity };
const SHOWN_MORE = 100;
const NO_ROWS = new Map();
const PAPER = window.matchMedia("print");

document.documentElement.lang = LANGUAGE;
document.documentElement.dir = DIRECTION;

const filter = { words: [], only: false, by: readAddress("by") === "service" ? "service" : "chain" };
const limits = new Map();
let notes = readNotes(ABOUT_TEXT);
let isReached = false; // whether what the address names was shown
const polling = poll({ ...endpoint(), live: LIVE_S, history: HISTORY_S, onUpdate: refresh });
const memory = new WeakMap(); // the rows of a document by check

const head = makeHead();
const cards = makeCards(showMore);
const past = makePast();
const incidents = makeIncidents();
const nothing = h("p", { class: "hint", role: "status" });
const moreGroups = h("button", { type: "button", class: "more", click: () => showMore("groups") });
const controls = filterElement();
const content = [
  head.element,
  ...machineElements(),
  h(
    "section",
    { class: "now", "aria-labelledby": "now-title" },
    h("div", { class: "bar-head" }, h("h2", { id: "now-title" }, text("now")), controls),
    nothing,
    cards.element,
    moreGroups,
  ),
  past.element,
  incidents.element,
  makeFoot(),
];

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

/** Takes over new notes; loads the page again if anything else of the deployment's description has changed. */
async function checkDescription() {
  if (document.visibilityState === "hidden") return;
  try {
    const answer = await fetch("/about.json", { cache: "no-cache" });
    const description = await answer.text();
    if (!answer.ok || !parseAbout(description).readable) return;
    if (withoutNotes(description) !== withoutNotes(ABOUT_TEXT)) location.reload();
    notes = readNotes(description);
  } catch {
    // Without an answer the page stays: it might not come back.
  }
}

function withoutNotes(description) {
  return JSON.stringify({ ...JSON.parse(description), notes: null });
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
  const { groups, left, matching } = groupsOf(checks);
  const matched = new Set(matching.map(({ key }) => key));
  const placed = placeNotes(notes, groups, update.now);
  const shown = {
    ...view,
    checks: all,
    onPaper: PAPER.matches, // where an age does not grow any more
    by: filter.by,
    groups: groups.map((group) => ({ ...group, notes: placed.inGroups.get(group.id) ?? [] })),
    notes: placed.above,
    matching: [...matched].join(),
    isMatching: (key) => matched.has(key),
  };
  head.update(shown);
  cards.update(shown);
  past.update(shown);
  incidents.update(shown);
  moreGroups.hidden = left === 0;
  setText(moreGroups, moreText(left, shown.onPaper));
  setText(nothing, checks.length > 0 && matched.size === 0 ? text("filter.none") : "");
  if (update.history !== null && !isReached) reachAddress();
}

function rowsOf(document) {
  if (document === null) return NO_ROWS;
  if (!memory.has(document)) memory.set(document, rowsByCheck(document));
  return memory.get(document);
}

// ---- The address

/** Shows the day and the row that the address names, once there is a history. */
function reachAddress() {
  isReached = true;
  const at = parseDayName(readAddress("day"));
  const row = readAddress("row");
  if (at !== null) past.zoom(at);
  if (row !== null) past.reach(row);
}

function followAddress() {
  const language = readAddress("lang");
  if (language !== null && language !== LANGUAGE) location.reload();
  isReached = false;
  refresh();
}

// ---- What is shown

/** Every check of the report, or of the history while there is no report, in the one order. */
function checksOf(view) {
  const source = view.rows.size > 0 ? view.rows : view.historyRows;
  const checks = [...source.entries()].map(([key, { service, chainId }]) => {
    const row = view.rows.get(key) ?? null;
    const status = effectiveStatus(row, view.judgedAt, view.receivedAgoMs);
    return { key, service, chainId, status, row, unreached: isUnreached(row, status, view), address: rowName({ service, chainId }) };
  });
  return checks.sort((a, b) => compareServices(a.service, b.service) || compareChains(a.chainId, b.chainId));
}

/** Whether it gave no usable answer the last time or two, so that it is asked again before it is called down. */
function isUnreached(row, status, { judgedAt, receivedAgoMs }) {
  if (status !== "unknown" || row?.publishedStatus !== "unknown" || row.reason !== "unreachable" || row.observedAt === null) return false;
  const age = judgedAt - row.observedAt;
  return age >= -ROW_AHEAD_MS && age < UNREACHED_MS && (receivedAgoMs ?? 0) < UNREACHED_MS;
}

/**
 * The checks that match the filter, by chain or by service: `all` are those of a group, `checks` those shown, and `left`
 * says how many more there are. Where not all are shown, those that are not current come first.
 */
function groupsOf(checks) {
  const { by } = filter;
  const matching = checks.filter(isWanted);
  const found = new Map();
  for (const check of matching) {
    const id = by === "chain" ? `chain ${check.chainId}` : `service ${check.service}`;
    if (!found.has(id)) found.set(id, []);
    found.get(id).push(check);
  }
  const groups = Array.from(found, ([id, all]) => {
    const [{ service, chainId }] = all;
    const title = by === "chain" ? chainName(chainId) : serviceName(service);
    const limit = limitOf(id, SHOWN_AT_FIRST);
    const sorted = worstFirst(all, limit, isNotCurrent);
    return { id, by, title, service, chainId, all, checks: sorted.slice(0, limit), left: Math.max(0, all.length - limit) };
  });
  if (by === "chain") groups.sort((a, b) => compareChains(a.chainId, b.chainId));
  const limit = limitOf("groups", GROUPS_AT_FIRST[by]);
  const sorted = worstFirst(groups, limit, ({ all }) => all.some(isNotCurrent));
  return { groups: sorted.slice(0, limit), left: Math.max(0, groups.length - limit), matching };
}

function worstFirst(all, limit, isBad) {
  return all.length <= limit ? all : [...all.filter(isBad), ...all.filter((one) => !isBad(one))];
}

function limitOf(id, atFirst) {
  return limits.get(id) ?? atFirst;
}

function showMore(id) {
  limits.set(id, limitOf(id, id === "groups" ? GROUPS_AT_FIRST[filter.by] : SHOWN_AT_FIRST) + SHOWN_MORE);
  refresh();
}

function isNotCurrent({ status }) {
  return status !== "current";
}

function isWanted(check) {
  if (filter.only && !isNotCurrent(check)) return false;
  if (filter.words.length === 0) return true;
  const { service, chainId, status } = check;
  const found = `${service} ${checkName(check)} ${chainName(chainId)} ${chainId} ${status} ${statusWord(status)}`.toLowerCase();
  return filter.words.every((word) => found.includes(word));
}

function filterElement() {
  const words = h("input", {
    type: "search",
    id: "filter",
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
  return h("search", { class: "filter" }, words, h("label", { for: "only" }, only, text("filter.only")), groupingElement());
}

function groupingElement() {
  const choice = (by) => {
    const button = h("input", {
      type: "radio",
      name: "by",
      id: `by-${by}`,
      ...(filter.by === by ? { checked: "" } : {}),
      change: () => {
        filter.by = by;
        writeAddress({ by: by === "chain" ? null : by });
        refresh();
      },
    });
    return h("label", { for: `by-${by}` }, button, text(`group.${by}`));
  };
  return h("fieldset", { class: "grouping" }, h("legend", {}, text("group")), choice("chain"), choice("service"));
}
