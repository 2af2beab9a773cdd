/** The language of the page: the one in its address, the first of the browser's that has texts, or English. */

/** The names of the languages that there are, each in itself. */
export const LANGUAGES = JSON.parse(document.querySelector("meta[name=lookout-languages]").content);
const ENGLISH = "en";
// Without another module, so that the texts are asked for while the other scripts are still on their way.
const asked = new URLSearchParams(location.hash.slice(1)).get("lang") ?? "";
const wanted = [asked, ...navigator.languages].map((tag) => tag.toLowerCase().split("-")[0]);
const chosen = wanted.find((code) => Object.hasOwn(LANGUAGES, code)) ?? ENGLISH;
const loaded = await load(chosen).catch(() => load(ENGLISH));

export const {
  code: LANGUAGE,
  locale: LOCALE,
  direction: DIRECTION,
  reviewedBy: REVIEWED_BY,
  texts: TEXTS,
  titles: TITLES,
} = loaded;

async function load(code) {
  const { default: catalogue } = await import(`./texts-${code}.js`);
  return { code, ...catalogue };
}
