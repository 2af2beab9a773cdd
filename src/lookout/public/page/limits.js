/** What the page does not say (C12); in English too where a machine translated it. */

import { NOTES, notesFor } from "lookout-reader/page";
import { h } from "./dom.js";
import { ORIGINAL, REVIEWED_BY } from "./language.js";
import { isRunByOthers, list, serviceName, serviceTitle, text } from "./words.js";

export function makeLimits() {
  const own = h("ul");
  const english = h("ul", { lang: "en", dir: "ltr" });
  const title = h("h2", { id: "limits-title" }, text("limits"));
  const element = h("section", { class: "limits", "aria-labelledby": "limits-title" }, title, own);
  const isMachine = REVIEWED_BY === "";
  if (isMachine) element.append(h("p", { class: "machine" }, `${text("page.machine")} `, originalLink()), english);
  let drawn = "";

  function update({ networks }) {
    const services = [...new Set(networks.flatMap(({ checks }) => checks.map(({ service }) => service)))];
    if (services.join() === drawn) return;
    drawn = services.join();
    own.replaceChildren(...limitsOf(services, text, serviceName));
    if (isMachine) english.replaceChildren(...limitsOf(services, (key) => ORIGINAL[key], serviceTitle));
  }
  return { element, update };
}

function originalLink() {
  return h("a", { href: "#lang=en", hreflang: "en" }, text("page.original"));
}

function limitsOf(services, textOf, nameOf) {
  return NOTES.flatMap((note) => {
    const about = services.filter((service) => notesFor(service, isRunByOthers(service)).includes(note));
    if (about.length === 0) return [];
    const said = textOf(`warning.${note.id}`);
    return [h("li", {}, note.id === "others" ? `${list(about.map(nameOf))}: ${said}` : said)];
  });
}
