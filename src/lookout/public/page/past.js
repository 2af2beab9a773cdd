/** The last days: a strip and the uptimes of every check, and the incidents that the strips show. */

import { KNOWN_STATUSES, WINDOWS, bucketsOf, checkKey, coverageOf, incidentsOf } from "lookout-reader/page";
import { h, setChildren, setText, shape } from "./dom.js";
import { DIRECTION } from "./language.js";
import { isUnanswered } from "./meaning.js";
import { makeStrips, ticks } from "./strips.js";
import { NO_READINGS, READINGS, bucketLength, chainName, checkName, day, duration, midnight, moment, moreText, percent, problemKind, serviceName, sinceText, statusWord, text, wholePercent, zone } from "./words.js";

const LEAST_KNOWN = 12; // buckets, for an uptime (H10)
const LABEL_GAP_PX = 8;
const INCIDENTS_AT_FIRST = 10;
const OLD_HISTORY_MS = 300_000;

export function makePast() {
  const strips = makeStrips(onZoom);
  const axis = h("div", { class: "axis", "aria-hidden": "true" });
  const title = h("h2", { id: "past-title" }, windowText(null));
  const back = h("button", { type: "button", click: () => strips.showAll() }, text("past.all"));
  const before = h("button", { type: "button", "aria-label": text("past.before"), click: () => strips.zoomBy(-1) }, "‹");
  const after = h("button", { type: "button", "aria-label": text("past.after"), click: () => strips.zoomBy(1) }, "›");
  const dayName = h("b");
  const hint = h("p", { class: "hint" });
  const days = h("div", { class: "days", hidden: "" }, dayName, before, after, back);
  const problem = h("p", { class: "problem", role: "status" });
  const written = h("p", { class: "written hint" }); // not in the status: it changes every second
  const rowsElement = h("div", { class: "rows" });
  const uptimeHeads = h("div", { class: "uptimes", "aria-hidden": "true" });
  const element = h(
    "section",
    { class: "past", "aria-labelledby": "past-title" },
    h("div", { class: "bar-head" }, title, legend()),
    h("p", { class: "warning" }, text("warning.history")),
    hint,
    h("p", { id: "strip-keys", class: "hint keys" }, text("past.keys")),
    problem,
    written,
    h(
      "div",
      { class: "row axis-row" },
      h("div", {}, days),
      axis,
      uptimeHeads,
    ),
    rowsElement,
    strips.readout,
  );
  const rows = new Map();
  const headings = new Map();
  let history = null;
  let historyRows = new Map();
  let shownKeys = [];
  let until = ""; // up to when an old history counts
  let drawn = "";

  strips.watchWidth(axis);
  new ResizeObserver(drawAxis).observe(axis);

  function drawAxis() {
    const frame = strips.frame();
    if (frame === null) return;
    const labels = ticks(frame).map(({ share, label }) => {
      const element = h("span", {}, label);
      element.style.insetInlineStart = `${share * 100}%`;
      return element;
    });
    axis.replaceChildren(...labels);
    const places = labels.map(({ offsetLeft, offsetWidth }) => {
      const from = DIRECTION === "rtl" ? axis.clientWidth - offsetLeft - offsetWidth : offsetLeft;
      return { from, to: from + offsetWidth };
    });
    const last = places.findLastIndex(({ to }) => to <= axis.clientWidth);
    let step = 1; // as few are left out as there is room for, always the same number
    while (places.some(({ from }, n) => n >= step && places[n - step].to + LABEL_GAP_PX > from)) step++;
    labels.forEach((label, n) => {
      if (n > last || (last - n) % step > 0) label.textContent = "";
    });
  }

  function drawTitle() {
    const zoomedTo = strips.zoomedTo();
    setText(title, zoomedTo === null ? windowText(history) : text("past.day", { title: windowText(history), day: day(zoomedTo) }));
    const heads = zoomedTo === null ? Object.keys(WINDOWS).map((window) => windowName(window, until)) : ["uptime.day", "uptime.trouble"].map((key) => text(key));
    uptimeHeads.replaceChildren(...heads.map((name, n) => h("span", {}, n === 0 && zoomedTo === null ? text("uptime", { window: name }) : name)));
  }

  function onZoom() {
    const zoomedTo = strips.zoomedTo();
    drawTitle();
    if (zoomedTo !== null) setText(dayName, day(zoomedTo));
    days.hidden = zoomedTo === null;
    element.dataset.zoomed = String(zoomedTo !== null);
    drawAxis();
    drawFigures();
  }

  function drawFigures() {
    for (const key of shownKeys) rows.get(key).update(history, historyRows.get(key) ?? null, strips.zoomedTo(), until);
  }

  function update(view) {
    setText(problem, historyProblemText(view));
    setText(written, writtenText(view));
    setText(hint, `${text("past.hint", { zone: zone() })} ${view.onPaper ? "" : bucketsText(view.history)}`);
    element.classList.toggle("old", isOld(view));
    const children = view.groups.flatMap(({ id, title: name, checks }) => [
      takeOrMake(headings, id, () => h("h3", {}, name)),
      ...checks.map((check) => takeOrMake(rows, check.key, () => makeRow(check, strips.stripOf(check))).element),
    ]);
    setChildren(rowsElement, children);
    const keys = view.groups.flatMap(({ checks }) => checks.map(({ key }) => key));
    until = untilText(view);
    const state = `${view.by} ${view.onPaper} ${until} ${keys.join()}`; // paper has another width
    if (view.history === history && state === drawn) return;
    [history, historyRows, shownKeys, drawn] = [view.history, view.historyRows, keys, state];
    for (const key of keys) rows.get(key).rename(view.by);
    drawFigures();
    strips.update(history, historyRows, keys);
    drawTitle();
    drawAxis();
  }
  return { element, update, zoom: strips.zoom, reach: strips.reach };
}

