"""Documents: what is text is translated, and everything else comes back as it was."""

import contextlib
import html
import io
import json
import re
import shutil
import subprocess
import time
import zipfile
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.cli import run
from regard.errors import DocumentError
from regard.formats.document import ENDINGS, MAX_BYTES, document
from regard.formats.segments import Said, Wanted

UPPER = re.compile(r"(<[^<>]*>|&\w+;|%\w|`[^`]*`)|([^<>&%`]+)")


def shouted(text):
    """A translation whose words can be told from those of the source."""
    return UPPER.sub(lambda one: one[1] or one[2].upper(), text)


def translated(data, ending, *, say=shouted, again=False, seen=None, note=""):
    """A document in which every segment is said by `say`."""
    work = document(data if isinstance(data, bytes) else data.encode(), ending, Wanted("en", "fr", again))
    try:
        segments = next(work)
        while True:
            if seen is not None:
                seen += segments
            segments = work.send([Said(say(one.text), note) for one in segments])
    except StopIteration as end:
        return end.value


def text_of(data, ending, **how):
    return translated(data, ending, **how).decode()


def packed(parts, first="mimetype"):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(first, "as it was", zipfile.ZIP_STORED)
        for name, text in parts.items():
            archive.writestr(name, text)
    return stream.getvalue()


def part_of(data, name):
    return zipfile.ZipFile(io.BytesIO(data)).read(name).decode()


PAGE = """<!DOCTYPE html>
<html lang="en"><head><title>My page</title><meta name="description" content="About it">
<script>var a = "hi <b>";</script><style>p { color: red }</style></head>
<body class="title"><p>Hello <b>big</b> world &amp; all <img src="a.png" alt="a cat">.</p>
<ul><li><a href="x.html">Link only</a></li><li>1234</li></ul><pre>code  here</pre>
<p title='Say "x"'>Text<br>more</p><!-- no --><p translate="no">Brand</p></body></html>
"""


def test_html_keeps_all_but_its_words():
    assert (
        text_of(PAGE, ".html")
        == """<!DOCTYPE html>
<html lang="fr"><head><title>MY PAGE</title><meta name="description" content="ABOUT IT">
<script>var a = "hi <b>";</script><style>p { color: red }</style></head>
<body class="title"><p>HELLO <b>BIG</b> WORLD &amp; ALL <img src="a.png" alt="A CAT">.</p>
<ul><li><a href="x.html">LINK ONLY</a></li><li>1234</li></ul><pre>code  here</pre>
<p title='SAY &quot;X&quot;'>TEXT<br>MORE</p><!-- no --><p translate="no">Brand</p></body></html>
"""
    )


def test_html_in_another_encoding_stays_in_it():
    page = '<meta charset="iso-8859-1"><p>caf\xe9</p>'.encode("latin-1")
    assert translated(page, ".html", say=lambda text: f"{text} →") == page.replace(b"\xe9", b"\xe9 &#8594;")


def test_tags_across_blocks_are_not_moved():
    page = "<a href=x><div>One two</div></a><b>three <p>four</b> five"
    assert text_of(page, ".html") == "<a href=x><div>ONE TWO</div></a><b>THREE <p>FOUR</b> FIVE"


@given(st.text(alphabet="<>/&;abp \"'=\n-!", max_size=60))
def test_any_text_is_html_that_comes_back(text):
    assert text_of(text, ".html", say=str) == text or "lang" in text


README = """---
title: stays
---
# Hello *world*

Some **bold** text with `code` and [a link](http://x.y/a_b "t") and
a second line.

> quoted text
> goes on

- [ ] task one
- item with <b>html</b>\\
  and a break

| A head | B |
|:--|--|
| cell one | cell \\| two |

```python
code = "block"
```

    indented code

![an image](x.png) and ***both*** of <https://a.b/c>.

See [foo] and [bar][baz]. A snake_case_name, 2 * 3.[^1]

<p>html <i>block</i></p>

[foo]: http://a
[baz]: http://b
[^1]: note
"""


