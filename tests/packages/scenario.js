// Two polls, then nothing but failures, on a clock that is moved by hand and the environment's own fetch.
// What became of it is checked by the test that runs this.
// biome-ignore lint/correctness/noUnusedVariables: each test adds the line that calls it
async function playScenario({ canUse, createReader }, baseUrl) {
  const beganAt = Date.now();
  const timers = new Set();
  const asked = [];
  let elapsed = 0;
  const settle = async () => {
    do await new Promise((resolve) => setTimeout(resolve, 5));
    while ([...timers].some(({ ms }) => ms === 10000)); // a request is under way as long as its timeout is
  };
  const pass = async (seconds) => {
    const end = elapsed + seconds * 1000;
    for (;;) {
      await settle();
      const [next] = [...timers].filter(({ at }) => at <= end).sort((one, other) => one.at - other.at);
      if (next === undefined) break;
      elapsed = Math.max(elapsed, next.at);
      timers.delete(next);
      next.callback();
    }
    elapsed = end;
  };
  const reader = createReader({
    baseUrl,
    protocol: "protocol",
    history: false,
    random: () => 0,
    now: () => beganAt + elapsed,
    monotonic: () => elapsed,
    setTimeout(callback, ms) {
      const timer = { callback, ms, at: elapsed + ms };
      timers.add(timer);
      return timer;
    },
    clearTimeout: (timer) => timers.delete(timer),
    fetch: Object.assign((...request) => (asked.push(elapsed / 1000), fetch(...request)), { polyfill: fetch.polyfill }),
  });
  const can = () =>
    canUse(reader.getSnapshot().report, { ...reader.getSnapshot(), chain: 1, services: ["ppoi", "messaging"] });
  let updates = 0;
  reader.subscribe(() => updates++);
  const before = can();
  await pass(31);
  const polled = can();
  await pass(600);
  const expired = can();
  const { reportCode } = reader.latest();
  reader.stop();
  return JSON.stringify({ before, polled, expired, reportCode, asked, left: timers.size, updates });
}
