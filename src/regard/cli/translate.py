"""`regard translate`: lines in, as many lines out."""

import argparse
import contextlib
import io
import json
import os
import re
import shlex
import stat
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from regard.cli.documents import documents_among, translate_documents
from regard.cli.memory import add_memory, read_memory, similar
from regard.cli.progress import progress
from regard.cli.settings import add_compute, add_search, feature_file, read_compute, read_search
from regard.errors import ConfigError, CorpusError, SourceError
from regard.files import (
    READ_ERRORS,
    check_expansion,
    decompressed,
    refuse_to_replace,
    without_compression,
    writing,
)

if TYPE_CHECKING:
    from regard.contract import Features
    from regard.translate.request import Request
    from regard.translate.result import Translation
    from regard.translate.translator import Translator

NAME = "translate"
HELP = "translate a text, a file, a document or standard input"
DESCRIPTION = (
    "Translates texts, a file or standard input, line by line: as many lines out as in; blank lines stay\n"
    "blank. A line that cannot be read is reported and left blank, and the exit code is 3. A translation\n"
    "that looks wrong is tried again, and you get a warning if it still does. Documents (.docx .odt .html\n"
    ".md .po .xlf .srt ...) are translated in place: only their text changes."
)
EXAMPLES = """examples:
  regard translate "je suis étudiant"
  regard translate en-fr "I am a student"
  regard translate mine.regard < in.fr > out.en
  regard translate mine.regard --file in.fr --out out.jsonl --jsonl
  regard translate "il pleut" --nbest 5 --set diversity=0.5
  regard translate a.regard --with b.regard < in.fr > out.en
  regard translate fr-en --file in.fr --given out.en --jsonl
  regard translate en-fr --glossary terms.tsv < in.en > out.fr
  regard translate en-fr --memory my.tmx < in.en > out.fr
  regard translate en-fr letter.docx --out lettre.docx
  regard translate en-fr manual/ --out manuel/
  regard translate captions.regard features.npz
"""
SOME_FAILED = 3  # the exit code if some lines could not be translated

_MAX_BYTES = 200_000  # of a line
# Controls that a terminal obeys, and those that turn the direction of the text around them.
_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# Files whose lines are no texts; those of formats/document.py are translated in place.
_OTHER_DOCUMENTS = (
    ".doc", ".rtf", ".pdf", ".xlsx", ".jsonl", ".yaml", ".yml", ".csv", ".tsv", ".parquet",
)  # fmt: skip
_FILE_NAME = re.compile(
    r"(?!www\.)[^\s:@]*[\w)-]\.(?:docx?|odt|rtf|pdf|pptx|xlsx|ods|odp|epub|html?|xhtml|xml|xlf|xliff|tmx|pot?|jsonl?"
    r"|ya?ml|properties|strings|resx|srt|vtt|csv|tsv|parquet|txt|md|log|gz|xz|zst"
    r"|fr|en|de|es|it|ko|ja|zh|pt|nl|ru)",
    re.IGNORECASE,
)
_LINES = (".txt", ".md", ".markdown")  # documents that are lines of text as well
_BREAKS = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
_SHOWN_LINES = 5
_FLUSH_SECONDS = 0.5  # what is done is written at least so often


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "words", nargs="*", metavar="[MODEL] TEXT",
        help="model (file or name of a bundled model; default: fr-en), then texts, documents or folders "
        "(default: --file or standard input)",
    )  # fmt: skip
    parser.add_argument(
        "--file",
        type=Path,
        metavar="FILE",
        help="translate the lines of a file, perhaps compressed (.gz, .xz, .zst), or its features (.npz)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write to a file; it appears when everything is done"
    )
    parser.add_argument(
        "--jsonl",
        action="store_true",
        help="print one JSON object per line: words, alignment, confidence, flags",
    )
    add_search(parser)
    add_compute(parser)
    parser.add_argument(
        "--nbest", type=int, default=1, metavar="N", help="print the N best translations, separated by tabs"
    )
    parser.add_argument(
        "--glossary",
        type=Path,
        metavar="FILE",
        help="translate terms as this table says: source, target, further forms, separated by tabs; -form "
        "forbids one",
    )
    add_memory(parser)
    parser.add_argument(
        "--markup", choices=["xml", "html"], help="carry the tags of each line into its translation"
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="of documents: translate again what has a translation (.po .xlf .tmx)",
    )
    parser.add_argument("--prefix", metavar="TEXT", help="every translation begins with this")
    parser.add_argument(
        "--given",
        type=Path,
        metavar="FILE",
        help="do not translate; score and align the translations in this file",
    )
    parser.add_argument(
        "--with",
        type=Path,
        action="append",
        default=[],
        dest="others",
        metavar="MODEL",
        help="another model for an ensemble; can be repeated",
    )
    parser.add_argument(
        "--no-guard",
        action="store_true",
        help="plain search: nothing is tried again, and texts are not split into sentences",
    )


