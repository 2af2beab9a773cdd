/** The end of the page: who runs the monitor, where else its data is, and the languages of the page. */

import { h } from "./dom.js";
import { LANGUAGE, LANGUAGES } from "./language.js";
import { ABOUT, text } from "./words.js";

export function makeFoot() {
  const live = document.querySelector("meta[name=lookout-live]").content;
  const history = document.querySelector("meta[name=lookout-history]").content;
  const developers = [
    [live, "link.live"],
    [history, "link.history"],
    ["/openapi.json", "link.api"],
    ["/badge.svg", "link.badge"],
  ];
  return h(
    "footer",
    {},
    h("p", { class: "address" }, location.origin + location.pathname),
    ...operatorElements(),
    h("p", { class: "links" }, h("a", { href: "/feed.atom" }, text("link.feed"))),
    h(
      "p",
      { class: "links" },
      text("page.developers"),
      ...developers.map(([href, key]) => h("a", { href }, text(key))),
    ),
    h("nav", { class: "links", "aria-label": text("page.languages") }, ...Object.entries(LANGUAGES).map(languageLink)),
  );
}

/** Who runs the monitor, as far as the operator says so. */
function operatorElements() {
  const { operator, contact } = ABOUT;
  if (operator === "" && contact === "") return [];
  const by = operator === "" ? "" : `${text("page.operator", { operator })} `;
  const address = linkOf(contact);
  const how =
    contact === "" ? [] : [`${text("page.contact")} `, address === null ? contact : h("a", { href: address }, contact)];
  return [h("p", { class: "operator" }, by, ...how)];
}

function linkOf(contact) {
  if (/^(https?:\/\/|mailto:)/.test(contact)) return contact;
  return /^[^\s@:/]+@[^\s@:/]+$/.test(contact) ? `mailto:${contact}` : null;
}

function languageLink([code, name]) {
  const current = code === LANGUAGE ? { "aria-current": "true" } : {};
  return h("a", { href: `#lang=${code}`, lang: code, hreflang: code, ...current }, name);
}
