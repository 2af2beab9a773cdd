/** What stands after the # of the page's address: a network, a day, the language. So it can be passed on. */

export function readAddress(name) {
  return new URLSearchParams(location.hash.slice(1)).get(name);
}

/** Changes these parts of the address, without a step in the browser's history; null takes one out. */
export function writeAddress(changes) {
  const parts = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) parts.delete(name);
    else parts.set(name, value);
  }
  const text = parts.toString();
  const hash = text === "" ? "" : `#${text}`;
  if (hash !== location.hash) window.history.replaceState(null, "", `${location.pathname}${location.search}${hash}`);
}
