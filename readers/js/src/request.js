// One request: what is asked differs from one environment to the next.

import { failure } from "./feed.js";

const BODY_MOST = 64 * 1024 * 1024;

/** An answer, or a failure: to a script a 429 without CORS headers is like a network that is down. Never rejects. */
export async function request(url, etag, { fetch = globalThis.fetch, userAgent, timeoutMs, setTimeout, clearTimeout }, aborting) {
  let timer;
  // Not every fetch listens to its signal.
  const late = new Promise((resolve) => (timer = setTimeout(() => resolve(failure("timeout")), timeoutMs)));
  try {
    return await Promise.race([exchange(url, etag, fetch, userAgent, aborting.signal), late]);
  } catch {
    return failure(globalThis.navigator?.onLine === false ? "offline" : "no-answer");
  } finally {
    clearTimeout(timer);
    aborting.abort(); // what is still on its way
  }
}

async function exchange(url, etag, fetch, userAgent, signal) {
  const headers = { Accept: "application/json" };
  const options = { headers, credentials: "omit", referrerPolicy: "no-referrer", signal };
  const isReactNative = globalThis.navigator?.product === "ReactNative";
  if (!isReactNative && (typeof document === "object" || typeof importScripts === "function")) {
    // A browser's cache asks with the ETag that it kept; to a script that would cost a preflight with every request
    // (C10). Not if it is whatwg-fetch, which makes another address of it.
    if (!fetch.polyfill) options.cache = "no-cache";
  } else {
    if (etag !== null) headers["If-None-Match"] = etag;
    if (!isReactNative) headers["User-Agent"] = userAgent;
  }
  const response = await fetch(url, options);
  if (/^https:/i.test(url) && /^http:/i.test(response.url)) return failure("no-answer"); // whoever led there
  const header = (name) => response.headers.get(name);
  const text = response.status === 200 ? await bodyOf(response, header("content-length")) : "";
  if (text === null) return failure("too-long");
  return { httpCode: response.status, text, etag: header("etag"), retryAfter: header("retry-after"), date: header("date"), age: header("age") };
}

/**
 * As bytes if they come in a stream, which are held to be UTF-8 when they are read: text() would replace what is not.
 * Null if it is too long: of a stream no more than that is kept.
 */
async function bodyOf(response, length) {
  if (length > BODY_MOST) return null;
  if (!response.body?.getReader || typeof TextDecoder !== "function") {
    const whole = response.text ? await response.text() : new Uint8Array(await response.arrayBuffer());
    return whole.length > BODY_MOST ? null : whole;
  }
  const reader = response.body.getReader();
  const parts = [];
  let left = BODY_MOST;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    parts.push(value);
    left -= value.length;
    if (left < 0) return null;
  }
}
