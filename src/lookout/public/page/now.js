/** What works now: the head line, what is wrong with the page's own knowledge, and a card for every check. */

import { EFFECTIVE_STATUSES, countedChains, headlineOf, notesFor } from "lookout-reader/page";
import { h, setChildren, setStatus, setText, shape } from "./dom.js";
import { isNothingReached, isUnanswered, meaningOf, situationOf, unansweredText } from "./meaning.js";
import { makeNotes } from "./notes.js";
import { ABOUT, PAGE_TITLE, chainKind, chainName, checkName, compareServices, duration, hasText, isRunByOthers, list, moment, moreText, problemKind, serviceName, sinceText, statusWord, text } from "./words.js";

// Between two reports that differ lie at most 30 s; a cache in front may add 60 s, and the page's asking 16.5 s:
// 107 s in all. The browser's own cache adds nothing, since the reader has it ask each time.
const STOPPED_MS = 150_000;
// A copy's Date makes the clock look ahead by as much as the copy is old: up to 60 s in a cache in front that does not
// say so (Age), and then a request that takes its time. Nothing makes it look behind.
const CLOCK_AHEAD_MS = 60_000 + 30_000;
const CLOCK_BEHIND_MS = 30_000;
const DATE_MS = 10_000; // how well the server's clock is known: its Date has whole seconds, and was some time under way
const NAMED_AT_MOST = 3;
const CHAINS_AT_MOST = 8;
const SENTENCES_AT_MOST = 6;

// ---- The head

/** Whether the clock of this device is known to be wrong, as far as no cache explains it. */
export function isClockWrong({ clockAheadMs }) {
  return clockAheadMs !== null && (clockAheadMs > CLOCK_AHEAD_MS || clockAheadMs < -CLOCK_BEHIND_MS);
}

/** What keeps the page from knowing, in sentences that are read out: none of them has a number that moves. */
function troublesOf(view) {
  const { report, reportProblem, clockIsWrong } = view;
  const troubles = [];
  if (clockIsWrong) troubles.push(text(view.clockAheadMs > 0 ? "trouble.ahead" : "trouble.behind"));
  if (reportProblem !== null) troubles.push(`${text(`trouble.${problemKind(view.reportCode)}`)} ${text(report === null ? "trouble.nothing-held" : "trouble.held")}`);
  if (report === null) return troubles;
  const age = ageOf(view);
  if (age === null) troubles.push(text("trouble.undated"));
  else if (!clockIsWrong && age < -CLOCK_BEHIND_MS) troubles.push(text("trouble.future"));
  else if (!clockIsWrong && reportProblem === null && age > STOPPED_MS) troubles.push(text("trouble.stopped"));
  if (isNothingReached(view.checks)) troubles.push(text("trouble.own"));
  if (report.unreadableRows > 0) troubles.push(text("trouble.rows", { count: report.unreadableRows }));
  return troubles;
}

/** How old the report is by the clock, and no less than it has been here; null if it does not say. */
function ageOf({ now, report, receivedAgoMs }) {
  if (report.generatedAt === null) return null;
  const age = now - report.generatedAt;
  return age < -CLOCK_BEHIND_MS ? age : Math.max(age, receivedAgoMs ?? 0);
}