def test_markdown_keeps_all_but_its_words():
    assert (
        text_of(README, ".md")
        == """---
title: stays
---
# HELLO *WORLD*

SOME **BOLD** TEXT WITH `code` AND [A LINK](http://x.y/a_b "t") AND A SECOND LINE.

> QUOTED TEXT GOES ON

- [ ] TASK ONE
- ITEM WITH <b>HTML</b>\\
  AND A BREAK

| A HEAD | B |
|:--|--|
| CELL ONE | CELL \\| TWO |

```python
code = "block"
```

    indented code

![AN IMAGE](x.png) AND ***BOTH*** OF <https://a.b/c>.

SEE [FOO][foo] AND [BAR][baz]. A SNAKE_CASE_NAME, 2 * 3.[^1]

<p>HTML <i>BLOCK</i></p>

[foo]: http://a
[baz]: http://b
[^1]: note
"""
    )


def test_a_translation_does_not_become_markdown():
    said = {"one": "* 1. [x] `y`", "two": "# no", "three": "1. no", "four": "a_b _c_"}
    found = text_of("one\n\ntwo\n\nthree\n\nfour\n", ".md", say=said.get)
    assert found == "\\* 1. \\[x\\] \\`y\\`\n\n\\# no\n\n1\\. no\n\na_b \\_c\\_\n"


def test_plain_text_is_wrapped_again_where_it_was():
    text = (
        "This is the first line of a paragraph that somebody wrapped by hand in\n"
        "an editor of a fixed width, and it goes on.\n\nShort line\nAnother one\n\n- item\n"
    )
    assert text_of(text, ".txt") == text.upper()
    longer = text_of(text, ".txt", say=lambda one: f"{one} {one}" if one.startswith("This") else one)
    assert max(map(len, longer.splitlines())) <= 70 and longer.endswith(
        "\n\nShort line\nAnother one\n\n- item\n"
    )
    assert longer.split("\n\n")[0].split() == [*text.split("\n\n")[0].split()] * 2


SUBTITLES = """1
00:00:01,000 --> 00:00:02,000
{\\an8}Hello <i>there</i>,
my old friend.

2
00:00:03,000 --> 00:00:04,000 align:start
- Yes & no.
- No.

"""


def test_a_long_text_without_blank_lines_is_read_in_linear_time():
    began = time.process_time()
    work = document(b"Le chat dort dans la maison.\n" * 20_000, ".txt", Wanted("fr", "en"))
    assert len(next(work)) == 20_000
    assert time.process_time() - began < 5  # comparing every line with all others takes 30 s


def test_subtitles_keep_times_lines_and_speakers():
    assert text_of(SUBTITLES, ".srt", say=lambda text: shouted(html.escape(text, quote=False)
                   if "&" in text else text)) == (
        SUBTITLES.replace("Hello <i>there</i>", "HELLO <i>THERE</i>")
        .replace("my old friend", "MY OLD FRIEND").replace("Yes & no", "YES & NO").replace("No.", "NO.")
    )  # fmt: skip
    seen = []
    text_of(SUBTITLES, ".srt", seen=seen)
    assert [one.text for one in seen][1:] == ["Yes & no.", "No."]  # the dashes stay where they are
    seen = []
    text_of("WEBVTT\n\nNOTE a note\n\n00:01.000 --> 00:02.000\nHi\n", ".vtt", seen=seen)
    assert [one.text for one in seen] == ["Hi"]


