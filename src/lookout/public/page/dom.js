/** Small words for making and changing elements. */

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; null children are left out. */
export function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function s(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** A status as a shape; its word stands beside it. */
export function shape(status) {
  return s(
    "svg",
    { class: "shape", "data-status": status, "aria-hidden": "true" },
    s("use", { href: `#shape-${status}` }),
  );
}

/** Changes a text only if it differs, so that a page at rest is at rest. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setStatus(element, status) {
  if (element.dataset.status === status) return;
  element.dataset.status = status;
  for (const use of element.querySelectorAll(":scope > .state > .shape > use"))
    use.setAttribute("href", `#shape-${status}`);
}

/**
 * Makes these the children of an element. Those that stay in place are not touched, and the one with the focus is never
 * moved, only what is around it: what is moved loses the focus.
 */
export function setChildren(element, children) {
  const wanted = new Set(children);
  for (const child of [...element.children]) if (!wanted.has(child)) child.remove();
  children.forEach((child, n) => {
    if (element.children[n] === child) return;
    if (!child.contains(document.activeElement)) element.insertBefore(child, element.children[n] ?? null);
    else while (element.children[n] !== child) element.append(element.children[n]);
  });
}

/** What is kept under a key, made when it is asked for first. */
export function takeOrMake(map, key, make) {
  if (!map.has(key)) map.set(key, make());
  return map.get(key);
}
