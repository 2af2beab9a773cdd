// What the live report and the history have in common: JSON with a version, and rows that are found by their check.

export const SCHEMA_VERSION = 1;
export const WRONG_VERSION = "its schemaVersion is not 1";
const ROWS_MOST = 10_000; // counted before any is read
const PARTS_MOST = 100_000; // objects and lists, of which a row has two: counted before the text is parsed
const DEEPEST = 100; // objects and lists in one another: a bound of its own, since every parser's is another

export function unreadable(problem) {
  return Object.freeze({ readable: false, problem });
}

/** The object in `text` (a string, or UTF-8 bytes where there is a TextDecoder), or the problem with it. */
export function readJson(text) {
  try {
    const json = typeof text === "string" ? text : new TextDecoder("utf-8", { fatal: true }).decode(text);
    if (json.split(/[[{]/, PARTS_MOST + 1).length <= PARTS_MOST) {
      const fields = JSON.parse(json);
      if (!isTooDeep(fields, DEEPEST)) return isObject(fields) ? { fields } : { problem: "it is not a JSON object" };
    }
  } catch {
    // the same
  }
  return { problem: "it is not JSON" };
}

/** The fields of a document of the version that this reader knows (C6), with a list of rows under this name. */
export function readDocument(text, list) {
  const { fields, problem } = readJson(text);
  if (problem) return { problem };
  if (fields.schemaVersion !== SCHEMA_VERSION) return { problem: WRONG_VERSION };
  if (!Array.isArray(fields[list])) return { problem: `its ${list} are not a list` };
  return fields[list].length > ROWS_MOST ? { problem: `its ${list} are too many` } : { fields };
}

function isTooDeep(value, levels) {
  return (
    typeof value === "object" &&
    value !== null &&
    (levels === 0 || Object.values(value).some((inner) => isTooDeep(inner, levels - 1)))
  );
}

export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function whole(value, least) {
  return Number.isSafeInteger(value) && value >= least ? value + 0 : null; // + 0: no -0
}

// ---- Rows

/**
 * The rows in `raws`: who each is about, and with that whatever `readRest(raw)` finds, or the problem that it gives as
 * a text. Of two rows of the same check nobody knows which one is right: neither is read.
 */
export function readRows(raws, readRest) {
  const rows = raws.map((raw) => readRow(raw, readRest));
  const keys = rows.map((row) => isIdentified(row) && checkKey(row));
  const times = new Map();
  for (const key of keys) times.set(key, (times.get(key) ?? 0) + 1);
  const read = rows.map((row, index) =>
    keys[index] && times.get(keys[index]) > 1
      ? unreadableRow(row, "another row has the same service and chainId")
      : row,
  );
  return { rows: Object.freeze(read), unreadableRows: read.filter((row) => !row.readable).length };
}

function readRow(raw, readRest) {
  if (!isObject(raw)) return unreadableRow({ service: null }, "the row is not an object");
  const service = raw.service && typeof raw.service === "string" ? raw.service : null;
  const chainId = raw.chainId === null ? null : (whole(raw.chainId, 1) ?? undefined);
  const check = { service, chainId };
  if (service === null) return unreadableRow(check, "its service is not a name");
  if (chainId === undefined) return unreadableRow(check, "its chainId is neither a positive whole number nor null");
  const rest = readRest(raw);
  return typeof rest === "string" ? unreadableRow(check, rest) : Object.freeze({ readable: true, ...check, ...rest });
}

function unreadableRow({ service, chainId }, problem) {
  return Object.freeze({ readable: false, service, chainId, problem });
}

export function isIdentified(row) {
  return row.service !== null && row.chainId !== undefined;
}

/** The key of a check in the map of rowsByCheck. */
export function checkKey({ service, chainId }) {
  return JSON.stringify([service, chainId]);
}

/** The rows of a report or history by check (C8); rows whose check cannot be read are not in it. */
export function rowsByCheck(document) {
  return new Map(document.rows.filter(isIdentified).map((row) => [checkKey(row), row]));
}

/** The row of a check in a report or history, readable or not; null if there is none (C8). */
export function findRow(document, service, chainId) {
  if (!document?.readable) return null;
  return document.rows.find((row) => row.service === service && row.chainId === chainId) ?? null;
}