def test_tables_of_strings():
    text = '{"title": "Hello \\"you\\"",\n "n": 3, "list": ["One two", "http://x.y"], "id": "some_key"}'
    found = text_of(text, ".json")
    assert found == text.replace("Hello", "HELLO").replace("you", "YOU").replace("One two", "ONE TWO")
    assert json.loads(found)["title"] == 'HELLO "YOU"'
    text = "# comment\nkey = Hello wor\\\n   ld\nother:caf\\u00e9\n! note\nempty=\n"
    assert text_of(text, ".properties") == "# comment\nkey = HELLO WORLD\nother:CAFÉ\n! note\nempty=\n"
    text = '/* "no" = "no"; */\n"key" = "Say \\"hi\\"";\n'
    assert text_of(text, ".strings") == '/* "no" = "no"; */\n"key" = "SAY \\"HI\\"";\n'


CATALOGUE = """# A catalogue
msgid ""
msgstr ""
"Language: \\n"
"Content-Type: text/plain; charset=CHARSET\\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"

#: a.c:1
#, c-format
msgid "Hello %s, this is a message of more than one line, so that it has to be wrapped.\\n"
msgstr ""

msgid "one file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

#, fuzzy
msgid "done"
msgstr "fait"

#~ msgid "old"
#~ msgstr "vieux"
"""


def test_messages_without_a_translation_get_one():
    found = text_of(CATALOGUE, ".po")
    assert (
        '"Language: fr\\n"' in found and "charset=UTF-8" in found and "nplurals=2; plural=(n > 1);" in found
    )
    assert 'msgstr[0] "ONE FILE"\nmsgstr[1] "%d FILES"\n' in found
    assert 'msgstr ""\n"HELLO %s, THIS IS A MESSAGE' in found and found.count("fuzzy") == 1
    assert found.endswith(CATALOGUE[CATALOGUE.index("#, fuzzy") :])
    assert 'msgstr "DONE"' in text_of(CATALOGUE, ".po", again=True)


def test_the_header_gets_the_plural_rule_of_the_language():
    others = CATALOGUE.replace("nplurals=INTEGER; plural=EXPRESSION;", "nplurals=2; plural=(n != 1);")
    assert "nplurals=2; plural=(n > 1);" in text_of(others, ".po")
    own = others.replace('"Language: ', '"Language: fr')
    assert "nplurals=2; plural=(n != 1);" in text_of(own, ".po")
    without = "\n".join(line for line in CATALOGUE.split("\n") if "Plural-Forms" not in line)
    assert '"Plural-Forms: nplurals=2; plural=(n > 1);\\n"\n\n' in text_of(without, ".po")


def test_a_lost_placeholder_makes_a_message_fuzzy():
    found = text_of(CATALOGUE, ".po", say=lambda text: text.replace("%s", "you"))
    assert '#, c-format\n#, fuzzy\nmsgid "Hello %s' in found and found.count("fuzzy") == 2


def test_gettext_accepts_what_was_translated(tmp_path):
    if shutil.which("msgfmt") is None:
        pytest.skip("no msgfmt to check PO files with")
    for note in ("", NOTE):
        (tmp_path / "fr.po").write_text(text_of(CATALOGUE, ".po", note=note), encoding="utf-8")
        subprocess.run(["msgfmt", "--check-format", "-o", "/dev/null", tmp_path / "fr.po"], check=True)


XLIFF = """<?xml version="1.0"?>
<xliff version="1.2"><file source-language="en" original="x" datatype="y"><body>
 <trans-unit id="1">
  <source>Hello <g id="1">big</g> world</source>
 </trans-unit>
 <trans-unit id="2"><source>Bye</source><target state="new"/></trans-unit>
 <trans-unit id="3"><source>Bye</source><target>Au revoir</target></trans-unit>
 <trans-unit id="4" translate="no"><source>Bye</source></trans-unit>
</body></file></xliff>"""


