"""Writes sentence pairs to files that appear whole or not at all, in the format their name asks for."""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from regard.corpus.read import Corpus, Pair
from regard.errors import OutputError
from regard.files import COMPRESSIONS, without_compression, writing

_BREAKS = re.compile(r"[\n\r]+")  # would end a line
_TABS = re.compile(r"[\t\n\r]+")  # would end a column
_HALVES = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # surrogates that no byte stands behind
_FOREIGN = (".tmx", ".xlf", ".xliff", ".po", ".parquet", ".csv", ".ndjson", ".bz2", ".zip")


def output_paths(out: Path, corpus: Corpus) -> list[Path]:
    """Return the files that `out` stands for: itself for .tsv and .jsonl, else one for each language.

    `clean` gives `clean.fr` and `clean.en`; `clean.gz` gives `clean.fr.gz` and `clean.en.gz`.
    Raises OutputError if one of them exists, so that nobody's corpus is overwritten.
    """
    if corpus.feature_size is not None:
        raise OutputError(f"{out}: a clean copy of feature vectors cannot be written; leave --clean out")
    plain = without_compression(out)
    if not plain.name or out.is_dir():
        raise OutputError(f"{out}: is a folder; add a file name, such as {out / 'clean'}")
    if plain.suffix.lower() in _FOREIGN:
        raise OutputError(
            f"{out}: cannot be written as {plain.suffix}; write .tsv or .jsonl, or two plain files"
        )
    if plain.suffix.lower() in (".tsv", ".jsonl"):
        paths = [out]
    else:
        ending = out.suffix if out.suffix.lower() in COMPRESSIONS else ""
        endings = (corpus.source_language or "source", corpus.target_language or "target")
        paths = [plain.with_name(f"{plain.name}.{language}{ending}") for language in endings]
        if paths[0] == paths[1]:
            raise OutputError(f"{out}: both sides are {endings[0]!r}; write to a .tsv or .jsonl file")
    for path in paths:
        if path.exists():
            raise OutputError(f"{path}: exists already; choose another name or remove it first")
    return paths


def write_pairs(out: Path, corpus: Corpus, pairs: Iterable[Pair]) -> None:
    """Write the pairs to the files of `output_paths(out, corpus)`; N pairs give N lines.

    In a format of lines, a line break inside a text becomes a space, and in TSV a tab does too.
    """
    paths = output_paths(out, corpus)
    languages = (corpus.source_language or "source", corpus.target_language or "target")
    if languages[0] == languages[1]:
        languages = ("source", "target")
    with writing(*paths) as files:
        for source, target in ((pair.source, pair.target) for pair in pairs):
            if len(files) == 2:
                files[0].write(_encode(_BREAKS.sub(" ", source)))
                files[1].write(_encode(_BREAKS.sub(" ", target)))
            elif without_compression(out).suffix.lower() == ".jsonl":
                row = dict(zip(languages, (source, target), strict=True))
                files[0].write(_encode(json.dumps(row, ensure_ascii=False)))
            else:
                files[0].write(_encode(f"{_TABS.sub(' ', source)}\t{_TABS.sub(' ', target)}"))


def _encode(line: str) -> bytes:
    """Return the bytes of a line: bytes that were not UTF-8 as they came, other halves of characters as �."""
    return _HALVES.sub("\ufffd", line).encode("utf-8", "surrogateescape") + b"\n"
