"""From a user's files to sentence pairs: each format, its languages, and what is read over."""

import gc
import gzip
import io
import itertools
import json
import lzma
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.corpus.language_codes import Languages, check_languages
from regard.corpus.read import Corpus, open_corpus
from regard.corpus.suggestions import TABLE
from regard.errors import ConfigError, CorpusError, UnequalError

Write = Callable[[str, str | bytes], Path]
Row = tuple[int, str, str]


def rows(corpus: Corpus) -> list[Row]:
    return [(pair.line, pair.source, pair.target) for pair in corpus.pairs()]


def read(*paths: Path, source: str | None = None, target: str | None = None) -> list[Row]:
    return rows(open_corpus(paths, source, target))


def languages(corpus: Corpus) -> tuple[str | None, str | None]:
    return corpus.source_language, corpus.target_language


# Two plain files


def test_two_plain_files_are_read_line_by_line(write: Write) -> None:
    corpus = open_corpus([write("a.fr", "le chat\nle chien\n"), write("a.en", "the cat\nthe dog\n")])
    assert rows(corpus) == [(1, "le chat", "the cat"), (2, "le chien", "the dog")]
    assert languages(corpus) == ("fr", "en")
    assert (corpus.place, corpus.num_bytes, corpus.skipped) == ("line", 33, Counter())


def test_a_corpus_can_be_read_again(write: Write) -> None:
    corpus = open_corpus([write("a.po", 'msgid "a"\nmsgstr "b"\n\nmsgid "c"\nmsgstr ""\n')])
    assert rows(corpus) == rows(corpus) == [(1, "a", "b")]
    assert corpus.skipped == Counter(untranslated=1)


def test_a_line_ends_with_a_newline_and_nothing_else(write: Write) -> None:
    odd = "one\u2028two\x85three\x0bfour\x0cfive\rsix"
    assert read(write("a.fr", f"{odd}\r\nb\r\n"), write("a.en", "a\n\n")) == [(1, odd, "a"), (2, "b", "")]


