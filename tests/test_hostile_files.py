"""Files made to hurt: each ends in a CorpusError that names file and line, in bounded memory and time."""

import gzip
import io
import lzma
import os
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from regard.corpus.read import MAX_LINE_BYTES, open_corpus
from regard.errors import CorpusError, MissingExtraError

MIB = 1 << 20
Write = Callable[[str, str | bytes], Path]


def fault(*paths: Path) -> str:
    """Return the message of the error that reading raises, be it at the start or later."""
    with pytest.raises(CorpusError) as caught:
        for _ in open_corpus(paths).pairs():
            pass
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 500 + sum(len(str(path)) for path in paths)
    return message


# What is there, and what is not


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert fault(tmp_path / "a.fr", tmp_path / "a.en").startswith(f"{tmp_path / 'a.fr'}: no such file")


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "a.tmx"
    folder.mkdir()
    assert fault(folder).startswith(f"{folder}: is a folder")


def test_a_path_through_a_file_cannot_be_opened(write: Write) -> None:
    path = write("a.tsv", "a\tb\n") / "b.tsv"
    assert fault(path).startswith(f"{path}: cannot be opened (Not a directory)")


def test_a_pipe_is_refused_before_anyone_waits_for_it(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    os.mkfifo(path)
    assert fault(path).startswith(f"{path}: is not a regular file")


def test_a_file_without_permission_is_named(write: Write) -> None:
    path = write("a.tsv", "a\tb\n")
    path.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)  # root may read every file, nobody may not
    try:
        assert fault(path).startswith(f"{path}: cannot be opened (Permission denied)")
    finally:
        os.seteuid(user)


@pytest.mark.parametrize("name", ["a.tmx", "a.xlf", "a.po", "a.tsv", "a.jsonl", "a.parquet"])
def test_an_empty_file_is_an_error(write: Write, name: str) -> None:
    assert fault(write(name, "")) == f"{write(name, '')}: is empty; check how it was written"
    if name != "a.parquet":
        assert f"{name}.gz" in fault(write(f"{name}.gz", gzip.compress(b"")))


def test_a_corpus_without_a_single_pair_is_an_error(write: Write) -> None:
    empty = write("a.fr.gz", gzip.compress(b""))
    assert "no sentence pair" in fault(empty, empty)
    only_header = write("a.tsv", "en\tfr\n")
    assert f"{only_header}: contains no sentence pair (skipped: header: 1)" in fault(only_header)
    assert "no sentence pair" in fault(write("a.po", 'msgid "a"\nmsgstr ""\n'))


# Encodings and compression


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-32-be"])
def test_another_unicode_encoding_says_how_to_convert(write: Write, encoding: str) -> None:
    path = write(
        "a.fr", "\ufeffchat\n".encode(encoding) if encoding.endswith("be") else "chat\n".encode(encoding)
    )
    assert f"{path}:1: is {encoding[:6].upper()}, not UTF-8; convert it: iconv -f" in fault(path, path)


def cut(ending: str) -> Callable[[bytes], bytes]:
    return {
        ".gz": gzip.compress,
        ".xz": lzma.compress,
        ".zst": zstandard.ZstdCompressor().compress,
    }[ending]


