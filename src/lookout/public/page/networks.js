/** A line for each network: what can be done there; it opens to every row with its reason, age and numbers. */

import { checkKey, effectWord } from "lookout-reader/page";
import { writeAddress } from "./address.js";
import { h, setChildren, setStatus, setText, shape, takeOrMake } from "./dom.js";
import {
  READER_LANGUAGE,
  chainName,
  duration,
  hasText,
  isTestNetwork,
  list,
  serviceName,
  sinceText,
  statusWord,
  text,
} from "./words.js";

const AHEAD_MS = 30_000;

/** `view.networks` are those shown, `view.left` says how many more there are, and `onMore` is asked for them. */
export function makeNetworks(onMore) {
  const lines = new Map();
  const all = h("ul", { class: "networks" });
  const more = h("button", { type: "button", class: "more", click: onMore });
  const element = h(
    "section",
    { "aria-labelledby": "now-title" },
    h("h2", { id: "now-title" }, text("now")),
    all,
    more,
  );

  function update(view) {
    for (const { chainId } of view.shown) if (!lines.has(chainId)) lines.set(chainId, makeLine(chainId));
    setChildren(
      all,
      view.shown.map(({ chainId }) => lines.get(chainId).element),
    );
    for (const network of view.shown) lines.get(network.chainId).update(network, view);
    more.hidden = view.left === 0;
    setText(more, text(view.onPaper ? "more.paper" : "more", { count: view.left })); // on paper nothing can be pressed
  }

  function open(chainId) {
    lines.get(chainId)?.open();
  }
  return { element, update, open };
}

function makeLine(chainId) {
  const kind = isTestNetwork(chainId) ? h("small", {}, ` ${text("chain.test")}`) : null;
  const answers = h("span", { class: "answers" });
  const halt = h("span", { class: "halt" });
  const summary = h("summary", {}, h("h3", {}, chainName(chainId), kind), answers, halt);
  const rows = h("ul", { class: "rows", "aria-label": chainName(chainId) });
  const details = h("details", { toggle: onToggle }, summary, rows);
  const element = h("li", { "data-chain": String(chainId) }, details);
  const byAnswer = new Map();
  const byKey = new Map();
  let drawn = null; // what was shown last, for what opens in between

  function onToggle() {
    if (details.open && chainId !== null) writeAddress({ chain: String(chainId) });
    if (drawn !== null) drawOpen(...drawn);
  }

  function update(network, view) {
    drawn = [network, view];
    setStatus(element, network.status);
    setChildren(
      answers,
      network.activities.map((state) => {
        const answer = takeOrMake(byAnswer, state.activity ?? `own ${state.service}`, () => makeAnswer(state));
        setStatus(answer, state.status);
        setText(answer.lastChild, effectWord(view.overview, state, READER_LANGUAGE));
        return answer;
      }),
    );
    setText(halt, haltText(chainId, view));
    drawOpen(network, view);
  }

  function drawOpen(network, view) {
    if (!details.open) return;
    const shown = new Map(); // what is bad comes first, with since when
    for (const { bad, since } of network.activities)
      for (const check of bad) if (!shown.has(checkKey(check))) shown.set(checkKey(check), { check, since });
    for (const check of network.checks)
      if (!shown.has(checkKey(check))) shown.set(checkKey(check), { check, since: null });
    setChildren(
      rows,
      Array.from(shown, ([key, { check }]) => takeOrMake(byKey, key, () => makeRow(key, check)).element),
    );
    for (const [key, { check, since }] of shown) byKey.get(key).update(check, since, view);
  }

  return { element, update, open: () => details.setAttribute("open", "") };
}

function makeAnswer({ activity, service }) {
  const label = activity === null ? serviceName(service) : text(`answer.${activity}`);
  return h(
    "span",
    { class: "answer" },
    h("span", { class: "state" }, shape("unknown"), h("b", {}, label)),
    " ",
    h("span", { class: "word" }),
  );
}

/** That the chain itself stands still, as far as the report is current. */
function haltText(chainId, { overview, now }) {
  const since = overview.about.chains.find(({ id }) => id === chainId)?.noBlockSince ?? null;
  return since === null || overview.doubts.length > 0 ? "" : text("chain.halted", { since: sinceText(since, now) });
}

function makeRow(key, { service }) {
  const word = h("span");
  const parts = Array.from({ length: 4 }, () => h("p"));
  const name = h("p", {}, h("b", {}, serviceName(service)));
  const element = h("li", { "data-check": key }, name, h("p", { class: "state" }, shape("unknown"), word), ...parts);
  function update(check, since, { places, now, clockIsWrong, onPaper }) {
    const measured = measuredText(check);
    const begun = since !== null && check.effective !== "stale" ? sinceWords(since, now) : "";
    setStatus(element, check.effective);
    setText(word, list([statusWord(check.effective), begun].filter(Boolean)));
    const seen = clockIsWrong ? "" : seenText(check, now, onPaper);
    for (const [n, words] of [
      measured,
      whyText(check, measured, now, clockIsWrong),
      placesText(check, places, now),
      seen,
    ].entries())
      setText(parts[n], words);
  }
  return { element, update };
}

