/** The last days: a strip and the uptimes of every check, and the incidents that the strips show. */

import { WINDOWS, checkKey, coverageOf, incidentsOf } from "./lookout-reader.js";
import { h, setChildren, setText, shape } from "./dom.js";
import { makeStrips, ticks } from "./strips.js";
import { NO_READINGS, READINGS, bucketLength, chainName, count, day, duration, moment, percent, serviceName, statusWord, wholePercent, zone } from "./words.js";

const WINDOW_WORDS = { "24h": "24 h", "7d": "7 days", "14d": "14 days" };
const KEYS = "Keys: ← → bucket, PgUp PgDn day, Home End first and last, ↑ ↓ row, Enter opens the day, Esc goes back.";
const INCIDENTS_AT_FIRST = 10;
const OLD_MS = 300_000;

export function makePast() {
  const strips = makeStrips(onZoom);
  const axis = h("div", { class: "axis", "aria-hidden": "true" });
  const title = h("h2", { id: "past-title" }, windowText(null));
  const back = h("button", { type: "button", click: () => strips.zoom(null) }, "All days");
  const before = h("button", { type: "button", "aria-label": "the day before", click: () => strips.zoomBy(-1) }, "‹");
  const after = h("button", { type: "button", "aria-label": "the day after", click: () => strips.zoomBy(1) }, "›");
  const dayName = h("b");
  const hint = h("p", { class: "hint" });
  const days = h("div", { class: "days", hidden: "" }, dayName, before, after, back);
  const problem = h("p", { class: "problem", role: "status" });
  const written = h("p", { class: "written hint" }); // not in the status: it changes every second
  const rowsElement = h("div", { class: "rows" });
  const element = h(
    "section",
    { class: "past", "aria-labelledby": "past-title" },
    h("div", { class: "bar-head" }, title, legend()),
    hint,
    h("p", { id: "strip-keys", class: "hint keys" }, KEYS),
    problem,
    written,
    h(
      "div",
      { class: "row axis-row" },
      h("div", {}, days),
      axis,
      h("div", { class: "uptimes", "aria-hidden": "true" }, ...["Uptime 24 h", "7 days", "14 days"].map((text) => h("span", {}, text))),
    ),
    rowsElement,
    strips.readout,
  );
  const rows = new Map();
  const headings = new Map();
  let history = null;
  let drawn = "";

  strips.watchWidth(axis);
  new ResizeObserver(drawAxis).observe(axis);

  function drawAxis() {
    const frame = strips.frame();
    if (frame === null) return;
    const labels = ticks(frame, axis.clientWidth).map(({ x, text }) => {
      const label = h("span", {}, text);
      label.style.left = `${x}px`;
      return label;
    });
    axis.replaceChildren(...labels);
  }

  function drawTitle() {
    const zoomedTo = strips.zoomedTo();
    setText(title, `${windowText(history)}${zoomedTo === null ? "" : `: ${day(zoomedTo)}`}`);
  }

  function onZoom() {
    const zoomedTo = strips.zoomedTo();
    drawTitle();
    if (zoomedTo !== null) setText(dayName, day(zoomedTo));
    days.hidden = zoomedTo === null;
    element.dataset.zoomed = String(zoomedTo !== null);
    drawAxis();
  }

  function update(view) {
    setText(problem, problemText(view));
    setText(written, writtenText(view));
    setText(hint, `Worse is taller. Times are those of ${zone()}. ${bucketsText(view.history)}`);
    element.classList.toggle("old", isOld(view));
    const children = view.groups.flatMap(({ service, checks }) => [
      takeOrMake(headings, service, () => h("h3", {}, serviceName(service))),
      ...checks.map((check) => takeOrMake(rows, check.key, () => makeRow(check, strips.stripOf(check))).element),
    ]);
    setChildren(rowsElement, children);
    const keys = view.groups.flatMap(({ checks }) => checks.map(({ key }) => key));
    if (view.history === history && keys.join() === drawn) return;
    [history, drawn] = [view.history, keys.join()];
    for (const key of keys) rows.get(key).update(history, view.historyRows.get(key) ?? null);
    strips.update(history, view.historyRows, keys);
    drawTitle();
    drawAxis();
  }
  return { element, update };
}

function takeOrMake(map, key, make) {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
}

function legend() {
  const sample = (name) => h("span", { class: `sample ${name}` });
  return h(
    "ul",
    { class: "legend", "aria-label": "What the colours and heights mean" },
    ...[...READINGS, ...NO_READINGS].map((status) => h("li", {}, sample(status), statusWord(status))),
    h("li", {}, sample("no-data"), "no data"),
    h("li", {}, sample("filling"), "still filling"),
  );
}

function windowText(history) {
  const days = history?.retentionDays ?? null;
  if (days === null) return "The last days";
  return days === 1 ? "The last day" : `The last ${count(days)} days`;
}

