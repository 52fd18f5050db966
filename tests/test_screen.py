"""A picture of a terminal: every sign where it stood, in the colours it had."""

import importlib.util
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

spec = importlib.util.spec_from_file_location("screen", Path(__file__).parents[1] / "recipes" / "screen.py")
screen = importlib.util.module_from_spec(spec)
spec.loader.exec_module(screen)
screen_svg = screen.screen_svg

SVG = "{http://www.w3.org/2000/svg}"


def test_signs_stand_in_columns_and_keep_their_colours():
    svg = screen_svg('ab\x1b[38;2;255;0;0;48;2;0;0;255m█░\x1b[0m한글\n\n<b> & "x"', "regard demo")
    root = ElementTree.fromstring(svg)
    texts = [
        (one.text, float(one.get("x")), float(one.get("textLength")))
        for one in root.iter(f"{SVG}text")
        if one.get("textLength")
    ]
    (plain, x, wide), (shaded, next_x, _), (korean, last_x, korean_wide), (marked, _, _) = texts
    cell = wide / 2
    assert (plain, shaded, korean, marked) == ("ab", "█░", "한글", '<b> & "x"')
    assert next_x == x + 2 * cell and last_x == next_x + 2 * cell and korean_wide == 4 * cell
    assert 'fill="#ff0000"' in svg and 'fill="#0000ff"' in svg
    assert root.find(f"{SVG}title").text == "regard demo"


def test_the_window_is_as_wide_as_its_widest_line():
    widths = [float(re.search(r'width="([\d.]+)"', screen_svg("x" * n, "t")).group(1)) for n in (40, 80)]
    assert widths[1] > widths[0]
