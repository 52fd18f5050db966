"""Heat maps as SVG, PNG and characters: the right numbers in the right places, whatever the words are."""

import base64
import re
import struct
import sys
import xml.etree.ElementTree as ET
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.draw.colours import hexadecimal, ink_on, nearest_of_256, png, shaded
from regard.draw.heatmap import (
    HeatMap,
    ReversedBlock,
    bound_of,
    heat_maps_png,
    heat_maps_svg,
    reversed_blocks,
    scene,
)
from regard.draw.labels import display_width, escaped, percent, printable
from regard.draw.scene import Label
from regard.draw.terminal import heat_map_lines, shades_legend, side_by_side
from regard.errors import MissingExtraError

SVG = "{http://www.w3.org/2000/svg}"
TAGS = {"svg", "title", "desc", "style", "rect", "text", "path", "image"}
HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", '"><rect/>', "&amp;", "]]>", "a\x00b\x1b[31m", "\ud800", "\ufffe", "-->", "$\\frac{1}$", "x" * 300, "", " ", "한국어", "\u202eabc", "العربية", "\u0301"]  # fmt: skip


def chart(values, rows=None, columns=None, **options):
    values = np.asarray(values, dtype=float)
    rows = tuple(f"row{n}" for n in range(values.shape[0])) if rows is None else tuple(rows)
    columns = tuple(f"column{n}" for n in range(values.shape[1])) if columns is None else tuple(columns)
    return HeatMap(**({"title": "a map"} | options), rows=rows, columns=columns, values_TS=values)


def looking_at(columns, num_columns=10):
    """A map whose rows look at these columns."""
    return chart(np.eye(num_columns)[columns])


def parsed(*charts):
    tree = ET.fromstring(heat_maps_svg(charts).encode())
    assert {element.tag.removeprefix(SVG) for element in tree.iter()} <= TAGS
    return tree


def own_text(element):
    title = element.find(f"{SVG}title")
    return (element.text or "") if title is None else (title.tail or "")


def texts(tree):
    return [own_text(element) for element in tree.iter(f"{SVG}text")]


def hints(tree):
    return [title.text for rect in tree.iter(f"{SVG}rect") for title in rect.iter(f"{SVG}title")]


