"""Tags carried into translations: each once, well nested, where the words they covered went."""

from collections import Counter
from xml.parsers import expat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.errors import ConfigError
from regard.flags import FLAGS
from regard.text.markup import read, tokens
from regard.text.words import words
from regard.translate.markup import with_tags
from regard.translate.result import Part, Translation


def aligned(source, text, links):
    """Return a translation whose words came from the linked source words."""
    sources, targets = words(source), words(text)
    attention_TS = np.zeros((len(targets) + 1, len(sources) + 1), np.float32)
    attention_TS[:, -1] = 0.1
    for first, second in links:
        attention_TS[second, first] = 0.9
    ends = [(len(source),) * 2, (len(text),) * 2]
    part = Part(
        (*(source[slice(*one)] for one in sources), "</s>"),
        (*sources, ends[0]),
        (*(text[slice(*one)] for one in targets), "</s>"),
        (*targets, ends[1]),
        (0.0,) * (len(targets) + 1),
        attention_TS,
        True,
        (0, len(text)),
    )
    return Translation(source, text, 0.0, 0.0, (part,) if sources else ())


def carried(tagged, text, links, markup="xml"):
    marked = read(tagged, markup)
    return with_tags(marked, aligned(marked.text, text, links)).marked


def tags_of(text, markup="xml"):
    return Counter(token.written for token in tokens(text, markup) if token.kind != "text")


def is_well_formed(text):
    try:
        expat.ParserCreate().Parse(f"<all>{text}</all>".encode(), True)
    except expat.ExpatError:
        return False
    return True


SWAPPED = [(0, 0), (1, 2), (2, 1), (3, 3)]  # the black cat sleeps: le chat noir dort


@pytest.mark.parametrize(
    ("tagged", "expected"),
    [
        ("the <b>black</b> cat sleeps", "le chat <b>noir</b> dort"),
        ("the <b>black cat</b> sleeps", "le <b>chat noir</b> dort"),
        ("the <b><i>black</i> cat</b> sleeps", "le <b>chat <i>noir</i></b> dort"),
        ("<b>the black cat sleeps</b>", "<b>le chat noir dort</b>"),
        ("the <a>black</a> <b>cat</b> sleeps", "le <b>chat</b> <a>noir</a> dort"),
        ("the black cat <x/>sleeps", "le chat noir <x/>dort"),
        ("the black cat<x/> sleeps", "le chat noir<x/> dort"),
        ("the black cat <x/> sleeps", "le chat noir <x/> dort"),
        ("<x/>the black cat sleeps<y/>", "<x/>le chat noir dort<y/>"),
        ("  <x/> the black cat sleeps ", "  <x/> le chat noir dort "),
    ],
)
def test_a_tag_goes_where_its_words_went(tagged, expected):
    assert carried(tagged, "le chat noir dort", SWAPPED) == expected


def test_words_that_were_torn_apart_do_not_stretch_a_pair_over_the_sentence():
    links = [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (1, 5)]
    assert carried("a <b>b</b> c d e", "a b c d e f", links) == "a <b>b</b> c d e f"


def test_a_tag_within_a_word_stays_within_it_if_the_word_came_through():
    assert carried("H<sub>2</sub>O flows", "H2O coule", [(0, 0), (1, 1)]) == "H<sub>2</sub>O coule"


def test_an_empty_tag_between_two_words_is_no_reason_to_read_them_as_one():
    marked = read('(1)<x id="1"/>The cat', "xml")
    assert marked.text == "(1) The cat"
    assert carried('(1)<x id="1"/>The cat', "(1) Le chat", [(n, n) for n in range(5)]) == (
        '(1)<x id="1"/>Le chat'
    )


def test_entities_are_read_as_characters_and_written_as_entities():
    marked = read("R&amp;D &lt; <b>&#233;t&#xe9;</b>", "xml")
    assert marked.text == "R&D < été"
    said = carried("R&amp;D &lt; <b>été</b>", "R&D < summer", [(n, n) for n in range(5)])
    assert said == "R&amp;D &lt; <b>summer</b>"
    assert tags_of(carried("a &brand; b", "a b", [(0, 0), (1, 1)])) == Counter(["&brand;"])


