/** The strips of the last days: drawn from buckets, walked by keyboard, zoomed to a day. */

import { bucketBeginsAt, bucketsOf } from "lookout-reader/page";
import { writeAddress } from "./address.js";
import { h, s, shape } from "./dom.js";
import { DIRECTION } from "./language.js";
import { NO_READINGS, READINGS, checkName, clock, day, dayName, midnight, span, statusWord, text } from "./words.js";

// Time runs as the language is read; pictures are drawn from the left, and the stylesheet turns them around.
const IS_RTL = DIRECTION === "rtl";
const HEIGHT = 28;
const DAY_MS = 86_400_000;
// Worse is taller, so that trouble stands out without its colour too.
const CURRENT_HEIGHT = 10;
const LEAST_WIDTH = 1.5; // of trouble
const LEAST_WIDTH_OF_WORST = 2;
const FILLING_WIDTH = 5;
const FILLING_SHARE = 0.01;
const DRAWN_PX = 15_000; // around what is seen: a long picture of forty chains has all of them
const DAYS_AT_MOST = 366; // that a strip leaves room for, whatever a history says that it will hold

/**
 * All strips share one window (everything, or a day) and one cursor. `onZoom` is called when the window changes.
 */
export function makeStrips(onZoom) {
  const strips = new Map();
  const readout = h("div", { class: "readout", "aria-hidden": "true", hidden: "" });
  const inView = new IntersectionObserver(seen, { rootMargin: `${DRAWN_PX}px 0px` });
  const resized = new ResizeObserver(([{ contentRect }]) => {
    width = contentRect.width;
    redraw();
  });
  let width = 0; // of every strip; to ask each for its own would lay out the page for each
  let held = { row: null, buckets: [] }; // of the row in use alone: they take room
  let history = null;
  let zoomedTo = null; // the midnight that begins the day
  let cursorAt = null; // null is the latest bucket

  function stripOf(check) {
    if (!strips.has(check.key)) strips.set(check.key, makeStrip(check));
    return strips.get(check.key).element;
  }

  function makeStrip({ key, service, chainId, address }) {
    const element = h("div", {
      class: "strip",
      role: "slider",
      tabindex: strips.size === 0 ? "0" : "-1",
      "aria-label": text("past.row", { check: checkName({ service, chainId }) }),
      "aria-describedby": "strip-keys",
      "aria-valuemin": "0",
      "aria-valuemax": "0",
      "aria-valuenow": "0",
      "data-check": key,
      keydown: (event) => onKey(event, strip),
      focus: () => onFocus(strip),
      blur: () => leave(strip),
      click: (event) => onClick(event, strip),
      pointermove: (event) => bucketsIn(strip).length > 0 && show(strip, indexAt(event, strip)),
      pointerleave: () => leave(strip),
    });
    const strip = { key, address, element, row: null, visible: false };
    inView.observe(element);
    return strip;
  }

  function seen(entries) {
    for (const { target, isIntersecting } of entries) {
      const strip = strips.get(target.dataset.check);
      strip.visible = isIntersecting;
      if (isIntersecting) draw(strip);
      else if (document.activeElement !== target) target.replaceChildren();
    }
  }

  function bucketsIn({ row }) {
    if (history === null || row === null) return [];
    if (held.row !== row) held = { row, buckets: bucketsOf(history, row) };
    return held.buckets;
  }

  /** Takes over a new history, with its rows by check, and which strips are there. */
  function update(newHistory, rows, shownKeys) {
    history = newHistory;
    const shown = shownKeys.map((key) => strips.get(key));
    const reached = shown.find(({ element }) => element.tabIndex === 0) ?? shown[0];
    for (const strip of strips.values()) {
      strip.element.tabIndex = strip === reached ? 0 : -1;
      strip.row = rows.get(strip.key) ?? null;
      // Also those out of view say what they hold.
      if (strip.visible || document.activeElement === strip.element) draw(strip);
      else speak(strip, history === null ? undefined : bucketsIn(strip)[cursor()]);
    }
  }

  function redraw() {
    for (const strip of strips.values()) if (strip.visible) draw(strip);
  }

  function frame() {
    return zoomedTo === null ? wholeFrame(history) : { begin: zoomedTo, end: midnight(zoomedTo, 1) };
  }

  function draw(strip) {
    const { element } = strip;
    const buckets = bucketsIn(strip);
    const readable = buckets.length > 0;
    element.classList.toggle("empty", !readable);
    speak(strip, buckets[readable ? cursor() : 0]);
    if (!readable) {
      element.replaceChildren(h("span", { class: "none" }, history === null ? "" : text("past.unreadable")));
      return;
    }
    element.replaceChildren(picture(buckets, frame(), width));
    if (document.activeElement === element) show(strip, cursor());
  }

  // ---- The cursor

  function cursor() {
    const last = history.length - 1;
    if (cursorAt === null) return last;
    return Math.min(Math.max(Math.floor((cursorAt - history.from) / (history.bucketSeconds * 1000)), 0), last);
  }

  function speak({ element }, bucket) {
    element.setAttribute("aria-valuetext", bucket === undefined ? text("past.unreadable") : bucketText(bucket));
    if (history === null) return;
    element.setAttribute("aria-valuemax", String(history.length - 1));
    element.setAttribute("aria-valuenow", String(cursor()));
  }

  function moveTo(strip, index) {
    const bounded = Math.min(Math.max(index, 0), history.length - 1);
    cursorAt = bounded === history.length - 1 ? null : bucketBeginsAt(history, bounded);
    const at = bucketBeginsAt(history, bounded);
    if (zoomedTo !== null && midnight(at) !== zoomedTo) zoom(midnight(at));
    speak(strip, bucketsIn(strip)[bounded]);
    show(strip, bounded);
  }

  function onFocus(strip) {
    for (const other of strips.values()) other.element.tabIndex = other === strip ? 0 : -1;
    writeAddress({ row: strip.address });
    if (strip.element.firstChild === null) draw(strip);
    if (bucketsIn(strip).length > 0) moveTo(strip, cursor());
  }

  function onKey(event, strip) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const step = bucketsIn(strip).length > 0 ? stepOf(event.key, strip) : null;
    if (step === null) {
      if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
      neighbour(strip, event.key === "ArrowDown" ? 1 : -1)?.focus();
    } else step();
    event.preventDefault();
  }

  function stepOf(key, strip) {
    const perDay = Math.round(DAY_MS / (history.bucketSeconds * 1000));
    const { begin, end } = frame();
    const toBucket = (at) => Math.ceil((at - history.from) / (history.bucketSeconds * 1000));
    const steps = {
      ArrowLeft: () => moveTo(strip, cursor() + (IS_RTL ? 1 : -1)),
      ArrowRight: () => moveTo(strip, cursor() + (IS_RTL ? -1 : 1)),
      PageUp: () => moveTo(strip, cursor() - perDay),
      PageDown: () => moveTo(strip, cursor() + perDay),
      Home: () => moveTo(strip, toBucket(begin)),
      End: () => moveTo(strip, toBucket(end) - 1),
      Enter: () => zoom(midnight(bucketBeginsAt(history, cursor()))),
      Escape: () => zoom(null),
    };
    steps[" "] = steps.Enter;
    return Object.hasOwn(steps, key) ? steps[key] : null;
  }

  function neighbour(strip, step) {
    const all = [...document.querySelectorAll(".strip")].filter((element) => element.offsetParent !== null);
    return all[all.indexOf(strip.element) + step];
  }

  function onClick(event, strip) {
    if (bucketsIn(strip).length === 0) return;
    const index = indexAt(event, strip);
    if (zoomedTo === null) zoom(midnight(bucketBeginsAt(history, index)));
    cursorAt = bucketBeginsAt(history, index);
    strip.element.focus();
    moveTo(strip, index);
  }

  function indexAt(event, strip) {
    const { left, right, width } = strip.element.getBoundingClientRect();
    const { begin, end } = frame();
    const at = begin + ((IS_RTL ? right - event.clientX : event.clientX - left) / width) * (end - begin);
    const index = Math.floor((at - history.from) / (history.bucketSeconds * 1000));
    return zoomedTo === null ? Math.min(index, history.length - 1) : index;
  }

  function show(strip, index) {
    const bucket = bucketsIn(strip)[index];
    strip.element.querySelector(".cursor")?.remove();
    if (bucket === undefined) return hide();
    const { begin, end } = frame();
    const { left, right, top, width } = strip.element.getBoundingClientRect();
    const x = ((bucket.beginsAt - begin) / (end - begin)) * width;
    const bucketWidth = Math.max(2, ((bucket.endsAt - bucket.beginsAt) / (end - begin)) * width);
    const cursorMark = s("rect", { class: "cursor", x: x - 1, y: 0, width: bucketWidth + 2, height: HEIGHT });
    strip.element.querySelector("svg")?.append(cursorMark);
    readout.replaceChildren(...(bucket.status === null ? [] : [shape(bucket.status)]), bucketText(bucket));
    readout.hidden = false;
    const half = readout.offsetWidth / 2;
    const middle = Math.min(Math.max(IS_RTL ? right - x : left + x, half + 8), document.documentElement.clientWidth - half - 8);
    readout.style.left = `${middle - half}px`;
    readout.style.top = `${Math.max(4, top - readout.offsetHeight - 6)}px`;
  }

  function leave(strip) {
    if (document.activeElement === strip.element && bucketsIn(strip).length > 0) return show(strip, cursor());
    strip.element.querySelector(".cursor")?.remove();
    return hide();
  }

  function hide() {
    readout.hidden = true;
  }

  // ---- The window

  /** To the day that begins at this midnight, or with null to everything. */
  function zoom(to) {
    if (history === null || to === zoomedTo) return;
    zoomedTo = to;
    writeAddress({ day: to === null ? null : dayName(to) });
    hide();
    onZoom();
    redraw();
  }

  /** One day on or back, as far as there is a history. */
  function zoomBy(days) {
    const to = midnight(zoomedTo, days);
    if (isInHistory(to)) zoom(to);
  }

  function isInHistory(midnightAt) {
    return midnightAt <= history.to && midnight(midnightAt, 1) > history.from;
  }

  /** To the strip of this address, on the day that is shown. */
  function reach(address) {
    const strip = [...strips.values()].find((each) => each.address === address);
    if (strip === undefined || !strip.element.isConnected) return;
    if (zoomedTo !== null) cursorAt = Math.max(zoomedTo, history.from);
    strip.element.scrollIntoView({ block: "center" });
    strip.element.focus();
  }

  /** All of them, and not only those in view. */
  function drawAll() {
    for (const strip of strips.values()) if (strip.element.isConnected) draw(strip);
  }

  function onScroll() {
    const strip = [...strips.values()].find(({ element }) => element === document.activeElement);
    if (strip === undefined || bucketsIn(strip).length === 0) hide();
    else show(strip, cursor());
  }

  window.addEventListener("beforeprint", drawAll);
  window.addEventListener("scroll", onScroll, { passive: true });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.defaultPrevented) zoom(null);
  });
  return {
    readout,
    stripOf,
    update,
    zoom: (to) => history !== null && isInHistory(to) && zoom(to),
    showAll: () => zoom(null),
    zoomBy,
    reach,
    watchWidth: (element) => resized.observe(element),
    frame: () => (history === null ? null : frame()),
    zoomedTo: () => zoomedTo,
  };
}