def kept(path: Path, *rows: tuple[str, str, str, str]) -> Path:
    """A file with the suggestions of a server."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(TABLE)
        for row in rows:
            columns = "source_language, target_language, source, target, time, client"
            connection.execute(f"insert into suggestions ({columns}) values (?, ?, ?, ?, 0, '')", row)
    return path


def test_suggestions_of_a_server_are_read_in_one_direction(tmp_path: Path) -> None:
    rows = [("fr", "en", "a", "b"), ("en", "fr", "c", "d"), ("fr-CA", "en", "e", "f\ng")]
    path = kept(tmp_path / "what? 100%.db", *rows)
    assert read(path, source="fr", target="en") == [(1, "a", "b"), (3, "e", "f\ng")]
    corpus = open_corpus([path], "en", "fr")
    kept(path, ("en", "fr", "later", "x"))  # by the server, after the file was looked at
    assert [(pair.source, pair.target) for pair in corpus.pairs()] == [("c", "d")]
    assert corpus.skipped == {"of another direction": 2} and corpus.place == "row"
    with pytest.raises(CorpusError, match="name the source language"):
        open_corpus([path])
    with pytest.raises(CorpusError, match="from fr to en, en to fr, fr-CA to en, none from de to en"):
        open_corpus([path], "de", "en")
    one = open_corpus([kept(tmp_path / "one", ("ko", "en", "a", "b"))])
    assert languages(one) == ("ko", "en")


def test_another_sqlite_file_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection, connection:
        connection.execute("create table others (id)")
    with pytest.raises(CorpusError, match="no such table: suggestions"):
        open_corpus([tmp_path / "a.sqlite"])
    with pytest.raises(CorpusError, match="from no language"):
        open_corpus([kept(tmp_path / "b.sqlite")])
    broken = (kept(tmp_path / "c.db", *[("fr", "en", "a", "b" * 300)] * 100)).read_bytes()
    (tmp_path / "c.db").write_bytes(broken[:5000])
    with pytest.raises(CorpusError, match="not a file of suggestions"):
        open_corpus([tmp_path / "c.db"])
    with closing(sqlite3.connect(kept(tmp_path / "d.db"))) as connection, connection:
        connection.execute("insert into suggestions values (1, 0, 'fr', 'en', x'ff', 'b', '')")
    with pytest.raises(CorpusError, match="suggestion 1 is not text"):
        open_corpus([tmp_path / "d.db"])


def test_the_last_line_needs_no_newline(write: Write) -> None:
    assert read(write("a.fr", "a\nb"), write("a.en", "c\nd\n")) == [(1, "a", "c"), (2, "b", "d")]
    assert read(write("b.fr", "a\r\nb\r"), write("b.en", "c\nd")) == [(1, "a", "c"), (2, "b", "d")]


def test_a_byte_order_mark_is_removed_from_the_first_line_only(write: Write) -> None:
    source = write("a.fr", "\ufeffa\n\ufeffb\n")
    assert read(source, write("a.en", "c\nd\n")) == [(1, "a", "c"), (2, "\ufeffb", "d")]


def test_bytes_that_are_not_utf8_survive_as_lone_surrogates(write: Write) -> None:
    ((_, source, target),) = read(write("a.fr", b"caf\xe9 \xf0\x9f\n"), write("a.en", b"caf\xc3\xa9\n"))
    assert source == "caf\udce9 \udcf0\udc9f"
    assert source.encode("utf-8", "surrogateescape") == b"caf\xe9 \xf0\x9f"
    assert target == "café"


def test_decoding_in_blocks_gives_what_decoding_line_by_line_gives(write: Write) -> None:
    noise = random.Random(1)
    content = b"\n".join(noise.randbytes(noise.choice((0, 3, 50, 200, 70_000))) for _ in range(300))
    content = b"start" + content.replace(b"\n\n", b"\r\n\r\n") + b"end"
    expected = [line.removesuffix(b"\r").decode("utf-8", "surrogateescape") for line in content.split(b"\n")]
    path = write("a.fr.zst", zstandard.ZstdCompressor().compress(content))
    assert [source for _, source, _ in read(path, write("b.fr", content))] == expected


def test_unequal_files_give_their_pairs_and_then_both_counts(write: Write) -> None:
    longer, shorter = write("a.fr", "a\nb\nc\nd\n"), write("a.en", "x\ny\n")
    for paths, counts in ((longer, shorter), (4, 2)), ((shorter, longer), (2, 4)):
        found = []
        with pytest.raises(UnequalError, match="regard inspect") as caught:
            found.extend(open_corpus(paths).pairs())
        assert [pair.line for pair in found] == [1, 2]
        assert (caught.value.num_source, caught.value.num_target) == counts
        assert all(str(path) in str(caught.value) for path in paths)


def test_lines_are_counted_exactly_when_one_side_is_a_single_line_longer(write: Write) -> None:
    with pytest.raises(UnequalError) as caught:
        read(write("a.fr", "a\nb\n"), write("a.en", "x\n"))
    assert (caught.value.num_source, caught.value.num_target) == (2, 1)


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("a.fr", "fr"),
        ("train.fr.gz", "fr"),
        ("corpus.pt-br", "pt-br"),
        ("corpus.zh_Hans", "zh-hans"),
        ("flores.eng_Latn", "eng-latn"),
        ("a.EN", "en"),
        ("a.txt", None),
        ("fr", None),
        ("a.fr.tok", None),
    ],
)
def test_the_ending_of_a_plain_file_tells_its_language(write: Write, name: str, language: str | None) -> None:
    source = write(name, gzip.compress(b"a\n") if name.endswith(".gz") else "a\n")
    assert open_corpus([source, write("b.txt", "b\n")]).source_language == language


def test_languages_that_are_given_count_more_than_endings(write: Write) -> None:
    paths = [write("a.fr", "a\n"), write("a.txt", "b\n")]
    assert languages(open_corpus(paths, "fr_CA", "EN")) == ("fr-ca", "en")


def test_a_language_against_the_ending_is_an_error_for_two_files(write: Write) -> None:
    with pytest.raises(CorpusError, match=r"a\.fr: its name says 'fr'.*'en'.*swap"):
        open_corpus([write("a.fr", "a\n"), write("a.en", "b\n")], "en", "fr")


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".zst"])
def test_compressed_files_read_like_plain_ones(write: Write, ending: str) -> None:
    compress = {
        "": bytes,
        ".gz": gzip.compress,
        ".xz": lzma.compress,
        ".zst": zstandard.ZstdCompressor().compress,
    }[ending]
    text = "".join(f"ligne {number}\n" for number in range(20_000)).encode()
    # Two members, as `cat a.gz b.gz` writes them.
    path = write(f"a.fr{ending}", compress(text) + compress(b"fin\n"))
    found = read(path, write("a.en", text + b"end\n"))
    assert len(found) == 20_001
    assert found[-2:] == [(20_000, "ligne 19999", "ligne 19999"), (20_001, "fin", "end")]


def test_progress_counts_bytes_on_disk_up_to_all_of_them(write: Write) -> None:
    text = "".join(f"{number}\n" for number in range(50_000)).encode()
    corpus = open_corpus([write("a.fr.gz", gzip.compress(text)), write("a.en", text)])
    seen: list[int] = []
    assert sum(1 for _ in corpus.pairs(seen.append)) == 50_000
    assert seen == sorted(seen)
    assert len(seen) == 51
    assert 0 < seen[0] < corpus.num_bytes == seen[-1]


def test_files_are_closed_when_a_reader_gives_up(write: Write) -> None:
    # pytest turns the ResourceWarning of a file left open into an error.
    text = "a\tb\n" * 50_000
    for path in (write("a.tsv", text), write("a.tsv.gz", gzip.compress(text.encode()))):
        pairs = open_corpus([path]).pairs()
        next(pairs)
        del pairs
        gc.collect()


# Which format it is


def test_one_plain_file_is_not_enough(write: Write) -> None:
    with pytest.raises(CorpusError, match=r"a\.fr: a single file.*\.tmx.*\.parquet.*two files"):
        open_corpus([write("a.fr", "a\n")])


def test_no_file_or_three_files_are_too_few_or_too_many(write: Write) -> None:
    path = write("a.fr", "a\n")
    for paths in ([], [path] * 3):
        with pytest.raises(CorpusError, match=f"^{len(paths)} files"):
            open_corpus(paths)


# TSV


def test_the_first_two_columns_of_a_table_are_the_sides(write: Write) -> None:
    path = write("a.en-fr.tsv", 'a "b\tc"\t1\r\nd\te\t2\r\n')
    corpus = open_corpus([path])
    assert rows(corpus) == [(1, 'a "b', 'c"'), (2, "d", "e")]
    assert languages(corpus) == ("en", "fr")


def test_one_file_is_read_in_the_direction_asked_for(write: Write) -> None:
    path = write("a.en-fr.train.tsv", "the cat\tle chat\n")
    for source, target in ((None, None), ("en", None), (None, "fr"), ("en", "fr"), ("en", "fr-CA")):
        assert read(path, source=source, target=target) == [(1, "the cat", "le chat")]
    for source, target in (("fr", None), (None, "en"), ("fr", "en")):
        assert read(path, source=source, target=target) == [(1, "le chat", "the cat")]
        assert languages(open_corpus([path], source, target)) == ("fr", "en")
    with pytest.raises(CorpusError, match="holds en, fr, not 'de'"):
        open_corpus([path], "de")


def test_languages_are_taken_on_trust_where_nothing_tells(write: Write) -> None:
    path = write("a.tsv", "a\tb\n")
    assert languages(open_corpus([path])) == (None, None)
    assert languages(open_corpus([path], "de", "fr")) == ("de", "fr")


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("en\tfr", (2, "x", "y")),
        ("Source\tTarget", (2, "x", "y")),
        ("tgt\tsrc", (2, "y", "x")),
        ("score\ttarget\tsource", (2, "z", "y")),
        ("no\tno", (1, "no", "no")),
        ("en\tfr\tscore", (2, "x", "y")),
        ("id\ten\tfr", (2, "y", "z")),
        ("is\tthe", (1, "is", "the")),
    ],
)
def test_a_header_is_known_by_languages_or_by_source_and_target(
    write: Write, header: str, expected: Row
) -> None:
    line = "\t".join("xyz"[: header.count("\t") + 1])
    corpus = open_corpus([write("a.tsv", f"{header}\n{line}\n")])
    assert rows(corpus)[0] == expected
    assert corpus.skipped == (Counter(header=1) if expected[0] == 2 else Counter())


def test_columns_are_picked_by_the_languages_of_the_header(write: Write) -> None:
    path = write("a.tsv", "de\ten\tfr\nd\te\tf\n")
    assert read(path, source="fr", target="de") == [(2, "f", "d")]
    with pytest.raises(CorpusError, match=r"holds de, en, fr, not just two.*name the source"):
        open_corpus([path])


def test_columns_that_nothing_names_are_not_guessed(write: Write) -> None:
    path = write("a.tsv", "1\tBonjour.\tHello.\n")
    with pytest.raises(CorpusError, match="3 columns, and it is not clear which two"):
        open_corpus([path])


# JSON lines


@pytest.mark.parametrize(
    "record",
    [
        {"source": "s", "target": "t"},
        {"tgt": "t", "id": 3, "src": "s"},
        {"fr": "s", "en": "t"},
        {"id": "1", "translation": {"fr": "s", "en": "t"}},
    ],
)
def test_json_lines_may_name_their_fields_in_several_ways(write: Write, record: dict[str, object]) -> None:
    content = f"{json.dumps(record)}\n" * 2
    for name in ("a.jsonl", "a.ndjson"):
        assert read(write(name, content)) == [(1, "s", "t"), (2, "s", "t")]


def test_the_keys_of_json_are_languages(write: Write) -> None:
    path = write("a.jsonl", '{"fr": "a", "en": "b", "meta": {}}\n')
    assert languages(open_corpus([path])) == ("fr", "en")
    assert read(path, source="en") == [(1, "b", "a")]


def test_lone_surrogates_and_newlines_in_json_pass(write: Write) -> None:
    path = write("a.jsonl", r'{"fr": " a\nb\u2028 ", "en": "\ud800"}')
    assert read(path) == [(1, " a\nb\u2028 ", "\ud800")]


# Parquet


def parquet_bytes(columns: dict[str, object], **options: object) -> bytes:
    import pyarrow
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), buffer, **options)
    return buffer.getvalue()


def test_parquet_is_read_by_rows(write: Write) -> None:
    texts = [f"phrase {number}" for number in range(2500)]
    content = parquet_bytes({"id": [7] * 2500, "fr": texts, "en": texts[::-1]}, row_group_size=1000)
    corpus = open_corpus([write("a.parquet", content)])
    seen: list[int] = []
    found = [(pair.line, pair.source, pair.target) for pair in corpus.pairs(seen.append)]
    assert found == list(zip(range(1, 2501), texts, texts[::-1], strict=True))
    assert (corpus.place, languages(corpus)) == ("row", ("fr", "en"))
    assert seen[-1] == corpus.num_bytes
    assert read(corpus.paths[0], source="en")[0] == (1, "phrase 2499", "phrase 0")


def test_parquet_with_a_translation_column_is_read(write: Write) -> None:
    content = parquet_bytes({"translation": [{"en": "a", "fr": "b"}, None, {"en": "c", "fr": None}]})
    corpus = open_corpus([write("a.parquet", content)], "fr")
    assert rows(corpus) == [(1, "b", "a")]
    assert corpus.skipped == Counter({"no source text": 2})


def test_text_in_parquet_that_is_not_utf8_survives(write: Write) -> None:
    import pyarrow

    bad = pyarrow.array([b"caf\xe9"]).view(pyarrow.string())
    repeated = pyarrow.array(["x"]).dictionary_encode()
    assert read(write("a.parquet", parquet_bytes({"source": bad, "target": repeated}))) == [
        (1, "caf\udce9", "x")
    ]


def test_a_column_of_numbers_is_not_text(write: Write) -> None:
    with pytest.raises(CorpusError, match="'en' holds int64"):
        open_corpus([write("a.parquet", parquet_bytes({"fr": ["a"], "en": [1]}))])


# TMX

TMX = """<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4">
<header srclang="{srclang}" datatype="plaintext"/>
<body>
{units}
</body>
</tmx>
"""


def tmx(*units: dict[str, str], srclang: str = "*all*", encoding: str = "UTF-8") -> str:
    lines = (
        "<tu>"
        + "".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in unit.items())
        + "</tu>"
        for unit in units
    )
    return TMX.format(units="\n".join(lines), srclang=srclang, encoding=encoding)


def test_tmx_units_are_pairs_at_the_line_of_their_start(write: Write) -> None:
    path = write(
        "a.tmx", tmx({"en-US": "cat &amp; dog", "fr-FR": "chat"}, {"fr-CA": " été ", "EN": "summer"})
    )
    corpus = open_corpus([path])
    assert languages(corpus) == ("en", "fr")
    assert rows(corpus) == [(6, "cat & dog", "chat"), (7, "summer", " été ")]


def test_the_source_of_tmx_is_what_its_header_says(write: Write) -> None:
    path = write("a.tmx", tmx({"en": "cat", "fr": "chat"}, srclang="FR"))
    assert read(path) == read(path, source="fr") == read(path, target="en") == [(6, "chat", "cat")]
    assert read(path, source="en") == read(path, target="fr") == [(6, "cat", "chat")]


def test_tmx_with_three_languages_needs_to_be_told_which(write: Write) -> None:
    path = write("a.tmx", tmx({"en": "cat", "fr": "chat"}, {"de": "Katze", "en": "cat"}, srclang="en"))
    with pytest.raises(CorpusError, match=r"holds en, fr, de, not just two.*name the source"):
        open_corpus([path])
    corpus = open_corpus([path], "de", "en")
    assert rows(corpus) == [(7, "Katze", "cat")]
    assert corpus.skipped == Counter({"no text in the source language": 1})


def test_regions_are_told_apart_where_they_are_asked_for(write: Write) -> None:
    path = write(
        "a.tmx", tmx({"en": "mail", "fr-FR": "mail", "fr-CA": "courriel"}, {"en": "a", "fr-FR": "b"})
    )
    corpus = open_corpus([path], "en", "fr-ca")
    assert rows(corpus) == [(6, "mail", "courriel")]
    assert corpus.skipped == Counter({"further variant in a unit": 1, "no text in the target language": 1})
    assert read(path) == [(6, "mail", "mail"), (7, "a", "b")]


def test_native_codes_in_tmx_are_left_out_and_highlights_kept(write: Write) -> None:
    text = (
        '<bpt i="1">&lt;b&gt;<sub>alt</sub></bpt>big<ept i="1">&lt;/b&gt;</ept> <hi>red</hi><ph>{0}</ph> cat'
    )
    assert read(write("a.tmx", tmx({"en": text, "fr": "chat"}))) == [(6, "big red cat", "chat")]


def test_old_tmx_with_a_plain_lang_attribute_is_read(write: Write) -> None:
    content = tmx({"en": "cat", "fr": "chat"}).replace("xml:lang", "lang")
    assert read(write("a.tmx", content)) == [(6, "cat", "chat")]


@pytest.mark.parametrize("encoding", ["UTF-16", "ISO-8859-1", "windows-1252"])
def test_xml_is_read_in_the_encoding_that_it_declares(write: Write, encoding: str) -> None:
    content = tmx({"en": "summer", "fr": "été"}, encoding=encoding).encode(encoding)
    assert read(write("a.tmx", content)) == [(6, "summer", "été")]
    assert read(write("a.tmx.gz", gzip.compress(content))) == [(6, "summer", "été")]


def test_pairs_before_a_fault_in_xml_are_given_before_the_error(write: Write) -> None:
    content = tmx(*[{"en": "cat", "fr": "chat"}] * 1500).replace("</body>", "</boody>")
    found = []
    with pytest.raises(CorpusError, match=r"a\.tmx:1506: not well-formed XML \(mismatched tag\)"):
        found.extend(open_corpus([write("a.tmx", content)]).pairs())
    assert len(found) == 1500


# XLIFF

XLIFF_1 = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en" target-language="fr-FR" original="a" datatype="plaintext"><body>
<trans-unit id="1"><source>a <g id="1">big</g> cat<x id="2"/><ph id="3">%s</ph></source>
<seg-source><mrk mtype="seg">a cat</mrk></seg-source>
<target><mrk mtype="seg">un gros chat</mrk></target>
<alt-trans><source>a dog</source><target>un chien</target></alt-trans></trans-unit>
<trans-unit id="2"><source>no target</source></trans-unit>
<trans-unit id="3"><source>empty target</source><target/></trans-unit>
</body></file></xliff>"""