@pytest.mark.parametrize(("ending", "kind"), [(".gz", "gzip"), (".xz", "xz"), (".zst", "zstd")])
def test_a_file_that_is_not_compressed_as_it_says_is_named(write: Write, ending: str, kind: str) -> None:
    for name in (f"a.tmx{ending}", f"a.tsv{ending}", f"a.po{ending}", f"a.jsonl{ending}"):
        path = write(name, "just text, and not compressed at all\n" * 10)
        assert fault(path).startswith(f"{path}: not a valid {kind} file (")


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_a_truncated_file_gives_its_lines_and_then_says_how_far_it_came(write: Write, ending: str) -> None:
    noise = random.Random(1)
    text = "".join(f"{noise.random()}\t{noise.random()}\n" for _ in range(20_000)).encode()
    whole = cut(ending)(text)
    path = write(f"a.tsv{ending}", whole[: len(whole) * 2 // 3])
    found = []
    with pytest.raises(CorpusError, match=r"damaged after line \d+ \(") as caught:
        found.extend(open_corpus([path]).pairs())
    assert 5_000 < len(found) < 15_000
    assert f"{path}: damaged after line {len(found)} (" in str(caught.value)


def test_zstd_files_cut_at_any_place_are_noticed(write: Write) -> None:
    noise = random.Random(2)
    text = b"a" * 300_000 + b"\t" + noise.randbytes(300).hex().encode() + b"\n"  # repeated and other blocks
    for options in ({}, {"write_checksum": True}, {"write_content_size": False}):
        frame = zstandard.ZstdCompressor(**options).compress(text)
        skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
        whole = frame + skippable + frame
        assert len(list(open_corpus([write("a.tsv.zst", whole)]).pairs())) == 2
        boundaries = (len(frame), len(frame) + len(skippable))
        for size in range(len(frame) // 2, len(whole), 7):
            if size not in boundaries:
                assert "a.tsv.zst: " in fault(write("a.tsv.zst", whole[:size]))


# Lines and columns


def test_a_line_at_the_limit_is_read_and_one_beyond_it_named(write: Write) -> None:
    longest = "a" * MAX_LINE_BYTES
    for end in ("\n", "\r\n", ""):
        source, target = write("a.fr", f"b\n{longest}{end}"), write("a.en", f"b\n{longest}\n")
        assert [len(pair.source) for pair in open_corpus([source, target]).pairs()] == [1, MAX_LINE_BYTES]
        longer = write("b.fr", f"b\n{longest}a{end}")
        assert fault(longer, target).startswith(f"{longer}:2: longer than 1,048,576 bytes")


def test_a_row_with_other_columns_than_the_first_is_named(write: Write) -> None:
    path = write("a.tsv", "a\tb\nc\td\te\n")
    assert fault(path).startswith(f"{path}:2: 3 columns where the first line has 2")
    path = write("b.tsv", "a\tb\n\n")
    assert fault(path).startswith(f"{path}:2: 1 column where the first line has 2")
    path = write("c.tsv", "a b\n")
    assert fault(path).startswith(f"{path}:1: 1 column; ")


GOOD_JSON = '{"fr": "a", "en": "b"}\n'


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON"),
        ("", "not JSON"),
        ("[1]", "not an object"),
        ('"text"', "not an object"),
        ('{"fr": "a", "de": "b"}', "'fr', 'en' must both be there and be text; found the keys 'fr', 'de'"),
        ('{"fr": "a", "en": 1}', "must both be there and be text"),
        ('{"fr": "a", "en": null}', "must both be there and be text"),
        ('{"translation": {"fr": "a"}}', "found the keys 'fr'"),
        ("[" * 200_000, "nested too deeply"),
        ('{"fr":' * 100_000, "nested too deeply"),
        ('{"x": ' + "9" * 100_000 + "}", "found the keys 'x'"),
        ('{"' + "k" * 100_000 + '\\n": 1}', "found the keys 'kkk"),
    ],
)
def test_a_bad_line_of_json_is_named(write: Write, line: str, problem: str) -> None:
    path = write("a.jsonl", f"{GOOD_JSON}{line}\n{GOOD_JSON}")
    message = fault(path)
    assert message.startswith(f"{path}:2: ")
    assert problem in message
    path = write("b.jsonl", f"{line}\n{GOOD_JSON}")
    assert fault(path).startswith(f"{path}:{2 if 'de' in line else 1}: ")


def test_parquet_that_is_not_parquet_is_named(write: Write) -> None:
    path = write("a.parquet", "PAR1 this is no Parquet PAR1")
    assert fault(path).startswith(f"{path}: not valid Parquet (")
    assert "decompress" in fault(write("a.parquet.gz", gzip.compress(b"x")))


def test_parquet_without_pyarrow_says_what_to_install(write: Write) -> None:
    path = write("a.parquet", "PAR1")
    program = f"""
        import sys
        sys.modules["pyarrow"] = None
        from regard.corpus.read import open_corpus
        try:
            open_corpus([{str(path)!r}])
        except Exception as error:
            print(type(error).__name__, error)
    """
    printed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    ).stdout
    assert printed.startswith(f"{MissingExtraError.__name__} reading Parquet needs the extra [parquet]")


# XML

UNIT = '<tu><tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="fr"><seg>b</seg></tuv></tu>'


def tmx(declarations: str, text: str) -> str:
    head = f"<?xml version='1.0'?>\n<!DOCTYPE tmx {declarations}>\n"
    return f"{head}<tmx><body>\n{UNIT.format(text)}\n</body></tmx>"


