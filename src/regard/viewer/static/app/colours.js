// Numbers as colours, by the same anchors as regard/draw/colours.py.

const ramp = (colours) =>
  colours.split(" ").map((colour) => [0, 2, 4].map((at) => parseInt(colour.slice(at, at + 2), 16)));

// Blues of ColorBrewer (Brewer 2003): from almost white to dark blue. On a dark page from dark to light.
const BLUES = ramp("f7fbff deebf7 c6dbef 9ecae1 6baed6 4292c6 2171b5 08519c 08306b");
const NIGHT = ramp("22262d 1f3147 1d4163 1d5585 2b6ea8 4b8cc4 77aad8 a9cbe9 deebf7");
// PuOr of ColorBrewer (Brewer 2003): from orange over white to purple.
const PUOR = ramp("7f3b08 b35806 e08214 fdb863 fee0b6 f7f7f7 d8daeb b2abd2 8073ac 542788 2d004b");

/** Whether the page is dark. */
export const isDark = () =>
  (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) ===
  "dark";

const amounts = () => (isDark() ? NIGHT : BLUES);

/** Red, green and blue of an amount from 0 to the bound, or of a signed value from -bound to bound. */
export function shaded(value, bound, signed, dark = isDark()) {
  const anchors = signed ? PUOR : dark ? NIGHT : BLUES;
  const share = Math.min(1, Math.max(signed ? -1 : 0, (value || 0) / (bound || 1)));
  const place = (signed ? (share + 1) / 2 : share) * (anchors.length - 1);
  const low = Math.min(Math.floor(place), anchors.length - 2);
  return anchors[low].map((from, channel) => Math.round(from + (place - low) * (anchors[low + 1][channel] - from)));
}

export const css = (colour) => `rgb(${colour.join(" ")})`;

/** Black or white, whichever is better read on a colour (relative luminance of WCAG 2.2). */
export function inkOn(colour) {
  const [red, green, blue] = colour.map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}

/** A strip of the whole ramp, for legends. */
export function gradient(signed) {
  return `linear-gradient(to right, ${(signed ? PUOR : amounts()).map(css).join(", ")})`;
}

/** Paint values (rows of numbers) into a canvas, one pixel each; what cannot be seen stays transparent. */
export function paintMatrix(canvas, rows, bound, signed) {
  canvas.width = rows[0]?.length || 1;
  canvas.height = rows.length || 1;
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  let at = 0;
  for (const row of rows) {
    for (const value of row) {
      image.data.set(Number.isNaN(value) ? [0, 0, 0, 0] : [...shaded(value, bound, signed), 255], at);
      at += 4;
    }
  }
  context.putImageData(image, 0, 0);
}
