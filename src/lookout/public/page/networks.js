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
const DEGRADED = { "partial-coverage": "partial", behind: "far-behind" };
const UNKNOWN = { "incompatible-reference": "incomparable", "no-observation": "empty" };

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
  const summary = h("summary", {}, h("h3", {}, chainName(chainId), kind), answers);
  const rows = h("ul", { class: "rows", "aria-label": chainName(chainId) });
  const reasons = h("ul", { class: "reasons" });
  const details = h("details", { toggle: onToggle }, summary, reasons, rows);
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
    drawOpen(network, view);
  }

  function drawOpen(network, view) {
    if (!details.open) return;
    const bad = [...haltOf(network, view), ...reasonsOf(network, view), ...dissentsOf(network, view)];
    if (reasons.dataset.drawn !== bad.join("\n")) {
      reasons.dataset.drawn = bad.join("\n");
      reasons.replaceChildren(...bad.map((reason) => h("li", {}, reason)));
    }
    const shown = new Map(network.activities.flatMap(({ checks }) => checks).map((check) => [checkKey(check), check]));
    setChildren(
      rows,
      Array.from(shown, ([key, check]) => takeOrMake(byKey, key, () => makeRow(key, check)).element),
    );
    for (const [key, check] of shown) byKey.get(key).update(check, view);
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

/** Why something is bad: "Indexer, Hosted indexer: not answering, since about 14:05. Last good answer 14:02". */
function reasonsOf({ activities }, { now, clockIsWrong }) {
  const found = new Map(); // the services of which the same is to be said
  const bad = new Map(); // with the activity that comes first
  for (const state of activities)
    for (const check of state.bad) if (!bad.has(checkKey(check))) bad.set(checkKey(check), { check, state });
  for (const { check, state } of bad.values()) {
    const help = `help.${check.service}.${situationOf(check)}`;
    const measured = measuredText(check);
    const isBehind = check.effective === "catching-up" && measured !== ""; // which says so itself
    const since = state.since === null || check.effective === "stale" ? "" : sinceWords(state.since, now);
    const said = list([isBehind ? "" : statusWord(check.effective), measured, since].filter(Boolean));
    const why = hasText(help) ? text(help) : whyText(check, measured, now, clockIsWrong);
    const key = JSON.stringify({ said, why });
    found.set(key, [...(found.get(key) ?? []), serviceName(check.service)]);
  }
  return Array.from(found, ([key, services]) => text("reason", { service: list(services), ...JSON.parse(key) }).trim());
}

/** That the chain itself stands still, as far as the report is current. */
function haltOf({ chainId }, { overview, now }) {
  const since = overview.about.chains.find(({ id }) => id === chainId)?.noBlockSince ?? null;
  return since === null || overview.doubts.length > 0 ? [] : [text("chain.halted", { since: sinceText(since, now) })];
}

/** What single places see otherwise: "Indexer: 2 of 3 places see this. Singapore: not answering since 14:02". */
function dissentsOf({ checks }, { places, now }) {
  return checks.flatMap((check) => {
    const others = places.flatMap(({ name, differs }) =>
      differs
        .filter(({ service, chainId }) => service === check.service && chainId === check.chainId)
        .map(({ status, since }) => {
          const slots = { status: statusWord(status), since: sinceText(since, now) };
          return text("place.differs", { place: name || text("place.own"), ...slots });
        }),
    );
    if (others.length === 0) return [];
    const { views, agreeing } = check.row?.metrics ?? {};
    const agree = views && agreeing ? text("place.agree", { agreeing, views }) : "";
    return [
      text("reason", { service: serviceName(check.service), said: agree || others.shift(), why: others.join(" ") }),
    ];
  });
}

function sinceWords({ at, seen }, now) {
  return text(seen ? "since" : "since.before", { since: sinceText(at, now) });
}

function makeRow(key, { service }) {
  const [word, metrics, why, seen] = ["span", "p", "p", "p"].map((name) => h(name));
  const element = h(
    "li",
    { "data-check": key },
    h("p", {}, h("b", {}, serviceName(service))),
    h("p", { class: "state" }, shape("unknown"), word),
    metrics,
    why,
    seen,
  );
  function update(check, { now, clockIsWrong, onPaper }) {
    const measured = measuredText(check);
    setStatus(element, check.effective);
    setText(word, statusWord(check.effective));
    setText(metrics, measured);
    setText(why, whyText(check, measured, now, clockIsWrong));
    setText(seen, clockIsWrong ? "" : seenText(check, now, onPaper));
  }
  return { element, update };
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
  if (situationOf(check) === "emptied") return text("card.emptied");
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

/** What it is that a check's status stands for: of one status there may be several. */
function situationOf({ effective, row, unreached }) {
  if (row === null) return "missing";
  if (effective === "catching-up") return "behind";
  if (effective === "degraded") return DEGRADED[row.reason] ?? row.reason;
  if (effective !== "unknown" || row.publishedStatus !== "unknown") return effective;
  if (unreached) return "unreached";
  const situation = UNKNOWN[row.reason] ?? "unknown";
  return situation === "empty" && row.lastSuccessAt !== null ? "emptied" : situation;
}