def test_billion_laughs_are_refused_at_the_first_entity(write: Write) -> None:
    laughs = "\n".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    path = write("a.tmx", tmx(f'[\n<!ENTITY l0 "ha">\n{laughs}\n]', "&l11;"))
    assert fault(path).startswith(f"{path}:3: declares 'l0'; remove")


def test_quadratic_blow_up_is_refused(write: Write) -> None:
    path = write("a.xlf", tmx(f'[\n<!ENTITY big "{"a" * 100_000}">]', "&big;" * 10_000))
    assert fault(path).startswith(f"{path}:3: declares 'big'; remove")


@pytest.mark.parametrize(
    "declaration",
    ['<!ENTITY x SYSTEM "{}">', '<!ENTITY % x SYSTEM "{}"> %x;', '<!ENTITY x PUBLIC "p" "{}" NDATA n>'],
)
def test_other_files_are_never_read(write: Write, declaration: str) -> None:
    secret = write("secret.txt", "the secret words")
    declared = declaration.format(secret.as_uri())
    path = write("a.tmx", tmx(f"[\n{declared}]", "&x;"))
    message = fault(path)
    assert message.startswith(f"{path}:3: declares 'x'; remove")
    assert "secret words" not in message


def test_an_external_document_type_is_neither_read_nor_refused(write: Write) -> None:
    dtd = write("tmx14.dtd", '<!ENTITY x "the secret words">')
    path = write("a.tmx", tmx(f'SYSTEM "{dtd.as_uri()}"', "a"))
    assert [pair.source for pair in open_corpus([path]).pairs()] == ["a"]
    # Without the DTD expat would drop the reference in silence.
    path = write("b.tmx", tmx(f'SYSTEM "{dtd.as_uri()}"', "caf&x;"))
    assert fault(path).startswith(f"{path}:4: uses the entity 'x'; write the character")


def test_default_attributes_are_refused(write: Write) -> None:
    path = write("a.tmx", tmx(f'[\n<!ATTLIST seg x CDATA "{"a" * 10_000}">]', "a"))
    assert fault(path).startswith(f"{path}:3: declares 'seg'; remove")


@pytest.mark.parametrize(("ending", "root"), [("tmx", "tmx"), ("xlf", "xliff")])
def test_deep_nesting_is_refused(write: Write, ending: str, root: str) -> None:
    path = write(f"a.{ending}", f"<{root}>\n" + "<x>" * 200_000)
    assert fault(path).startswith(f"{path}:2: elements nested more than 100 deep")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("<tmx><body>", "1: not well-formed XML (no element found)"),
        ("<tmx>\n<a></b>", "2: not well-formed XML (mismatched tag)"),
        (b"<tmx>\n\xff\xfe", "2: not well-formed XML (not well-formed (invalid token))"),
        ("<html>", "1: begins with <html>, not <tmx>"),
        ("plain text", "1: not well-formed XML (syntax error)"),
        ("<?xml version='1.0' encoding='bogus'?><tmx/>", "1: unknown encoding"),
        ("<?xml version='1.0' encoding='shift_jis'?><tmx/>", "1: multi-byte encodings are not supported"),
        ("<tmx/>", " holds no language"),
    ],
)
def test_a_fault_in_xml_is_named_by_its_line(write: Write, content: str | bytes, problem: str) -> None:
    path = write("a.tmx", content)
    assert fault(path).startswith(f"{path}:{problem}")


# Too large for memory: a gibibyte each, written as many small compressed members


