/** The last days: a cell for each network and day, coloured by the worst of it; a day opens in five-minute steps. */

import { CHARACTERS, EFFECTIVE_STATUSES, KNOWN_STATUSES, SERVICES, bucketsOf, incidentsOf } from "lookout-reader/page";
import { readAddress, writeAddress } from "./address.js";
import { h, s, setChildren, setText, shape, takeOrMake } from "./dom.js";
import { DIRECTION } from "./language.js";
import {
  bucketLength,
  chainName,
  checkName,
  duration,
  isTestNetwork,
  percent,
  problemKind,
  serviceName,
  sinceText,
  statusWord,
  text,
  utcClock,
  utcDay,
  utcDayName,
} from "./words.js";

const DAY_MS = 86_400_000;
const DAYS = 14;
const NEW_MS = 3_600_000; // so long a deployment is new: its history says next to nothing
const OLD_HISTORY_MS = 300_000;
const LEAST_KNOWN = 12; // buckets, for a share (H10)
const HEIGHT = 24;
const [BAR_LEAST, BAR_WELL] = [6, 10];
const KNOWN = KNOWN_STATUSES.map(characterOf);
const [WELL, UNKNOWN] = ["current", "unknown"].map(characterOf);
const ORDER = [
  ...new Set([...KNOWN, ...EFFECTIVE_STATUSES.map(characterOf).filter((character) => character !== " "), "-"]),
]; // the worst that is known first
const NOT_WELL = ORDER.filter((character) => character !== WELL);
const IS_RTL = DIRECTION === "rtl";

export function makePast() {
  const problem = h("p", { role: "status" });
  const hint = h("p", { class: "hint" });
  const heads = h("div", { class: "days heads", "aria-hidden": "true" });
  const rows = h("div", { class: "past-rows" });
  const table = h(
    "div",
    {},
    hint,
    h("div", { class: "past-row" }, h("span"), heads, h("small", {}, text("past.share"))),
    rows,
    legend(),
  );
  const element = h(
    "section",
    { class: "past", "aria-labelledby": "past-title" },
    h("h2", { id: "past-title" }, text("past")),
    problem,
    table,
  );
  const lines = new Map();
  let drawn = [];

  function update(view) {
    setText(problem, problemText(view));
    const { history, historyRows, shown } = view;
    const isNew = history === null || history.to - history.from < NEW_MS;
    table.hidden = isNew;
    if (isNew) return;
    element.classList.toggle("old", isOld(view));
    setText(
      hint,
      view.onPaper
        ? text("past.hint")
        : `${text("past.hint")} ${text("past.buckets", { length: bucketLength(history.bucketSeconds) })}`,
    );
    const key = [history, shown.map(({ chainId }) => chainId).join()];
    if (key.every((part, n) => part === drawn[n])) return;
    drawn = key;
    const days = daysOf(history);
    heads.replaceChildren(
      ...days.map((at, n) =>
        h("small", {}, n === 0 || n === days.length - 1 || n === days.length - 8 ? utcDay(at) : ""),
      ),
    );
    setChildren(
      rows,
      shown.map(({ chainId }) => takeOrMake(lines, chainId, () => makeLine(chainId)).element),
    );
    for (const { chainId } of shown) lines.get(chainId).update(history, rowsFor(chainId, historyRows), days);
  }

  /** Opens the day that the address names. */
  function reach(chainId) {
    lines.get(chainId)?.openDay(Date.parse(`${readAddress("day")}T00:00:00Z`));
  }
  return { element, update, reach };
}

function legend() {
  const others = EFFECTIVE_STATUSES.filter((status) => status !== "stale" && !KNOWN_STATUSES.includes(status));
  const samples = [...[...KNOWN_STATUSES].reverse(), ...others]
    .map((status) => [status, statusWord(status)])
    .concat([["no-data", statusWord(null)]]);
  return h(
    "ul",
    { class: "legend", "aria-label": text("past.legend") },
    ...samples.map(([status, word]) =>
      h("li", {}, h("span", { class: "cell", "data-status": status }, shape(status)), word),
    ),
  );
}

