"""Pictures: what they hold, that nothing can break out of them, and that they fit."""

import re
import struct
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.draw.charts import linear_ticks, styles, x_scale
from regard.draw.curves import MAX_POINTS, Curve, learning_curves, panels
from regard.draw.labels import cut, display_width, duration, pad_left, perplexity, printable, wrapped
from regard.draw.png import png
from regard.draw.scene import svg
from regard.draw.terminal import sparkline
from regard.errors import MissingExtraError

SVG = "{http://www.w3.org/2000/svg}"
NOTHING = np.array([])


def curves_svg(curves, x_label):
    return svg(learning_curves(curves, x_label))


def curves_png(curves, x_label):
    return png(learning_curves(curves, x_label))


def curve(name="fr-en", num_updates=300, num_validations=6):
    x = np.arange(1.0, num_updates + 1)
    validation_x = np.linspace(num_updates / 6, num_updates, num_validations)
    noise = np.random.default_rng(0).normal(0, 0.1, num_updates)
    return Curve(
        name, x, 2 + 7 * np.exp(-x / 50) + noise, validation_x, 2 + 3 / validation_x, np.sqrt(validation_x)
    )


def texts(svg):
    return ["".join(element.itertext()) for element in ET.fromstring(svg).iter(f"{SVG}text")]


def test_the_svg_names_panels_axis_and_runs():
    found = texts(curves_svg([curve("one"), curve("two")], "updates"))
    for wanted in (
        "training loss, nats per target piece",
        "validation loss, nats per target piece",
        "validation BLEU",
        "updates",
    ):
        assert wanted in found
    assert "one best BLEU 17.3" in found and "two best BLEU 17.3" in found  # sqrt(300)


HOSTILE = ["</svg><script>alert(1)</script>", '"><rect/>', "&amp;", "]]>", "a\x00b\x1b[31m", "\ud800", "\ufffe", "-->", "$\\frac{1}$", "_run", "x" * 300, "", "日本語", "\u202eabc"]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_breaks_out_of_the_svg(name):
    svg = curves_svg([curve(name)], "updates")
    tree = ET.fromstring(svg.encode())
    assert {element.tag.removeprefix(SVG) for element in tree.iter()} <= {
        "svg",
        "title",
        "desc",
        "style",
        "rect",
        "text",
        "tspan",
        "path",
        "g",
    }
    assert tree.find(f"{SVG}g/{SVG}title").text == (printable(name) or None)
    assert "<script" not in svg


def test_a_long_name_is_cut_in_the_legend_and_whole_in_its_title():
    svg = curves_svg([curve("x" * 300)], "updates")
    assert any(text.startswith("xxx") and "…" in text for text in texts(svg))
    assert f"<title>{'x' * 300}</title>" in svg


def test_the_svg_reads_in_light_and_dark_and_aloud():
    svg = curves_svg([curve()], "updates")
    assert "prefers-color-scheme: dark" in svg and "currentColor" in svg
    tree = ET.fromstring(svg)
    assert tree.get("role") == "img" and tree[0].tag == f"{SVG}title" and tree[1].tag == f"{SVG}desc"
    assert "fr-en: 300 updates, best BLEU 17.3." in tree[1].text


def test_no_line_has_more_points_than_can_be_seen():
    long = curve(num_updates=100_000)
    for path in ET.fromstring(curves_svg([long], "updates")).iter(f"{SVG}path"):
        assert path.get("d").count("L") < MAX_POINTS
    training = panels([long])[0].series[0]
    assert training.x[0] == 1 and training.x[-1] == 100_000


def test_the_smoothed_line_begins_at_the_first_loss_and_loses_no_spike():
    spiky = curve(num_updates=20_000)
    spiky.loss[12_345] = 50.0
    line = panels([spiky])[0].series[0]
    assert line.y[0] == pytest.approx(spiky.loss[0])
    assert line.raw_y.max() == 50.0
    assert panels([spiky])[0].scale.high < 20  # and the spike does not press the rest flat


def test_a_spike_ends_at_the_edge_of_its_panel():
    spiky = curve(num_updates=2_000)
    spiky.loss[1234] = 50.0
    raw, frame, *_ = (
        [float(y) for y in re.findall(r" (-?[0-9.]+)", path.get("d"))]
        for name in ("raw", "frame")
        for path in ET.fromstring(curves_svg([spiky], "updates")).iter(f"{SVG}path")
        if path.get("class") == name
    )
    assert min(raw) == min(frame) and max(raw) <= max(frame)


def test_smoothing_is_the_mean_of_the_neighbours():
    straight = Curve("a", np.arange(1200.0), np.arange(1200.0) + 5, NOTHING, NOTHING, NOTHING)
    line = panels([straight])[0].series[0]
    assert line.y[:1000] == pytest.approx(straight.loss[:1000])  # a straight line stays one


