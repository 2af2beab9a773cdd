import { existsSync, readFileSync } from "node:fs";

const PACKED = new URL("../test/vectors/", import.meta.url);
const SHARED = new URL("../../../tests/data/vectors/", import.meta.url);

/** A file of the cases that both readers are tested with: in the package beside the tests, in the repository its own. */
export function readVectors(name) {
  return JSON.parse(readFileSync(new URL(`${name}.json`, existsSync(PACKED) ? PACKED : SHARED), "utf8"));
}