def run(options: argparse.Namespace) -> int:
    """Translate, and say what could not be read and what looks wrong."""
    search = read_search(options.beam, options.set)
    searches = options.prefix or options.glossary or options.memory or search or options.nbest > 1
    if options.given and searches:
        raise ConfigError(
            "--given does not translate; remove --prefix, --glossary, --memory, --beam, --nbest, --set"
        )
    if options.markup and (options.given or options.nbest > 1):
        raise ConfigError("--markup is for one translation of each line; remove --given and --nbest")
    from regard.corpus.features import read_features
    from regard.translate.translator import FORKING, Translator

    model, texts = _model_and_texts(options.words)
    if documents := documents_among(texts, options.out is not None):
        _refuse_for_documents(options)
        refuse_to_replace([options.out], [options.glossary, *options.memory, model, *options.others])
        translator = Translator.open(model, *options.others, pool=FORKING, compute=read_compute(options))
        asked = _asked(options, search, translator)
        return translate_documents(translator, documents, options.out, asked, options.again)
    _refuse_names(texts)
    features = feature_file(texts[0] if len(texts) == 1 else options.file)
    inputs = [
        options.file,
        features,
        options.given,
        options.glossary,
        *options.memory,
        model,
        *options.others,
    ]
    refuse_to_replace([options.out], inputs)
    translator = Translator.open(model, *options.others, pool=FORKING, compute=read_compute(options))
    report = _Report()
    with contextlib.ExitStack() as stack:
        lines: Iterable[str | Features]
        if features is not None:
            stream: IO[bytes] = io.BytesIO()
            lines = read_features(features)
        else:
            stream = _source(stack, texts, options.file)
            lines = _Lines(stream, str(options.file or "standard input"), report)
        if options.given:
            given = _Lines(_opened(stack, options.given), str(options.given), report)
            translations = _scored(translator, lines, given, report)
        else:
            asked = _asked(options, search, translator)
            translations = _translated(translator, lines, asked, stream.isatty())
        (out,) = stack.enter_context(writing(options.out)) if options.out else (sys.stdout.buffer,)
        on_screen = not options.out and sys.stdout.isatty()
        show = None if on_screen else stack.enter_context(progress())
        size, flushed = _size(stream), time.monotonic()
        for number, translation in enumerate(translations, 1):
            report.add(number, translation)
            line = _json(number, translation, report) if options.jsonl else _plain(translation)
            out.write(line.encode("utf-8", "replace") + b"\n")
            if on_screen or time.monotonic() - flushed > _FLUSH_SECONDS:
                out.flush()
                flushed = time.monotonic()
            if show:
                show("translating", _place(stream) if size else number, size)
        out.flush()
    report.print()
    return SOME_FAILED if report.errors else 0


def _asked(options: argparse.Namespace, search: dict[str, Any], translator: "Translator") -> "Request":
    """Return a request without text: what the options ask of each."""
    from regard.options.parse import parse
    from regard.terms.glossary import Glossary
    from regard.translate.request import Request

    return Request(
        "",
        prefix=options.prefix or None,
        num_best=options.nbest,
        search=parse("search", search),
        guard=not options.no_guard,
        glossary=Glossary.read(options.glossary) if options.glossary else None,
        markup=options.markup,
        memory=read_memory(options, translator),
    )


