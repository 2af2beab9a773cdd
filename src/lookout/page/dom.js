/** Small words for making and changing elements. */

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; null children are left out. */
export function h(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function s(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** A status as a shape; its word stands beside it. */
export function shape(status) {
  return s("svg", { class: "shape", "data-status": status, "aria-hidden": "true" }, s("use", { href: `#shape-${status}` }));
}

/** Changes a text only if it differs, so that a page at rest is at rest. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setStatus(element, status) {
  if (element.dataset.status === status) return;
  element.dataset.status = status;
  for (const use of element.querySelectorAll(":scope > .state use")) use.setAttribute("href", `#shape-${status}`);
}

/** Makes these the children of an element, and touches nothing if they are already. */
export function setChildren(element, children) {
  if (children.length !== element.children.length || children.some((child, n) => child !== element.children[n])) {
    element.replaceChildren(...children);
  }
}