/** Whether the history is old, or may be. */
function isOld({ now, history, clockIsWrong }) {
  return history !== null && (clockIsWrong || !(Math.abs(now - history.generatedAt) < OLD_HISTORY_MS));
}

function problemText(view) {
  const { now, history, historyProblem, historyCode, clockIsWrong } = view;
  if (history === null && historyCode === "not-available") return text("past.new");
  const since =
    history?.generatedAt > 0 && history.generatedAt <= now && !clockIsWrong
      ? ` ${text("past.written", { since: sinceText(history.generatedAt, now) })}`
      : "";
  if (historyProblem !== null)
    return text("past.problem", { problem: text(`problem.${problemKind(historyCode)}`) }) + since;
  if (history === null) return text("past.reading");
  if (isOld(view)) return text(clockIsWrong ? "past.clock" : "past.old") + since;
  return history.to - history.from < NEW_MS ? text("past.new") : "";
}

/** The rows that count for a network: its own, and those of the contract's services that it shares with the others. */
function rowsFor(chainId, historyRows) {
  const all = [...historyRows.values()].filter((row) => row.readable);
  const hasChains = all.some((row) => row.chainId !== null);
  return all.filter(
    (row) =>
      (row.chainId === chainId && (chainId !== null || !hasChains || !SERVICES.includes(row.service))) ||
      (chainId !== null && row.chainId === null && SERVICES.includes(row.service)),
  );
}

/** The days in UTC that have a cell, the last one being today's. */
function daysOf({ to, retentionDays }) {
  const today = Math.floor(to / DAY_MS) * DAY_MS;
  const count = Math.min(retentionDays ?? DAYS, DAYS);
  return Array.from({ length: count }, (_, n) => today - (count - 1 - n) * DAY_MS);
}

function characterOf(status) {
  return CHARACTERS[EFFECTIVE_STATUSES.indexOf(status)];
}

function statusOf(character) {
  return EFFECTIVE_STATUSES[CHARACTERS.indexOf(character)] ?? null;
}

/**
 * In each bucket that is over the worst of these rows. It is current only if a row of the network's own is, and none of
 * its own is unknown: rows that it shares with others only worsen it (C16).
 */
function worstOf(chainId, rows, { length }) {
  const own = rows.filter((row) => row.chainId === chainId);
  return Array.from({ length: length - 1 }, (_, n) => {
    const worst = firstOf(rows, n, ORDER);
    if (worst !== WELL) return worst;
    return own.some(({ buckets }) => buckets[n] === WELL) && own.every(({ buckets }) => buckets[n] !== UNKNOWN)
      ? WELL
      : firstOf(own, n, NOT_WELL);
  }).join("");
}

/** The first of these characters that one of the rows has in a bucket; the last if there is none. */
function firstOf(rows, n, characters) {
  return characters.find((character) => rows.some(({ buckets }) => buckets[n] === character)) ?? characters.at(-1);
}

/** The status of a day: its worst trouble; else what most of it was, so that a little green is no green day. */
function dayStatus(buckets) {
  const trouble = KNOWN.find((character) => character !== WELL && buckets.includes(character));
  const times = (character) => buckets.split(character).length - 1;
  return statusOf(
    trouble ??
      [...ORDER].reverse().reduce((most, character) => (times(character) > times(most) ? character : most), "-"),
  );
}

/** The share without problems of what is known, never rounded up. */
function shareText(buckets) {
  const known = [...buckets].filter((character) => KNOWN.includes(character)).length;
  if (known < LEAST_KNOWN) return text("past.little");
  return percent(Math.floor(((buckets.split(WELL).length - 1) / known) * 10_000) / 10_000);
}