@dataclass
class _Report:
    """What is to be said at the end."""

    errors: dict[int, str] = field(default_factory=dict)
    flagged: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    num_lines: int = 0
    terms: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    similar: list[str] = field(default_factory=list)

    def fail(self, number: int, reason: str) -> None:
        """Say at once that a line cannot be translated."""
        self.errors[number] = reason
        print(f"regard: line {number:,}: {reason}", file=sys.stderr)

    def add(self, number: int, translation: "Translation") -> None:
        """Take down what looks wrong with a translation."""
        self.num_lines = number
        for flag in translation.flags:
            self.flagged[flag].append(number)
        for term in translation.terms:
            self.terms[term.status] += 1
            if term.status in ("unused", "impossible", "forbidden") and len(self.missed) < _SHOWN_LINES:
                self.missed.append(f"line {number:,}: {term.source} → {term.target} ({term.status})")
        self.similar += similar(translation, f"line {number:,}")[: _SHOWN_LINES - len(self.similar)]

    def print(self) -> None:
        """Say what looks wrong, and where."""
        from regard.flags import FLAGS

        if self.terms:
            counts = ", ".join(f"{count:,} {status}" for status, count in self.terms.items())
            print(f"regard: terms of the glossary: {counts}", file=sys.stderr)
            for missed in self.missed:
                print(f"regard: {missed}", file=sys.stderr)
        for line in self.similar:
            print(f"regard: {line}", file=sys.stderr)
        for flag, numbers in self.flagged.items():
            shown = ", ".join(f"{number:,}" for number in numbers[:_SHOWN_LINES])
            more = ", ..." if len(numbers) > _SHOWN_LINES else ""
            several = FLAGS[flag].several
            print(
                f"regard: {len(numbers):,} of {self.num_lines:,} {several} (line {shown}{more})",
                file=sys.stderr,
            )


class _Lines:
    """The lines to translate; one that cannot be read is reported, and blank."""

    def __init__(self, stream: IO[bytes], name: str, report: _Report) -> None:
        self.stream = stream
        self.name = name
        self.report = report

    def __iter__(self) -> Iterator[str]:
        try:
            yield from self._texts()
        except READ_ERRORS as error:
            raise CorpusError(f"{self.name}: cannot be read to its end ({error}); copy it again") from error

    def _texts(self) -> Iterator[str]:
        for number, line in enumerate(_bounded(self.stream), 1):
            reason, text = "", ""
            if len(line) > _MAX_BYTES:
                reason = f"has more than {_MAX_BYTES:,} bytes; break it into lines"
            elif b"\0" in line:
                reason = "has NUL characters; convert the file to UTF-8, if it is UTF-16"
            else:
                try:
                    text = line.decode("utf-8")
                except UnicodeDecodeError as error:
                    reason = (
                        f"byte {error.start + 1} ({line[error.start]:#04x}) is not UTF-8; convert the file"
                    )
            if reason:
                self.report.fail(number, reason)
            yield text.removeprefix("\ufeff") if number == 1 else text