export function makeHead() {
  const mark = shape("unknown");
  const title = h("h1", {}, text("headline.reading"));
  const unwatched = h("p", { class: "unwatched" });
  const counts = h("p", { class: "counts" });
  const meaning = h("ul", { class: "meaning", "aria-label": text("means.heading") });
  const age = h("p", { class: "age" });
  const advice = h("p", { class: "advice" });
  const troubles = h("div", { class: "troubles", role: "alert" });
  const state = h("div", { class: "state" }, mark, title);
  const about = h("p", { class: "about-page" }, PAGE_TITLE ? text("page.about", { title: PAGE_TITLE }) : text("page.about.wallet"));
  const warning = h("p", { class: "warning" }, `${text("warning.one-view")} `, h("b", {}, text("warning.not-a-signal")));
  const notes = makeNotes();
  const element = h("header", { class: "head" }, about, state, troubles, unwatched, counts, meaning, advice, notes.element, warning, age);
  let announced = "";
  let drawn = "";

  function update(view) {
    const found = troublesOf(view);
    const { status, healthy, headline, unwatched: left, detail, sentences, advice: tips } = summaryOf(view, found.length > 0);
    element.dataset.healthy = String(healthy);
    setStatus(element, status);
    setText(title, headline);
    setText(unwatched, left);
    setText(counts, detail);
    setText(age, ageText(view));
    setText(advice, tips.join(" "));
    notes.update(view.notes);
    const tab = `${headline} · ${PAGE_TITLE || "Lookout"}`;
    if (document.title !== tab) document.title = tab;
    if (JSON.stringify(sentences) !== drawn) {
      drawn = JSON.stringify(sentences);
      meaning.hidden = sentences.length === 0;
      meaning.replaceChildren(...sentenceElements(sentences));
    }
    if (found.join() === announced) return; // it is read out once
    announced = found.join();
    troubles.replaceChildren(...found.map((trouble) => h("p", {}, trouble)));
  }
  return { element, update };
}

function sentenceElements(sentences) {
  const shown = sentences.slice(0, SENTENCES_AT_MOST);
  const left = sentences.length - shown.length;
  return [
    ...shown.map(({ status, place, words }) =>
      h("li", { "data-status": status }, shape(status), h("p", {}, h("b", {}, text("means.line", { place })), ` ${words}`)),
    ),
    ...(left === 0 ? [] : [h("li", {}, text("means.more", { count: left }))]),
  ];
}

function summaryOf({ report, rows, historyRows, checks, judgedAt, now, receivedAgoMs }, inDoubt) {
  if (report === null) return { status: "unknown", healthy: false, headline: text("headline.nothing"), unwatched: "", detail: "", sentences: [], advice: [text("advice.nothing")] };
  const chains = countedChains(ABOUT, [...rows.values(), ...historyRows.values()].map(({ chainId }) => chainId));
  const found = headlineOf(report, { now: judgedAt, receivedAgoMs, chains, testNetworks: ABOUT.testNetworks, inDoubt });
  const counted = checks.filter(({ chainId }) => chainId === null || chains.includes(chainId));
  const missing = found.missing.map((check) => ({ ...check, status: "unknown", row: null, unreached: false }));
  const others = checks.filter((check) => !counted.includes(check));
  const watched = chains.filter((chainId) => counted.some((check) => check.chainId === chainId && check.status !== "unmonitored"));
  return { ...found, ...meaningOf([...counted, ...missing], others, { chains, inDoubt, now }), detail: detailText(found, watched, others.length > 0) };
}

