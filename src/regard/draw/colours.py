"""Numbers as colours: one ramp for amounts, one for what has a sign; and colours as PNG.

Both ramps can be told apart by people who see few colours. Brightness alone orders the first one.
"""

import struct
import zlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Pixels = NDArray[np.uint8]


def _ramp(colours: str) -> Floats:
    return np.array([list(bytes.fromhex(colour)) for colour in colours.split()], dtype=float)


# Nuñez, Anderton and Renslow 2018: from dark blue to yellow, for dark terminals.
_CIVIDIS = _ramp(
    "00224e 00285b 002e6a 053371 1a386f 273e6e 32436d 3b496c 434e6c 4b546c 535a6d 5a5f6e"
    " 61656f 686a71 6f7073 767676 7d7c78 848279 8c8878 938e78 9b9476 a39a74 aba072 b4a76f"
    " bcae6c c4b468 cdbb63 d5c25e dec958 e7d150 f0d846 f9e03a fee838"
)
# Blues of ColorBrewer (Brewer 2003): from almost white to dark blue, for light paper.
_BLUES = _ramp("f7fbff deebf7 c6dbef 9ecae1 6baed6 4292c6 2171b5 08519c 08306b")
# PuOr of ColorBrewer (Brewer 2003): from orange over white to purple.
_PUOR = _ramp("7f3b08 b35806 e08214 fdb863 fee0b6 f7f7f7 d8daeb b2abd2 8073ac 542788 2d004b")


def shaded(values: ArrayLike, bound: float, signed: bool, on_dark: bool = False) -> Pixels:
    """Return red, green and blue for each value, in one more axis.

    Amounts run from 0 to the bound, light to dark, or dark to bright; signed values from minus the bound to
    the bound. What is not a number gets the colour of 0: whoever draws it draws something else over it.
    """
    shares = np.clip(np.nan_to_num(np.asarray(values, dtype=float)) / bound, -1.0 if signed else 0.0, 1.0)
    ramp = _PUOR if signed else _CIVIDIS if on_dark else _BLUES
    places = (shares + 1) / 2 if signed else shares
    steps = np.linspace(0, 1, len(ramp))
    channels = [np.interp(places, steps, ramp[:, channel]) for channel in range(3)]
    return np.stack(channels, axis=-1).round().astype(np.uint8)


def hexadecimal(colour: ArrayLike) -> str:
    """Return red, green and blue as SVG writes them: `#fee838`."""
    return "#" + bytes(np.asarray(colour, dtype=np.uint8)).hex()


def ink_on(colour: ArrayLike) -> str:
    """Return black or white, whichever is better read on a colour (relative luminance of WCAG 2.2)."""
    channels = np.asarray(colour, dtype=float) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    # At a luminance of 0.179 the contrast with black is the contrast with white.
    return "#000000" if float(linear @ np.array([0.2126, 0.7152, 0.0722])) > 0.179 else "#ffffff"


def nearest_of_256(colour: ArrayLike) -> int:
    """Return the number of the nearest of a terminal's 216 colours and 24 greys."""
    wanted = np.asarray(colour, dtype=float)
    levels = np.array([0, 95, 135, 175, 215, 255])
    cube = np.abs(wanted[:, None] - levels).argmin(axis=1)
    grey = int(np.clip(round((wanted.mean() - 8) / 10), 0, 23))
    if np.square(levels[cube] - wanted).sum() <= np.square(8 + 10 * grey - wanted).sum():
        return int(16 + cube @ np.array([36, 6, 1]))
    return 232 + grey


def png(pixels: Pixels) -> bytes:
    """Return a picture of shape (height, width, 4), red, green, blue and opacity, as a PNG file."""
    height, width, _ = pixels.shape
    # Each row begins with the number of its filter; 0 is none.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, 4 * width)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    )
