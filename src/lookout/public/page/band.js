/** The band: one colour, one sentence, what the operator says beside it, and what keeps the page from knowing. */

import { bandOf, countedNetworks, isNothingReached } from "./activities.js";
import { h, setStatus, setText, shape } from "./dom.js";
import { makeNotes } from "./notes.js";
import { PAGE_TITLE, duration, moment, problemKind, text } from "./words.js";

// Between two reports that differ lie at most 30 s; a cache in front may add 60 s, and the page's asking 16.5 s:
// 107 s in all. The browser's own cache adds nothing, since the reader has it ask each time.
const STOPPED_MS = 150_000;
const FUTURE_MS = 30_000;
const DATE_MS = 10_000; // how well the server's clock is known: its Date has whole seconds, and was some time under way

/** What keeps the page from knowing, in sentences that are read out: none of them has a number that moves. */
function troublesOf(view) {
  const { report, reportProblem, clockIsWrong } = view;
  const troubles = [];
  if (clockIsWrong) troubles.push(text(view.clockAheadMs > 0 ? "trouble.ahead" : "trouble.behind"));
  if (reportProblem !== null)
    troubles.push(
      `${text(`trouble.${problemKind(view.reportCode)}`)} ${text(report === null ? "trouble.nothing-held" : "trouble.held")}`,
    );
  if (report === null) return troubles;
  const age = ageOf(view);
  if (age === null) troubles.push(text("trouble.undated"));
  else if (!clockIsWrong && age < -FUTURE_MS) troubles.push(text("trouble.future"));
  else if (!clockIsWrong && reportProblem === null && age > STOPPED_MS) troubles.push(text("trouble.stopped"));
  if (isNothingReached(view.checks)) troubles.push(text("trouble.own"));
  if (report.unreadableRows > 0) troubles.push(text("trouble.rows", { count: report.unreadableRows }));
  return troubles;
}

/** How old the report is by the clock, and no less than it has been here; null if it does not say. */
function ageOf({ now, report, receivedAgoMs }) {
  if (report.generatedAt === null) return null;
  const age = now - report.generatedAt;
  return age < -FUTURE_MS ? age : Math.max(age, receivedAgoMs ?? 0);
}

export function makeBand() {
  const title = h("h1", {}, text("band.reading"));
  const advice = h("p", { class: "advice" });
  const age = h("p", { class: "age" });
  const troubles = h("div", { class: "troubles", role: "alert" });
  const notes = makeNotes();
  const about = h(
    "p",
    { class: "about-page", dir: "auto" },
    PAGE_TITLE ? text("page.about", { title: PAGE_TITLE }) : text("page.about.wallet"),
  );
  const band = h(
    "div",
    { class: "band" },
    h("div", { class: "state" }, shape("unknown"), title),
    troubles,
    advice,
    notes.element,
    age,
  );
  const element = h("header", {}, about, band);
  let announced = "";

  function update(view) {
    const found = troublesOf(view);
    const inDoubt = found.length > 0;
    const nothing = { status: "unknown", headline: text("band.nothing"), advice: text("advice.nothing") };
    const {
      status,
      headline,
      advice: tips,
    } = view.report === null ? nothing : bandOf(countedNetworks(view), { inDoubt, now: view.now, checks: view.checks });
    setStatus(band, status);
    setText(title, headline);
    setText(advice, tips);
    setText(age, ageText(view));
    notes.update(view.notes, view.now);
    const tab = `${headline} · ${PAGE_TITLE || "Lookout"}`;
    if (document.title !== tab) document.title = tab;
    if (found.join() === announced) return; // it is read out once
    announced = found.join();
    troubles.replaceChildren(...found.map((trouble) => h("p", {}, trouble)));
  }
  return { element, update };
}

function ageText(view) {
  if (view.report === null) return text("age.none");
  if (view.clockIsWrong) {
    const wrongBy = Math.round(Math.abs(view.clockAheadMs) / DATE_MS) * DATE_MS;
    return text(view.clockAheadMs > 0 ? "age.ahead" : "age.behind", { duration: duration(wrongBy) });
  }
  const age = ageOf(view);
  if (age === null) return text("age.unknown");
  if (view.onPaper) return text("age.at", { moment: moment(view.report.generatedAt) });
  return age < -1000 ? text("age.future") : text("age.ago", { duration: duration(age) });
}
