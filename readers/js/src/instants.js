// Instants are milliseconds since 1970, as Date.now() gives them.

const INSTANT = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/;
const HTTP_DATE = /^[A-Z][a-z]{2}, (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d:\d\d:\d\d) GMT$/;
const MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec";

/** Milliseconds since 1970 of `YYYY-MM-DDTHH:mm:ss.sssZ`, with or without the fraction; null for anything else. */
export function parseInstant(value) {
  const [, second, fraction = ""] = match(INSTANT, value);
  const at = parseSecond(second);
  return at === null ? null : at + Number(fraction.slice(0, 3).padEnd(3, "0"));
}

/** Milliseconds since 1970 of a `Date` header; null for anything else. */
export function parseHttpDate(value) {
  const [, day, month, year, time] = match(HTTP_DATE, value);
  const number = String(MONTHS.indexOf(month) / 3 + 1).padStart(2, "0");
  return parseSecond(`${year}-${number}-${day}T${time}`);
}

function match(pattern, value) {
  return (typeof value === "string" && pattern.exec(value)) || [];
}

function parseSecond(text) {
  const at = Date.parse(`${text}Z`);
  // Date carries over what does not exist, such as the 31st of June: then the text differs.
  return at >= 0 && new Date(at).toISOString().startsWith(text) ? at : null;
}
