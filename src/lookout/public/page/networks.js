/** A line for each network: what can be done there; it opens to every row with its reason, age and numbers. */

import { isTrouble, isUnanswered, situationOf, unansweredText } from "./activities.js";
import { writeAddress } from "./address.js";
import { h, setChildren, setStatus, setText, shape, takeOrMake } from "./dom.js";
import {
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
  const summary = h("summary", {}, h("h3", {}, chainName(chainId), kind), answers);
  const rows = h("ul", { class: "rows", "aria-label": chainName(chainId) });
  const details = h("details", { toggle: onToggle }, summary, rows);
  const reasons = h("ul", { class: "reasons" });
  const element = h("li", { "data-chain": String(chainId) }, details, reasons);
  const byAnswer = new Map();
  const byKey = new Map();
  let drawn = null; // what was shown last, for what opens in between

  function onToggle() {
    if (details.open && chainId !== null) writeAddress({ chain: String(chainId) });
    if (drawn !== null) drawRows(...drawn);
  }

  function update(network, view) {
    drawn = [network, view];
    setStatus(element, network.status);
    setChildren(
      answers,
      network.answers.map((answer) =>
        drawAnswer(
          answer,
          takeOrMake(byAnswer, JSON.stringify([answer.id, answer.service]), () => makeAnswer(answer)),
        ),
      ),
    );
    const bad = reasonsOf(network, view);
    if (reasons.dataset.drawn !== bad.join("\n")) {
      reasons.dataset.drawn = bad.join("\n");
      reasons.replaceChildren(...bad.map((reason) => h("li", {}, reason)));
    }
    drawRows(network, view);
  }

  function drawRows(network, view) {
    if (!details.open) return;
    const shown = [...new Set(network.answers.flatMap(({ checks }) => checks))];
    setChildren(
      rows,
      shown.map((check) => takeOrMake(byKey, check.key, () => makeRow(check)).element),
    );
    for (const check of shown) byKey.get(check.key).update(check, view);
  }

  return { element, update, open: () => details.setAttribute("open", "") };
}

function makeAnswer({ label }) {
  return h(
    "span",
    { class: "answer" },
    h("span", { class: "state" }, shape("unknown"), h("b", {}, label)),
    " ",
    h("span", { class: "word" }),
  );
}

function drawAnswer({ status }, element) {
  setStatus(element, status);
  setText(element.lastChild, statusWord(status));
  return element;
}

/** What stands under the line while it is closed: "Indexer, Hosted indexer: not answering. Last good answer 14:02". */
function reasonsOf({ answers }, { now, clockIsWrong }) {
  const found = new Map(); // the services of which the same is to be said
  for (const check of new Set(answers.flatMap(({ bad }) => bad))) {
    const [help, why] = [
      `help.${check.service}.${situationOf(check)}`,
      whyText(check, measuredText(check), now, clockIsWrong),
    ];
    const measured = isTrouble(check) ? measuredText(check) : "";
    const said =
      measured !== "" && check.status === "catching-up"
        ? measured
        : list([statusWord(check.status), measured].filter(Boolean)); // which says "behind" itself
    const key = JSON.stringify({ said, why: hasText(help) ? text(help) : why });
    found.set(key, [...(found.get(key) ?? []), serviceName(check.service)]);
  }
  return Array.from(found, ([key, services]) => text("reason", { service: list(services), ...JSON.parse(key) }).trim());
}

function makeRow({ key, service }) {
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
    setStatus(element, check.status);
    setText(word, statusWord(check.status));
    setText(metrics, measured);
    setText(why, whyText(check, measured, now, clockIsWrong));
    setText(seen, clockIsWrong ? "" : seenText(check, now, onPaper));
  }
  return { element, update };
}

function measuredText({ row, status }) {
  return row?.readable && status !== "stale" ? metricsText(row, status) : "";
}

function whyText(check, measured, now, clockIsWrong) {
  const { row, status } = check;
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
  const { row, status } = check;
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
