// What the JavaScript reader says of documents: a line of [report, history, about] each, and a line of JSON back.
import { createInterface } from "node:readline";
import {
  effectWord,
  headlineOf,
  overviewOf,
  parseAbout,
  parseHistory,
  parseReport,
} from "../../readers/js/src/page.js";

const now = Number(process.argv[2]);

for await (const line of createInterface({ input: process.stdin })) {
  const [report, history, about] = JSON.parse(line).map((document) => JSON.stringify(document));
  const documents = { history: parseHistory(history), about: parseAbout(about) };
  const overview = overviewOf(parseReport(report), { now, ...documents });
  const networks = overview.networks.flatMap((network) =>
    network.activities.map((state) => [
      network.chainId,
      network.status,
      state.activity ?? state.service,
      state.status,
      state.effect,
      effectWord(overview, state),
    ]),
  );
  const said = { status: overview.status, line: headlineOf(overview).line, networks };
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
