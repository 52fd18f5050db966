"""Writes sentence pairs to files that appear whole or not at all, in the format their name asks for."""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from regard.corpus.read import Corpus, Pair
from regard.errors import OutputError
from regard.files import COMPRESSIONS, without_compression, writing

_BREAKS = re.compile(r"[\t\n\r]+")  # would end a line or a column


def output_paths(out: Path, corpus: Corpus) -> list[Path]:
    """Return the files that `out` stands for: itself for .tsv and .jsonl, else one for each language.

    `clean` gives `clean.fr` and `clean.en`; `clean.gz` gives `clean.fr.gz` and `clean.en.gz`.
    Raises OutputError if one of them exists, so that nobody's corpus is overwritten.
    """
    plain = without_compression(out)
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
    """Write the pairs to the files of `output_paths(out, corpus)`; N pairs give N lines."""
    paths = output_paths(out, corpus)
    languages = (corpus.source_language or "source", corpus.target_language or "target")
    with writing(*paths) as files:
        for pair in pairs:
            if len(files) == 2:
                files[0].write(_line(pair.source))
                files[1].write(_line(pair.target))
            elif without_compression(out).suffix.lower() == ".jsonl":
                row = dict(zip(languages, (pair.source, pair.target), strict=True))
                files[0].write(_encode(json.dumps(row, ensure_ascii=False) + "\n"))
            else:
                files[0].write(_line(pair.source)[:-1] + b"\t" + _line(pair.target))


def _line(text: str) -> bytes:
    return _encode(_BREAKS.sub(" ", text) + "\n")


def _encode(text: str) -> bytes:
    # Bytes that were not UTF-8 go out as they came in.
    return text.encode("utf-8", "surrogateescape" if _escaped(text) else "surrogatepass")


def _escaped(text: str) -> bool:
    return any("\udc80" <= character <= "\udcff" for character in text)