def repeated(compress: Callable[[bytes], bytes], head: str, pattern: str) -> bytes:
    piece = pattern.encode() * (4 * MIB // len(pattern))
    return (compress(head.encode()) if head else b"") + compress(piece) * 256


TMX_HEAD = "<tmx>\n<body>"
HUGE = {
    "line.tsv": ("a\tb\n", "a", ":2: longer than 1,048,576 bytes"),
    "line.po": ('msgid "a"\nmsgstr "b"\n', '"', ":3: longer than 1,048,576 bytes"),
    "entry.po": ('msgid "a"\nmsgstr "b"\n', '"aaaaaa"\n', ": an entry of more than 1,048,576 characters"),
    "comment.tmx": (f"{TMX_HEAD}<!-- ", "a", ":2: a tag or comment of more than 1,048,576 bytes"),
    "tag.tmx": (f"{TMX_HEAD}<tu ", "a", ":2: a tag or comment of more than 1,048,576 bytes"),
    "segment.tmx": (f"{TMX_HEAD}<tu><tuv><seg>", "a", ":2: a segment of more than 1,048,576 characters"),
    "unit.tmx": (f"{TMX_HEAD}<tu>", "<tuv><seg/></tuv>\n", ": a unit of more than 8,388,608 characters"),
    "segment.xlf": (
        "<xliff><file>\n<segment><source>",
        "a",
        ":2: a segment of more than 1,048,576 characters",
    ),
}


def message_within(path: Path, max_bytes: int) -> str:
    """Return the message of the error that a process of its own raises while it may grow by so many bytes.

    Any expansion is allowed: what is read must fit even then.
    """
    program = f"""
        import resource
        from pathlib import Path
        from regard.corpus.read import open_corpus
        from regard.files import expansion_allowed
        num_pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = num_pages * resource.getpagesize() + {max_bytes}
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        try:
            with expansion_allowed(10**9):
                for _ in open_corpus([{str(path)!r}]).pairs():
                    pass
        except Exception as error:
            print(type(error).__name__, error)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit on memory is that of Linux")
@pytest.mark.parametrize("name", HUGE)
def test_a_gibibyte_without_an_end_is_refused_in_little_memory(write: Write, name: str) -> None:
    head, pattern, problem = HUGE[name]
    compressed = repeated(lambda data: gzip.compress(data, compresslevel=1), head, pattern)
    assert len(compressed) < 16 * MIB
    path = write(f"{name}.gz", compressed)
    message = message_within(path, max_bytes=48 * MIB)
    assert message.startswith(f"CorpusError {path}")
    assert problem in message


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit on memory is that of Linux")
@pytest.mark.parametrize("ending", [".xz", ".zst"])
def test_other_compressions_are_bounded_too(write: Write, ending: str) -> None:
    # xz allots its dictionary of 8 MiB at once; the rest is as for gzip.
    path = write(f"a.tsv{ending}", repeated(cut(ending), "a\tb\n", "a"))
    message = message_within(path, max_bytes=64 * MIB)
    assert message.startswith(f"CorpusError {path}:2: longer than 1,048,576 bytes")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit on memory is that of Linux")
def test_a_sparse_file_of_nothing_but_zeros_is_refused_in_little_memory(write: Write) -> None:
    path = write("a.tsv", "a\tb\n")
    os.truncate(path, 1 << 36)
    message = message_within(path, max_bytes=48 * MIB)
    assert message.startswith(f"CorpusError {path}:2: longer than 1,048,576 bytes")


# Chance


def sample_files() -> dict[str, bytes]:
    import pyarrow
    from pyarrow import parquet

    table = io.BytesIO()
    texts = [f"text {number}" for number in range(200)]
    parquet.write_table(pyarrow.table({"en": texts, "fr": texts}), table)
    lines = "".join(f"{text}\t{text}\n" for text in texts).encode()
    return {
        "a.parquet": table.getvalue(),
        "a.tsv": lines,
        "a.tsv.gz": gzip.compress(lines),
        "a.tsv.xz": lzma.compress(lines),
        "a.tsv.zst": zstandard.ZstdCompressor().compress(lines),
        "a.jsonl": GOOD_JSON.encode() * 20,
        "a.po": b'msgid ""\nmsgstr "Language: fr\\n"\n\n#, fuzzy\nmsgid "a"\nmsgstr "b"\n\n'
        b'msgid "c"\nmsgstr ""\n"d"\n',
        "a.tmx": tmx('SYSTEM "tmx14.dtd"', "a<ph>x</ph>").encode(),
        "a.xlf": b"<xliff srcLang='en'><segment><source>a</source><target>b</target></segment></xliff>",
    }


def test_damage_anywhere_ends_in_pairs_or_in_our_own_error(write: Write) -> None:
    chance = random.Random(3)
    for name, whole in sample_files().items():
        for _ in range(150):
            content = bytearray(whole)
            for _ in range(chance.choice((1, 1, 3, 10))):
                content[chance.randrange(len(content))] = chance.choice(
                    (0, 9, 10, 34, 60, 255, chance.randrange(256))
                )
            if chance.random() < 0.3:
                del content[chance.randrange(1, len(content)) :]
            try:
                for pair in open_corpus([write(name, bytes(content))]).pairs():
                    assert isinstance(pair.source, str)
            except CorpusError as error:
                assert name in str(error)
                assert "\n" not in str(error)
