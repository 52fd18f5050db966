"""Reports: the same cells on the page, in Markdown and in a terminal; texts that are there in every language."""

import re
from string import Formatter

import numpy as np
import pytest

from regard.draw.charts import Series, categories, line_chart
from regard.draw.heatmap import HeatMap
from regard.draw.labels import texts
from regard.report.document import LANGUAGES, Entry, Example, Figure, Paragraph, Report, Section, Table
from regard.report.html import fragment, frame, page
from regard.report.markdown import markdown, plain

HOSTILE = '</td><script>alert(1)</script> | `*x*` "\x1b[31m'
TABLE = Table(
    ("system", "flag", "BLEU"), (("한국어", "none", "34.2\n32.9 to 35.6"), ("b", "any", "0.1")), "a note", 2
)


def report(*blocks, **options):
    return Report("a title", (Section("a section", blocks),), **options)


def flat(values, before=""):
    """Every text by its path."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{key}/")
        else:
            yield before + key, value


@pytest.mark.parametrize("room", ["report", "draw"])
def test_every_text_is_there_in_every_language_with_the_same_places(room):
    english, korean = (dict(flat(texts(room, language))) for language in LANGUAGES)
    assert english.keys() == korean.keys()
    for key, text in english.items():
        fields = [{name for _, name, _, _ in Formatter().parse(one) if name} for one in (text, korean[key])]
        # One design is one in English and 1 in Korean.
        assert fields[0] == fields[1] - ({"designs"} if key.startswith("lineage/one ") else set()), key
        assert not re.search("[가-힣]", text)


def test_an_interval_stands_below_its_number_on_the_page_and_in_brackets_elsewhere():
    assert "<td>34.2<small>32.9 to 35.6</small></td>" in page(report(TABLE))
    assert "| 한국어 | none | 34.2 (32.9 to 35.6) |" in markdown(report(TABLE)).splitlines()
    assert "|---|---|---:|" in markdown(report(TABLE)).splitlines()


def test_a_table_in_a_terminal_by_hand():
    section = Section("Scores", (Paragraph("said", ("one", "two")), TABLE))
    assert plain([section, Section("Signatures", (Paragraph("", ("a|b",), is_code=True),))]).splitlines() == [
        "Scores",
        "said",
        "  one",
        "  two",
        "system  flag                 BLEU",
        "한국어  none  34.2 (32.9 to 35.6)",
        "b       any                   0.1",
        "(a note)",
        "",
        "Signatures",
        "a|b",
    ]


def test_an_example_shows_what_is_not_in_the_reference_and_where_each_word_came_from():
    entries = (
        Entry("line 1", "le chat dort"),
        Entry("one", "the dog dog sleeps", "a note", "the dog sleeps"),
        Entry("two", " "),
    )
    heat_map = HeatMap("one", ("a",), ("b",), np.ones((1, 1)))
    shown = page(report(Example(entries, (heat_map,), is_open=True)))
    assert 'the dog <span class="off">dog</span> sleeps<div class="note">a note</div>' in shown
    assert shown.count("<svg") == 1 and "<details open>" in shown
    assert "<svg" not in page(report(Example(entries)))
    assert markdown(report(Example(entries))).endswith(
        "\n\n- line 1: le chat dort\n  - one: the dog dog sleeps (a note)\n  - two: *nothing*\n"
    )


def test_a_chart_is_on_the_page_and_in_markdown_if_it_is_a_file():
    scene = line_chart([Series("one", np.zeros(1), np.ones(1))], "a chart", "y", categories("x", ["a"]))
    assert "<svg" in page(report(Figure(scene))) and "<svg" in fragment(report(Figure(scene)))
    assert "![a chart](report.svg)" in markdown(report(Figure(scene, "report.svg")))
    assert "![" not in markdown(report(Figure(scene)))


def test_hostile_text_is_text_in_every_form():
    entries = (Entry(HOSTILE, HOSTILE, HOSTILE, HOSTILE + " x"),)
    table = Table((HOSTILE,) * 2, ((HOSTILE, f"{HOSTILE}\n{HOSTILE}"),), HOSTILE)
    hostile = Report(
        HOSTILE, (Section(HOSTILE, (Paragraph(HOSTILE, (HOSTILE,)), table, Example(entries))),), "ko"
    )
    for shown in (page(hostile), fragment(hostile)):
        assert "<script" not in shown and "\x1b" not in shown and "&lt;script&gt;" in shown
    assert not re.search(r"(?<!\\)[<|*`](?=script|x|\*)", markdown(hostile)) and "\x1b" not in markdown(
        hostile
    )
    assert "\x1b" not in plain(hostile.sections)


def test_a_page_can_call_nobody_and_runs_scripts_only_if_it_has_some():
    policy = re.search('Content-Security-Policy" content="([^"]*)"', frame("t", "", "")).group(1)
    assert (
        policy.startswith("default-src &#x27;none&#x27;;") and "script" not in policy and "http" not in policy
    )
    with_scripts = frame("t", "", "", scripts=["alert(1)"])
    # openssl dgst -sha256 -binary | base64
    assert "script-src &#x27;sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=&#x27; data:;" in with_scripts
    assert "script-src &#x27;unsafe" not in with_scripts
    assert with_scripts.count("default-src &#x27;none&#x27;") == 1


def test_a_page_links_to_itself_in_other_languages():
    shown = page(report(others={"ko": "report.ko.html"}))
    assert '<a href="report.ko.html" hreflang="ko" lang="ko">한국어</a>' in shown
    assert "<a " not in page(report())