def _bounded(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield lines without their ends; of one that is too long as much as shows that."""
    most = _MAX_BYTES + 2  # room for an end of line
    while line := stream.readline(most):
        if line.endswith(b"\n") or len(line) < most:
            yield line.removesuffix(b"\n").removesuffix(b"\r")
            continue
        while (rest := stream.readline(most)) and not rest.endswith(b"\n"):
            pass
        yield line


def _translated(
    translator: "Translator", lines: "Iterable[str | Features]", asked: "Request", at_once: bool
) -> Iterator["Translation"]:
    requests = (
        replace(asked, text=line) if isinstance(line, str) else replace(asked, text=line.text, features=line)
        for line in lines
    )
    if not at_once:
        yield from translator.stream(requests)
        return
    for request in requests:
        yield from translator.translate([request])


def _scored(
    translator: "Translator", lines: "Iterable[str | Features]", given: Iterable[str], report: _Report
) -> Iterator["Translation"]:
    """Yield the given translations as the model sees them; a pair with a blank side is blank."""
    from regard.contract import Features
    from regard.translate.result import Translation

    missing = object()
    for number, (line, text) in enumerate(zip_longest(lines, given, fillvalue=missing), 1):
        if line is missing or text is missing:
            raise CorpusError(f"the numbers of sources and translations differ from line {number:,} on")
        assert isinstance(line, str | Features) and isinstance(text, str)
        source = line if isinstance(line, str) else line.text
        try:
            if source.strip() and text.strip():
                yield from translator.force([line], [text])
                continue
            if (source.strip() or text.strip()) and number not in report.errors:
                report.fail(number, "has one blank side; there is nothing to compare")
        except SourceError as error:
            report.fail(number, str(error))
        yield Translation(source, "", 0.0, 0.0, ())


def _plain(translation: "Translation") -> str:
    """Return the text, and its alternatives in further columns; a line stays a line."""
    best = translation.text if translation.marked is None else translation.marked
    texts = [best, *(one.text for one in translation.alternatives)]
    return "\t".join(texts if all(map(str.isprintable, texts)) else [_BREAKS.sub(" ", one) for one in texts])


def _json(number: int, translation: "Translation", report: _Report) -> str:
    values: dict[str, Any] = {"line": number}
    if number in report.errors:
        values["error"] = report.errors[number]
    line = json.dumps(values | translation.to_json(), ensure_ascii=False, allow_nan=False)
    return line if line.isprintable() else _UNSEEN.sub(lambda one: f"\\u{ord(one[0]):04x}", line)


def _model_and_texts(words: list[str]) -> tuple[Path, list[str]]:
    """Return which model translates which texts: a first word that names a model is the model."""
    from regard.starter import default_model, names_model

    if words and names_model(words[0]):
        model, texts = Path(words[0]), words[1:]
    else:
        model, texts = default_model(), words
    return model, texts


def _refuse_names(texts: list[str]) -> None:
    """Raise an error for a text that is the name of a file."""
    for text in texts:
        if feature_file(text) is not None:
            continue
        if os.path.isfile(text) or _FILE_NAME.fullmatch(text):  # noqa: PTH113 - a text may be too long
            what = f"write --file {shlex.quote(text)} to translate its lines"
            if not os.path.isfile(text) and _is_document(Path(text)):  # noqa: PTH113
                what = "there is no such file"
            elif Path(text).suffix.lower() in _OTHER_DOCUMENTS:
                what = f"{Path(text).suffix} is not translated in place; save it in another format"
            raise ConfigError(
                f"{text!r} is the name of a file and not a text; {what}. "
                "To translate it as a text, use standard input"
            )


def _is_document(path: Path) -> bool:
    from regard.formats.document import ENDINGS

    return path.suffix.lower() in ENDINGS


def _refuse_for_documents(options: argparse.Namespace) -> None:
    named = {
        "--file": options.file,
        "--jsonl": options.jsonl,
        "--given": options.given,
        "--prefix": options.prefix,
        "--nbest": options.nbest > 1,
        "--markup": options.markup,
    }
    if unfit := [name for name, value in named.items() if value]:
        raise ConfigError(f"{unfit[0]} is for texts; leave it out where documents are translated")


def _source(stack: contextlib.ExitStack, texts: list[str], path: Path | None) -> IO[bytes]:
    """Return what to translate as a stream of lines."""
    if texts and path:
        raise ConfigError("give either texts or --file")
    if texts:
        lines = "".join(" ".join(text.splitlines()) + "\n" for text in texts)
        return io.BytesIO(lines.encode("utf-8", "surrogateescape"))
    return _opened(stack, path) if path else sys.stdin.buffer


def _opened(stack: contextlib.ExitStack, path: Path) -> IO[bytes]:
    inner = without_compression(path)
    if inner.suffix.lower() in _OTHER_DOCUMENTS or (
        _is_document(inner) and inner.suffix.lower() not in _LINES
    ):
        what = "leave out --file to translate it as a document"
        if not _is_document(path):
            what = f"put its texts into a plain file ({inner.suffix} is not translated in place)"
        raise ConfigError(
            f"{path}: is a document, and translating it line by line would destroy its markup; {what}"
        )
    try:
        raw = stack.enter_context(path.open("rb"))
    except OSError as error:
        raise CorpusError(f"{path}: cannot be opened ({error.strerror})") from error
    if path.is_file():
        check_expansion(path)  # its last line may be hours away
    return decompressed(path, raw)


def _size(stream: IO[bytes]) -> int:
    """Return how many bytes there are to read, 0 if nobody knows: those of a compressed file are others."""
    if not isinstance(stream, io.BufferedReader) or not isinstance(stream.raw, io.FileIO):
        return 0
    try:
        status = os.fstat(stream.fileno())
    except (OSError, AttributeError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _place(stream: IO[bytes]) -> int:
    try:
        return stream.tell()
    except OSError:
        return 0
