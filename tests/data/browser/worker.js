importScripts("/commonjs/index.js");
addEventListener("message", async ({ data, source }) => {
  globalThis.reader ??= lookoutReader.createReader({ ...data, history: false });
  const { report, reportCode } = await reader.read();
  source.postMessage({ rows: report?.rows.length, reportCode });
});
