// Arrays of a trace: base64 of zlib of little-endian numbers, as regard/trace/arrays.py packs them.

const SIZES = { f2: 2, f4: 4, u2: 2 };
const MAX_VALUES = 11_000_000; // as in regard/trace/arrays.py
const UNSEEN = 65535;

/** Numbers in row-major order and their shape. */
export async function unpack(array) {
  if (array.values instanceof Float32Array) return array; // of the engine in this page
  const { dtype, shape, scale } = array;
  const count = shape.reduce((product, size) => product * size, 1);
  if (!(dtype in SIZES) || !(count >= 0 && count <= MAX_VALUES)) throw new Error(`array ${dtype} ${shape}`);
  const bytes = await inflate(array.data, count * SIZES[dtype]);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const values = new Float32Array(count);
  if (dtype === "f4") for (let at = 0; at < count; at++) values[at] = view.getFloat32(4 * at, true);
  if (dtype === "f2") for (let at = 0; at < count; at++) values[at] = half(view.getUint16(2 * at, true));
  if (dtype === "u2") {
    if (!(scale > 0 && scale < 1)) throw new Error(`scale ${scale}`);
    for (let at = 0; at < count; at++) {
      const code = view.getUint16(2 * at, true);
      values[at] = code === UNSEEN ? -Infinity : -scale * code * code;
    }
  }
  return { shape, values };
}

async function inflate(text, wanted) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(wanted);
  let filled = 0;
  // Read in chunks, and no further than wanted: a small text can inflate to gigabytes.
  for (const reader = stream.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (filled + value.length > wanted) {
      reader.cancel().catch(() => {});
      throw new Error(`more than ${wanted} bytes`);
    }
    bytes.set(value, filled);
    filled += value.length;
  }
  if (filled !== wanted) throw new Error(`${filled} bytes, ${wanted} wanted`);
  return bytes;
}

function half(code) {
  const sign = code & 0x8000 ? -1 : 1;
  const exponent = (code >> 10) & 31;
  const fraction = code & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

/** Row `place` along the first axis. */
export function row({ shape, values }, place) {
  const size = shape.slice(1).reduce((product, one) => product * one, 1);
  return { shape: shape.slice(1), values: values.subarray(place * size, (place + 1) * size) };
}

/** The rows of a matrix. */
export function rows(matrix) {
  return Array.from({ length: matrix.shape[0] }, (_, place) => row(matrix, place).values);
}