def test_xliff_gets_targets_where_it_has_none():
    found = text_of(XLIFF, ".xlf")
    assert '<file target-language="fr" source-language="en"' in found
    assert '</source>\n  <target>HELLO <g id="1">BIG</g> WORLD</target>\n' in found
    assert '<trans-unit id="2"><source>Bye</source><target>BYE</target>' in found
    assert found.endswith(XLIFF[XLIFF.index(' <trans-unit id="3"') :])
    assert '<target>BYE</target></trans-unit>\n <trans-unit id="4"' in text_of(XLIFF, ".xlf", again=True)
    newer = '<xliff version="2.0" srcLang="en"><file><unit><segment><source>Hi</source></segment></unit></file></xliff>'
    found = text_of(newer, ".xliff")
    assert 'trgLang="fr"' in found and "<source>Hi</source><target>HI</target></segment>" in found


NOTE = "quality 0.72; flags: lost"


def test_notes_in_messages_are_replaced_and_do_not_pile_up():
    found = text_of(CATALOGUE, ".po", note=NOTE)
    assert f"\n# regard: {NOTE}\n#: a.c:1\n#, c-format\nmsgid" in found
    assert f'\n# regard: msgstr[0]: {NOTE}\n# regard: msgstr[1]: {NOTE}\nmsgid "one file"' in found
    assert found.endswith(CATALOGUE[CATALOGUE.index("#, fuzzy") :])
    assert text_of(found, ".po", note=NOTE) == found  # what is translated stays
    newer = found.replace("# regard: ", "# Mine.\n# regard: ")
    again = text_of(newer, ".po", again=True, note="quality 0.5")
    assert again.count("# regard: ") == 4 and again.count("quality 0.5\n") == 4 and "0.72" not in again
    assert again.count("# Mine.") == 3
    assert "regard" not in text_of(newer, ".po", again=True)  # a note on another translation would be wrong
    dos = text_of(CATALOGUE.replace("\n", "\r\n"), ".po", note=NOTE)
    assert dos == found.replace("\n", "\r\n")


def test_a_message_is_marked_fuzzy_once():
    def forget(text):
        return text.replace("%s", "you")

    found = text_of(text_of(CATALOGUE, ".po", say=forget), ".po", say=forget, again=True)
    assert found.count("fuzzy") == 2


def test_notes_in_xliff_stand_behind_the_target():
    note = f'<note from="regard" annotates="target">{NOTE}</note>'
    found = text_of(XLIFF, ".xlf", note=NOTE)
    assert f"WORLD</target>\n  {note}\n </trans-unit>" in found
    assert f"<target>BYE</target>{note}</trans-unit>" in found and found.count("<note") == 2
    assert found.endswith(XLIFF[XLIFF.index(' <trans-unit id="3"') :])
    again = text_of(found, ".xlf", again=True, note=NOTE, say=str)
    assert again.count("<note") == 3 and again == text_of(again, ".xlf", again=True, note=NOTE, say=str)
    assert "<note" not in text_of(again, ".xlf", again=True)
    ElementTree.fromstring(again)


UNITS = """<xliff version="2.0" srcLang="en" xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f">
 <unit id="1">
  <segment>
   <source>One cat</source>
  </segment>
 </unit>
 <unit id="2">
  <notes>
   <note category="mine">Keep me</note>
  </notes>
  <originalData><data id="d">x</data></originalData>
  <segment id="a&lt;b"><source>Two cats</source></segment>
  <segment><source>Three cats</source></segment>
  <segment><source>Done</source><target>Fait</target></segment>
 </unit>
 <unit id="3" translate="no"><segment><source>No</source></segment></unit>
</file></xliff>"""


