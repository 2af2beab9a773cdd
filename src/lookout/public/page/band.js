/** The band: what is so, since when, what to do, what the operator says, and what keeps the page from knowing. */

import { headlineOf } from "lookout-reader/page";
import { h, setStatus, setText, shape } from "./dom.js";
import { makeNotes } from "./notes.js";
import { PAGE_TITLE, READER_LANGUAGE, duration, moment, sinceText, text } from "./words.js";

const DATE_MS = 10_000; // how well the server's clock is known: its Date has whole seconds, and was some time under way
const TITLE_MOST = 60;
const NAME_MOST = 25;
const ICON = document.querySelector("link[rel=icon]");

export function makeBand() {
  const title = h("h1", {}, text("band.reading"));
  const [since, also, advice] = ["since", "also", "advice"].map((name) => h("p", { class: name }));
  const [age, silent] = [h("span"), h("p", { class: "hint" })];
  const troubles = h("div", { class: "troubles", role: "alert" });
  const notes = makeNotes();
  const [beforeSignal, afterSignal] = text("band.official", { signal: "|" }).split("|");
  const signal = h("b", {}, text("band.signal"));
  const band = h(
    "div",
    { class: "band" },
    h("div", { class: "state" }, shape("unknown"), title),
    since,
    also,
    troubles,
    advice,
    notes.element,
    silent,
    h("p", { class: "age" }, age, ` ${beforeSignal}`, signal, afterSignal),
  );
  const about = PAGE_TITLE ? text("page.about", { title: PAGE_TITLE }) : text("page.about.wallet");
  const element = h("header", {}, h("p", { class: "about-page", dir: "auto" }, about), band);
  let announced = "";

  function update(view) {
    const said = headlineOf(view.overview, READER_LANGUAGE);
    const { status } = view.overview;
    setStatus(band, status);
    setText(title, said.text);
    for (const [part, words] of [
      [since, said.since],
      [also, said.also],
    ])
      setText(part, words && text("sentence", { words }));
    setText(advice, said.advice);
    const { length } = view.places;
    setText(age, text(length > 1 ? "band.by.places" : "band.by", { age: ageText(view), count: length }));
    setText(
      silent,
      view.places
        .filter(({ silentSince }) => silentSince !== null)
        .map(({ name, silentSince }) =>
          text("place.silent", { place: name || text("place.own"), since: sinceText(silentSince, view.now) }),
        )
        .join(" "),
    );
    notes.update(view.notes, view.now);
    nameTab(status, said.short);
    const found = troublesOf(view, said);
    if (found.join() === announced) return; // it is read out once
    announced = found.join();
    troubles.replaceChildren(...found.map((trouble) => h("p", {}, trouble)));
  }
  return { element, update };
}

/** What keeps the page from knowing, in sentences that are read out: none of them has a number that moves. */
function troublesOf({ report, reportCode }, { doubts }) {
  return reportCode === null ? doubts : [...doubts, text(report === null ? "trouble.nothing-held" : "trouble.held")];
}

/** In a tab the state is to be seen by its shape, too. */
function nameTab(status, short) {
  const { character } = document.getElementById(`shape-${status}`).dataset;
  const name = ` · ${cut(PAGE_TITLE || "Lookout", NAME_MOST)}`;
  const tab = `${character} ${cut(short, TITLE_MOST - name.length - 2)}${name}`;
  if (document.title !== tab) document.title = tab;
  const icon = ICON.href.replace(/[^/]*$/, `icon-${status}.svg`);
  if (ICON.href !== icon) ICON.href = icon;
}

function cut(words, most) {
  return words.length > most ? `${words.slice(0, most - 1)}…` : words;
}

function ageText({ report, overview, clockIsWrong, clockAheadMs, onPaper }) {
  if (report === null) return text("age.none");
  if (clockIsWrong) {
    const wrongBy = Math.round(Math.abs(clockAheadMs) / DATE_MS) * DATE_MS;
    return text(clockAheadMs > 0 ? "age.ahead" : "age.behind", { duration: duration(wrongBy) });
  }
  const { ageMs } = overview;
  if (ageMs === null) return text("age.unknown");
  if (onPaper) return text("age.at", { moment: moment(report.generatedAt) });
  return ageMs < -1000 ? text("age.future") : text("age.ago", { duration: duration(ageMs) });
}
