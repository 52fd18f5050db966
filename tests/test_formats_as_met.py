"""Documents as people have them: what real PO, HTML, subtitle, Markdown and office files showed to be wrong."""

import subprocess
import time

import pytest
from test_formats import packed, part_of, text_of, translated

import regard
from regard.translate.documents import translate_document
from regard.translate.request import Request


def segments_of(data, ending):
    seen = []
    translated(data, ending, seen=seen)
    return [one.text.strip() for one in seen]


@pytest.fixture(scope="module")
def translator():
    return regard.load("en-fr")


def in_french(translator, text, ending):
    return translate_document(translator, text.encode(), ending, Request("")).data.decode()


HELP = "Options:\n  -h, --help          display this help\n  -v, --version       display the version\n"


def test_the_lines_and_columns_of_a_help_text_stay():
    assert text_of(HELP, ".txt") == HELP.replace("display this help", "DISPLAY THIS HELP").replace(
        "display the version", "DISPLAY THE VERSION"
    ).replace("Options", "OPTIONS")


def test_a_wrapped_description_stays_in_its_column():
    source = "  --all      show all of the files that are here, also\n             those that are hidden\n"
    assert segments_of(source, ".txt") == ["show all of the files that are here, also those that are hidden"]
    assert text_of(source, ".txt").startswith("  --all      SHOW ALL")
    assert "\n             THOSE" in text_of(source, ".txt")


def test_a_message_of_several_lines_keeps_its_lines(tmp_path):
    lines = "".join(f'"{line}\\n"\n' for line in HELP.splitlines())
    found = text_of(f'msgid ""\n{lines}msgstr ""\n', ".po")
    assert '"  -h, --help          DISPLAY THIS HELP\\n"\n' in found.partition("msgstr")[2]
    path = tmp_path / "a.po"
    path.write_text('msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n' + found, "utf-8")
    subprocess.run(["msgfmt", "--check-format", "-o", tmp_path / "a.mo", path], check=True)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("%s has %d files", "%d des fichiers de %s"),  # another order
        ("100%% of %s", "100% de %s"),
        ("%*zu of %.*s", "%.*s"),
    ],
)
def test_a_message_whose_placeholders_would_crash_is_fuzzy(source, said):
    found = text_of(f'#, c-format\nmsgid "{source}"\nmsgstr ""\n', ".po", say=lambda text: said)
    assert "#, fuzzy" in found
    assert "fuzzy" not in text_of(f'#, c-format\nmsgid "{source}"\nmsgstr ""\n', ".po", say=lambda text: text)


@pytest.mark.parametrize(
    ("cue", "wanted"),
    [
        ("♪ I love you ♪", ["I love you"]),
        ("[door closes]\nANNA: Who is\nthere?", ["door closes", "Who is there?"]),
        ("- Well.\n(he laughs)\nLet us go.", ["Well.", "he laughs", "Let us go."]),
        ("We go home\n(again).", ["We go home (again)."]),
    ],
)
def test_sounds_songs_and_speakers_of_subtitles_stay_apart(cue, wanted):
    source = f"1\n00:00:01,000 --> 00:00:02,000\n{cue}\n"
    assert segments_of(source, ".srt") == wanted
    assert text_of(source, ".srt", say=lambda text: text).split() == source.split()


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ('<h1><span>1.3.</span> About<a href="#x">¶</a></h1>', ["About"]),
        ('<p>It is so.<a href="#f">2</a></p>', ["It is so."]),
        ('<li><a href="n">next</a> |</li>', ["next"]),
        ("<p>The number is <b>5</b></p>", ["The number is <b>5</b>"]),
        ("<p><b>5</b> people came.</p>", ["<b>5</b> people came."]),
        ("<p>See [<a>2</a>]</p>", ["See [<a>2</a>]"]),
    ],
)
def test_signs_and_numbers_around_a_sentence_are_no_part_of_it(written, wanted):
    assert segments_of(written, ".html") == wanted


@pytest.mark.parametrize("tag", ["<!--", "<script>", "<![CDATA[", "<?php "])
def test_what_never_ends_takes_linear_time(tag):
    source = f"<p>Hello.</p>{tag * 20_000}"
    begun = time.process_time()
    assert text_of(source, ".html").startswith("<p>HELLO.</p>")
    assert time.process_time() - begun < 5


def test_a_text_of_dashes_takes_linear_time():
    begun = time.process_time()
    text_of("--a" * 50_000 + " x!", ".txt")
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("option", ["-h, --help", "--color[=WHEN]", "-o FILE, --out=FILE"])
def test_options_of_a_command_stay(option):
    assert text_of(f"{option}    here\n", ".txt") == f"{option}    HERE\n"


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
COURIER = '<w:rPr><w:rFonts w:ascii="Courier New" w:hAnsi="Courier New"/></w:rPr>'


def test_code_in_a_word_document_stays():
    runs = f"<w:r><w:t>Type </w:t></w:r><w:r>{COURIER}<w:t>ls -l /home</w:t></w:r><w:r><w:t> now.</w:t></w:r>"
    listing = '<w:p><w:pPr><w:pStyle w:val="HTMLPreformatted"/></w:pPr><w:r><w:t>make all</w:t></w:r></w:p>'
    body = f"<w:document {W}><w:body><w:p>{runs}</w:p>{listing}</w:body></w:document>"
    found = part_of(translated(packed({"word/document.xml": body}), ".docx"), "word/document.xml")
    assert f'{COURIER}<w:t xml:space="preserve">ls -l /home</w:t>' in found
    assert ">TYPE <" in found and "> NOW.<" in found and ">make all<" in found


def test_code_in_an_open_document_stays():
    styles = (
        '<style:style style:name="T1" style:family="text"><style:text-properties style:font-name="Courier New"/>'
        '</style:style><style:style style:name="P1" style:family="paragraph" '
        'style:parent-style-name="Preformatted_20_Text"/>'
    )
    text = (
        '<text:p>Type <text:span text:style-name="T1">ls -l</text:span> or '
        '<text:span text:style-name="Source_20_Text">pwd</text:span> now.</text:p>'
        '<text:p text:style-name="P1">make all</text:p>'
    )
    names = " ".join(f'xmlns:{name}="urn:{name}"' for name in ("office", "style", "text"))
    body = f"<office:document-content {names}>{styles}{text}</office:document-content>"
    found = part_of(translated(packed({"content.xml": body}), ".odt"), "content.xml")
    assert "TYPE " in found and ">ls -l<" in found and ">pwd<" in found and ">make all<" in found


def test_code_behind_signs_is_said_once(translator):
    found = in_french(translator, "The {pypi}`keyring` library.\n", ".md")
    assert found.count("keyring") == 1 and "{pypi}`keyring`" in found


def test_emphasis_is_never_around_nothing(translator):
    assert "****" not in in_french(translator, "Where are **you** going?\n", ".md")


def test_an_ampersand_is_read_as_a_word(translator):
    assert in_french(translator, "<p>Two dogs &amp; a cat.</p>", ".html") == "<p>Deux chiens et un chat.</p>"


def test_half_a_character_is_not_said(translator):
    (one,) = translator.translate(["1. About this manual — Debian Policy Manual v4.6.2.0"])
    assert "\ufffd" not in one.text
