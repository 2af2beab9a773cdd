/** The last days: a cell for each network and day, filled by how much of it had problems; and the incidents in them. */

import { EFFECTIVE_STATUSES, KNOWN_STATUSES } from "lookout-reader/page";
import { readAddress, writeAddress } from "./address.js";
import { drawDay } from "./day.js";
import { DAY_MS, dayOf, daysOf, indexOf, rowsFor, shareOf, worstOf } from "./days.js";
import { h, setChildren, setText, shape, takeOrMake } from "./dom.js";
import { makeIncidents } from "./incidents.js";
import { DIRECTION } from "./language.js";
import {
  bucketLength,
  chainName,
  duration,
  isTestNetwork,
  list,
  percent,
  problemKind,
  serviceName,
  sinceText,
  statusWord,
  text,
  utcDay,
  utcDayName,
  zoneText,
} from "./words.js";

const NEW_MS = 3_600_000; // so long a deployment is new: its history says next to nothing
const OLD_HISTORY_MS = 300_000;
const LEAST_FILL = 0.2;
const HEADS = [0, 6, 13]; // the days whose dates there is room for

export function makePast() {
  const problem = h("p", { role: "status" });
  const hint = h("p", { class: "hint" });
  const heads = h("div", { class: "days heads", "aria-hidden": "true" });
  const rows = h("div", { class: "past-rows" });
  const head = h("div", { class: "past-row" }, h("span"), heads, h("small", {}, text("past.share")));
  const table = h("div", {}, hint, head, rows, legend());
  const title = h("h2", { id: "past-title" }, text("past"));
  const incidents = makeIncidents();
  const element = h(
    "section",
    { class: "past", "aria-labelledby": "past-title" },
    title,
    problem,
    table,
    incidents.element,
  );
  const lines = new Map();
  let drawn = [];

  function update(view) {
    setText(problem, problemText(view));
    const { history, historyRows, shown } = view;
    const isNew = history === null || history.to - history.from < NEW_MS;
    table.hidden = isNew;
    incidents.update(view);
    if (isNew) return;
    element.classList.toggle("old", isOld(view));
    const steps = view.onPaper ? "" : ` ${text("past.buckets", { length: bucketLength(history.bucketSeconds) })}`;
    setText(hint, `${text("past.hint")}${steps} ${zoneText()}`);
    const key = [history, shown.map(({ chainId }) => chainId).join()];
    if (key.every((part, n) => part === drawn[n])) return;
    drawn = key;
    const days = daysOf(history);
    heads.replaceChildren(...days.map((at, n) => h("small", {}, HEADS.includes(n) ? utcDay(at) : "")));
    setChildren(
      rows,
      shown.map(({ chainId }) => takeOrMake(lines, chainId, () => makeLine(chainId)).element),
    );
    for (const { chainId } of shown) lines.get(chainId).update(history, rowsFor(chainId, historyRows), days);
  }

  /** Shows the incident that the address names, or else the day and the step. */
  function reach() {
    const [chain, instant, day] = ["chain", "at", "day"].map(readAddress);
    const [chainId, at] = [chain === null ? null : Number(chain), Date.parse(instant ?? `${day}T00:00Z`)];
    if (Number.isNaN(at) || (instant !== null && incidents.reach(at, chainId))) return;
    lines.get(chainId)?.openDay(Math.floor(at / DAY_MS) * DAY_MS, instant === null ? null : at);
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

/** "not answering 20 min (Messaging)", or what most of the day was. */
function dayText({ troubles, rest }, bucketMs) {
  if (troubles.length === 0) return statusWord(rest);
  return list(
    troubles.map(({ status, buckets, services }) =>
      text("day.services", {
        what: `${statusWord(status)} ${duration(buckets * bucketMs)}`,
        services: list(services.map(serviceName)),
      }),
    ),
  );
}

function makeLine(chainId) {
  const label = text("past.row", { network: chainName(chainId) });
  const cells = h("div", { class: "days", role: "group", "aria-label": label, keydown: onKey });
  const share = h("b");
  const kind = isTestNetwork(chainId) ? h("small", {}, ` ${text("chain.test")}`) : null;
  const row = h("div", { class: "past-row" }, h("span", { class: "name" }, chainName(chainId), kind), cells, share);
  const panel = h("div", { class: "day", hidden: "" });
  const close = ({ key }) => key === "Escape" && day !== null && openDay(null);
  const element = h("div", { "data-chain": String(chainId), keydown: close }, row, panel);
  let [history, rows, days, worst, day, readAt] = [null, [], [], "", null, null];

  function summaryOf(at) {
    return dayOf(rows, worst, indexOf(history, at), indexOf(history, at + DAY_MS));
  }

  function update(newHistory, newRows, newDays) {
    [history, rows, days] = [newHistory, newRows, newDays];
    worst = worstOf(chainId, rows, history);
    const focused = [...cells.children].indexOf(document.activeElement);
    cells.replaceChildren(...days.map(makeCell));
    cells.children[focused]?.focus();
    const known = shareOf(worst.slice(indexOf(history, days[0])));
    setText(share, known === null ? text("past.little") : percent(known));
    if (!panel.contains(document.activeElement)) drawPanel(); // it is being read: the next history comes in a minute
  }

  function makeCell(at, n) {
    const isToday = n === days.length - 1;
    const summary = summaryOf(at);
    const [status, rest] = [summary.troubles[0]?.status ?? summary.rest ?? "no-data", summary.rest ?? "no-data"];
    const said = text("past.bucket", { span: utcDay(at), status: dayText(summary, history.bucketSeconds * 1000) });
    const name = isToday ? `${said}, ${statusWord("filling")}` : said;
    const fill = summary.troubles.length === 0 ? null : h("span", { class: "fill" }, shape(status));
    const lasted = summary.troubles.reduce((sum, { buckets }) => sum + buckets, 0);
    fill?.style.setProperty(
      "height",
      `${Math.max((lasted * history.bucketSeconds * 1000) / DAY_MS, LEAST_FILL) * 100}%`,
    );
    return h(
      "button",
      {
        type: "button",
        class: isToday ? "cell today" : "cell",
        "data-status": status,
        "data-rest": rest,
        "aria-label": name,
        title: said,
        tabindex: isToday ? "0" : "-1",
        "aria-expanded": String(at === day),
        click: () => openDay(at === day ? null : at),
      },
      fill ?? shape(status),
    );
  }

  function onKey(event) {
    const all = [...cells.children];
    const ahead = DIRECTION === "rtl" ? -1 : 1;
    const step = { ArrowLeft: -ahead, ArrowRight: ahead, Home: -all.length, End: all.length }[event.key];
    if (step === undefined) return;
    const next = all[Math.min(Math.max(all.indexOf(document.activeElement) + step, 0), all.length - 1)];
    for (const cell of all) cell.tabIndex = cell === next ? 0 : -1;
    next.focus();
    event.preventDefault();
  }

  /** Opens a day, at an instant of it if one is given; null closes it. */
  function openDay(wanted, at = null) {
    const closed = wanted === null && panel.contains(document.activeElement) ? cells.children[days.indexOf(day)] : null;
    [day, readAt] = [days.includes(wanted) ? wanted : null, at];
    const name = day === null ? null : utcDayName(day);
    writeAddress({ at: null, day: name, ...(day === null || chainId === null ? {} : { chain: String(chainId) }) });
    for (const [n, each] of days.entries()) cells.children[n]?.setAttribute("aria-expanded", String(each === day));
    drawPanel();
    closed?.focus();
    if (at !== null) panel.scrollIntoView({ block: "center" });
  }

  function drawPanel() {
    panel.hidden = day === null;
    if (day === null) return panel.replaceChildren();
    const title = text("past.day", { network: chainName(chainId), day: utcDay(day) });
    const words = dayText(summaryOf(day), history.bucketSeconds * 1000);
    const onRead = (at) => (readAt = at);
    panel.replaceChildren(makeSteps(), ...drawDay(history, rows, { day, title, words, at: readAt, onRead }));
  }

  /** The days before and after the open one. */
  function makeSteps() {
    const buttons = [day - DAY_MS, day + DAY_MS].map((at, n) => {
      const press = () => {
        openDay(at);
        panel.querySelectorAll(".steps button")[n].focus();
      };
      const label = n === 0 ? `‹ ${utcDay(at)}` : `${utcDay(at)} ›`;
      return h("button", { type: "button", disabled: days.includes(at) ? null : "", click: press }, label);
    });
    const feed = chainId === null ? null : h("a", { href: `/feed/${chainId}.atom` }, text("link.feed"));
    return h("div", { class: "steps" }, ...buttons, feed);
  }
  return { element, update, openDay };
}