function bucketsText(history) {
  return history === null ? "" : `Choose a day to see it in buckets of ${bucketLength(history.bucketSeconds)}.`;
}

/** Whether it is not known to be of now. */
function isOld({ now, history, clockIsWrong }) {
  return history !== null && (clockIsWrong || !(Math.abs(now - history.generatedAt) < OLD_MS));
}

function problemText(view) {
  const { history, historyProblem, clockIsWrong } = view;
  if (historyProblem !== null) return `No newer history: ${historyProblem === "not available yet" ? "there is none yet" : historyProblem}.`;
  if (history === null) return "Reading the history…";
  if (!isOld(view)) return "";
  return clockIsWrong ? "By the clock of this device nobody can tell whether this history is of now." : "This history is not of now.";
}

function writtenText(view) {
  const { now, history, historyProblem, clockIsWrong } = view;
  if (historyProblem === null && !isOld(view)) return "";
  const known = history !== null && !clockIsWrong && history.generatedAt !== null && history.generatedAt <= now;
  return known ? `What is shown was written ${duration(now - history.generatedAt)} ago.` : "";
}

// ---- Uptime

function makeRow({ chainId }, strip) {
  const cells = Object.keys(WINDOWS).map((window) => {
    const value = h("b");
    const known = h("small");
    return { window, value, known, element: h("span", {}, h("span", { class: "label" }, WINDOW_WORDS[window]), value, known) };
  });
  const element = h(
    "div",
    { class: "row" },
    h("span", { class: "name" }, chainName(chainId)),
    strip,
    h("span", { class: "uptimes" }, ...cells.map((cell) => cell.element)),
  );
  function update(history, row) {
    for (const { window, value, known } of cells) {
      const uptime = row?.readable ? row.uptime[window] : null;
      const share = history === null ? 0 : coverageOf(history, row, window).share;
      setText(value, uptime === null ? noUptime(history, row, window) : percent(uptime));
      value.className = uptime === null ? "little" : "";
      setText(known, uptime === null ? "" : `of ${wholePercent(share)} known`);
    }
  }
  return { element, update };
}

/** Why there is none. */
function noUptime(history, row, window) {
  if (history === null || !row?.readable) return "too little known";
  const buckets = row.buckets.slice(-coverageOf(history, row, window).existing);
  return /^[.-]*$/.test(buckets) && buckets.includes(".") ? "not monitored" : "too little known";
}

// ---- Incidents

export function makeIncidents() {
  const list = h("ol", { class: "incidents" });
  const more = h("button", { type: "button", class: "more", click: onMore });
  const none = h("p", { class: "hint" });
  const element = h("section", { "aria-labelledby": "incidents-title" }, h("h2", { id: "incidents-title" }, "Incidents"), none, list, more);
  let limit = INCIDENTS_AT_FIRST;
  let history;
  let matching = "";
  let old = false;
  let incidents = [];

  function update(view) {
    if (view.history === history && view.matching === matching && isOld(view) === old) return;
    ({ history, matching } = view);
    old = isOld(view);
    incidents = view.history === null ? [] : allIncidents(view);
    draw();
  }

  function onMore() {
    limit += 5 * INCIDENTS_AT_FIRST;
    draw();
  }

  function draw() {
    list.replaceChildren(...incidents.slice(0, limit).map((incident) => incidentElement(history, incident, old)));
    more.hidden = incidents.length <= limit;
    setText(more, `Show more (${count(incidents.length - limit)} left)`);
    setText(none, incidents.length > 0 || history === null ? "Made from the strips: very short troubles do not show." : "None in the strips above.");
  }
  return { element, update };
}

function allIncidents({ history, historyRows, isMatching }) {
  const found = [];
  for (const row of historyRows.values()) {
    if (row.readable && isMatching(checkKey(row))) for (const incident of incidentsOf(history, row)) found.push({ ...incident, row });
  }
  const endOf = ({ endsAt }) => endsAt ?? Infinity;
  return found.sort((a, b) => b.beginsAt - a.beginsAt || endOf(b) - endOf(a));
}

/** The last bucket of an old history says nothing of now: whether a trouble in it went on is not known. */
function incidentElement(history, { row, worst, beginsAt, endsAt, beginSeen, endSeen }, old) {
  const open = endsAt === null;
  const length = duration((endsAt ?? history.to + history.bucketSeconds * 1000) - beginsAt);
  const seen = open ? `up to ${length}${old ? " seen" : " so far"}` : `${beginSeen && endSeen ? "" : "at least "}${length}`;
  return h(
    "li",
    { "data-status": worst },
    h("span", { class: "state" }, shape(worst), h("b", { class: "word" }, statusWord(worst))),
    h("span", { class: "where" }, `${serviceName(row.service)}, ${chainName(row.chainId)}`),
    h("span", { class: "when" }, moment(beginsAt)),
    h("span", { class: "length" }, `${seen} `, open ? h("em", { class: "provisional" }, old ? "end unknown" : "ongoing, provisional") : null),
  );
}