XLIFF_2 = """<x:xliff version="2.0" xmlns:x="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="fr">
<x:file id="f"><x:unit id="1">
<x:segment><x:source>a <x:pc id="1">big</x:pc> cat</x:source><x:target>chat</x:target></x:segment>
<x:ignorable><x:source> </x:source><x:target> </x:target></x:ignorable>
<x:segment><x:source>a dog</x:source></x:segment>
</x:unit></x:file></x:xliff>"""


def test_xliff_1_gives_sources_and_targets_and_no_proposals(write: Write) -> None:
    corpus = open_corpus([write("a.xlf", XLIFF_1)])
    assert rows(corpus) == [(3, "a big cat", "un gros chat")]
    assert languages(corpus) == ("en", "fr")
    assert corpus.skipped == Counter({"no text in the target language": 2})
    assert read(corpus.paths[0], target="en") == [(3, "un gros chat", "a big cat")]


def test_xliff_2_gives_segments(write: Write) -> None:
    corpus = open_corpus([write("a.xliff", XLIFF_2)])
    assert rows(corpus) == [(3, "a big cat", "chat")]
    assert languages(corpus) == ("en", "fr")
    assert corpus.skipped == Counter({"no text in the target language": 1})


def test_xliff_need_not_name_its_target_language(write: Write) -> None:
    path = write("a.xlf", XLIFF_1.replace('target-language="fr-FR"', ""))
    forward, backward = [(3, "a big cat", "un gros chat")], [(3, "un gros chat", "a big cat")]
    assert languages(open_corpus([path])) == ("en", None)
    assert read(path) == read(path, source="en", target="de") == read(path, target="de") == forward
    assert read(path, target="en") == read(path, source="de", target="en") == backward


