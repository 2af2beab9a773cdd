// One request: what is asked differs from one environment to the next.

import { BODIES_MOST, failure } from "./feed.js";

/**
 * An answer, or a failure, which may say that it `reachedNobody`. To a script in a page a 429 without CORS headers is
 * like a network that is down. Never rejects.
 */
export async function request(
  url,
  feed,
  { fetch = globalThis.fetch, userAgent, timeoutMs, setTimeout, clearTimeout },
  aborting,
) {
  let timer;
  // Not every fetch listens to its signal.
  const late = new Promise(
    (resolve) => (timer = setTimeout(() => resolve({ ...failure("timeout"), reachedNobody: true }), timeoutMs)),
  );
  try {
    return await Promise.race([exchange(url, feed, fetch, userAgent, aborting.signal), late]);
  } catch {
    const isOnline = globalThis.navigator?.onLine; // undefined where no CORS hides an answer
    return { ...failure(isOnline === false ? "offline" : "no-answer"), reachedNobody: !isOnline };
  } finally {
    clearTimeout(timer);
    aborting.abort(); // what is still on its way
  }
}

async function exchange(url, { kind, etag }, fetch, userAgent, signal) {
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
  const text = response.status === 200 ? await bodyOf(response, BODIES_MOST[kind]) : "";
  if (text === null) return failure("too-long");
  return {
    httpCode: response.status,
    text,
    etag: header("etag"),
    retryAfter: header("retry-after"),
    date: header("date"),
    age: header("age"),
  };
}

/**
 * As bytes if they come in a stream, which are held to be UTF-8 when they are read: text() would replace what is not.
 * Null if they are too long: no more than that is kept.
 */
async function bodyOf(response, most) {
  if (!response.body?.getReader || typeof TextDecoder !== "function") {
    return response.text ? response.text() : new Uint8Array(await response.arrayBuffer());
  }
  const reader = response.body.getReader();
  const parts = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    length += value.length;
    if (length > most) return null;
  }
  const whole = new Uint8Array(length); // React Native has no Blob of bytes
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}