def decoded(data):
    """Read a PNG of our own kind: 8 bits, with opacity, without filters."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place, parts = 8, {}
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        kind, content = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        assert struct.unpack(">I", data[place + 8 + length : place + 12 + length])[0] == zlib.crc32(
            kind + content
        )
        parts[kind] = content
        place += 12 + length
    width, height, *rest = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    assert rest == [8, 6, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, 1 + 4 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 4)


def embedded(tree):
    (image,) = tree.iter(f"{SVG}image")
    kind, data = image.get("href").split(",")
    assert kind == "data:image/png;base64"
    return decoded(base64.b64decode(data))


@pytest.mark.parametrize("num_rows,num_columns", [(1, 1), (3, 4), (12, 12), (20, 30)])
def test_each_cell_tells_its_number(num_rows, num_columns):
    values = np.random.default_rng(3).uniform(0, 1, (num_rows, num_columns))
    expected = [f"row{t} → column{s}: {values[t, s]:.3f}" for t, s in np.ndindex(values.shape)]
    assert hints(parsed(chart(values))) == expected


def test_each_cell_has_the_colour_of_its_number():
    values = np.random.default_rng(4).uniform(0, 1, (5, 6))
    cells = [rect for rect in parsed(chart(values)).iter(f"{SVG}rect") if len(rect)]
    assert [cell.get("fill") for cell in cells] == [hexadecimal(shaded(v, 1.0, False)) for v in values.flat]


def test_all_names_stand_beside_the_map():
    names = ["le", "chat", "도서관에서", "▁piece", "</s>"]
    found = texts(parsed(chart(np.ones((5, 5)) / 5, names, names, title="fren: layer 3")))
    assert all(found.count(name) == 2 for name in names) and "fren: layer 3" in found


@pytest.mark.parametrize("word", HOSTILE)
@pytest.mark.parametrize("size", [2, 13])
def test_no_word_breaks_out_of_the_svg(word, size):
    hostile = chart(
        np.full((size, size), 1 / size),
        [word] * size,
        [word] * size,
        title=word,
        caption=word,
        probs_T=(0.5,) * size,
    )
    tree = parsed(hostile)
    assert f"{printable(word)} → {printable(word)}: {1 / size:.3f}" in hints(tree)
    assert "<script" not in heat_maps_svg([hostile]) and "<img" not in heat_maps_svg([hostile])


def test_a_long_name_is_cut_beside_the_map_and_whole_in_its_title():
    tree = parsed(chart([[1.0]], ["x" * 300], ["y"]))
    (label,) = [text for text in tree.iter(f"{SVG}text") if own_text(text).startswith("xx")]
    assert own_text(label) == "x" * 27 + "…" and label.find(f"{SVG}title").text == "x" * 300


def test_what_cannot_be_looked_at_is_hatched():
    values = np.array([[1.0, np.nan], [0.25, 0.75]])
    tree = parsed(chart(values))
    assert "row0 → column1: cannot be looked at" in hints(tree)
    assert sum(path.get("class") == "hatch" for path in tree.iter(f"{SVG}path")) == 2  # the map, the legend
    assert "cannot be looked at" in texts(tree) and "nan" not in heat_maps_svg([chart(values)])
    assert "cannot be looked at" not in texts(parsed(chart(np.ones((2, 2)))))


def test_small_maps_have_numbers_in_their_cells_and_larger_ones_do_not():
    assert "0.82" in texts(parsed(chart([[0.82, 0.18]])))
    assert "0.82" not in texts(parsed(chart(np.full((1, 13), 0.82))))
    assert {"+0.50", "−0.25"} <= set(texts(parsed(chart([[0.5, -0.25]], kind="effects"))))


@pytest.mark.parametrize("largest", [1e-9, 0.05, 3.0, 44.0, 555.0, 999.9, 9.999, 1e6])
def test_numbers_fit_into_their_cells(largest):
    shapes = scene([chart([[largest, -largest / 3]], kind="effects")]).shapes
    numbers = [shape for shape in shapes if isinstance(shape, Label) and shape.look == "number"]
    assert numbers and all(1 < len(number.text) <= 5 for number in numbers)


@given(st.tuples(*[st.integers(0, 255)] * 3))
def test_numbers_can_be_read_on_any_colour(colour):
    def luminance(channels):
        return sum(
            weight * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
            for weight, c in zip((0.2126, 0.7152, 0.0722), np.array(channels) / 255, strict=True)
        )

    light, dark = sorted([luminance(colour), 0.0 if ink_on(colour) == "#000000" else 1.0], reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_probabilities_are_bars_with_numbers():
    tree = parsed(chart(np.ones((3, 2)), probs_T=(0.25, 1.0, float("nan"))))
    bars = [float(rect.get("width")) for rect in tree.iter(f"{SVG}rect") if rect.get("class") == "prob"]
    assert bars == [11, 44, 0] and {"probability", "25 %", "100 %"} <= set(texts(tree))
    assert "probability" not in texts(parsed(chart(np.ones((3, 2)))))


def test_a_model_without_attention_shows_its_words_and_says_why_there_is_no_map():
    bare = chart(np.zeros((3, 0)), ["I", "am", "here"], probs_T=(0.5, 0.6, 0.7))
    found = texts(parsed(bare))
    assert {"I", "am", "here", "50 %", "no attention"} <= set(found)
    assert not any("weight" in text for text in found)
    assert heat_map_lines(bare, 40) == ["a map", "     prob", "   I 50 %", "  am 60 %", "here 70 %", "no attention"]  # fmt: skip
    assert chart(np.zeros((1, 0)), caption="fr-en").note == "no attention; fr-en"


def test_maps_without_rows_or_of_zeros_can_be_drawn():
    for strange in (
        chart(np.zeros((0, 3))),
        chart(np.zeros((0, 0))),
        chart(np.zeros((2, 2))),
        chart(np.full((2, 2), np.nan)),
        chart(np.zeros((2, 2)), kind="effects"),
    ):
        parsed(strange)
        assert heat_map_lines(strange, 40)
    with pytest.raises(ValueError, match="no heat map"):
        heat_maps_svg([])


def test_wrong_shapes_and_values_are_refused():
    for match, values, options in (
        ("shape", np.ones((2, 3)), {"rows": "a"}),
        ("shape", np.ones((2, 3)), {"columns": "ab"}),
        ("probabilities", np.ones((2, 3)), {"probs_T": (0.5,)}),
        ("not a probability", np.ones((1, 1)), {"probs_T": (1.5,)}),
        ("below 0", [[-0.1, 0.5]], {}),
        ("infinity", [[np.inf]], {}),
    ):
        with pytest.raises(ValueError, match=match):
            chart(values, **options)


def test_the_svg_reads_in_light_and_dark_and_aloud():
    svg = heat_maps_svg([chart([[0.9, 0.1]], ["cat"], ["chat", "dort"], probs_T=(0.5,), caption="fr to en")])
    assert "prefers-color-scheme: dark" in svg and "currentColor" in svg and " id=" not in svg
    tree = ET.fromstring(svg)
    assert tree.get("role") == "img" and tree[0].tag == f"{SVG}title" and tree[1].tag == f"{SVG}desc"
    assert tree[1].text == (
        "a map: 1 rows, 2 columns. cat looks most at chat (0.90), probability 50 %. fr to en"
    )


def test_maps_stand_side_by_side_until_they_are_too_wide():
    one, two, many = (parsed(*[looking_at(range(10))] * num) for num in (1, 2, 7))
    assert float(two.get("width")) > 1.5 * float(one.get("width"))
    assert float(two.get("height")) == float(one.get("height"))
    assert float(many.get("width")) <= 1400 and float(many.get("height")) > float(one.get("height"))


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_labels_lie_inside_and_do_not_share_a_place(data):
    words = st.lists(st.text(max_size=40), min_size=1, max_size=20)
    charts = []
    for _ in range(data.draw(st.integers(1, 3))):
        rows, columns = data.draw(words), data.draw(words)
        charts.append(chart(np.ones((len(rows), len(columns))), rows, columns, probs_T=(0.5,) * len(rows)))
    laid_out = scene(charts)
    labels = [shape for shape in laid_out.shapes if isinstance(shape, Label)]
    assert len({(label.x, label.y) for label in labels}) == len(labels)
    for label in labels:
        length = 0.6 * label.size * display_width(label.text)  # the width of a common letter
        right, up = (0.5, 0.87) if label.turn else (1, 0)
        back = {"start": 0.0, "middle": 0.5, "end": 1.0}[label.anchor]
        assert label.x - back * length >= 0 and label.x + (right - back) * length <= laid_out.width
        assert label.y - up * length >= 0 and label.y <= laid_out.height


def test_maps_of_one_kind_share_their_colours():
    weak, strong = chart([[1.0, -2.0]], kind="effects"), chart([[4.0, 0.0]], kind="effects")
    assert bound_of([weak]) == 2 and bound_of([weak, strong]) == 4
    assert bound_of([chart([[0.2]])]) == 1 and bound_of([chart([[3.0]])]) == 3
    fills = [rect.get("fill") for rect in parsed(weak, strong).iter(f"{SVG}rect") if len(rect)]
    assert fills[0] == hexadecimal(shaded(0.25, 1.0, True)) and fills[2] == hexadecimal(shaded(1, 1.0, True))


def test_many_cells_become_one_small_picture():
    values = np.random.default_rng(5).uniform(0, 1, (100, 120))
    values[3, 4:8] = np.nan
    svg = heat_maps_svg([chart(values)])
    pixels = embedded(ET.fromstring(svg))
    assert len(svg) < 150_000 and pixels.shape == (100, 120, 4)
    seen = ~np.isnan(values)
    assert (pixels[seen][:, :3] == shaded(values, 1.0, False)[seen]).all()
    assert (pixels[:, :, 3] == np.where(seen, 255, 0)).all()
    assert {f"row{n}" for n in range(100)} | {f"column{n}" for n in range(120)} <= set(
        texts(parsed(chart(values)))
    )


def test_a_large_mask_is_hatched_within_the_picture():
    values = np.where(np.tri(150, 150) > 0, 0.5, np.nan)
    svg = heat_maps_svg([chart(values)])
    pixels = embedded(ET.fromstring(svg))
    assert len(svg) < 150_000 and pixels.shape == (750, 750, 4)
    assert (pixels[5:10, :10, 3] == 255).all() and set(pixels[:5, 5:10, 3].flat) == {0, 128}


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_a_png_holds_its_pixels(height, width, seed):
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 4), dtype=np.uint8)
    assert (decoded(png(pixels)) == pixels).all()


@pytest.mark.parametrize(
    ("columns", "blocks"),
    [
        ([0, 1, 2, 3], []),
        ([3, 2], []),  # two words are no block
        ([3, 2, 1], [(0, 3, 1, 4)]),
        ([0, 1, 4, 3, 2, 5, 6], [(2, 5, 2, 5)]),  # European Economic Area
        ([5, 3, 1], []),  # not one by one
        ([3, 3, 2, 1, 1], [(1, 4, 1, 4)]),
        ([2, 1, 0, 9, 8, 7, 6], [(0, 3, 0, 3), (3, 7, 6, 10)]),
        ([9, 8, 7, 6, 5, 4, 3, 2, 1, 0], [(0, 10, 0, 10)]),
        ([], []),
    ],
)
def test_reversed_blocks_by_hand(columns, blocks):
    assert reversed_blocks(looking_at(columns)) == [ReversedBlock(*block) for block in blocks]


def test_a_row_that_looks_nowhere_ends_a_reversed_block():
    values = np.eye(6)[[5, 4, 3, 2, 1, 0]]
    values[3] = np.nan
    values[2] = 0
    assert reversed_blocks(chart(values)) == []
    assert reversed_blocks(chart(np.eye(4)[::-1], kind="effects")) == []


def test_a_reversed_block_is_outlined_and_told():
    tree = parsed(looking_at([0, 3, 2, 1]))
    outlines = [rect for rect in tree.iter(f"{SVG}rect") if rect.get("class") == "outline"]
    assert [(rect.get("width"), rect.get("height")) for rect in outlines] == [("108", "108"), ("20", "10")]
    assert "From row1 to row3 the columns are looked at in reverse order." in tree[1].text
    assert "looked at in reverse order" in texts(tree)


def test_ramps_are_those_of_the_papers():
    colormaps = pytest.importorskip("matplotlib").colormaps
    shares = np.linspace(0, 1, 200)
    all_ramps = {
        "Blues": shaded(shares, 1.0, False),
        "cividis": shaded(shares, 1.0, False, on_dark=True),
        "PuOr": shaded(2 * shares - 1, 1.0, True),
    }
    for name, ours in all_ramps.items():
        theirs = colormaps[name](shares)[:, :3] * 255
        assert np.abs(ours - theirs).max() < 6


@pytest.mark.parametrize("on_dark", [False, True])
def test_more_weight_always_stands_out_more(on_dark):
    colours = shaded(np.linspace(0, 1, 100), 1.0, False, on_dark)
    brightness = (colours @ np.array([0.2126, 0.7152, 0.0722])) * (1 if on_dark else -1)
    assert (np.diff(brightness) > -0.5).all() and abs(brightness[-1] - brightness[0]) > 160


def test_the_nearest_of_256_colours_by_hand():
    assert [nearest_of_256(c) for c in ((0, 0, 0), (255, 255, 255), (255, 0, 0), (128, 128, 128))] == [
        16,
        231,
        196,
        244,
    ]


@pytest.mark.parametrize("word", HOSTILE)
def test_the_png_takes_any_word(word):
    pytest.importorskip("matplotlib")
    data = heat_maps_png([chart([[0.5, np.nan]], [word], [word, "b"], title=word, probs_T=(0.5,))])
    width, height = struct.unpack(">II", data[16:24])
    assert data.startswith(b"\x89PNG") and width > 400 and height > 200


def test_the_png_shows_all_kinds_of_maps_and_changes_no_setting(caplog):
    matplotlib = pytest.importorskip("matplotlib")
    before = dict(matplotlib.rcParams)
    charts = [
        looking_at([0, 3, 2, 1]),
        chart(np.random.default_rng(0).normal(size=(20, 20)), kind="effects"),
        chart(np.zeros((2, 0)), probs_T=(0.1, 0.2)),
        chart(np.ones((2, 2)), ["한국", "어"], ["도서관", "책"], title="제목"),
    ]
    assert heat_maps_png(charts).startswith(b"\x89PNG")
    assert dict(matplotlib.rcParams) == before and not caplog.records


def test_a_png_of_maps_needs_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="plot"):
        heat_maps_png([chart([[1.0]])])


def test_a_map_of_characters_by_hand():
    weights = [[1.0, 0.0, np.nan], [0.05, 0.5, 0.45], [0.1, 0.3, 0.6]]
    drawn = chart(
        weights, ["the", "cat", "日本"], ["le", "chat", "수도"], title="fr", probs_T=(0.5, 1.0, 0.07)
    )
    assert heat_map_lines(drawn, 40) == [
        "fr",
        "       c",
        "       h",
        "     l a 수",
        "     e t 도 prob",
        " the ██  ·  50 %",
        " cat   ▓▓▓▓100 %",
        "日本 ░░▒▒▓▓  7 %",
    ]


def test_effects_show_their_sign_without_colour():
    drawn = chart([[2.0, -2.0, 0.5], [-0.1, -0.5, 1.0]], ["a", "b"], ["x", "y", "z"], kind="effects")
    assert heat_map_lines(drawn, 40) == ["a map", "  x y z", "a +█-█+▒", "b   -▒+▓", "largest effect 2"]


def test_columns_that_do_not_fit_come_below():
    drawn = chart(np.eye(2, 5), ["a", "b"], "vwxyz", title="t")
    assert heat_map_lines(drawn, 6) == ["t", "colum…", "  v w", "a ██", "b   ██", "colum…", "  x y", "colum…", "  z"]  # fmt: skip
    lines = heat_map_lines(chart(np.eye(3, 50)), 40)
    assert [line for line in lines if line.startswith("columns")] == [
        "columns 1-17",
        "columns 18-34",
        "columns 35-50",
    ]


def test_a_block_has_the_rows_that_look_there():
    weights = [[1.0, 0, 0, 0], [0.5, 0, 0, 0.5], [0, 0, 0, 1.0], [0.05, 0.05, 0.05, 0.05]]
    drawn = chart(weights, "abcd", "wxyz", title="t")
    assert heat_map_lines(drawn, 6) == ["t", "colum…", "  w x", "a ██", "b ▓▓", "d", "colum…", "  y z", "b   ▓▓", "c   ██"]  # fmt: skip


def test_upright_names_keep_their_marks_and_are_cut():
    lines = heat_map_lines(chart([[1.0, 1.0]], ["r"], ["e\u0301a", "abcdefghijklmnop"]), 40)
    assert len(lines) == 1 + 12 + 1
    assert lines[-3:] == ["  e\u0301 k", "  a …", "r ████"]
    untitled = chart([[1.0, 1.0]], ["r"], ["ab", "cdefgh"], title="")
    assert heat_map_lines(untitled, 40, max_letters=3) == ["    c", "  a d", "  b …", "r ████"]


LABELS = st.lists(st.text(st.characters(codec="utf-8") | st.sampled_from("가나다한글日本\u0301\u1161ab"), max_size=20), max_size=12)  # fmt: skip


@settings(deadline=None)
@given(
    LABELS, LABELS, st.integers(1, 100), st.sampled_from(["none", "256", "full"]), st.booleans(), st.data()
)
def test_no_line_is_wider_than_asked(rows, columns, width, colour, signed, data):
    values = np.random.default_rng(0).uniform(-1 if signed else 0, 1, (len(rows), len(columns)))
    values[values > 0.9] = np.nan
    probs = data.draw(st.none() | st.just((0.5,) * len(rows)))
    drawn = chart(values, rows, columns, title=data.draw(st.text()), caption=data.draw(st.text()), probs_T=probs, kind="effects" if signed else "weights")  # fmt: skip
    lines = heat_map_lines(drawn, width, colour)
    assert lines == [line for line in lines if display_width(plain(line)) <= width]
    assert [plain(line).rstrip(" ") for line in lines] == heat_map_lines(drawn, width)
    assert all(plain(line) == printable(plain(line)) for line in lines)
    if colour == "none":
        assert not any("\x1b" in line for line in lines)


def plain(line):
    return re.sub("\x1b\\[[0-9;]*m", "", line)


@given(
    st.lists(st.text(st.sampled_from("가나다한글책을읽었다"), min_size=1, max_size=5), min_size=1, max_size=8)
)
def test_hangul_stands_exactly_above_its_column(words):
    lines = heat_map_lines(chart(np.eye(len(words)), ["r"] * len(words), words), 80)
    height = max(map(len, words))
    names, rows = lines[1 : 1 + height], lines[1 + height :]
    for place, word in enumerate(words):
        above = "".join(slice_of(line, 2 + 2 * place) for line in names)
        assert above.strip() == word
        assert slice_of(rows[place], 2 + 2 * place) == "██"


def slice_of(line, column):
    """What stands in two columns of a terminal."""
    found, used = "", 0
    for character in line:
        if column <= used < column + 2:
            found += character
        used += display_width(character)
    return found


def test_colour_adds_to_the_shades_and_ends_with_them():
    drawn = chart([[1.0, 0.0, np.nan]], ["a"], ["x", "y", "z"], probs_T=(0.5,))
    assert heat_map_lines(drawn, 40, "full")[-1] == (
        "a \x1b[38;2;254;232;56;48;2;0;34;78m██\x1b[0m\x1b[38;2;0;34;78;48;2;0;34;78m  \x1b[0m·  50 %"
    )
    assert re.fullmatch(
        r"a \x1b\[38;5;\d+;48;5;17m██\x1b\[0m\x1b\[38;5;17;48;5;17m  \x1b\[0m·  50 %",
        heat_map_lines(drawn, 40, "256")[-1],
    )


def test_the_legend_of_shades_by_hand():
    assert shades_legend(99) == [
        "░ from 0.08  ▒ from 0.2  ▓ from 0.4  █ from 0.7  of 1, or of the largest number"
    ]
    assert shades_legend(30) == [
        "░ from 0.08  ▒ from 0.2",
        "▓ from 0.4  █ from 0.7",
        "of 1, or of the largest number",
    ]


def test_blocks_stand_side_by_side_if_they_fit():
    blocks = [["\x1b[31mab\x1b[0m", "c"], ["한국"], ["x", "y", "z"]]
    assert side_by_side(blocks, 20) == ["\x1b[31mab\x1b[0m   한국   x", "c           y", "            z"]
    assert side_by_side(blocks, 9) == ["\x1b[31mab\x1b[0m   한국", "c", "", "x", "y", "z"]
    assert side_by_side(blocks, 1) == ["\x1b[31mab\x1b[0m", "c", "", "한국", "", "x", "y", "z"]
    assert side_by_side([], 80) == []


def test_texts_for_markup_are_safe_and_probabilities_readable():
    assert escaped('<a href="x">&\'\x00') == "&lt;a href=&quot;x&quot;&gt;&amp;&#x27;␀"
    assert [percent(p) for p in (0, 0.826, 1.0, float("nan"))] == ["0 %", "83 %", "100 %", ""]
