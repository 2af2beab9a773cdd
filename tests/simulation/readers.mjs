// Runs the JavaScript reader of a folder on a virtual clock. Every request is a line to stdout, its reply one of stdin.

import { readSync, writeSync } from "node:fs";

const [folder, runs, forS] = process.argv.slice(2);
const { createReader, effectiveStatus, findRow } = await import(`${folder}/src/index.js`);
const { aClock, response } = await import("../../readers/js/testing/world.js");

let rest = "";
function readLine() {
  const part = Buffer.alloc(65_536);
  while (!rest.includes("\n")) {
    const length = readSync(0, part);
    if (length === 0) process.exit(1); // who ran this has ended
    rest += part.toString("utf8", 0, length);
  }
  const [line, ...others] = rest.split("\n");
  rest = others.join("\n");
  return line;
}

function write(message) {
  writeSync(1, `${JSON.stringify(message)}\n`);
}

for (let run = 0; run < Number(runs); run++) {
  const clock = aClock();
  const shown = [];
  const reader = createReader({
    baseUrl: "https://liveness.example",
    protocol: "protocol",
    history: false,
    now: clock.now,
    monotonic: clock.monotonic,
    setTimeout: clock.setTimeout,
    clearTimeout: clock.clearTimeout,
    async fetch() {
      write({ atS: clock.monotonic() / 1000 });
      const { after_s: afterS, body } = JSON.parse(readLine());
      if (afterS > 0) await new Promise((resolve) => clock.setTimeout(resolve, afterS * 1000));
      if (body === null) throw new TypeError("Failed to fetch");
      return response(200, body);
    },
  });
  reader.subscribe(({ report }) => {
    shown.push([clock.monotonic() / 1000, effectiveStatus(findRow(report, "ppoi", 1))]);
  });
  await clock.pass(Number(forS));
  reader.stop();
  write({ shown });
}