/** What was counted, on the chains where something is watched, and what it came to. */
function detailText({ checks, others, missing }, chains, isPart) {
  const counts = { [checks[0].effective]: checks.length, ...others };
  const { unmonitored = 0, ...watched } = counts;
  const all = Object.values(watched).reduce((sum, number) => sum + number, 0);
  const total = all === 0 ? "" : text("scope.checks", { count: all });
  const isWell = watched.current === all;
  const byStatus = EFFECTIVE_STATUSES.filter((status) => status in watched).map((status) => countText(status, watched[status]));
  return [
    chains.length > 0 && isWell ? text("scope.chains", { checks: total, chains: scopeText(chains) }) : total,
    isWell ? "" : list(byStatus),
    unmonitored > 0 && all === 0 ? countText("unmonitored", unmonitored) : "",
    missing.length === 0 ? "" : text("scope.missing", { places: missingText(missing) }),
    isPart ? text("scope.test") : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

function countText(status, count) {
  return text("scope.count", { status: statusWord(status), count });
}

/** The checks that the report lacks, or their chains if they are many. */
function missingText(missing) {
  if (missing.length <= NAMED_AT_MOST) return list(missing.map(checkName));
  return scopeText([...new Set(missing.map(({ chainId }) => chainId))]);
}

function scopeText(chains) {
  return chains.length > CHAINS_AT_MOST ? text("chains", { count: chains.length }) : list(chains.map(chainName));
}

function ageText(view) {
  if (view.report === null) return text("age.none");
  if (view.clockIsWrong) {
    const wrongBy = Math.round(Math.abs(view.clockAheadMs) / DATE_MS) * DATE_MS;
    return text(view.clockAheadMs > 0 ? "age.ahead" : "age.behind", { duration: duration(wrongBy) });
  }
  const age = ageOf(view);
  if (age === null) return text("age.unknown");
  if (view.onPaper) return text("age.at", { moment: moment(view.report.generatedAt) });
  return age < -1000 ? text("age.future") : text("age.ago", { duration: duration(age) });
}

// ---- The cards

/** A block for each group. `view.groups` says which checks are shown; `onMore` is asked for more of a group. */
export function makeCards(onMore) {
  const blocks = new Map();
  const list = h("div", { class: "groups" });
  const warnings = h("ul", { class: "notes warnings" });
  const element = h("div", {}, list, warnings);
  let warned = "";
  function update(view) {
    for (const group of view.groups) if (!blocks.has(group.id)) blocks.set(group.id, makeBlock(group, onMore));
    setChildren(list, view.groups.map(({ id }) => blocks.get(id).element));
    for (const group of view.groups) blocks.get(group.id).update(group, view);
    const services = view.by === "chain" ? [...new Set(view.groups.flatMap(({ all }) => all.map(({ service }) => service)))].sort(compareServices) : [];
    if (services.join() === warned) return;
    warned = services.join();
    warnings.replaceChildren(...warningElements(services));
  }
  return { element, update };
}

/** What the rows of a service do not say (C12). */
function warningsFor(service) {
  return notesFor(service, isRunByOthers(service)).filter((note) => note.services !== null);
}

/** Each warning once, with the services that it is about. */
function warningElements(services) {
  const about = new Map();
  for (const service of services) for (const { id } of warningsFor(service)) about.set(id, [...(about.get(id) ?? []), serviceName(service)]);
  return Array.from(about, ([id, names]) => h("li", {}, h("b", {}, text("means.line", { place: list(names) })), ` ${text(`warning.${id}`)}`));
}

function makeBlock({ id, by, title, service, chainId }, onMore) {
  const cardList = h("ul", { class: "cards", "aria-label": title });
  const more = h("button", { type: "button", class: "more", click: () => onMore(id) });
  const warnings = by === "service" ? warningsFor(service) : [];
  const kind = by === "chain" ? chainKind(chainId) : null;
  const notes = makeNotes();
  const element = h(
    "section",
    { class: `group by-${by}`, "data-group": id },
    h(
      "div",
      { class: "about" },
      h("h3", {}, title, kind === null ? null : h("span", { class: "kind" }, ` ${kind}`)),
      ...warnings.map((warning) => h("p", { class: "note" }, text(`warning.${warning.id}`))),
    ),
    h("div", {}, notes.element, cardList, more),
  );
  const cards = new Map();
  function update(group, view) {
    const shown = group.checks.map((check) => {
      if (!cards.has(check.key)) cards.set(check.key, makeCard(check, by));
      return cards.get(check.key);
    });
    setChildren(cardList, shown.map((card) => card.element));
    group.checks.forEach((check, n) => shown[n].update(check, view));
    notes.update(group.notes);
    more.hidden = group.left === 0;
    setText(more, moreText(group.left, view.onPaper));
  }
  return { element, update };
}

function makeCard({ key, service, chainId }, by) {
  const word = h("b", { class: "word" });
  const kind = by === "service" ? chainKind(chainId) : null;
  const why = h("p", { class: "why" });
  const metrics = h("p", { class: "metrics" });
  const seen = h("p", { class: "seen" });
  const element = h(
    "li",
    { class: "card", "data-check": key },
    h("p", { class: "title" }, by === "chain" ? serviceName(service) : chainName(chainId), kind === null ? null : h("span", { class: "kind" }, ` ${kind}`)),
    h("p", { class: "state" }, shape("unknown"), word),
    metrics,
    why,
    seen,
  );
  function update(check, { now, clockIsWrong, onPaper }) {
    const { status, row } = check;
    const measured = row?.readable && status !== "stale" ? metricsText(row, status) : "";
    setStatus(element, status);
    setText(word, wordOf(check));
    setText(metrics, measured);
    setText(why, whyText(check, measured, now, clockIsWrong));
    setText(seen, clockIsWrong ? "" : seenText(check, now, onPaper));
  }
  return { element, update };
}

/** The status, and what it stands for where it can be more than one thing. */
function wordOf(check) {
  const key = `status.${check.status}.${situationOf(check)}`;
  return hasText(key) ? text(key) : statusWord(check.status);
}

function whyText(check, measured, now, clockIsWrong) {
  const { row, status } = check;
  if (row === null) return text("card.absent");
  if (!row.readable) return text("card.unreadable");
  if (clockIsWrong && status !== "unmonitored") return text("card.clock");
  if (status === "stale") return text("card.stale", { since: sinceText(row.observedAt, now), status: statusWord(row.publishedStatus) });
  if (isUnanswered(check)) return unansweredText(status === "unknown" ? "means.unreached" : "card.unavailable", row, now);
  if (situationOf(check) === "emptied") return text("card.emptied");
  if (status !== "unknown" && isSaidByNumbers(row, measured)) return "";
  if (status === "unknown" && row.publishedStatus !== "unknown" && row.observedAt !== null) return text("sentence.unknown");
  const reason = `reason.${row.reason}`;
  return hasText(reason) ? text(reason) : text(`sentence.${status}`);
}

function isSaidByNumbers({ reason, metrics }, measured) {
  if (reason === "behind") return metrics.head > metrics.position;
  return measured !== "" && ["synced", "responding", "partial-coverage"].includes(reason);
}

/** In numbers, which never contradict the status: what is current is not called behind, though it may be by a little. */
function metricsText({ service, reason, metrics }, status) {
  const { position, head, responding, monitored, peers } = metrics;
  if (position !== undefined) {
    if (status === "current" && reason === "synced") return text("card.synced.at", { position });
    const lag = head === undefined || status === "current" ? 0 : Math.max(0, head - position);
    const different = ["missing", "extra", "breaks", "gap"].filter((key) => metrics[key] > 0).map((key) => text(`card.${key}`, { count: metrics[key] }));
    if (lag === 0 || different.length > 0) return list([...different, text("card.position", { position })]);
    return text(service === "ppoi" ? "card.entries" : "card.blocks", { count: lag, position });
  }
  if (responding !== undefined && monitored !== undefined) return text(service === "broadcasters" ? "card.heard" : "card.answered", { responding, monitored });
  if (peers !== undefined) return text("card.peers", { count: peers });
  if (status !== "current") return "";
  return reason === "synced" || reason === "responding" ? text(`card.${reason}`) : "";
}

function seenText(check, now, onPaper) {
  const { row, status } = check;
  if (status === "stale") return ""; // it is said when that was
  if (!row?.readable || row.observedAt === null) return status === "unmonitored" ? "" : text("card.never");
  if (row.observedAt - now > CLOCK_BEHIND_MS) return text("card.future");
  const seen = onPaper ? text("card.checked.at", { since: sinceText(row.observedAt, now) }) : text("card.checked", { duration: duration(now - row.observedAt) });
  const answered = row.lastSuccessAt;
  if (isUnanswered(check) || answered === null || answered >= row.observedAt) return seen;
  return list([seen, text("card.answer", { since: sinceText(answered, now) })]);
}