# PO

PO = r"""# translator
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Language: fr_CA\n"

#: a.c:1
msgid "cat"
msgstr "chat"

#, c-format, fuzzy
msgid "dog"
msgstr "chat"

msgctxt "menu"
msgid "Open\t\"it\"\n"
msgstr ""
"Ouv"
"rir\\"
# a comment
msgid "file"
msgid_plural "files"
msgstr[0] "fichier"
msgstr[1] "fichiers"

msgid "bird"
msgstr ""

#~ msgid "old"
#~ msgstr "vieux"
"""


def test_po_gives_translated_entries_and_counts_the_others(write: Write) -> None:
    corpus = open_corpus([write("a.po", PO)])
    assert rows(corpus) == [
        (8, "cat", "chat"),
        (15, 'Open\t"it"\n', "Ouvrir\\"),
        (21, "file", "fichier"),
        (21, "files", "fichiers"),
    ]
    assert corpus.skipped == Counter(fuzzy=1, untranslated=1, obsolete=1)
    assert languages(corpus) == ("en", "fr-ca")


def test_po_is_read_in_the_direction_asked_for(write: Write) -> None:
    path = write("a.po", PO)
    assert read(path, source="fr")[0] == read(path, target="en")[0] == (8, "chat", "cat")
    assert read(path, source="de", target="fr")[0] == read(path, source="de")[0] == (8, "cat", "chat")
    with pytest.raises(CorpusError, match="not 'it'"):
        open_corpus([path], "de", "it")


