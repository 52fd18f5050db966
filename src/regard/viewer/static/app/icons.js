// Signs on buttons, drawn, because fonts differ in which they have and how large.

import { s } from "#app/dom";

const PATHS = {
  back: "M10.5 3 5.5 8l5 5",
  forward: "M5.5 3l5 5-5 5",
  play: "M5 3.2v9.6L12.8 8z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  theme: "M8 2.5a5.5 5.5 0 1 0 0 11z",
};
const MORE = { theme: "M8 2.5a5.5 5.5 0 0 1 0 11" }; // outlined beside what is filled

/** A sign that says nothing by itself: its button has a name. */
export function icon(name) {
  const filled = name === "play" || name === "theme";
  return s(
    "svg",
    { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" },
    s("path", { d: PATHS[name], class: filled ? "filled" : null }),
    MORE[name] ? s("path", { d: MORE[name] }) : null,
  );
}
