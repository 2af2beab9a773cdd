// Instants are milliseconds since 1970, as Date.now() gives them.

const INSTANT = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/;

/** Milliseconds since 1970 of `YYYY-MM-DDTHH:mm:ss.sssZ`, with or without the fraction; null for anything else. */
export function parseInstant(value) {
  const [, second, fraction = ""] = (typeof value === "string" && INSTANT.exec(value)) || [];
  const at = Date.parse(`${second}Z`);
  // Date carries over what does not exist, such as the 31st of June: then the text differs.
  if (!(at >= 0 && new Date(at).toISOString().startsWith(second))) return null;
  return at + Number(fraction.slice(0, 3).padEnd(3, "0"));
}

/** Milliseconds since 1970 of a `Date` header; null for anything else. */
export function parseHttpDate(value) {
  const at = Date.parse(value); // which reads much else too: that is not what would be written
  return at >= 0 && new Date(at).toUTCString() === value ? at : null;
}
