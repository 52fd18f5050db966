"""Charts hold every number and every name, whatever it is, and nothing leaves the picture."""

import re
import struct
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pytest

from regard.draw.charts import Series, XAxis, bar_chart, categories, line_chart, x_scale
from regard.draw.labels import display_width
from regard.draw.png import png
from regard.draw.scene import svg

SVG = "{http://www.w3.org/2000/svg}"
BINS = ["1-10", "11-20", "21-30", "31-40"]
NOTES = ["n = 4", "n = 3", "n = 2", "n = 1"]
HOSTILE = '</text><script>alert(1)</script>"&\x1b'


def line_chart_svg(some, title, x_label, y_label, *names_and_notes):
    return svg(line_chart(some, title, y_label, categories(x_label, *names_and_notes)))


def bar_chart_svg(some, title, x_label, y_label, *names_and_notes):
    return svg(bar_chart(some, title, y_label, categories(x_label, *names_and_notes)))


def series(name="one", y=(30.0, 28.0, 25.0, 20.0), width=2.0, **more):
    values = np.array(y)
    return Series(name, np.arange(len(values), dtype=float), values, values - width, values + width, **more)


def drawn(text):
    """The parsed picture; it is well-formed and stands alone."""
    assert set(re.findall("https?://[^\"' ]*", text)) == {"http://www.w3.org/2000/svg"}
    assert " id=" not in text
    return ElementTree.fromstring(text)


def by_class(picture, name):
    return [one for one in picture.iter() if one.get("class") == name]


def numbers(path):
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", path)]


def points(path):
    """The absolute points of a path of straight lines."""
    values = numbers(path)
    return list(zip(values[::2], values[1::2], strict=True))


@pytest.mark.parametrize("draw", [line_chart_svg, bar_chart_svg])
def test_every_number_stands_in_a_title(draw):
    picture = drawn(
        draw([series(), series("two", (10, 9, 8, 7))], "BLEU by length", "words", "BLEU", BINS, NOTES)
    )
    titles = [one.text for one in picture.iter(f"{SVG}title")]
    assert "one, 11-20: 28.0 (26.0 to 30.0), n = 3" in titles
    assert "two, 31-40: 7.0 (5.0 to 9.0), n = 1" in titles
    told = picture.find(f"{SVG}desc").text
    assert "one, 1-10: 30.0" in told and "two, 1-10: 10.0" in told
    shown = [text for one in picture.iter(f"{SVG}text") for text in one.itertext()]
    assert {*BINS, *NOTES, "words", "BLEU", "BLEU by length", "one", "two"} <= set(shown)


def test_a_band_runs_around_its_line():
    picture = drawn(line_chart_svg([series()], "t", "x", "y", BINS))
    (line,) = [one for one in by_class(picture, "line") if "L" in one.get("d")]
    (band,) = by_class(picture, "band")
    along, around = points(line.get("d")), points(band.get("d"))
    assert len(along) == 4 and len(around) == 8
    for (x, y), (above_x, above), (below_x, below) in zip(along, around[:4], around[:3:-1], strict=True):
        assert x == above_x == below_x and above < y < below


def test_higher_values_stand_higher_and_zero_is_on_the_axis():
    picture = drawn(line_chart_svg([series(y=(10.0, 20.0))], "t", "x", "y", BINS[:2]))
    (line,) = [one for one in by_class(picture, "line") if "L" in one.get("d")]
    (_, low), (_, high) = points(line.get("d"))
    assert high < low
    assert any(one.text == "0" for one in picture.iter(f"{SVG}text"))


def test_missing_points_break_the_line_and_a_lone_one_has_a_whisker():
    picture = drawn(line_chart_svg([series(y=(1.0, np.nan, 2.0, 3.0))], "t", "x", "y", BINS))
    (line,) = [one for one in by_class(picture, "line") if one.get("d").count("M") == 2]
    assert line.get("d").count("L") == 1
    assert len(by_class(picture, "whisker")) == 1 and len(by_class(picture, "band")) == 1
    assert "nan" not in ElementTree.tostring(picture, encoding="unicode")


def test_bars_stand_on_zero_beside_each_other():
    picture = drawn(bar_chart_svg([series(), series("two")], "t", "x", "y", BINS))
    bars = by_class(picture, "bar")
    assert len(bars) == 8
    marks = [numbers(one.get("d"))[0] for one in by_class(picture, "mark")][2:]  # after those of the legend
    for one, x in zip(bars, marks, strict=True):
        assert x == pytest.approx(float(one.get("x")) + float(one.get("width")) / 2, abs=0.2)
    feet = {round(float(one.get("y")) + float(one.get("height")), 0) for one in bars}
    assert len(feet) == 1
    places = sorted((float(one.get("x")), float(one.get("width"))) for one in bars)
    assert all(x + width <= next_x for (x, width), (next_x, _) in pairwise(places))


