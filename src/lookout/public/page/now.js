/** What works now: the head line, what is wrong with the page's own knowledge, and a card for every check. */

import { countedChains, headlineOf, notesFor, reasonText, statusText } from "./lookout-reader.js";
import { h, setChildren, setStatus, setText, shape } from "./dom.js";
import { ABOUT, PAGE_TITLE, chainKind, chainName, count, duration, goodReason, isRunByOthers, serviceName, statusWord } from "./words.js";

// Between two reports that differ lie at most 30 s; a cache in front may add 60 s, and the page's asking 16.5 s:
// 107 s in all. The browser's own cache adds nothing, since the reader has it ask each time.
const STOPPED_MS = 150_000;
// A copy's Date makes the clock look ahead by as much as the copy is old: up to 60 s in a cache in front that does not
// say so (Age), and then a request that takes its time. Nothing makes it look behind.
const AHEAD_MS = 60_000 + 30_000;
const BEHIND_MS = 30_000;
const DATE_MS = 10_000; // how well the server's clock is known: its Date has whole seconds, and was some time under way
const NAMED_AT_MOST = 3;
const CHAINS_AT_MOST = 8;

// ---- The head

/** Whether the clock of this device is known to be wrong, as far as no cache explains it. */
export function isClockWrong({ clockAheadMs }) {
  return clockAheadMs !== null && (clockAheadMs > AHEAD_MS || clockAheadMs < -BEHIND_MS);
}

/** What keeps the page from knowing, in sentences that are read out: none of them has a number that moves. */
function troublesOf(view) {
  const { report, reportProblem, clockIsWrong } = view;
  const troubles = [];
  if (clockIsWrong) {
    const way = view.clockAheadMs > 0 ? "ahead of" : "behind";
    troubles.push(`The clock of this device seems to be ${way} the server's. Until it is right, old cannot be told from new here.`);
  }
  if (reportProblem !== null) troubles.push(`${problemText(reportProblem)} ${heldText(report)}`);
  if (report === null) return troubles;
  const age = ageOf(view);
  if (age === null) troubles.push("The report does not say when it was made.");
  else if (!clockIsWrong && age < -BEHIND_MS)
    troubles.push("The report is from the future: the clock of this device or of the monitor is wrong.");
  else if (!clockIsWrong && reportProblem === null && age > STOPPED_MS)
    troubles.push("The monitor seems to have stopped: it has made no new report for some minutes.");
  if (report.unreadableRows === 1) troubles.push("A row of the report cannot be read.");
  else if (report.unreadableRows > 1) troubles.push(`${count(report.unreadableRows)} rows of the report cannot be read.`);
  return troubles;
}

/** How old the report is by the clock, and no less than it has been here; null if it does not say. */
function ageOf({ now, report, receivedAgoMs }) {
  if (report.generatedAt === null) return null;
  const age = now - report.generatedAt;
  return age < -BEHIND_MS ? age : Math.max(age, receivedAgoMs ?? 0);
}

function problemText(problem) {
  if (problem.startsWith("unreadable: ")) return `The server's report cannot be read: ${problem.slice(12)}.`;
  if (problem.startsWith("no answer")) return "The server does not answer.";
  if (problem === "not available yet") return "The server has no report yet.";
  return `The server gave no report: ${problem}.`;
}

function heldText(report) {
  return report === null
    ? "There is nothing to show; the page goes on asking."
    : "What is shown was fetched before, and turns grey as it expires; the page goes on asking.";
}

export function makeHead() {
  const mark = shape("unknown");
  const title = h("h1", {}, "Reading the report…");
  const counts = h("p", { class: "counts" });
  const age = h("p", { class: "age" });
  const troubles = h("div", { class: "troubles", role: "alert" });
  const state = h("div", { class: "state" }, mark, title);
  const about = h("p", { class: "about-page" }, `Status of what ${PAGE_TITLE || "the wallet"} depends on, as one monitor sees it`);
  const element = h("header", { class: "head" }, about, state, counts, age, troubles);
  let announced = "";

  function update(view) {
    const found = troublesOf(view);
    const { status, healthy, text, detail } = headline(view, found.length > 0);
    element.dataset.healthy = String(healthy);
    setStatus(element, status);
    setText(title, text);
    setText(counts, detail);
    setText(age, ageText(view));
    const tab = `${text} · ${PAGE_TITLE || "Lookout"}`;
    if (document.title !== tab) document.title = tab;
    if (found.join() === announced) return; // it is read out once
    announced = found.join();
    troubles.replaceChildren(...found.map((trouble) => h("p", {}, trouble)));
  }
  return { element, update };
}

function headline({ report, rows, historyRows, judgedAt, receivedAgoMs }, inDoubt) {
  if (report === null) return { status: "unknown", healthy: false, text: "Nothing is known right now", detail: "" };
  const chains = countedChains(ABOUT, [...rows.values(), ...historyRows.values()].map(({ chainId }) => chainId));
  const found = headlineOf(report, { now: judgedAt, receivedAgoMs, chains, testNetworks: ABOUT.testNetworks, inDoubt });
  return { ...found, detail: detailText(found) };
}

function detailText({ checks, others, chains, missing }) {
  if (["current", "unmonitored"].includes(checks[0].effective)) return chainsText(chains);
  return lines(namesText(checks), othersText(others), missing.length === 0 ? "" : `not in the report: ${missingText(missing)}`);
}

/** The checks that the report lacks, or their chains if they are many. */
function missingText(missing) {
  return namesText(missing) || chainsText([...new Set(missing.map(({ chainId }) => chainId))]);
}

