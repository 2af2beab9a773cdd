const { createContext, runInContext } = require("node:vm");
exports.runNative = (code) => {
  const plain = Object.assign(async (url, options) => {
    if (options.cache) throw new Error("another address would be made of it");
    const answer = await fetch(url, options);
    const text = await answer.text();
    return { status: answer.status, url: answer.url, headers: answer.headers, text: async () => text };
  }, { polyfill: true });
  const navigator = { product: "ReactNative" };
  const context = createContext({ AbortController, console, setTimeout, clearTimeout, fetch: plain, navigator });
  context.window = context.global = context;
  runInContext(code, context);
};