function takeOrMake(map, key, make) {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
}

function legend() {
  const sample = (name) => h("span", { class: `sample ${name}` });
  return h(
    "ul",
    { class: "legend", "aria-label": text("past.legend") },
    ...[...READINGS, ...NO_READINGS].map((status) => h("li", {}, sample(status), statusWord(status))),
    h("li", {}, sample("no-data"), statusWord(null)),
    h("li", {}, sample("filling"), statusWord("filling")),
  );
}

function windowText(history) {
  const days = history?.retentionDays ?? null;
  return days === null ? text("past") : text("past.days", { count: days });
}

function bucketsText(history) {
  return history === null ? "" : text("past.buckets", { length: bucketLength(history.bucketSeconds) });
}

/** Whether it is not known to be of now. */
function isOld({ now, history, clockIsWrong }) {
  return history !== null && (clockIsWrong || !(Math.abs(now - history.generatedAt) < OLD_HISTORY_MS));
}

function historyProblemText(view) {
  const { history, historyProblem, historyCode, clockIsWrong } = view;
  if (historyProblem !== null) return text("past.problem", { problem: text(`problem.${problemKind(historyCode)}`) });
  if (history === null) return text("past.reading");
  if (!isOld(view)) return "";
  return text(clockIsWrong ? "past.clock" : "past.old");
}

function writtenText(view) {
  const since = view.historyProblem === null && !isOld(view) ? "" : writtenAt(view);
  return since === "" ? "" : text("past.written", { since });
}

function untilText(view) {
  return isOld(view) ? writtenAt(view) : "";
}

/** When the history was written; empty if nobody can say. */
function writtenAt({ now, history, clockIsWrong }) {
  const known = history !== null && !clockIsWrong && history.generatedAt !== null && history.generatedAt <= now;
  return known ? sinceText(history.generatedAt, now) : "";
}

// ---- Uptime

function windowName(window, until) {
  const name = text(`uptime.${window}`);
  return until === "" ? name : text("uptime.until", { window: name, until });
}

function makeRow({ service, chainId }, strip) {
  const cells = Object.keys(WINDOWS).map((window) => {
    const label = h("span", { class: "label" });
    const value = h("b");
    const known = h("small");
    return { window, label, value, known, element: h("span", {}, label, value, known) };
  });
  const name = h("span", { class: "name" });
  const element = h("div", { class: "row" }, name, strip, h("span", { class: "uptimes" }, ...cells.map((cell) => cell.element)));

  function rename(by) {
    setText(name, by === "chain" ? serviceName(service) : chainName(chainId));
  }

  /** The figures of the windows, or of the day that begins at `zoomedTo`. */
  function update(history, row, zoomedTo, until) {
    const figures = zoomedTo === null ? cells.map(({ window }) => windowFigure(history, row, window, until)) : dayFigures(history, row, zoomedTo);
    cells.forEach(({ label, value, known, element: cell }, n) => {
      const figure = figures[n];
      cell.hidden = figure === undefined;
      if (figure === undefined) return;
      setText(label, figure.label);
      setText(value, figure.value);
      value.className = figure.known === null ? "little" : "";
      setText(known, figure.known ?? "");
    });
  }
  return { element, rename, update };
}

function windowFigure(history, row, window, until) {
  const label = text("uptime", { window: windowName(window, until) });
  const uptime = row?.readable ? row.uptime[window] : null;
  if (uptime === null) return { label, value: noUptime(history, row, window), known: null };
  return { label, value: percent(uptime), known: knownText(history === null ? 0 : coverageOf(history, row, window).share) };
}

