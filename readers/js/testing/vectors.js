import { readFileSync } from "node:fs";

const SHARED = new URL("../../../tests/data/vectors/", import.meta.url);

/** A file of the cases that both readers are tested with. */
export function readVectors(name) {
  return JSON.parse(readFileSync(new URL(`${name}.json`, SHARED), "utf8"));
}
