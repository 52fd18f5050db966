// Elements from plain values. Text is only ever text: nothing here parses HTML, so a token cannot become markup.

const SVG = "http://www.w3.org/2000/svg";
const HANDLERS = [
  "onclick",
  "ondblclick",
  "onsubmit",
  "oninput",
  "onchange",
  "onkeydown",
  "onpointerdown",
  "onpointerover",
  "onpointerout",
  "onpointermove",
  "onpointerleave",
  "onfocusin",
];

function build(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (name === "value" || name === "checked") {
      element[name] = value;
      element.setAttribute(name, value === true ? "" : value);
    } else if (typeof value === "function") handle(element, name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** Set a handler. Browsers have no property for `focusin`, which tells a table of its cells: here it is one. */
function handle(element, name, handler) {
  if (name === "onfocusin" && element.onfocusin === undefined)
    element.addEventListener("focusin", (event) => element.onfocusin?.(event));
  element[name] = handler ?? null;
}

/** An HTML element. Functions are set as handlers; null, undefined and false leave out an attribute or a child. */
export const h = (tag, props, ...children) => build(document.createElement(tag), props, children);

/** An SVG element. */
export const s = (tag, props, ...children) => build(document.createElementNS(SVG, tag), props, children);

/**
 * Make `old` the same as `fresh`, and keep what can be kept of it. So panels can be drawn anew from the state
 * at every change, and still focus, scroll positions and a slider that is being dragged stay as they are.
 */
export function morph(old, fresh) {
  // What has a life of its own, such as an instrument with its settings, stays as it is.
  if (fresh.keep && old.keep === fresh.keep) return old;
  if (fresh.keep || old.keep || old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh);
    return fresh;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return old;
  }
  for (const name of old.getAttributeNames())
    if (!fresh.hasAttribute(name) && !isOwn(old, name)) old.removeAttribute(name);
  for (const name of fresh.getAttributeNames()) {
    const value = fresh.getAttribute(name);
    if (old.getAttribute(name) === value) continue;
    // A policy may forbid the attribute, never the property.
    if (name === "style") old.style.cssText = fresh.style.cssText;
    else old.setAttribute(name, value);
  }
  for (const name of HANDLERS) if (old[name] !== fresh[name]) handle(old, name, fresh[name]);
  if (fresh.paint) old.paint = fresh.paint;
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  after.forEach((child, place) => (place < before.length ? morph(before[place], child) : old.append(child)));
  before.slice(after.length).forEach((child) => child.remove());
  // Last, because a list can only have a value that it offers.
  if ("value" in fresh && old.value !== fresh.value) old.value = fresh.value;
  if (old.localName === "input") old.checked = fresh.checked;
  return old;
}

/** What the reader has opened stays open; and a canvas whose size is taken away loses its picture. */
const isOwn = (element, name) =>
  name === "open" || (element.localName === "canvas" && ["width", "height"].includes(name));

/** Draw the canvases of an element: a canvas keeps no picture in its attributes, so it brings a function. */
export function paintAll(element) {
  for (const canvas of element.querySelectorAll("canvas")) canvas.paint?.(canvas);
}

/** A name with the sign of a word's beginning set back; its text stays whole. */
export function piece(text, make = h) {
  const tag = make === h ? "span" : "tspan";
  return text.length > 1 && text.startsWith("▁") ? [make(tag, { class: "begin" }, "▁"), text.slice(1)] : [text];
}

/** A text as it may be shown: what steers the direction of writing goes, what cannot be seen gets a sign. */
export function printable(text) {
  return text
    .normalize("NFC")
    .replace(/[\u0000-\u001f]/g, (sign) => String.fromCodePoint(0x2400 + sign.charCodeAt(0)))
    .replace(/\u007f/g, "␡")
    .replace(/(?![\u200c\u200d])\p{Cf}/gu, "")
    .replace(/[\p{Cc}\p{Cs}\p{Cn}\p{Zl}\p{Zp}]/gu, "\ufffd");
}