@pytest.mark.parametrize(
    "strange",
    [
        Curve("none", NOTHING, NOTHING, NOTHING, NOTHING, NOTHING),
        Curve("one point", np.ones(1), np.ones(1), np.ones(1), np.ones(1), np.zeros(1)),
        Curve("at 0", np.zeros(1), np.zeros(1), NOTHING, NOTHING, NOTHING),
        Curve(
            "nan",
            np.arange(3.0),
            np.full(3, np.nan),
            np.arange(2.0),
            np.array([np.inf, 1]),
            np.full(2, np.nan),
        ),
        Curve("no clock", np.full(3, np.nan), np.ones(3), np.full(1, np.nan), np.ones(1), np.ones(1)),
        Curve("negative", np.arange(500.0), np.linspace(-5, 5, 500), NOTHING, NOTHING, NOTHING),
        Curve("flat", np.arange(500.0), np.full(500, 2.0), NOTHING, NOTHING, NOTHING),
        Curve("huge", np.arange(500.0) * 1e6, np.geomspace(1e-6, 1e9, 500), NOTHING, NOTHING, NOTHING),
    ],
    ids=lambda one: one.name,
)
def test_strange_runs_can_be_drawn(strange):
    svg = curves_svg([strange, curve()], "updates")
    assert "nan" not in svg.replace("strange", "").replace(">nan", "").replace(" nan", "").replace("nan:", "")
    ET.fromstring(svg)
    assert x_scale(panels([strange, curve()])[0].series).high >= 300
    curves_svg([strange], "updates")
    pytest.importorskip("matplotlib")
    assert curves_png([strange], "updates").startswith(b"\x89PNG")


def test_an_empty_panel_says_why():
    young = Curve("young", np.arange(9.0), np.ones(9), NOTHING, NOTHING, NOTHING)
    assert texts(curves_svg([young], "updates")).count("no validation yet") == 2


def test_runs_differ_in_more_than_colour():
    several = styles(140)
    assert len(set(several)) == 140
    assert len({(style.dash, style.mark) for style in several[:20]}) == 20


def test_the_legend_wraps_and_nothing_lies_outside():
    tree = ET.fromstring(curves_svg([curve("run" * length) for length in range(1, 30)], "updates"))
    width, height = float(tree.get("width")), float(tree.get("height"))
    spots = set()
    for name in tree.iter(f"{SVG}text"):
        x, y = float(name.get("x")), float(name.get("y"))
        end = x + 7.3 * len("".join(name.itertext())) if name.get("class") == "name" else x
        assert x >= 0 and end <= width and 0 <= y <= height
        spots.add((x, y))
    assert len(spots) == len(list(tree.iter(f"{SVG}text")))


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_and_inside(low, span):
    ticks = linear_ticks(low, low + span)
    assert 2 <= len(ticks) <= 8
    assert all(low - 1e-6 * span <= tick <= low + span + 1e-6 * span for tick in ticks)


def test_ticks_are_round():
    assert linear_ticks(0, 12_000) == [0, 2000, 4000, 6000, 8000, 10_000, 12_000]
    assert x_scale(panels([curve(num_updates=300)])[0].series).ticks == [0, 50, 100, 150, 200, 250, 300]


@pytest.mark.parametrize("name", HOSTILE)
def test_the_png_takes_any_name(name):
    pytest.importorskip("matplotlib")
    png = curves_png([curve(name), curve("other")], "updates")
    width, height = struct.unpack(">II", png[16:24])
    assert png.startswith(b"\x89PNG") and width > 1000 and height > 800


def test_a_png_needs_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="plot"):
        curves_png([curve()], "updates")


@pytest.mark.parametrize(
    ("text", "width"), [("", 0), ("abc", 3), ("日本", 4), ("e\u0301", 1), ("한", 2), ("ｆ", 2), ("a\u200db", 2), ("▁le", 3), ("\u1112\u1161\u11ab", 2)]
)  # fmt: skip
def test_width_is_counted_in_columns(text, width):
    assert display_width(text) == width


@given(st.lists(st.text(max_size=12)), st.integers(1, 30))
def test_wrapped_lines_fit_and_lose_no_word(words, width):
    words = [cut("".join(printable(word).split()), width) for word in words]
    lines = wrapped(words, width)
    assert all(display_width(line) <= width for line in lines)
    assert " ".join(lines) == " ".join(words)


@given(st.text(), st.integers(0, 20))
def test_what_is_cut_fits(text, width):
    short = cut(printable(text), width)
    assert display_width(short) <= width
    assert short == printable(text) or short.endswith("…") or width == 0
    assert display_width(pad_left(short, width)) == width


@given(st.text())
def test_printable_text_has_nothing_that_steers(text):
    safe = printable(text)
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in safe)
    assert safe.encode() and safe == printable(safe) if safe else True
    assert len(safe.splitlines()) <= 1


def test_control_characters_become_pictures():
    assert printable("a\x1b[31m\nb\x7f\x9b\u202e") == "a␛[31m␊b␡�"


def test_times_and_perplexities_are_readable():
    assert [duration(s) for s in (0, 45.9, 60, 3599, 3900, 90_000, float("inf"))] == [
        "0 s",
        "45 s",
        "1 min",
        "59 min",
        "1 h 5 min",
        "1 d 1 h",
        "?",
    ]
    assert [perplexity(x) for x in (0.0, np.log(6.94), np.log(120), np.log(3e9))] == [
        "1.0",
        "6.9",
        "120",
        "3e+09",
    ]
    assert perplexity(1e9) and perplexity(float("nan")) == "nan"


def test_sparklines_by_hand():
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([0, 0, 7, 7], 2) == "▁█"
    assert sparkline([1, float("nan"), 2], 8) == "▁ █"
    assert sparkline([], 8) == "" and sparkline([3, 3], 8) == "▁▁" and sparkline([1, 2], 0) == ""