/** Counted from the day's buckets, as the windows' are (H9 to H11): what there was of the day so far. */
function dayFigures(history, row, begin) {
  const end = midnight(begin, 1);
  const bucketMs = history.bucketSeconds * 1000;
  const buckets = bucketsOf(history, row).filter(({ beginsAt }) => beginsAt >= begin && beginsAt < end);
  const known = buckets.filter(({ status }) => KNOWN_STATUSES.includes(status));
  const trouble = known.filter(({ status }) => status !== "current");
  const existing = Math.ceil((Math.min(end, history.to + bucketMs) - begin) / bucketMs);
  const label = text("uptime.day");
  if (known.length < LEAST_KNOWN) {
    const isUnwatched = buckets.length > 0 && buckets.every(({ status }) => status === "unmonitored");
    return [{ label, value: text(isUnwatched ? "uptime.unmonitored" : "uptime.little"), known: null }];
  }
  const share = 1 - trouble.length / known.length;
  const uptime = trouble.length === 0 ? 1 : Math.min(0.9999, Math.round(share * 10_000) / 10_000);
  const lasted = trouble.length === 0 ? "–" : duration(trouble.length * bucketMs);
  return [
    { label, value: percent(uptime), known: knownText(known.length / existing) },
    { label: text("uptime.trouble"), value: lasted, known: "" },
  ];
}

function knownText(share) {
  return share === 1 ? text("uptime.known.all") : text("uptime.known", { share: wholePercent(share) });
}

/** Why there is none. */
function noUptime(history, row, window) {
  if (history === null || !row?.readable) return text("uptime.little");
  const buckets = row.buckets.slice(-coverageOf(history, row, window).existing);
  return text(/^[.-]*$/.test(buckets) && buckets.includes(".") ? "uptime.unmonitored" : "uptime.little");
}

// ---- Incidents

export function makeIncidents() {
  const list = h("ol", { class: "incidents" });
  const more = h("button", { type: "button", class: "more", click: onMore });
  const none = h("p", { class: "hint" });
  const element = h("section", { "aria-labelledby": "incidents-title" }, h("h2", { id: "incidents-title" }, text("incidents")), none, list, more);
  let limit = INCIDENTS_AT_FIRST;
  let history;
  let matching = "";
  let old = false;
  let onPaper = false;
  let incidents = [];

  function update(view) {
    if (view.history === history && view.matching === matching && view.onPaper === onPaper && isOld(view) === old) return;
    ({ history, matching, onPaper } = view);
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
    setText(more, moreText(Math.max(0, incidents.length - limit), onPaper));
    setText(none, text(incidents.length > 0 || history === null ? "incidents.hint" : "incidents.none"));
  }
  return { element, update };
}

function allIncidents({ history, historyRows, checks, isMatching }) {
  const found = [];
  const live = new Map(checks.map((check) => [check.key, check]));
  for (const row of historyRows.values()) {
    const key = checkKey(row);
    if (!row.readable || !isMatching(key)) continue;
    for (const incident of incidentsOf(history, row)) found.push({ ...incident, beginsAt: beginOf(incident, row, live.get(key), history), row });
  }
  const endOf = ({ endsAt }) => endsAt ?? Infinity;
  return found.sort((a, b) => b.beginsAt - a.beginsAt || endOf(b) - endOf(a));
}

/** When it began: of an outage that goes on what its card says, if it began with that; else its first bucket's begin. */
function beginOf({ beginsAt, endsAt }, row, check, history) {
  const answeredAt = endsAt === null && check !== undefined && isUnanswered(check) ? check.row.lastSuccessAt : null;
  if (answeredAt === null || Math.abs(answeredAt - beginsAt) > history.bucketSeconds * 1000) return beginsAt;
  const [first] = bucketsOf(history, row).filter((bucket) => bucket.beginsAt === beginsAt);
  return first.status === "unavailable" ? answeredAt : beginsAt;
}

/** The last bucket of an old history says nothing of now: whether a trouble in it went on is not known. */
function incidentElement(history, { row, worst, beginsAt, endsAt, beginSeen, endSeen }, old) {
  const open = endsAt === null;
  const length = duration((endsAt ?? history.to + history.bucketSeconds * 1000) - beginsAt);
  const seen = open ? text(old ? "incident.seen" : "incident.so-far", { duration: length }) : beginSeen && endSeen ? length : text("incident.least", { duration: length });
  const provisional = open ? h("em", { class: "provisional" }, text(old ? "incident.unknown" : "incident.ongoing")) : null;
  return h(
    "li",
    { "data-status": worst },
    h("span", { class: "state" }, shape(worst), h("b", { class: "word" }, statusWord(worst))),
    h("span", { class: "where" }, checkName(row)),
    h("span", { class: "when" }, moment(beginsAt)),
    h("span", { class: "length" }, `${seen} `, provisional),
  );
}
