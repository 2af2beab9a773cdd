// ---- Written by `make schemas`, from readers/python/src/lookout_reader/statuses.py and words.py

/** What people read everywhere. */
export const STATUS_NAMES = {
  "unavailable": "not answering",
  "degraded": "limited",
  "catching-up": "behind",
  "stale": "too old to say",
  "unknown": "unknown",
  "current": "no problem seen",
  "unmonitored": "not watched",
};

export const STATUS_TEXTS = {
  "unavailable": "It did not answer usefully several times in a row.",
  "degraded": "It answers, but with serious trouble. Do not rely on it where time matters.",
  "catching-up": "It answers, but is behind. Expect old data; this is not an outage.",
  "stale": "There is no recent reading: the last one is too old to judge by.",
  "unknown": "There is too little to judge by: it may or may not work.",
  "current": "It answers, and what was checked is as it should be.",
  "unmonitored": "It is not watched here. That is not a failure.",
};

export const REASON_TEXTS = {
  "synced": "It is up to date.",
  "behind": "It is behind where it should be.",
  "responding": "Everything that was asked has answered.",
  "partial-coverage": "Some were heard, others were not.",
  "unreachable": "It could not be reached, or its answer could not be understood.",
  "not-configured": "The operator has set up nothing to watch here.",
  "no-observation": "Nothing was seen yet, or it holds nothing for this chain.",
  "incompatible-reference": "It answered, but there was nothing safe to compare its answer with.",
  "incomplete": "It is up to date, but its list has a gap.",
  "inconsistent": "It is up to date, but its transactions differ from the reference.",
  "not-everywhere": "Some places reach it, others do not.",
};

/** What to show people beside the data (C12); `services` are those it is about, null for all. */
export const NOTES = /* @__PURE__ */ Object.freeze(
  /* @__PURE__ */ [
    ["one-view", null,
      "This is what one monitor sees from one place. It is not an official status."],
    ["not-a-signal", null,
      "It is not a signal that it is safe to transact."],
    ["history", null,
      "The history does not say what is up now."],
    ["partial", ["broadcasters"],
      "Limited broadcasters are a partial reading: some were not heard, others may work."],
    ["peers", ["messaging"],
      "Peers are connections. They do not prove that a message is delivered."],
    ["wallet-sync", ["indexer", "hosted-indexer"],
      "Whether an indexer is up to date does not say whether your wallet is synced."],
    ["proofs", ["ppoi"],
      "An up-to-date node says nothing about your wallet's proofs, compliance or balance."],
    ["others", ["ppoi", "hosted-indexer"],
      "This is run by other people, not by the operator of the monitor."],
  ].map(([id, services, text]) => Object.freeze({ id, services: services && Object.freeze(services), text })),
);
