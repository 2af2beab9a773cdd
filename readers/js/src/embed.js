// The badge of a script tag, for sites without a build: how one chain is, or all that are counted. It is no gate.
//
// The server that sends this puts what it knows into SITE: its protocol and title, its chains by id, its test networks,
// the languages it has texts in, the English ones, and the colour and shape of each status.

import { whole } from "./document.js";
import { makeReader } from "./reader.js";
import { parseReport } from "./report.js";
import { rollUp } from "./rollup.js";

const SITE = "SITE";

// By the style property alone, which no content security policy forbids.
const STYLE = {
  display: "inline-block",
  padding: "2px 8px",
  borderRadius: "4px",
  font: "13px/1.5 system-ui, sans-serif",
  color: "#fff",
  textDecoration: "none",
};

showBadge(document.currentScript);

async function showBadge(script) {
  const base = new URL(".", script.src).href;
  const { chain } = script.dataset;
  const { code, direction, texts } = await loadTexts(base, script);
  const host = document.createElement("span");
  const region = document.createElement("span");
  const link = document.createElement("a");
  const shape = document.createElement("span");
  const words = document.createElement("span");
  host.style.setProperty("all", "initial", "important"); // whatever the site's own styles say of every span
  region.setAttribute("role", "status");
  shape.setAttribute("aria-hidden", "true");
  Object.assign(link, { href: base, lang: code, dir: direction, title: `${texts["warning.one-view"]} ${texts["warning.not-a-signal"]}` });
  Object.assign(link.style, STYLE);
  link.append(shape, words);
  region.append(link);
  host.attachShadow({ mode: "open" }).append(region);
  const name = chain === undefined ? SITE.title : (SITE.chains[chain] ?? texts["chain.unnamed"].replace("{id}", () => chain));

  function draw(status) {
    if (link.dataset.status === status) return; // what is not new is not read out
    const [colour, character] = SITE.looks[status];
    link.dataset.status = status;
    link.style.backgroundColor = colour;
    shape.textContent = `${character}\uFE0E `;
    words.textContent = `${texts["means.line"].replace("{place}", () => name)} ${texts["status." + status]}`;
  }

  draw("unknown");
  script.after(host);
  const end = shareReader(base).subscribe((update) => {
    draw(host.isConnected ? statusOf(update, chain) : "unknown");
    if (!host.isConnected) end(); // nobody sees it, and nobody keeps it up to date
  });
}

/** In the language of the place it is in, as far as the page of the server has it; in English otherwise. */
async function loadTexts(base, script) {
  const code = script.closest("[lang]")?.lang.toLowerCase().split("-")[0];
  const english = { code: "en", direction: "ltr", texts: SITE.texts };
  if (!SITE.languages.includes(code)) return english;
  return import(`${base}assets/texts-${code}.js`).then(({ default: catalogue }) => ({ code, ...catalogue }), () => english);
}

/** One for all badges of a server on this page, each of which runs this script again. */
function shareReader(base) {
  const readers = (globalThis[Symbol.for("lookout.embed")] ??= new Map());
  if (!readers.has(base)) readers.set(base, makeReader({ live: parseReport }, { baseUrl: base, protocol: SITE.protocol }));
  return readers.get(base);
}

/** How this chain is, if one is given, or all that a summary counts; never current unless that was seen of a chain given. */
function statusOf(update, chain) {
  const chainId = whole(Number(chain), 1) ?? 0; // which no row has
  const found = update.report?.rows.map((row) => row.chainId) ?? [];
  const counted = [...Object.keys(SITE.chains).map(Number), ...found].filter((id) => id > 0 && !SITE.testNetworks.includes(id));
  const scope = chain === undefined ? { chains: counted } : { chains: [chainId], includeTestNetwork: true };
  const { status, services } = rollUp(update.report, { ...update, ...scope });
  const isSeen = services.some(({ checks }) => checks.some((check) => check.effective === "current" && check.chainId === chainId));
  return status === "current" && chain !== undefined && !isSeen ? "unmonitored" : status;
}
