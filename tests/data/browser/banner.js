import { createReader, obstaclesOf } from "/src/index.js";
const given = new URLSearchParams(location.search);
const banner = document.querySelector("#banner");
const options = { baseUrl: given.get("base"), protocol: given.get("protocol"), history: false };
globalThis.reader = createReader(options);
globalThis.times = 0;
reader.subscribe((update) => {
  const obstacles = obstaclesOf(update.report, { ...update, chain: 1, services: ["ppoi", "messaging"] });
  banner.textContent = obstacles.map(({ service, effective }) => `${service} is ${effective}`).join() || "fine";
  times++;
});
addEventListener("pageshow", ({ persisted }) => (globalThis.persisted = persisted));
