/** What the page does not say (C12); in English too where a machine translated it. */

import { NOTES, notesFor } from "lookout-reader/page";
import { h } from "./dom.js";
import { REVIEWED_BY } from "./language.js";
import { isRunByOthers, list, seenFrom, serviceName, serviceTitle, text } from "./words.js";

export function makeLimits() {
  const own = h("ul");
  const english = h("ul", { lang: "en", dir: "ltr" });
  const title = h("h2", { id: "limits-title" }, text("limits"));
  const element = h("section", { class: "limits", "aria-labelledby": "limits-title" }, title, own);
  const original = h("a", { href: "#lang=en", hreflang: "en" }, text("page.original"));
  const isMachine = REVIEWED_BY === "";
  if (isMachine) element.append(h("p", { class: "machine" }, `${text("page.machine")} `, original), english);
  let drawn = "";

  function update({ networks, places }) {
    const services = [...new Set(networks.flatMap(({ checks }) => checks.map(({ service }) => service)))];
    const count = seenFrom(places);
    const key = JSON.stringify([services, count]);
    if (key === drawn) return;
    drawn = key;
    const notes = notesOf(services, count);
    own.replaceChildren(...linesOf(notes, (id) => translate(id, count), serviceName));
    if (isMachine) english.replaceChildren(...linesOf(notes, (id) => notes.get(id).text, serviceTitle));
  }
  return { element, update };
}

/** The reader's notes by their ids, in their order, each with the services that it is about. */
function notesOf(services, places) {
  const found = new Map(NOTES.map(({ id }) => [id, { text: "", services: [] }]));
  for (const service of services)
    for (const note of notesFor(service, isRunByOthers(service), places))
      found.set(note.id, { text: note.text, services: [...found.get(note.id).services, service] });
  return found;
}

function translate(id, places) {
  return id === "one-view" && places > 1 ? text("limits.places", { count: places }) : text(`warning.${id}`);
}

function linesOf(notes, textOf, nameOf) {
  const shown = [...notes].filter(([, { services }]) => services.length > 0);
  return shown.map(([id, { services }]) => {
    const said = textOf(id);
    return h(
      "li",
      {},
      id === "others" ? `${list(services.map(nameOf))}: ${said.charAt(0).toLowerCase()}${said.slice(1)}` : said,
    );
  });
}