function makeLine(chainId) {
  const cells = h("div", {
    class: "days",
    role: "group",
    "aria-label": text("past.row", { network: chainName(chainId) }),
    keydown: onKey,
  });
  const share = h("b");
  const panel = h("div", { class: "day", hidden: "" });
  const row = h(
    "div",
    { class: "past-row" },
    h(
      "span",
      { class: "name" },
      chainName(chainId),
      isTestNetwork(chainId) ? h("small", {}, ` ${text("chain.test")}`) : null,
    ),
    cells,
    share,
  );
  const element = h("div", { "data-chain": String(chainId) }, row, panel);
  let [history, rows, days, day] = [null, [], [], null];

  function update(newHistory, newRows, newDays) {
    [history, rows, days] = [newHistory, newRows, newDays];
    const worst = worstOf(chainId, rows, history);
    const indexOf = (at) => Math.max(0, Math.ceil((at - history.from) / (history.bucketSeconds * 1000)));
    const focused = [...cells.children].indexOf(document.activeElement);
    cells.replaceChildren(
      ...days.map((at, n) => {
        const status = dayStatus(worst.slice(indexOf(at), indexOf(at + DAY_MS)));
        const isToday = n === days.length - 1;
        const said = text("past.bucket", { span: utcDay(at), status: statusWord(status) });
        return h(
          "button",
          {
            type: "button",
            class: isToday ? "cell today" : "cell",
            "data-status": status ?? "no-data",
            "aria-label": isToday ? `${said}, ${statusWord("filling")}` : said,
            title: said,
            tabindex: n === days.length - 1 ? "0" : "-1",
            "aria-expanded": String(at === day),
            click: () => openDay(at === day ? null : at),
          },
          shape(status ?? "no-data"),
        );
      }),
    );
    cells.children[focused]?.focus();
    setText(share, shareText(worst.slice(indexOf(days[0]))));
    drawDay();
  }

  function onKey(event) {
    const all = [...cells.children];
    const step = { ArrowLeft: IS_RTL ? 1 : -1, ArrowRight: IS_RTL ? -1 : 1, Home: -all.length, End: all.length }[
      event.key
    ];
    if (event.key === "Escape") openDay(null);
    if (step === undefined) return;
    const next = all[Math.min(Math.max(all.indexOf(document.activeElement) + step, 0), all.length - 1)];
    for (const cell of all) cell.tabIndex = cell === next ? 0 : -1;
    next.focus();
    event.preventDefault();
  }

  function openDay(at) {
    day = days.includes(at) ? at : null;
    writeAddress({
      day: day === null ? null : utcDayName(day),
      ...(day === null || chainId === null ? {} : { chain: String(chainId) }),
    });
    for (const [n, each] of days.entries()) cells.children[n]?.setAttribute("aria-expanded", String(each === day));
    drawDay();
  }

  function drawDay() {
    panel.hidden = day === null;
    if (day === null) return panel.replaceChildren();
    if (panel.contains(document.activeElement)) return; // it is being read: the next history comes in a minute
    const readout = h("p", { class: "readout", "aria-hidden": "true" }, text("past.choose"));
    const hours = h(
      "div",
      { class: "hours", "aria-hidden": "true" },
      ...["00", "06", "12", "18", "24"].map((hour) => h("small", {}, hour)),
    );
    const strips = rows.map((row) => stripElements(history, row, day, readout));
    panel.replaceChildren(
      h("h3", {}, text("past.day", { network: chainName(chainId), day: utcDay(day) })),
      ...strips,
      h("div", { class: "strip-row" }, h("span"), hours),
      readout,
    );
  }
  return { element, update, openDay };
}

// ---- A day of a service