function sinceWords({ at, seen }, now) {
  return text(seen ? "since" : "since.before", { since: sinceText(at, now) });
}

/** What single places see otherwise: "2 of 3 places see this. Singapore: not answering since 14:02." */
function placesText({ service, chainId, row }, places, now) {
  const others = places.flatMap(({ name, differs }) =>
    differs
      .filter((each) => each.service === service && each.chainId === chainId)
      .map(({ status, since }) => {
        const slots = { status: statusWord(status), since: sinceText(since, now) };
        return text("place.differs", { place: name || text("place.own"), ...slots });
      }),
  );
  const { views, agreeing } = row?.metrics ?? {};
  const agree = others.length > 0 && views && agreeing ? text("place.agree", { agreeing, views }) : "";
  return [agree && text("sentence", { words: agree }), ...others].filter(Boolean).join(" ");
}

function measuredText({ row, effective }) {
  return row?.readable && effective !== "stale" ? metricsText(row, effective) : "";
}

function whyText(check, measured, now, clockIsWrong) {
  const { row, effective: status } = check;
  if (row === null) return text("card.absent");
  if (!row.readable) return text("card.unreadable");
  if (clockIsWrong && status !== "unmonitored") return text("card.clock");
  if (status === "stale")
    return text("card.stale", { since: sinceText(row.observedAt, now), status: statusWord(row.publishedStatus) });
  if (isUnanswered(check))
    return unansweredText(status === "unknown" ? "card.unreached" : "card.unavailable", row, now);
  const help = `help.${check.service}.${row.reason}`; // of what a list lacks
  if (status === "degraded" && hasText(help)) return text(help);
  if (status === "unknown" && row.reason === "no-observation" && row.lastSuccessAt !== null)
    return text("card.emptied");
  if (status !== "unknown" && isSaidByNumbers(row, measured)) return "";
  if (status === "unknown" && row.publishedStatus !== "unknown" && row.observedAt !== null)
    return text("sentence.unknown");
  const reason = `reason.${row.reason}`;
  return hasText(reason) ? text(reason) : text(`sentence.${status}`);
}

function isSaidByNumbers({ reason, metrics }, measured) {
  if (reason === "behind") return metrics.head > metrics.position;
  return measured !== "" && ["synced", "responding", "partial-coverage"].includes(reason);
}

/** In numbers, which never contradict the status: what is current is not called behind, even if it is a little. */
function metricsText({ service, reason, metrics }, status) {
  const { position, head, responding, monitored, peers } = metrics;
  if (position !== undefined) {
    if (status === "current" && reason === "synced") return text("card.synced.at", { position });
    const lag = head === undefined || status === "current" ? 0 : Math.max(0, head - position);
    const different = ["missing", "extra", "breaks", "gap"]
      .filter((key) => metrics[key] > 0)
      .map((key) => text(`card.${key}`, { count: metrics[key] }));
    if (lag === 0 || different.length > 0) return list([...different, text("card.position", { position })]);
    return text(service === "ppoi" ? "card.entries" : "card.blocks", { count: lag, position });
  }
  if (responding !== undefined && monitored !== undefined)
    return text(service === "broadcasters" ? "card.heard" : "card.answered", { responding, monitored });
  if (peers !== undefined) return text("card.peers", { count: peers });
  if (status !== "current") return "";
  return reason === "synced" || reason === "responding" ? text(`card.${reason}`) : "";
}

function seenText(check, now, onPaper) {
  const { row, effective: status } = check;
  if (status === "stale") return ""; // it is said when that was
  if (!row?.readable || row.observedAt === null) return status === "unmonitored" ? "" : text("card.never");
  if (row.observedAt - now > AHEAD_MS) return text("card.future");
  const seen = onPaper
    ? text("card.checked.at", { since: sinceText(row.observedAt, now) })
    : text("card.checked", { duration: duration(now - row.observedAt) });
  const answered = row.lastSuccessAt;
  if (isUnanswered(check) || answered === null || answered >= row.observedAt) return seen;
  return list([seen, text("card.answer", { since: sinceText(answered, now) })]);
}

/** Whether there was no usable answer from it, be it the first time or for long. */
function isUnanswered({ effective, row, unreached }) {
  return unreached || (effective === "unavailable" && row.reason === "unreachable");
}

/** "last good one 14:02", by the key's text, or that there never was one. It may have answered since without data. */
function unansweredText(key, { lastSuccessAt }, now) {
  return lastSuccessAt === null ? text(`${key}.never`) : text(key, { since: sinceText(lastSuccessAt, now) });
}
