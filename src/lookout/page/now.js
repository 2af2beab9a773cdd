/** What works now: the head line, what is wrong with the page's own knowledge, and a card for every check. */

import { MAINNETS, NOTES, effectiveStatus, reasonText, rollUp, statusText } from "./lookout-reader.js";
import { h, setChildren, setStatus, setText, shape } from "./dom.js";
import { chainKind, chainName, count, duration, goodReason, serviceName, statusWord } from "./words.js";

const STOPPED_MS = 90_000;
const AHEAD_MS = 90_000; // an answer out of the browser's cache makes the clock look ahead by up to 45 s
const BEHIND_MS = 30_000;
const NAMED_AT_MOST = 3;

// ---- The head

/** What keeps the page from knowing, in sentences. */
export function troublesOf({ now, report, reportProblem, clockAheadMs }) {
  const troubles = [];
  const clockIsWrong = clockAheadMs !== null && (clockAheadMs > AHEAD_MS || clockAheadMs < -BEHIND_MS);
  if (clockIsWrong) {
    const way = clockAheadMs > 0 ? "ahead of" : "behind";
    troubles.push(
      `The clock of this device seems to be ${duration(Math.abs(clockAheadMs))} ${way} the server's. ` +
        "Until it is right, old cannot be told from new here.",
    );
  }
  if (reportProblem !== null) troubles.push(`${problemText(reportProblem)} ${heldText(report)}`);
  if (report === null) return troubles;
  const age = report.generatedAt === null ? null : now - report.generatedAt;
  if (age === null) troubles.push("The report does not say when it was made.");
  else if (reportProblem === null && !clockIsWrong && age > STOPPED_MS)
    troubles.push(`The monitor seems to have stopped: its last report is ${duration(age)} old.`);
  else if (!clockIsWrong && age < -BEHIND_MS)
    troubles.push("The report is from the future: the clock of this device or of the monitor is wrong.");
  if (report.unreadableRows === 1) troubles.push("A row of the report cannot be read.");
  else if (report.unreadableRows > 1) troubles.push(`${count(report.unreadableRows)} rows of the report cannot be read.`);
  return troubles;
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
  const about = h("p", { class: "about-page" }, "Status of what the wallet depends on, as one monitor sees it");
  const element = h("header", { class: "head" }, about, state, counts, age, troubles);
  let told = null;

  function update(view) {
    const found = troublesOf(view);
    const { status, healthy, text, detail } = headline(view, found.length > 0);
    element.dataset.healthy = String(healthy);
    setStatus(element, status);
    setText(title, text);
    setText(counts, detail);
    setText(age, ageText(view));
    document.title = `${text} · Lookout`;
    // The numbers in a trouble move every second; it is read out once.
    const kinds = found.map((trouble) => trouble.replace(/\d+/g, "")).join();
    if (kinds !== told) troubles.replaceChildren(...found.map((trouble) => h("p", {}, trouble)));
    else found.forEach((trouble, n) => setText(troubles.children[n], trouble));
    told = kinds;
  }
  return { element, update };
}

/** The mainnets of the reader's allowlist that this report is about; all of them if it is about none (C11). */
function mainnetsOf(report) {
  const reported = new Set(report?.rows.map((row) => row.chainId));
  const found = MAINNETS.filter((chainId) => reported.has(chainId));
  return found.length > 0 ? found : MAINNETS;
}

function headline({ now, report }, isTroubled) {
  if (report === null) return { status: "unknown", healthy: false, text: "Nothing is known right now", detail: "" };
  const { status, healthy, counts, chains, services } = rollUp(report, { now, chains: mainnetsOf(report) });
  const watched = Object.values(counts).reduce((sum, n) => sum + n, 0) - counts.unmonitored;
  const where = chains.map(chainName).join(", ");
  if (status === "unmonitored") return { status, healthy, text: "Nothing is watched on the mainnets", detail: where };
  if (healthy && isTroubled) {
    const text = "Everything on the mainnets was current when last seen";
    return { status: "unknown", healthy: false, text, detail: where };
  }
  if (healthy) return { status, healthy, text: `All ${watched} checks of the mainnets are current`, detail: where };
  const subject = counts[status] === watched && watched > 1 ? `All ${watched}` : `${counts[status]} of ${watched}`;
  const verb = counts[status] === 1 ? "is" : "are";
  const text = `${subject} checks of the mainnets ${verb} ${statusWord(status)}`;
  return { status, healthy, text, detail: detailText(status, counts, services) };
}

/** Which ones are meant, if they are few, and what the others are. */
function detailText(worst, counts, services) {
  const meant = services.flatMap(({ checks }) => checks).filter(({ effective }) => effective === worst);
  const names = meant.map(({ service, chainId }) =>
    chainId === null ? serviceName(service) : `${serviceName(service)} on ${chainName(chainId)}`,
  );
  const others = Object.entries(counts)
    .filter(([status, n]) => n > 0 && status !== worst)
    .map(([status, n]) => `${n} ${statusWord(status)}`);
  return [names.length <= NAMED_AT_MOST ? names.join(", ") : "", others.length > 0 ? `besides ${others.join(", ")}` : ""]
    .filter(Boolean)
    .join(" · ");
}

function ageText({ now, report }) {
  if (report === null) return "No report yet";
  if (report.generatedAt === null) return "Report of an unknown time";
  const age = now - report.generatedAt;
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
  const notes = NOTES.filter((note) => note.services?.includes(service));
  const element = h(
    "section",
    { class: "service", "data-service": service },
    h("div", { class: "about" }, h("h3", {}, serviceName(service)), ...notes.map(({ text }) => h("p", { class: "note" }, text))),
    h("div", {}, list, more),
  );
  const cards = new Map();
  function update({ checks, left }, { rows, now }) {
    const shown = checks.map((check) => {
      if (!cards.has(check.key)) cards.set(check.key, makeCard(check));
      return cards.get(check.key);
    });
    setChildren(list, shown.map((card) => card.element));
    checks.forEach((check, n) => shown[n].update(rows.get(check.key) ?? null, now));
    more.hidden = left === 0;
    setText(more, `Show more of ${count(left)} others`);
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
  function update(row, now) {
    const status = effectiveStatus(row, now);
    setStatus(element, status);
    setText(word, statusWord(status));
    setText(why, whyText(row, status));
    setText(metrics, metricsText(row?.readable ? row.metrics : {}));
    setText(seen, seenText(row, status, now));
  }
  return { element, update };
}

function whyText(row, status) {
  if (row === null) return "The report has no row for it.";
  if (!row.readable) return `Its row cannot be read: ${row.problem}.`;
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