function stripElements(history, row, day, readout) {
  const buckets = bucketsOf(history, row).filter(({ beginsAt }) => beginsAt >= day && beginsAt < day + DAY_MS);
  const step = history.bucketSeconds * 1000;
  const picture = s(
    "svg",
    { viewBox: `0 0 ${DAY_MS / step} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    ...buckets.map((bucket) => bar(bucket, (bucket.beginsAt - day) / step)),
  );
  const cursor = s("rect", { class: "cursor", y: 0, width: 1, height: HEIGHT, visibility: "hidden" });
  picture.append(cursor);
  const name = serviceName(row.service);
  const strip = h("div", {
    class: "strip",
    role: "slider",
    tabindex: "0",
    "aria-label": text("past.strip", { check: checkName(row), day: utcDay(day) }),
    "aria-valuemin": "0",
    "aria-valuemax": String(Math.max(buckets.length - 1, 0)),
    focus: () => show(index),
    pointermove: ({ clientX }) => show(indexAt(clientX)),
    click: ({ clientX }) => show(indexAt(clientX)),
    keydown: onKey,
  });
  strip.append(picture);
  let index = buckets.length - 1;
  speak();

  function indexAt(clientX) {
    const { left, right, width } = strip.getBoundingClientRect();
    const at = day + ((IS_RTL ? right - clientX : clientX - left) / width) * DAY_MS;
    return buckets.findIndex(({ beginsAt, endsAt }) => at >= beginsAt && at < endsAt);
  }

  function show(wanted) {
    if (buckets[wanted] === undefined) return;
    index = wanted;
    speak();
    cursor.setAttribute("x", String((buckets[index].beginsAt - day) / step));
    cursor.setAttribute("visibility", "visible");
    setText(readout, `${name}: ${strip.getAttribute("aria-valuetext")}`);
  }

  function speak() {
    strip.setAttribute("aria-valuenow", String(Math.max(index, 0)));
    strip.setAttribute("aria-valuetext", buckets[index] === undefined ? statusWord(null) : bucketText(buckets[index]));
  }

  function onKey(event) {
    const last = buckets.length - 1;
    const to = {
      ArrowLeft: index + (IS_RTL ? 1 : -1),
      ArrowRight: index + (IS_RTL ? -1 : 1),
      PageUp: index - 12,
      PageDown: index + 12,
      Home: 0,
      End: last,
    }[event.key];
    if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    show(Math.min(Math.max(to, 0), last));
    event.preventDefault();
  }

  const troubles = incidentsOf(history, row).filter(
    ({ beginsAt, endsAt }) => beginsAt < day + DAY_MS && (endsAt ?? Infinity) > day,
  );
  return h(
    "div",
    { class: "strip-row" },
    h("span", { class: "name" }, name),
    strip,
    troubles.length === 0
      ? null
      : h("p", { class: "incidents" }, troubles.map((incident) => incidentText(incident, history)).join(" · ")),
  );
}

function bucketText({ beginsAt, endsAt, status, filling }) {
  const words = filling ? text("past.provisional", { status: statusWord(status) }) : statusWord(status);
  return text("past.bucket", {
    span: text("utc", { local: `${utcClock(beginsAt)}–${utcClock(endsAt)}` }),
    status: words,
  });
}

/** "not answering 14:05–14:20 UTC": at least so long, where what was before or after is not known. */
function incidentText({ worst, beginsAt, endsAt, beginSeen, endSeen }, history) {
  const length = duration((endsAt ?? history.to + history.bucketSeconds * 1000) - beginsAt);
  const said =
    endsAt === null
      ? text("incident.so-far", { duration: length })
      : beginSeen && endSeen
        ? length
        : text("incident.least", { duration: length });
  return text("incident", {
    status: statusWord(worst),
    at: text("utc", { local: `${utcDay(beginsAt)} ${utcClock(beginsAt)}` }),
    duration: said,
  });
}

/** Worse is taller: trouble stands out without its colour. What fills is outlined, in no status's colour (C13). */
function bar({ status, filling }, x) {
  if (filling) return s("rect", { class: "bar filling", x, y: 4, width: 2, height: HEIGHT - 4 });
  const rank = KNOWN_STATUSES.indexOf(status);
  const height =
    rank < 0 ? (status === null ? 1 : BAR_LEAST) : HEIGHT - (rank * (HEIGHT - BAR_WELL)) / (KNOWN_STATUSES.length - 1);
  return s("rect", { class: "bar", "data-status": status ?? "no-data", x, y: HEIGHT - height, width: 1.05, height });
}