def test_a_po_file_may_be_named_for_its_language(write: Write) -> None:
    content = 'msgid "a"\nmsgstr "b"\n'
    assert open_corpus([write("fr.po", content)]).target_language == "fr"
    assert open_corpus([write("guide.fr.po.gz", gzip.compress(content.encode()))]).target_language == "fr"
    assert open_corpus([write("guide.po", content)]).target_language is None


def test_po_in_another_encoding_says_how_to_convert_it(write: Write) -> None:
    with pytest.raises(CorpusError, match=r"a\.po: is in ISO-8859-1; convert.*msgconv"):
        open_corpus([write("a.po", PO.replace("UTF-8", "ISO-8859-1"))])


def test_odd_separators_do_not_break_a_po_entry(write: Write) -> None:
    assert read(write("a.po", 'msgid "a\u2028b\x85"\nmsgstr "c\x0cd"\n')) == [(1, "a\u2028b\x85", "c\x0cd")]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ('msgid "a"\nmsgstr "b" c\n', 2),
        ('msgid a\nmsgstr "b"\n', 1),
        ('msgid "a"\nmsgid "b"\nmsgstr "c"\n', 2),
        ('msgid "a"\nmsgstr "b"\nmsgstr "c"\n', 3),
        ('msgstr "b"\n', 1),
        ('msgid "a"\nmsgstr[0] "b"\n', 2),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr "c"\n', 3),
        ('"b"\n', 1),
        ('msgid "a"\nmsgstr "b"\n\nmsgid "c"\n', 4),
        ('msgid "a"\nmsgstr "b\\"\n', 2),
        ("/etc/passwd", 1),
    ],
)
def test_a_fault_in_po_is_named_by_its_line(write: Write, content: str, line: int) -> None:
    with pytest.raises(CorpusError, match=rf"a\.po:{line}: "):
        read(write("a.po", content))


