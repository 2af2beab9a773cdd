import { http } from "msw";
import { setupServer } from "msw/node";
import { createReader } from "lookout-reader";
import { handlers } from "lookout-reader/testing";

const where = { baseUrl: "https://liveness.example", protocol: "protocol" };
let state;
const server = setupServer(...handlers(http, where.baseUrl, where.protocol, () => state));
server.listen({ onUnhandledRequest: "error" });
const found = {};
for (state of ["fine", "unavailable", "no-network", "other-version"]) {
  const reader = createReader(where);
  const { reportCode, history } = await reader.refresh();
  const [obstacle] = reader.obstacles({ chain: 1, services: ["indexer"] });
  found[state] = [reportCode, history.readable, obstacle?.severity ?? null];
}
server.close();
console.log(JSON.stringify(found));