function chainsText(chains) {
  return chains.length > CHAINS_AT_MOST ? `${count(chains.length)} chains` : chains.map(chainName).join(", ");
}

function lines(...texts) {
  return texts.filter(Boolean).join(" · ");
}

/** Which ones are meant, if they are few. */
function namesText(checks) {
  if (checks.length > NAMED_AT_MOST) return "";
  return checks
    .map(({ service, chainId }) => (chainId === null ? serviceName(service) : `${serviceName(service)} on ${chainName(chainId)}`))
    .join(", ");
}

function othersText(counts) {
  const others = Object.entries(counts).map(([status, count]) => `${count} ${statusWord(status)}`);
  return others.length === 0 ? "" : `besides ${others.join(", ")}`;
}

function ageText(view) {
  if (view.report === null) return "No report yet";
  if (view.clockIsWrong) {
    const way = view.clockAheadMs > 0 ? "ahead of" : "behind";
    const wrongBy = Math.round(Math.abs(view.clockAheadMs) / DATE_MS) * DATE_MS;
    return `Report of an unknown age: the clock here is ${duration(wrongBy)} ${way} the server's`;
  }
  const age = ageOf(view);
  if (age === null) return "Report of an unknown time";
  return age < -1000 ? "Report of a time yet to come" : `Report of ${duration(age)} ago`;
}

// ---- The cards

/** The service's blocks. `view.groups` says which checks are shown; `onMore` is asked for more of a service. */
export function makeCards(onMore) {
  const element = h("div", { class: "services" });
  const blocks = new Map();
  function update(view) {
    for (const { service } of view.groups) if (!blocks.has(service)) blocks.set(service, makeBlock(service, onMore));
    setChildren(element, view.groups.map(({ service }) => blocks.get(service).element));
    for (const group of view.groups) blocks.get(group.service).update(group, view);
  }
  return { element, update };
}

function makeBlock(service, onMore) {
  const list = h("ul", { class: "cards", "aria-label": serviceName(service) });
  const more = h("button", { type: "button", class: "more", click: () => onMore(service) });
  const notes = notesFor(service, isRunByOthers(service)).filter((note) => note.services !== null);
  const element = h(
    "section",
    { class: "service", "data-service": service },
    h("div", { class: "about" }, h("h3", {}, serviceName(service)), ...notes.map(({ text }) => h("p", { class: "note" }, text))),
    h("div", {}, list, more),
  );
  const cards = new Map();
  function update({ checks, left }, view) {
    const shown = checks.map((check) => {
      if (!cards.has(check.key)) cards.set(check.key, makeCard(check));
      return cards.get(check.key);
    });
    setChildren(list, shown.map((card) => card.element));
    checks.forEach((check, n) => shown[n].update(view.rows.get(check.key) ?? null, check.status, view));
    more.hidden = left === 0;
    setText(more, `Show more (${count(left)} left)`);
  }
  return { element, update };
}

function makeCard({ key, chainId }) {
  const word = h("b", { class: "word" });
  const kind = chainKind(chainId);
  const why = h("p", { class: "why" });
  const metrics = h("p", { class: "metrics" });
  const seen = h("p", { class: "seen" });
  const element = h(
    "li",
    { class: "card", "data-check": key },
    h("p", { class: "chain" }, chainName(chainId), kind === null ? null : h("span", { class: "kind" }, ` ${kind}`)),
    h("p", { class: "state" }, shape("unknown"), word),
    metrics,
    why,
    seen,
  );
  function update(row, status, { now, clockIsWrong }) {
    setStatus(element, status);
    setText(word, statusWord(status));
    setText(why, whyText(row, status, clockIsWrong));
    setText(metrics, metricsText(row?.readable ? row.metrics : {}));
    setText(seen, clockIsWrong ? "" : seenText(row, status, now));
  }
  return { element, update };
}

function whyText(row, status, clockIsWrong) {
  if (row === null) return "The report has no row for it.";
  if (!row.readable) return `Its row cannot be read: ${row.problem}.`;
  if (clockIsWrong) return "The clock of this device is wrong: old cannot be told from new.";
  if (status === "stale") return `It was ${statusWord(row.publishedStatus)} then. That is too long ago to tell.`;
  if (status === "current" && goodReason(row.reason) !== null) return ""; // seenText says it, in a word
  if (status === "unknown" && row.publishedStatus !== "unknown" && row.observedAt !== null) return statusText("unknown");
  return reasonText(row.reason) ?? statusText(status);
}

function metricsText({ position, head, responding, monitored, peers }) {
  if (position !== undefined && head !== undefined) {
    const lag = Math.max(0, head - position);
    return `${count(position)} of ${count(head)}${lag === 0 ? "" : `, ${count(lag)} behind`}`;
  }
  if (position !== undefined) return `at ${count(position)}`;
  if (responding !== undefined && monitored !== undefined) return `${count(responding)} of ${count(monitored)} answered`;
  if (peers !== undefined) return `${count(peers)} ${peers === 1 ? "peer" : "peers"}`;
  return "";
}

function seenText(row, status, now) {
  if (!row?.readable || row.observedAt === null) return status === "unmonitored" ? "" : "never seen";
  if (row.observedAt - now > BEHIND_MS) return "seen at a time yet to come";
  const good = status === "current" ? goodReason(row.reason) : null;
  const seen = `${good === null ? "" : `${good}, `}seen ${duration(now - row.observedAt)} ago`;
  const answered = row.lastSuccessAt;
  if (answered === null || answered >= row.observedAt) return seen;
  return `${seen}, last good answer ${duration(now - answered)} ago`;
}