# Any text at all

ANY_LINE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n")).filter(
    lambda text: not text.endswith("\r")
)
XML_TEXT = st.text(
    st.one_of(st.sampled_from("\t\n\r<>&\"']"), st.characters(min_codepoint=32, exclude_categories=["Cs"])),
    min_size=1,
).filter(lambda text: not {"\ufffe", "\uffff"} & set(text))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("property")


def numbered(pairs: list[tuple[str, str]], start: int = 1, step: int = 1) -> Iterator[Row]:
    for line, (source, target) in zip(itertools.count(start, step), pairs, strict=False):
        yield line, source, target


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(ANY_LINE, ANY_LINE)), st.sampled_from(["\n", "\r\n"]))
def test_any_line_comes_back_from_plain_files_and_tables(
    folder: Path, pairs: list[tuple[str, str]], end: str
) -> None:
    pairs = [("first line", "here"), *pairs]
    sides = []
    for side, name in enumerate(("a.txt", "b.txt")):
        sides.append(folder / name)
        sides[side].write_bytes("".join(pair[side] + end for pair in pairs).encode())
    assert read(*sides) == list(numbered(pairs))

    pairs = [(source.replace("\t", " "), target.replace("\t", " ")) for source, target in pairs]
    table = folder / "a.tsv"
    table.write_bytes("".join(f"{source}\t{target}{end}" for source, target in pairs).encode())
    assert read(table) == list(numbered(pairs))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.text(st.characters()), st.text(st.characters())), min_size=1), st.booleans())
