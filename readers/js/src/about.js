// The public description of a deployment.

import { isObject, readJson, unreadable, whole } from "./document.js";
import { parseInstant } from "./instants.js";
import { TEST_NETWORK } from "./services.js";
import { KNOWN_STATUSES } from "./statuses.js";

const MOST_ENTRIES = 2_000; // of a list; what comes after is not read

/**
 * The public description of a deployment (`/about.json`) in `text`, or why it cannot be read. Never throws; what it has
 * besides is ignored (C5). `testNetworks` are the chains that no summary counts (C11).
 */
export function parseAbout(text) {
  const { problem, fields } = readJson(text);
  if (problem) return unreadable(problem);
  const byId = new Map(); // of two with one id the later counts
  for (const chain of objectsOf(fields.chains)) {
    const id = whole(chain.id, 1);
    if (id !== null)
      byId.set(
        id,
        Object.freeze({
          id,
          name: textOf(chain.name) || `chain ${id}`,
          testNetwork: chain.testNetwork === true,
          noBlockSince: parseInstant(chain.noBlockSince),
        }),
      );
  }
  const chains = [...byId.values()];
  const services = objectsOf(fields.services)
    .filter(({ name }) => textOf(name) !== "")
    .map(({ name, title, runByOthers, effect }) =>
      Object.freeze({ name, title: textOf(title) || name, runByOthers: runByOthers === true, effect: textOf(effect) }),
    );
  const testNetworks = new Set([TEST_NETWORK, ...chains.filter((chain) => chain.testNetwork).map(({ id }) => id)]);
  return Object.freeze({
    readable: true,
    chains: Object.freeze(chains),
    services: Object.freeze(services),
    title: textOf(fields.title),
    operator: textOf(fields.operator),
    contact: textOf(fields.contact),
    showUnmonitored: fields.showUnmonitored !== false,
    notes: Object.freeze(
      objectsOf(fields.notes)
        .map(readNote)
        .filter((note) => note !== null),
    ),
    places: Object.freeze(
      objectsOf(fields.places)
        .map(readPlace)
        .filter((place) => place !== null),
    ),
    testNetworks: Object.freeze([...testNetworks]),
  });
}

/**
 * The chains that a summary of documents with rows of these chains counts: all of the description but its test
 * networks. One that has rows and is not in the description is counted too.
 */
export function countedChains(about, chainIds) {
  const known = new Set([null, ...about.chains.map(({ id }) => id)]);
  const others = [...new Set(chainIds)].filter((chainId) => !known.has(chainId)).sort((a, b) => a - b);
  return [...about.chains.map(({ id }) => id), ...others].filter((chainId) => !about.testNetworks.includes(chainId));
}

/** A note of the operator, null also if it cannot be said what it is about, or when it is over. */
function readNote(raw) {
  const [from, until] = [parseInstant(raw.from), parseInstant(raw.until)];
  const chains = listOf(raw.chains).map((chainId) => whole(chainId, 1));
  const services = listOf(raw.services);
  const isScopeWhole = !chains.includes(null) && services.every((service) => typeof service === "string");
  if (textOf(raw.text) === "" || from === null || (until === null && (raw.until ?? null) !== null) || !isScopeWhole)
    return null;
  const scope = { services: Object.freeze(services), chains: Object.freeze(chains) };
  return Object.freeze({
    id: textOf(raw.id),
    text: raw.text,
    ...scope,
    from,
    until,
    addedAt: parseInstant(raw.addedAt),
  });
}

/** One of the places that watch; null without a name, unless it is the monitor itself. */
function readPlace(raw) {
  const own = raw.own === true;
  const [name, url] = [textOf(raw.name), textOf(raw.url)];
  if (name === "" && !own) return null;
  return Object.freeze({
    name,
    url: /^https?:\/\//.test(url) ? url : "",
    own,
    silentSince: parseInstant(raw.silentSince),
    differs: Object.freeze(
      objectsOf(raw.differs)
        .map(readDissent)
        .filter((dissent) => dissent !== null),
    ),
  });
}

function readDissent(raw) {
  const [service, since] = [textOf(raw.service), parseInstant(raw.since)];
  const chainId = whole(raw.chainId, 1);
  if (service === "" || since === null || (chainId === null && (raw.chainId ?? null) !== null)) return null;
  return Object.freeze({
    service,
    chainId,
    status: KNOWN_STATUSES.includes(raw.status) ? raw.status : "unknown",
    since,
  });
}

function textOf(value) {
  return typeof value === "string" ? value : "";
}

function listOf(value) {
  return Array.isArray(value) ? value.slice(0, MOST_ENTRIES) : [];
}

function objectsOf(value) {
  return listOf(value).filter(isObject);
}
