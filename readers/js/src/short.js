// Which headline an overview has, and that in the fewest words: all that a badge says (headline.js says the rest).

import { ACTIVITIES, NO_REPORT } from "./overview.js";

const NAMED_MOST = 3; // networks

/** Which of its headlines it is, with what it is about: what is not known is no trouble. */
export function findingOf({ networks, problems, doubts, nothingReached }) {
  const trouble = problems.filter(({ effect }) => effect !== "unknown");
  const unknown = problems.filter(({ effect }) => effect === "unknown");
  const isWatched = ({ status }) => status !== "unmonitored";
  const watched = networks.filter(({ counted }) => counted).flatMap(({ activities }) => activities.filter(isWatched));
  const cause = doubts.find((doubt) => NO_REPORT.includes(doubt)) ?? null;
  const found = { trouble, unknown, cause, watched };
  if (nothingReached) return { ...found, kind: "silent" };
  if (trouble.length > 0) return { ...found, kind: "problems" };
  if (cause !== null) return { ...found, kind: "cause" };
  if (watched.length === 0) {
    const isAny = networks.some(({ activities }) => activities.some(isWatched));
    return { ...found, kind: isAny ? "none.main" : "none" };
  }
  if (watched.every(({ effect }) => effect === "unknown") && !unknown.some(({ unreached }) => unreached))
    return { ...found, kind: "nothing" };
  if (unknown.length > 0) return { ...found, kind: "problems" };
  return { ...found, kind: doubts.length > 0 ? "doubted" : "well" };
}

/** Without networks. */
export function shortOf(overview, finding, language) {
  const { text } = language;
  const { kind, cause } = finding;
  if (kind === "problems") return capitalize(saidOf(overview, finding, language)[0].effect, language);
  if (kind === "cause") return text(`cause.${cause}.short`);
  return kind === "well" ? capitalize(text("may.well"), language) : text(`band.${kind}`);
}

/** The effects to say. A report that does not come explains what is not known. */
export function saidOf(overview, { trouble, unknown, cause }, language) {
  const effects = trouble.map((problem) => ({
    effect: effectText(overview, problem, language),
    chainIds: problem.chainIds,
  }));
  return cause === null ? [...effects, ...joinUnknown(unknown, language)] : effects;
}

/** Everything about which nothing is known on the same networks as one. */
function joinUnknown(unknown, language) {
  const together = new Map();
  for (const problem of unknown) {
    const key = problem.chainIds.join();
    if (!together.has(key)) together.set(key, { names: [], chainIds: problem.chainIds });
    together.get(key).names.push(activityText(problem, language));
  }
  return Array.from(together.values(), ({ names, chainIds }) => ({
    effect: language.text("effect.unknown", { what: and(names, language) }),
    chainIds,
  }));
}

function effectText(overview, problem, language) {
  const { activity, effect } = problem;
  if (activity !== null) return language.text(`effect.${activity}.${effect}`);
  const service = activityText(problem, language);
  return language.text("effect.own", { service, effect: effectIn(overview, problem, language) });
}

/** Of a service of the operator's own it is the operator to say what its failure means; otherwise its status is said. */
export function effectIn({ about }, { service, effect, status }, { text }) {
  if (effect !== "trouble") return text(`may.${effect}`);
  const said = about.services.find(({ name }) => name === service)?.effect ?? "";
  return said.replace(/\.+$/, "") || text(`status.${status}`);
}

function activityText({ activity, service }, { text, serviceName }) {
  return activity === null ? serviceName(service) : text(`activity.${activity}`);
}

/** With the networks: by their names if they are few, or how many of all. */
export function placeText({ networks }, what, chainIds, language, counts = false) {
  const { text, chainName } = language;
  const on = chainIds.filter((chainId) => chainId !== null);
  if (on.length === 0) return what;
  const all = networks.filter(({ counted, chainId }) => counted && chainId !== null).length;
  if (on.length === all && all > 2) return text("on", { what, networks: text("networks.all", { count: all }) });
  if (on.length > (counts ? 1 : NAMED_MOST))
    return text("on", { what, networks: text("networks.part", { count: on.length, all }) });
  return text("on", { what, networks: and(on.map(chainName), language) });
}

/** What is current, with the networks where it is. */
export function wellText(overview, language) {
  const where = new Map(Object.keys(ACTIVITIES).map((activity) => [activity, { on: [] }]));
  for (const { counted, chainId, activities } of overview.networks)
    for (const state of activities.filter(({ status }) => counted && status === "current")) {
      const key = state.activity ?? state.service;
      const on = [...(where.get(key)?.on ?? []), chainId];
      where.set(key, { name: activityText(state, language), on });
    }
  const together = new Map();
  for (const { name, on } of where.values()) {
    if (on.length === 0) continue;
    const names = together.get(on.join())?.names ?? [];
    together.set(on.join(), { on, names: names.includes(name) ? names : [...names, name] }); // two may have one title
  }
  const counts = together.size > 1; // the names of all networks would be too long
  const parts = Array.from(together.values(), ({ on, names }) =>
    placeText(overview, and(names, language), on, language, counts),
  );
  return join("list", parts, language);
}

// ---- Words

export function join(key, items, { text }) {
  return items.length === 0 ? "" : items.reduce((one, other) => text(key, { one, other }));
}

/** "sending, balances and proofs" */
function and(items, language) {
  if (items.length < 2) return items.join("");
  return language.text("list.last", { one: join("list", items.slice(0, -1), language), other: items.at(-1) });
}

export function capitalize(words, { locale }) {
  return words.charAt(0).toLocaleUpperCase(locale) + words.slice(1);
}