def test_any_text_comes_back_from_json(folder: Path, pairs: list[tuple[str, str]], is_ascii: bool) -> None:
    if not is_ascii:  # a lone surrogate cannot be written in UTF-8
        pairs = [(repr(source), repr(target)) for source, target in pairs]
    path = folder / "a.jsonl"
    lines = (json.dumps({"fr": source, "en": target}, ensure_ascii=is_ascii) for source, target in pairs)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    assert read(path) == list(numbered(pairs))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(XML_TEXT, XML_TEXT), min_size=1))
def test_any_text_comes_back_from_tmx(folder: Path, pairs: list[tuple[str, str]]) -> None:
    path = folder / "a.tmx"
    codes = {"\r": "&#13;", "\n": "&#10;"}
    units = [{"en": escape(source, codes), "fr": escape(target, codes)} for source, target in pairs]
    path.write_bytes(tmx(*units).encode())
    assert read(path) == list(numbered(pairs, start=6))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(*[st.text('ab é"\\\n\tč한', min_size=1)] * 2), min_size=1, unique_by=lambda p: p[0])
)
def test_po_is_read_as_polib_reads_it(folder: Path, pairs: list[tuple[str, str]]) -> None:
    polib = pytest.importorskip("polib")
    written = polib.POFile(wrapwidth=10)
    written.extend(polib.POEntry(msgid=source, msgstr=target) for source, target in pairs)
    path = folder / "a.po"
    path.write_text(str(written), encoding="utf-8")
    twin = [(entry.msgid, entry.msgstr) for entry in polib.pofile(str(path))]
    assert [(source, target) for _, source, target in read(path)] == twin == pairs


def test_directions_differ_only_where_both_are_known():
    french = Languages("fr", "en")
    for fits in (french, Languages("fr-CA", "en"), Languages(None, "en"), Languages(None, None)):
        check_languages("a is", french, "b is", fits, "swap them")
    for differs in (french.swapped(), Languages("fr", "de"), Languages("de", None)):
        with pytest.raises(ConfigError) as found:
            check_languages("a is", french, "b is", differs, "swap them")
        assert str(found.value) == f"a is fr to en and b is {differs}; swap them"
    assert str(Languages("de", None)) == "de to ?"