def test_notes_in_newer_xliff_belong_to_the_unit():
    note = f'<note category="regard" appliesTo="target">{NOTE}</note>'
    found = text_of(UNITS, ".xlf", note=NOTE)
    assert f'<unit id="1">\n  <notes>\n   {note}\n  </notes>\n  <segment>' in found
    first, second = (note.replace(">q", f">segment {name}: q") for name in ("a&lt;b", "2"))
    assert f"Keep me</note>\n   {first}\n   {second}\n  </notes>\n  <originalData>" in found
    assert found.count("<note ") == 4 and "<target>Fait</target>" in found
    assert found.endswith(UNITS[UNITS.index(' <unit id="3"') :])
    assert text_of(found, ".xlf", note=NOTE) == found
    again = text_of(found, ".xlf", again=True, note="quality 0.5")
    assert again.count("quality 0.5<") == 4 and "0.72" not in again and "Keep me" in again
    assert text_of(again, ".xlf", again=True, note="quality 0.5") == again
    ElementTree.fromstring(again)
    without = text_of(again, ".xlf", again=True)
    assert "regard" not in without and "Keep me" in without and without.count("<notes>") == 1
    short = '<xliff version="2.0" srcLang="en"><file><unit><segment><source>Hi</source></segment></unit></file></xliff>'
    assert f"<unit><notes>{note}</notes><segment><source>Hi</source>" in text_of(short, ".xliff", note=NOTE)


def test_notes_in_a_memory_name_the_language():
    memory = (
        '<tmx version="1.4"><header srclang="en"/><body>\n<tu>\n <note>Mine</note>\n <tuv xml:lang="en"><seg>Hi</seg></tuv>\n'
        "</tu>\n</body></tmx>"
    )
    found = text_of(memory, ".tmx", note=NOTE)
    assert f"<tu>\n <note>regard: fr: {NOTE}</note>\n <note>Mine</note>" in found
    assert text_of(found, ".tmx", again=True, note="quality 0.5") == found.replace(NOTE, "quality 0.5")


def test_a_memory_gets_the_missing_language():
    memory = '<tmx version="1.4"><header srclang="en"/><body><tu>\n <tuv xml:lang="en-GB"><seg>Hi</seg></tuv>\n</tu></body></tmx>'
    assert '</tuv>\n <tuv xml:lang="fr"><seg>HI</seg></tuv>\n</tu>' in text_of(memory, ".tmx")


def test_strings_of_android():
    text = "<resources><string name=\"a\">Don\\'t <b>go</b></string><string name='b' translatable='false'>No</string></resources>"
    assert text_of(text, ".xml") == text.replace("Don\\'t", "DON\\'T").replace("go", "GO")


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
LETTER = f"""<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:document {W}><w:body>
<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Hello</w:t></w:r></w:p>
<w:p><w:r><w:t xml:space="preserve">This </w:t></w:r><w:r><w:rPr><w:lang w:val="en-US"/></w:rPr><w:t>is</w:t></w:r>\
<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve"> very bold</w:t></w:r><w:r><w:t xml:space="preserve"> &amp; more </w:t></w:r>\
<w:hyperlink w:id="x"><w:r><w:rPr><w:u/></w:rPr><w:t>a link</w:t></w:r></w:hyperlink></w:p>
<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>LINK</w:instrText></w:r>\
<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>shown</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>\
<w:r><w:drawing><w:p><w:r><w:t>box</w:t></w:r></w:p></w:drawing></w:r></w:p>
<w:tbl><w:tr><w:tc><w:p><w:r><w:t>cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl><w:p/></w:body></w:document>"""


def test_a_letter_keeps_its_formats_links_fields_and_boxes():
    found = part_of(translated(packed({"word/document.xml": LETTER}), ".docx"), "word/document.xml")
    said = re.sub(r' xml:space="preserve"', "", found)
    assert "</w:pPr><w:r><w:t>HELLO</w:t></w:r></w:p>" in said
    assert (
        "<w:p><w:r><w:t>THIS IS</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t> VERY BOLD</w:t></w:r>"
        '<w:r><w:t> &amp; MORE </w:t></w:r><w:hyperlink w:id="x"><w:r><w:rPr><w:u/></w:rPr><w:t>A LINK</w:t></w:r>'
        "</w:hyperlink></w:p>"
    ) in said
    assert "<w:instrText>LINK</w:instrText>" in said and "<w:t>SHOWN</w:t></w:r><w:r><w:fldChar" in said
    assert "<w:drawing><w:p><w:r><w:t>BOX</w:t></w:r></w:p></w:drawing>" in said
    assert "<w:tc><w:p><w:r><w:t>CELL</w:t></w:r></w:p></w:tc>" in said and said.endswith(
        "<w:p/></w:body></w:document>"
    )


