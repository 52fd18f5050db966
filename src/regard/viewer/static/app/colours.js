// Numbers as colours, by the same anchors as regard/draw/colours.py.

const ramp = (colours) =>
  colours.split(" ").map((colour) => [0, 2, 4].map((at) => parseInt(colour.slice(at, at + 2), 16)));

// Nuñez, Anderton and Renslow 2018: from dark blue to yellow.
const CIVIDIS = ramp(
  "00224e 00285b 002e6a 053371 1a386f 273e6e 32436d 3b496c 434e6c 4b546c 535a6d 5a5f6e " +
    "61656f 686a71 6f7073 767676 7d7c78 848279 8c8878 938e78 9b9476 a39a74 aba072 b4a76f " +
    "bcae6c c4b468 cdbb63 d5c25e dec958 e7d150 f0d846 f9e03a fee838",
);
// PuOr of ColorBrewer (Brewer 2003): from orange over white to purple.
const PUOR = ramp("7f3b08 b35806 e08214 fdb863 fee0b6 f7f7f7 d8daeb b2abd2 8073ac 542788 2d004b");

/** Red, green and blue of an amount from 0 to the bound, or of a signed value from -bound to bound. */
export function shaded(value, bound, signed) {
  const anchors = signed ? PUOR : CIVIDIS;
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
  return `linear-gradient(to right, ${(signed ? PUOR : CIVIDIS).map(css).join(", ")})`;
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