/**
 * From the oldest instant that a full history could hold, so that a young one looks young; at the end there is room for
 * the bucket that fills, wider than it is, so that it can be seen and hides no other.
 */
function wholeFrame({ from, to, bucketSeconds, retentionDays }) {
  const begin = retentionDays === null ? from : Math.min(from, to - Math.min(retentionDays, DAYS_AT_MOST) * DAY_MS);
  return { begin, end: to + Math.max(bucketSeconds * 1000, (to - begin) * FILLING_SHARE) };
}

/** A bucket in words, such as "Tue 10 Nov 14:05–14:10 (13:05 UTC): degraded". */
export function bucketText({ beginsAt, endsAt, status, filling }) {
  const words = filling ? text("past.provisional", { status: statusWord(status) }) : statusWord(status);
  return text("past.bucket", { span: span(beginsAt, endsAt), status: words });
}

// ---- Drawing

function picture(buckets, { begin, end }, width) {
  const x = (at) => Math.round(((at - begin) / (end - begin)) * width * 10) / 10;
  const inside = buckets.filter(({ beginsAt, endsAt }) => endsAt > begin && beginsAt < end);
  const filling = inside.at(-1)?.filling ? inside.pop() : null;
  const paths = {};
  for (const { status, beginsAt, endsAt } of runsOf(inside)) {
    const from = Math.max(0, x(beginsAt));
    const wide = Math.max(Math.min(width, x(endsAt)) - from, leastWidthOf(status));
    paths[status] = (paths[status] ?? "") + bar(status, from, Math.round(wide * 10) / 10);
  }
  // From mildest to worst, so that nothing hides a trouble.
  const order = ["null", ...[...NO_READINGS].reverse(), ...READINGS];
  return s(
    "svg",
    { width, height: HEIGHT, viewBox: `0 0 ${Math.max(width, 1)} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" }, // paper has another width
    s("path", { class: "ticks", d: ticks({ begin, end }).map(({ share }) => `M${Math.round(share * width)} 0V${HEIGHT}`).join("") }),
    ...order.filter((status) => status in paths).map((status) => s("path", attributes(status, paths[status]))),
    filling === null ? null : fillingBar(filling, x),
  );
}

function attributes(status, d) {
  const name = status === "null" ? "no-data" : status;
  return { class: `bar ${name}`, d, ...(status === "unknown" ? { fill: "url(#hatch-unknown)" } : {}) };
}

function runsOf(buckets) {
  const runs = [];
  for (const { status, beginsAt, endsAt } of buckets) {
    const last = runs.at(-1);
    if (last?.status === status) last.endsAt = endsAt;
    else runs.push({ status, beginsAt, endsAt });
  }
  return runs;
}

function bar(status, x, width) {
  if (status === null || status === "unmonitored") return `M${x} ${HEIGHT - 1}h${width}`; // a line, dotted or not
  const height = heightOf(status);
  return `M${x} ${HEIGHT}v${-height}h${width}v${height}z`;
}

function heightOf(status) {
  const rank = READINGS.indexOf(status);
  return CURRENT_HEIGHT + (Math.max(0, rank) * (HEIGHT - CURRENT_HEIGHT)) / (READINGS.length - 1);
}

function leastWidthOf(status) {
  const rank = READINGS.indexOf(status);
  if (rank < 1) return 0;
  return rank === READINGS.length - 1 ? LEAST_WIDTH_OF_WORST : LEAST_WIDTH;
}

/** Outlined and hatched, in no status's colour: what is still filling is never plainly healthy (C13). */
function fillingBar({ status, beginsAt, endsAt }, x) {
  const wide = Math.max(x(endsAt) - x(beginsAt), FILLING_WIDTH);
  const height = heightOf(status);
  const place = { x: x(beginsAt) + 0.5, y: HEIGHT - height + 0.5, width: wide - 1, height: height - 1 };
  return s("rect", { class: "filling", fill: "url(#hatch-filling)", ...place });
}

/** The borders of local days, or of every third hour within one: where, as a share of the whole, and what to write there. */
export function ticks({ begin, end }) {
  const isDay = end - begin < 2 * DAY_MS;
  const found = [];
  for (let n = 1; n < 1000; n++) {
    const at = isDay ? new Date(begin).setHours(n * 3, 0, 0, 0) : midnight(begin, n);
    if (at >= end) break;
    found.push({ share: (at - begin) / (end - begin), label: isDay ? clock(at) : day(at) });
  }
  return found;
}