def test_open_document_keeps_spans_and_notes():
    text = (
        '<office:document-content xmlns:office="o" xmlns:text="t"><text:h>Title</text:h><text:p>Some '
        '<text:span text:style-name="T1">bold</text:span> words<text:note><text:note-body><text:p>A note.</text:p>'
        "</text:note-body></text:note> end.</text:p></office:document-content>"
    )
    data = packed({"content.xml": text, "Pictures/a.png": "pixels"})
    found = translated(data, ".odt")
    names = zipfile.ZipFile(io.BytesIO(found)).infolist()
    assert [one.filename for one in names] == ["mimetype", "content.xml", "Pictures/a.png"]
    assert names[0].compress_type == zipfile.ZIP_STORED and part_of(found, "Pictures/a.png") == "pixels"
    expected = text
    for word in ("Title", "Some", "bold<", "words", "A note", "end"):
        expected = expected.replace(
            f">{word}" if word != "end" else " end", (f">{word}" if word != "end" else " end").upper()
        )
    expected = expected.replace("bold</", "BOLD</").replace(" words", " WORDS")
    assert part_of(found, "content.xml") == expected


def test_a_book_is_translated_page_by_page():
    found = translated(packed({"OEBPS/a.xhtml": "<html><p>One</p></html>", "b.css": "p {}"}), ".epub")
    assert part_of(found, "OEBPS/a.xhtml") == "<html><p>ONE</p></html>" and part_of(found, "b.css") == "p {}"


BOMB = packed({"word/document.xml": "<a>" + " " * (40 << 20) + "</a>"})
BAD = {
    "not a zip": (b"hello", ".docx", "is damaged"),
    "old": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1rest", ".docx", "encrypted"),
    "other zip": (packed({"a.txt": "x"}), ".docx", "the part with its text is not there"),
    "cut off": (packed({"word/document.xml": LETTER})[:-30], ".docx", "is damaged"),
    "bomb": (BOMB, ".docx", "too much for its size"),
    "no XML": (packed({"word/document.xml": "<w:document>"}), ".docx", "word/document.xml: line 1: not well-formed"),
    "entity": (b'<!DOCTYPE x [<!ENTITY a "b">]><xliff>&a;</xliff>', ".xlf", "declares 'a'"),
    "deep": (b"<xliff>" + b"<g>" * 600, ".xlf", "nested more than"),
    "other XML": (b"<svg/>", ".xml", "begins with <svg>"),
    "no JSON": (b"{", ".json", "is no JSON"),
    "latin-1": (b"caf\xe9", ".txt", "line 1 is not utf-8"),
    "UTF-16 without a mark": ("hi".encode("utf-16-le"), ".txt", "NUL"),
    "no PO": (b'msgid "a"\n', ".po", "no msgstr"),
    "large": (b"a" * (MAX_BYTES + 1), ".txt", "divide it"),
    "unknown": (b"a", ".pdf", "is no document that can be translated"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_document_is_refused_in_one_line(name):
    data, ending, reason = BAD[name]
    with pytest.raises(DocumentError, match=re.escape(reason)) as caught:
        translated(data, ending)
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=200), st.sampled_from(ENDINGS))
def test_any_bytes_are_translated_or_refused(data, ending):
    with contextlib.suppress(DocumentError):
        assert isinstance(translated(data, ending, say=str), bytes)


# On the command line, with a bundled model.


