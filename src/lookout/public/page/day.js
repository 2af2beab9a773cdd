/** A day of a network in steps of some minutes: a strip for each service, and a slider to read one step. */

import { KNOWN_STATUSES } from "lookout-reader/page";
import { DAY_MS, indexOf, isTrouble, statusOf } from "./days.js";
import { h, s, setText } from "./dom.js";
import { bucketLength, list, serviceName, statusWord, text, utcClock } from "./words.js";

const HEIGHT = 24;
const [BAR_LEAST, BAR_WELL] = [6, 10];

/** The elements of a day, read at the instant `at`, else at its first trouble or last step; `words` say how it was. */
export function drawDay(history, rows, { day, title, words, at, onRead }) {
  const step = history.bucketSeconds * 1000;
  const begin = indexOf(history, day);
  const end = Math.min(indexOf(history, day + DAY_MS), history.length);
  const offset = (history.from + begin * step - day) / step; // a history may begin within the day
  const head = [h("h3", {}, title), h("p", {}, words)];
  if (begin === end) return head;
  const cursors = [];
  const strips = rows.map((row) => {
    const cursor = s("rect", { class: "cursor", y: 0, width: 1, height: HEIGHT });
    cursors.push(cursor);
    const size = { viewBox: `0 0 ${DAY_MS / step} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" };
    const picture = s("svg", size, ...barsOf(row.buckets.slice(begin, end), offset, end === history.length), cursor);
    const strip = h("div", { class: "strip", pointermove: point, click: point }, picture);
    return h("div", { class: "strip-row" }, h("span", { class: "name" }, serviceName(row.service)), strip);
  });
  const readout = h("p", { class: "readout", "aria-hidden": "true" });
  const slider = h("input", {
    type: "range",
    min: "0",
    max: String(end - begin - 1),
    "aria-label": text("day.slider", { day: title }),
    input: () => show(slider.valueAsNumber),
  });
  const scale = h("div", { class: "hours", "aria-hidden": "true" });
  scale.append(...["00", "06", "12", "18", "24"].map((hour) => h("small", {}, hour)));

  function point({ clientX, currentTarget }) {
    const { left, right, width } = currentTarget.getBoundingClientRect();
    const isRtl = getComputedStyle(currentTarget).direction === "rtl";
    show(Math.floor(((isRtl ? right - clientX : clientX - left) / width) * (DAY_MS / step) - offset));
  }

  function show(wanted) {
    slider.value = wanted;
    const n = begin + slider.valueAsNumber;
    for (const cursor of cursors) cursor.setAttribute("x", slider.valueAsNumber + offset);
    const said = stepText(history, rows, n);
    slider.setAttribute("aria-valuetext", said);
    setText(readout, said);
    onRead(history.from + n * step);
  }

  function move(by, label) {
    const press = () => show(slider.valueAsNumber + by);
    return h("button", { type: "button", "aria-label": label, title: label, click: press }, by < 0 ? "‹" : "›");
  }
  const troubles = rows.map(({ buckets }) => [...buckets.slice(begin, end)].findIndex(isTrouble)).filter((n) => n >= 0);
  show(at === null ? Math.min(end - begin - 1, ...troubles) : Math.floor((at - history.from) / step) - begin);
  const length = bucketLength(history.bucketSeconds);
  return [
    ...head,
    ...strips,
    h("div", { class: "strip-row" }, h("span"), h("div", {}, scale, slider)),
    h(
      "div",
      { class: "steps" },
      move(-1, text("day.earlier", { length })),
      move(1, text("day.later", { length })),
      readout,
    ),
  ];
}

/** Worse is taller: trouble stands out without its colour. What fills is outlined, in no status's colour (C13). */
function barsOf(characters, offset, fills) {
  const over = fills ? characters.slice(0, -1) : characters;
  const bars = Array.from(over.matchAll(/(.)\1*/g), ({ index, 0: run, 1: character }) => {
    const status = statusOf(character);
    const rank = KNOWN_STATUSES.indexOf(status);
    const well = KNOWN_STATUSES.length - 1;
    const height = rank < 0 ? (status === null ? 1 : BAR_LEAST) : HEIGHT - (rank * (HEIGHT - BAR_WELL)) / well;
    const place = { x: index + offset, y: HEIGHT - height, width: run.length, height };
    return s("rect", { class: "bar", "data-status": status ?? "no-data", ...place });
  });
  const filling = { class: "bar filling", x: over.length + offset, y: 4, width: 2, height: HEIGHT - 4 };
  return fills ? [...bars, s("rect", filling)] : bars;
}

/** "06:10–06:15: not answering (Messaging), no problem seen (Indexer)" */
function stepText(history, rows, n) {
  const byStatus = new Map();
  for (const { service, buckets } of rows) {
    const status = statusOf(buckets[n]);
    byStatus.set(status, [...(byStatus.get(status) ?? []), serviceName(service)]);
  }
  const step = history.bucketSeconds * 1000;
  const beginsAt = history.from + n * step;
  const said = list(
    Array.from(byStatus, ([status, services]) =>
      text("day.services", { what: statusWord(status), services: list(services) }),
    ),
  );
  return text("past.bucket", {
    span: `${utcClock(beginsAt)}–${utcClock(beginsAt + step)}`,
    status: n === history.length - 1 ? text("past.provisional", { status: said }) : said,
  });
}