def test_numbers_may_stand_in_the_place_of_categories():
    one = Series("one", np.array([100.0, 2000.0, 5000.0]), np.array([1.0, 2.0, 3.0]))
    picture = drawn(svg(line_chart([one], "t", "y", XAxis("steps", x_scale([one])))))
    assert "one, 2,000: 2.0" in [each.text for each in picture.iter(f"{SVG}title")]
    assert "5,000" in [each.text for each in picture.iter(f"{SVG}text")]


def test_nine_systems_are_told_apart_without_colour():
    picture = drawn(
        line_chart_svg([series(f"system {n}", (n, n + 1, n, n)) for n in range(9)], "t", "x", "y", BINS)
    )
    lines = [one for one in by_class(picture, "line") if "L" in one.get("d")]
    dashes = [one.get("stroke-dasharray") for one in lines]
    marks = [re.sub(r"^M[\d. ]+", "", one.get("d")) for one in by_class(picture, "mark")][:9]
    assert len(lines) == 9 and len(set(zip(dashes, marks, strict=True))) == 9


@pytest.mark.parametrize("draw", [line_chart_svg, bar_chart_svg])
@pytest.mark.parametrize("num_series", [1, 9])
def test_nothing_leaves_the_picture(draw, num_series):
    many = [series(f"a rather long name of a system {n}", note="BLEU 12.3") for n in range(num_series)]
    wide = [
        "a name of 24 columns, yes",
        "넓은 글자로 쓴 이름이에요",
        "and one more, just as long",
        "d" * 40,
    ] * 2
    picture = drawn(
        draw(many, "A title that is long enough for two lines, at the very least, " * 3, "x", "y", wide)
    )
    width, height = float(picture.get("width")), float(picture.get("height"))
    for text in picture.iter(f"{SVG}text"):
        said = "".join(part for part in text.itertext() if part)
        for title in text.iter(f"{SVG}title"):
            said = said.removeprefix(title.text)
        size = 9.6 if text.get("class") == "heading" else 7.3
        x, long = float(text.get("x")), size * display_width(said)
        start = {"middle": x - long / 2, "end": x - long}.get(text.get("text-anchor"), x)
        assert start >= 0 and start + long <= width, said
        assert 0 < float(text.get("y")) < height
    below = [one for one in picture.iter(f"{SVG}text") if one.find(f"{SVG}title") is not None]
    places = [(float(one.get("x")), 7.3 / 2 * display_width(one.find(f"{SVG}title").tail)) for one in below]
    assert len(places) == 8
    for (x, half), (next_x, next_half) in pairwise(places):
        assert x + half < next_x - next_half
    for one in by_class(picture, "mark"):
        assert 0 < numbers(one.get("d"))[0] < width and 0 < numbers(one.get("d"))[1] < height
    for one in (*by_class(picture, "bar"), *by_class(picture, "grid")):
        assert float(one.get("x") or 0) + float(one.get("width") or 0) <= width


def test_hostile_names_are_text():
    one = series(HOSTILE, note=HOSTILE)
    for draw in (line_chart_svg, bar_chart_svg):
        picture = drawn(draw([one], HOSTILE, HOSTILE, HOSTILE, [HOSTILE, "b", "c", "d"], [HOSTILE] * 4))
        assert not list(picture.iter(f"{SVG}script"))
        assert picture.find(f"{SVG}title").text == HOSTILE.replace("\x1b", "␛")


@pytest.mark.parametrize("draw", [line_chart_svg, bar_chart_svg])
@pytest.mark.parametrize(
    "some", [[], [Series("none", np.empty(0), np.empty(0))], [series(y=(0.0, 0.0, 0.0, 0.0), width=0)]]
)
def test_a_chart_of_nothing_is_still_a_chart(draw, some):
    picture = drawn(draw(some, "t", "x", "y", BINS))
    assert "nan" not in ElementTree.tostring(picture, encoding="unicode")


@pytest.mark.parametrize("draw", [line_chart, bar_chart])
def test_the_png_is_the_same_picture_with_twice_as_many_dots(draw):
    pytest.importorskip("matplotlib")
    many = [series(name, note="BLEU 12.3") for name in ("one", "둘", HOSTILE)]
    scene = draw(many, "t", "y", categories("x", BINS, NOTES))
    data = png(scene)
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (2 * scene.width, 2 * scene.height)


def test_light_and_dark_are_both_there():
    text = line_chart_svg([series()], "t", "x", "y", BINS)
    assert "prefers-color-scheme: dark" in text and 'class="paper"' in text


def test_numbers_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="as many numbers"):
        Series("one", np.zeros(2), np.zeros(3))
    with pytest.raises(ValueError, match="both ends"):
        Series("one", np.zeros(2), np.zeros(2), low=np.zeros(2))
    with pytest.raises(ValueError, match="notes"):
        line_chart_svg([series()], "t", "x", "y", BINS, ["one"])