def test_a_document_on_the_command_line(tmp_path, capsys):
    (tmp_path / "a.md").write_text("# My house\n\nI like **the cat**. See `code`.\n", encoding="utf-8")
    assert run(["translate", "en-fr", str(tmp_path / "a.md"), "--out", str(tmp_path / "b.md")]) == 0
    found = (tmp_path / "b.md").read_text(encoding="utf-8")
    assert re.fullmatch(r"# \S.*[^.]\n\n.*\*\*le chat\*\*.*`code`.*\n", found)
    assert "a.md: 2 segments translated" in capsys.readouterr().err


def test_the_quality_of_translations_is_noted_in_documents(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.po").write_text(
        'msgid ""\nmsgstr ""\n"Language: fr\\n"\n\nmsgid "The cat sleeps."\nmsgstr ""\n', encoding="utf-8"
    )
    (tmp_path / "in" / "b.srt").write_text(SUBTITLES, encoding="utf-8")
    (tmp_path / "in" / "c.xlf").write_text(XLIFF, encoding="utf-8")
    assert run(["translate", "en-fr", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--quality"]) == 0
    found = (tmp_path / "out" / "a.po").read_text(encoding="utf-8")
    assert re.search(r'\n# regard: quality [01]\.\d\d\nmsgid "The cat sleeps\."\nmsgstr "Le chat', found)
    assert (tmp_path / "out" / "c.xlf").read_text(encoding="utf-8").count('<note from="regard"') == 2
    said = capsys.readouterr().err
    assert "b.srt: .srt has no place for notes, so --quality wrote none" in said
    assert said.count("no place for notes") == 1
    assert run(["translate", "en-fr", "The cat.", "--quality"]) == 2
    assert "--quality is for documents" in capsys.readouterr().err
    shards = ["--shards", "2", "--out", str(tmp_path / "shards")]
    assert run(["translate", "en-fr", str(tmp_path / "in" / "b.srt"), *shards, "--quality"]) == 2
    assert "--quality is not for shards" in capsys.readouterr().err


def test_a_folder_of_documents(tmp_path, capsys):
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "a.txt").write_text("The cat.\n", encoding="utf-8")
    (tmp_path / "in" / "sub" / "b.html").write_text("<p>The cat.</p>", encoding="utf-8")
    (tmp_path / "in" / "bad.docx").write_bytes(b"no")
    (tmp_path / "in" / "x.bin").write_bytes(b"no")
    assert run(["translate", "en-fr", str(tmp_path / "in"), "--out", str(tmp_path / "out")]) == 3
    assert (tmp_path / "out" / "a.txt").read_text(encoding="utf-8") == "Le chat.\n"
    assert (tmp_path / "out" / "sub" / "b.html").read_text(encoding="utf-8") == "<p>Le chat.</p>"
    assert sorted(path.name for path in (tmp_path / "out").rglob("*.*")) == ["a.txt", "b.html"]
    assert "bad.docx: is damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, reason",
    [
        (["a.md"], "--out a.translated.md"),
        (["a.md", "--out", "b.txt"], "end --out in .md"),
        (["a.md", "--out", "a.md"], "is read by this command"),
        (["a.md", "a text", "--out", "b.md"], "'a text' is no document"),
        (["a.md", "--out", "b.md", "--jsonl"], "--jsonl is for texts"),
        (["none.docx", "--out", "b.docx"], "there is no such file"),
        (["a.pdf", "--out", "b.pdf"], "is not translated in place"),
        (["empty", "--out", "b"], "has no document"),
        (["empty/"], "is a folder; say where"),
    ],
)
def test_what_a_command_cannot_do_is_said(words, reason, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("The cat.\n", encoding="utf-8")
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    (tmp_path / "empty").mkdir()
    assert run(["translate", "en-fr", *words]) == 2
    assert reason in capsys.readouterr().err
    assert (tmp_path / "a.md").read_text(encoding="utf-8") == "The cat.\n" and not (
        tmp_path / "b.md"
    ).exists()


def test_a_word_that_names_a_folder_is_a_word(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "house").mkdir()
    assert run(["translate", "en-fr", "house"]) == 0
    assert capfd.readouterr().out.strip()
