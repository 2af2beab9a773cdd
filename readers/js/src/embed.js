// The badge of a script tag, for sites without a build: how one chain is, or all that are counted. It is no gate.
//
// The server that sends this puts what it knows in the place of LOOKOUT_SITE: its protocol and title, its chains' ids
// and names, its test networks, the languages it has texts in, the English ones, and the colour and shape of each
// status.

import { overviewOf } from "./overview.js";
import { makeReader } from "./reader.js";
import { parseReport } from "./report.js";
import { findingOf, shortOf, wellText } from "./short.js";

const SITE = LOOKOUT_SITE;
const CHAINS = new Map(SITE.chains);
const TITLES = new Map(SITE.services.map(({ name, title }) => [name, title]));

// By the style property alone, which no content security policy forbids.
const STYLE =
  "display:inline-block;padding:2px 8px;border-radius:4px;color:#fff;" +
  "font:13px/1.5 system-ui,sans-serif;text-decoration:none";

showBadge(document.currentScript);

function showBadge(script) {
  if (!script || script.closest("head")) {
    console.warn("Lookout: there is no badge. Its script tag belongs in the body, and is no module.");
    return;
  }
  const base = new URL(".", script.src).href;
  const { chain } = script.dataset;
  const [host, region, link, shape, words, warning] = ["span", "span", "a", "span", "span", "span"].map((tag) =>
    document.createElement(tag),
  );
  let language = { code: "en", direction: "ltr", texts: SITE.texts };
  let drawn;
  host.style.cssText = "all:initial!important"; // whatever the site's own styles say of every span
  region.setAttribute("role", "status");
  shape.setAttribute("aria-hidden", "true");
  link.style.cssText = STYLE;
  warning.style.cssText = "display:block;font-size:11px";
  link.href = chain === undefined ? base : `${base}#chain=${encodeURIComponent(chain)}`;
  link.append(shape, words, warning);
  region.append(link);
  host.attachShadow({ mode: "open" }).append(region);

  /** The text of a key, with these in its slots. One that has plurals is chosen by `count`. */
  function text(key, slots = {}) {
    const found = language.texts[key];
    const pattern =
      typeof found === "string"
        ? found
        : (found[new Intl.PluralRules(language.code).select(slots.count)] ?? found.other);
    return pattern.replace(/\{(\w+)\}/g, (_, name) => slots[name]);
  }

  function draw(overview) {
    const { code, direction } = language;
    const { status } = overview;
    const place = chain === undefined ? SITE.title : chainName(chain);
    const names = { locale: code, text, chainName, serviceName };
    const said = isPart(overview)
      ? text("band.well", { what: wellText(overview, names) })
      : shortOf(overview, findingOf(overview), names);
    const line = `${text("means.line", { place })} ${said}`;
    const look = code + status + line;
    if (look === drawn) return; // what is not new is not read out
    drawn = look;
    const [colour, character] = SITE.looks[status];
    Object.assign(link, { lang: code, dir: direction, title: text("warning.one-view") });
    link.dataset.status = status;
    link.style.backgroundColor = colour;
    shape.textContent = `${character}\uFE0E `;
    words.textContent = line;
    warning.textContent = text("warning.not-a-signal");
  }

  function chainName(id) {
    return CHAINS.get(String(id)) ?? text("chain.unnamed", { id });
  }

  function serviceName(service) {
    return TITLES.get(service) ?? service;
  }

  function tick() {
    draw(summarize(host.isConnected ? reader.latest() : { report: null }, chain));
    if (host.isConnected) return;
    clearInterval(timer); // nobody sees it, and nobody keeps it up to date
    end();
  }

  script.after(host);
  const reader = shareReader(base);
  const end = reader.subscribe(tick);
  const timer = setInterval(tick, 1000); // the reader sleeps until a row expires, and so does a machine meanwhile
  tick();
  const code = script.closest("[lang]")?.lang.toLowerCase().split("-")[0];
  if (!SITE.languages.includes(code)) return;
  import(`${base}assets/texts-${code}.js`).then(
    ({ default: { direction, texts } }) => {
      language = { code, direction, texts: { ...SITE.texts, ...texts } }; // they may be of another release
      tick();
    },
    () => {}, // it stays English
  );
}

/** One for all badges of a server on this page, each of which runs this script again. */
function shareReader(base) {
  const readers = (globalThis[Symbol.for("lookout.embed")] ??= new Map());
  if (!readers.has(base))
    readers.set(base, makeReader({ live: parseReport }, { baseUrl: base, protocol: SITE.protocol }));
  return readers.get(base);
}

/** Whether something is current and something else not watched: then it is said what is current. */
function isPart({ status, networks }) {
  const counted = networks.filter((network) => network.counted);
  return status === "current" && counted.some(({ activities }) => activities.some((state) => state.status !== status));
}

/** How this chain is, if one is given, or all that a summary counts. */
function summarize({ report, now, receivedAgoMs, clockAheadMs, answeredAgoMs }, chain) {
  const chains = chain === undefined ? undefined : [/^[1-9]\d*$/.test(chain) ? Number(chain) : 0]; // which no row has
  const testNetworks = chain === undefined ? SITE.testNetworks : [];
  const about = { ...SITE, chains: Array.from(CHAINS.keys(), (id) => ({ id: Number(id) })), testNetworks };
  return overviewOf(report, { now, receivedAgoMs, clockAheadMs, answeredAgoMs: answeredAgoMs ?? 0, about, chains });
}
