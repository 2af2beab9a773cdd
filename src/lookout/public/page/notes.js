/** What the operator says beside the measurements; a note never changes one, nor stands in its place. */

import { h } from "./dom.js";
import { chainName, list, midnight, moment, serviceName, span, text } from "./words.js";

/** The notes that are not over, in a list; what is yet to begin is called planned. */
export function makeNotes() {
  const element = h("ul", { class: "operator-notes" });
  let drawn = "";
  function update(notes, now) {
    const shown = notes
      .filter(({ until }) => until === null || until > now)
      .map((note) => ({ words: note.text, head: headText(note, now), isPlanned: note.from > now }));
    shown.sort((a, b) => a.isPlanned - b.isPlanned);
    if (JSON.stringify(shown) === drawn) return;
    drawn = JSON.stringify(shown);
    element.hidden = shown.length === 0;
    element.replaceChildren(
      ...shown.map(({ words, head, isPlanned }) =>
        h(
          "li",
          {},
          h("small", {}, isPlanned ? h("b", {}, `${text("note.planned")}: `) : null, head),
          h("p", { dir: "auto" }, ...linkParts(words)),
        ),
      ),
    );
  }
  return { element, update };
}

/** A text with its addresses as links, which tell the other site nothing. */
export function linkParts(words) {
  const parts = words.split(/(https?:\/\/[^\s<>"']*[^\s<>"'.,;:!?)\]}])/); // every second one is an address
  return parts.map((part, n) =>
    n % 2 === 0 ? part : h("a", { href: part, rel: "noopener noreferrer nofollow" }, part),
  );
}

function headText({ services, chains, from, until }, now) {
  const what = [...services.map(serviceName), ...chains.map(chainName)];
  const by = what.length === 0 ? text("note") : text("note.about", { what: list(what) });
  return list([by, whenText(from, until, now)]);
}

function whenText(from, until, now) {
  if (until === null) return text(from > now ? "note.from" : "note.since", { moment: moment(from) });
  if (midnight(from) === midnight(until)) return span(from, until);
  return text("note.from-until", { from: moment(from), until: moment(until) });
}
