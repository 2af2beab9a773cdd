/** What the operator says beside the measurements; a note never changes one, nor stands in its place. */

import { parseInstant } from "lookout-reader/page";
import { h } from "./dom.js";
import { chainName, list, midnight, moment, serviceName, span, text } from "./words.js";

const GROUPS_AT_MOST = 3; // a note about more of them stands once, above them all

/** The notes of a description (the text of /about.json), newest first; what is none is left out. */
export function readNotes(description) {
  const { notes } = JSON.parse(description);
  if (!Array.isArray(notes)) return [];
  return notes.filter(isNote).map((note) => ({ ...note, fromAt: parseInstant(note.from), untilAt: parseInstant(note.until) }));
}

function isNote(note) {
  return typeof note?.text === "string" && Array.isArray(note.services) && Array.isArray(note.chains);
}

/** Those that have not ended, where they stand: above all groups, or in the groups that they are about. */
export function placeNotes(notes, groups, now) {
  const placed = { above: [], inGroups: new Map() };
  for (const note of notes.filter(({ untilAt }) => untilAt === null || untilAt > now)) {
    const about = groups.filter(({ all }) => all.some((check) => isAbout(note, check)));
    const isWide = note.services.length + note.chains.length === 0;
    if (isWide || about.length === 0 || about.length > GROUPS_AT_MOST) placed.above.push(describe(note, null, now));
    else for (const { id, by } of about) placed.inGroups.set(id, [...(placed.inGroups.get(id) ?? []), describe(note, by, now)]);
  }
  return placed;
}

function isAbout({ services, chains }, { service, chainId }) {
  return (services.length === 0 || services.includes(service)) && (chains.length === 0 || chains.includes(chainId));
}

/** What a group does not say of it already: in a chain's group, the services that it is about. */
function describe({ text: words, services, chains, fromAt, untilAt }, by, now) {
  const what = [...(by === "service" ? [] : services.map(serviceName)), ...(by === "chain" ? [] : chains.map(chainName))];
  return { words, by: what.length === 0 ? text("note") : text("note.about", { what: list(what) }), when: whenText(fromAt, untilAt, now) };
}

function whenText(fromAt, untilAt, now) {
  if (fromAt === null) return untilAt === null ? "" : text("note.until", { moment: moment(untilAt) });
  if (untilAt === null) return text(fromAt > now ? "note.from" : "note.since", { moment: moment(fromAt) });
  if (midnight(fromAt) === midnight(untilAt)) return span(fromAt, untilAt);
  return text("note.from-until", { from: moment(fromAt), until: moment(untilAt) });
}

/** Notes in a list, which is not there while there are none. */
export function makeNotes() {
  const element = h("ul", { class: "operator-notes", hidden: "" });
  let drawn = "";
  function update(notes) {
    if (JSON.stringify(notes) === drawn) return;
    drawn = JSON.stringify(notes);
    element.hidden = notes.length === 0;
    element.replaceChildren(...notes.map(({ words, by, when }) => h("li", {}, h("small", {}, list([by, when].filter(Boolean))), h("p", {}, words))));
  }
  return { element, update };
}