def test_a_tag_without_its_partner_is_kept_and_flagged():
    for tagged in ("a <b>b", "a b</b>", "<i>a <b>b</i></b>", "a < b"):
        marked = read(tagged, "xml")
        done = with_tags(marked, aligned(marked.text, "c d", [(0, 0), (1, 1)]))
        assert done.flags == ("tags",), tagged
        assert tags_of(done.marked) == tags_of(tagged)
    assert "tags" in FLAGS


def test_html_knows_void_elements_blocks_scripts_and_code():
    marked = read("<p>One.<br>Two.</p>\n<script>if (a < b) {}</script><P>Run <code>ls</code></P>", "html")
    assert marked.text == "One.\n\nTwo.\n\nRun `ls`\n\n"
    assert not marked.is_broken
    assert read("see <span translate='no'>Big Ben</span>", "html").text == "see `Big Ben`"


def test_codes_of_translation_tools_are_no_text_and_pair_by_their_number():
    assert read('a <ph id="1">{0}</ph> b', "xml").text.split() == ["a", "b"]
    (pair,) = read('a <bx id="1" rid="1"/>b<ex id="2" rid="1"/>', "xml").tags
    assert pair.is_pair


NAMES = st.sampled_from(["b", "i", "g"])
WORDS = st.text(st.sampled_from("ab é.,&<>`漢ש "), min_size=1, max_size=6)


def _element(inner):
    return st.tuples(NAMES, st.lists(inner, max_size=4)).map(
        lambda one: f'<{one[0]} id="1">{"".join(one[1])}</{one[0]}>'
    )


ESCAPED = WORDS.map(lambda text: text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
TAGGED = st.recursive(
    st.one_of(ESCAPED, st.sampled_from(['<x id="1"/>', "<!-- c -->", "<code>ls</code>", "<ph>a</ph>"])),
    _element,
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(TAGGED, max_size=5).map("".join),
    st.lists(st.sampled_from(["un", "deux", "`ls`", ".", "<", "&"]), max_size=8).map(" ".join),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), max_size=12),
    st.sampled_from(["xml", "html"]),
)
def test_every_tag_comes_through_once_and_the_nesting_is_valid(tagged, text, links, markup):
    marked = read(tagged, markup)
    some = [(a, b) for a, b in links if a < len(words(marked.text)) and b < len(words(text))]
    done = with_tags(marked, aligned(marked.text, text, some)).marked
    assert tags_of(done, markup) == tags_of(tagged, markup)
    assert is_well_formed(done)


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("<>/&;b i=\"'!-x#1`\n")), st.sampled_from(["xml", "html"]))
def test_any_text_can_be_read_and_loses_no_tag(text, markup):
    marked = read(text, markup)
    done = with_tags(marked, aligned(marked.text, "un deux", [])).marked
    assert tags_of(done, markup) == tags_of(text, markup)


def test_a_model_translates_the_sentence_whole():
    translator = regard.load("fr-en")
    asked = "Le <b>chat</b> dort. <i>Il pleut. Je suis étudiant.</i>"
    tagged, plain = translator.translate([regard.Request(asked, markup="xml"), read(asked, "xml").text])
    assert tagged.text == plain.text
    assert tagged.marked == "The <b>cat</b> is sleeping. <i>It's raining. I'm a student.</i>"
    assert plain.marked is None and "marked" not in plain.to_json()
    (blank,) = translator.translate([regard.Request(" <br/> ", markup="xml")])
    assert blank.marked == " <br/> "


def test_a_model_without_attention_puts_tags_at_the_same_relative_position():
    (done,) = regard.load("fr-en-fixed").translate([regard.Request("<b>Le</b> chat dort.", markup="xml")])
    assert done.marked.startswith("<b>") and is_well_formed(done.marked)


def test_markup_is_xml_or_html_and_for_one_translation():
    with pytest.raises(ConfigError, match="use xml or html"):
        regard.Request("a", markup="tex")
    with pytest.raises(ConfigError, match="num_best"):
        regard.Request("a", markup="xml", num_best=2)


def test_a_comment_without_an_end_is_kept_and_told():
    marked = read("One <!-- two", "html")
    assert marked.text.strip() == "One" and marked.tags[0].opening == "<!-- two" and marked.is_broken
