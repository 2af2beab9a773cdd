import { JSDOM } from "jsdom";
const { window } = new JSDOM("<div id=root></div>");
Object.assign(globalThis, { window, document: window.document, IS_REACT_ACT_ENVIRONMENT: true });
Object.defineProperty(globalThis, "navigator", { value: window.navigator, configurable: true });
const { act, createElement, StrictMode } = await import("react");
const { createRoot } = await import("react-dom/client");
const { renderToString } = await import("react-dom/server");
const { createReader } = await import("lookout-reader");
const { obstaclesQuery, useObstacles } = await import("lookout-reader/react");
const { QueryClient, QueryClientProvider, useQuery } = await import("@tanstack/react-query");

const reader = createReader({ baseUrl: BASE, protocol: "protocol", history: false });
const needs = { chain: 1, services: ["ppoi", "messaging"] };

let renders = 0;
function Banner() {
  renders++;
  const { isLoading, obstacles } = useObstacles(reader, needs);
  if (isLoading) return "loading";
  return obstacles.map(({ service, effective }) => `${service} ${effective}`).join() || "fine";
}
function Queried() {
  const { data } = useQuery(obstaclesQuery(reader, needs));
  return data === undefined ? "loading" : data.map(({ severity }) => severity).join() || "fine";
}
const client = new QueryClient();
const tree = () =>
  createElement(
    QueryClientProvider,
    { client },
    createElement(StrictMode, null, createElement(Banner), "|", createElement(Banner), "|", createElement(Queried)),
  );
const onServer = renderToString(createElement(Banner));
const root = createRoot(document.getElementById("root"));
await act(() => root.render(tree()));
const atFirst = document.getElementById("root").textContent;
while (reader.latest().report === null) await act(() => new Promise((resolve) => setTimeout(resolve, 20)));
await act(() => new Promise((resolve) => setTimeout(resolve, 20)));
const read = document.getElementById("root").textContent;
const before = renders;
await act(() => root.render(tree())); // nothing is new: rendered once more, and no more often
const again = renders - before;
await act(() => root.unmount());
console.log(JSON.stringify({ onServer, atFirst, read, again }));
// The program ends by itself: nothing is left that asks.
