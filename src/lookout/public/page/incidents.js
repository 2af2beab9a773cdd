/** The incidents of the last days, made from the history and the operator's notes alone. */

import { listIncidents, notesAbout } from "./days.js";
import { h, setText, shape } from "./dom.js";
import { linkParts } from "./notes.js";
import { ABOUT, and, chainName, duration, serviceName, statusWord, text, utcClock, utcDay } from "./words.js";

const SHOWN_AT_FIRST = 3;
const NAMED_AT_MOST = 5; // networks
const MINUTE_MS = 60_000;

export function makeIncidents() {
  const entries = h("ul");
  const more = h("button", { type: "button", class: "more", click: showAll });
  const title = h("h2", { id: "incidents-title" }, text("incidents"));
  const element = h("section", { class: "incidents", "aria-labelledby": "incidents-title" }, title, entries, more);
  let limit = SHOWN_AT_FIRST;
  let [found, drawn, last] = [[], [], null];

  function update(view) {
    last = view;
    const key = [view.history, JSON.stringify(view.notes), limit];
    if (key.some((part, n) => part !== drawn[n])) {
      drawn = key;
      found = view.history === null ? [] : listIncidents(view.history, view.historyRows);
      entries.replaceChildren(...found.slice(0, limit).map((incident) => makeEntry(incident, view.notes)));
    }
    element.hidden = found.length === 0;
    more.hidden = found.length <= limit;
    setText(more, text(view.onPaper ? "more.paper" : "more", { count: found.length - limit }));
  }

  function showAll() {
    limit = Infinity;
    update(last);
  }

  /** Whether an incident of this network, or of all, began in this minute or lasted then: it is scrolled to. */
  function reach(at, chainId) {
    const here = found.filter(({ chains }) => chains.length === 0 || chains.includes(chainId));
    const began = here.find(({ beginsAt }) => Math.floor(beginsAt / MINUTE_MS) * MINUTE_MS === at);
    const lasted = ({ beginsAt, endsAt }) => at >= beginsAt && at < (endsAt ?? Infinity);
    const index = found.indexOf(began ?? here.find(lasted));
    if (index < 0) return false;
    if (index >= limit) showAll();
    const link = entries.children[index].querySelector("a");
    link.focus({ preventScroll: true });
    link.scrollIntoView({ block: "center" });
    return true;
  }
  return { element, update, reach };
}

/** "Wed 18 Nov 06:10–06:30 ✖ Messaging: not answering, 20 min", with what the operator said about it. */
function makeEntry(incident, notes) {
  const { worst, beginsAt, service, chains } = incident;
  const chain = chains.length === 0 ? "" : `&chain=${chains[0]}`;
  const href = `#at=${new Date(beginsAt).toISOString().slice(0, 16)}Z${chain}`;
  const networks =
    chains.length > NAMED_AT_MOST
      ? text("networks.part", { count: chains.length, all: Math.max(ABOUT.chains.length, chains.length) })
      : and(chains.map(chainName));
  const name = serviceName(service);
  const what = chains.length === 0 ? name : text("check", { service: name, chain: networks });
  return h(
    "li",
    { "data-status": worst },
    h("a", { href }, spanText(incident)),
    h(
      "span",
      { class: "state" },
      shape(worst),
      text("incident", { what, status: statusWord(worst), duration: lengthText(incident) }),
    ),
    ...notesAbout(incident, notes).map((note) =>
      h("p", { class: "note" }, h("small", {}, `${text("note")}: `), h("bdi", {}, ...linkParts(note.text))),
    ),
  );
}

/** "Wed 18 Nov 06:10–06:30 UTC", with the day of its end where that is another one. */
function spanText({ beginsAt, endsAt, beginSeen }) {
  const begin = `${utcDay(beginsAt)} ${utcClock(beginsAt)}`;
  if (endsAt === null) return text(beginSeen ? "since" : "since.before", { since: text("utc", { local: begin }) });
  const end = `${utcDay(endsAt) === utcDay(beginsAt) ? "" : `${utcDay(endsAt)} `}${utcClock(endsAt)}`;
  return text("utc", { local: `${begin}–${end}` });
}

/** At least so long, where what was before or after is not known. */
function lengthText({ lastedMs, endsAt, beginSeen, endSeen }) {
  if (endsAt === null) return text("incident.so-far", { duration: duration(lastedMs) });
  return beginSeen && endSeen ? duration(lastedMs) : text("incident.least", { duration: duration(lastedMs) });
}
