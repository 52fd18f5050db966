"""`regard translate`: lines in, as many lines out."""

import argparse
import contextlib
import io
import os
import re
import shlex
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from regard.cli.documents import documents_among, translate_documents
from regard.cli.memory import add_memory, read_memory
from regard.cli.progress import progress
from regard.cli.settings import add_compute, add_search, feature_file, read_compute, read_search
from regard.cli.shards import add_shards, asks_for_shards, do_shards, join_shards
from regard.errors import ConfigError, CorpusError, SourceError
from regard.files import (
    check_expansion,
    decompressed,
    refuse_to_replace,
    without_compression,
    writing,
)
from regard.remote import Place, Remote, place

if TYPE_CHECKING:
    from regard.contract import Features
    from regard.translate.lines import Report
    from regard.translate.request import RequestArguments
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
  regard translate en-fr app.po --out app.fr.po --quality
  regard translate captions.regard features.npz
  regard translate mine.regard big.fr.gz --shards 500 --out big.shards
  regard translate --join big.shards --out big.en
"""
SOME_FAILED = 3  # the exit code if some lines could not be translated

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
        type=place,
        metavar="FILE",
        help="translate the lines of a file, perhaps compressed (.gz, .xz, .zst), or its features (.npz)",
    )
    parser.add_argument(
        "--out", type=place, metavar="FILE", help="write to a file; it appears when everything is done"
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
    parser.add_argument(
        "--quality",
        action="store_true",
        help="of documents: write the quality and flags of each new translation as a note (.po .xlf .tmx)",
    )
    parser.add_argument(
        "--to",
        metavar="LANGUAGE",
        help="the language that a multilingual model translates into, by its own code, such as fra",
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
    add_shards(parser)


def run(options: argparse.Namespace) -> int:
    """Translate, and say what could not be read and what looks wrong."""
    if options.join:
        return _finish(join_shards(options, bool(options.words or options.file), _say_failure))
    search = read_search(options.beam, options.set)
    searches = options.prefix or options.glossary or options.memory or search or options.nbest > 1
    if options.given and searches:
        raise ConfigError(
            "--given does not translate; remove --prefix, --glossary, --memory, --beam, --nbest, --set"
        )
    if options.markup and (options.given or options.nbest > 1):
        raise ConfigError("--markup is for one translation of each line; remove --given and --nbest")
    from regard.corpus.features import read_features
    from regard.translate.lines import Lines, Report, line_of

    asked = _asked(options, search)
    model, texts = _model_and_texts(options.words)
    unfit = {
        "--given": options.given,
        "--memory": options.memory,
        "--fuzzy": options.fuzzy,
        "--to": options.to,
        "--quality": options.quality or None,
    }
    if asks_for_shards(options, unfit):
        from regard.shards.cut import Source
        from regard.shards.work import Translating

        source = Source(_file_of_lines(texts, options.file))
        models, compute = [model, *options.others], read_compute(options)
        work = Translating.of(models, compute, asked, options.glossary, as_json=options.jsonl)
        return _finish(do_shards(options, NAME, source, work, _say_failure))
    if documents := documents_among(texts, options.out is not None):
        return _translate_documents(model, documents, options, asked)
    if options.quality:
        raise ConfigError("--quality is for documents; --jsonl gives the quality of texts")
    _refuse_names(texts)
    features = feature_file(texts[0] if len(texts) == 1 else options.file)
    others = [features, options.given, options.glossary, *options.memory]
    refuse_to_replace([options.out], [options.file, *others, model, *options.others])
    translator = _translator(model, options)
    asked["memory"] = read_memory(options, translator)
    report = Report(on_failure=_say_failure)
    with contextlib.ExitStack() as stack:
        lines: Iterable[str | Features]
        if features is not None:
            stream: IO[bytes] = io.BytesIO()
            lines = read_features(features)
        else:
            stream = _source(stack, texts, options.file)
            lines = Lines(stream, str(options.file or "standard input"), report)
        if options.given:
            given = Lines(_opened(stack, options.given), str(options.given), report)
            translations = _scored(translator, lines, given, report)
        else:
            translations = _translated(translator, lines, stream.isatty(), asked)
        (out,) = stack.enter_context(writing(options.out)) if options.out else (sys.stdout.buffer,)
        on_screen = not options.out and sys.stdout.isatty()
        show = None if on_screen else stack.enter_context(progress())
        size, flushed = _size(stream), time.monotonic()
        for number, translation in enumerate(translations, 1):
            report.add(number, translation)
            out.write(line_of(number, translation, report, as_json=options.jsonl))
            if on_screen or time.monotonic() - flushed > _FLUSH_SECONDS:
                out.flush()
                flushed = time.monotonic()
            if show:
                show("translating", _place(stream) if size else number, size)
        out.flush()
    return _finish(report)


def _translate_documents(
    model: Path, documents: list[Path], options: argparse.Namespace, asked: "RequestArguments"
) -> int:
    from regard.translate.request import Request

    _refuse_for_documents(options)
    if isinstance(options.out, Remote):
        raise ConfigError(f"--out {options.out}: documents are written to this machine")
    refuse_to_replace([options.out], [options.glossary, *options.memory, model, *options.others])
    translator = _translator(model, options)
    asked["memory"] = read_memory(options, translator)
    request = Request("", **asked)
    return translate_documents(
        translator, documents, options.out, request, again=options.again, quality=options.quality
    )


def _translator(model: Path, options: argparse.Namespace) -> "Translator":
    """Return the translator of the models that are named."""
    from regard.translate.translator import FORKING, Translator

    compute = read_compute(options)
    return Translator.open(model, *options.others, pool=FORKING, compute=compute, to=options.to)


def _asked(options: argparse.Namespace, search: dict[str, Any]) -> "RequestArguments":
    """Return what is asked of every text."""
    from regard.options.parse import parse
    from regard.terms.glossary import Glossary

    return {
        "prefix": options.prefix or None,
        "num_best": options.nbest,
        "search": parse("search", search),
        "guard": not options.no_guard,
        "glossary": Glossary.read(options.glossary) if options.glossary else None,
        "markup": options.markup,
    }


def _say_failure(number: int, reason: str) -> None:
    print(f"regard: line {number:,}: {reason}", file=sys.stderr)


def _finish(report: "Report") -> int:
    """Say what looks wrong, and return the exit code."""
    for line in report.summary():
        print(f"regard: {line}", file=sys.stderr)
    return SOME_FAILED if report.errors else 0


def _translated(
    translator: "Translator",
    lines: "Iterable[str | Features]",
    at_once: bool,
    asked: "RequestArguments",
) -> Iterator["Translation"]:
    from regard.translate.request import Request

    requests = (Request.of(line, **asked) for line in lines)
    if not at_once:
        yield from translator.stream(requests)
        return
    for request in requests:
        yield from translator.translate([request])


def _scored(
    translator: "Translator", lines: "Iterable[str | Features]", given: Iterable[str], report: "Report"
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


def _model_and_texts(words: list[str]) -> tuple[Path, list[str]]:
    """Return which model translates which texts: a first word that names a model is the model."""
    from regard.starter import default_model, names_model

    if words and names_model(words[0], has_more=len(words) > 1):
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


def _is_document(path: Place) -> bool:
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


def _source(stack: contextlib.ExitStack, texts: list[str], path: Place | None) -> IO[bytes]:
    """Return what to translate as a stream of lines."""
    if texts and path:
        raise ConfigError("give either texts or --file")
    if texts:
        lines = "".join(" ".join(text.splitlines()) + "\n" for text in texts)
        return io.BytesIO(lines.encode("utf-8", "surrogateescape"))
    return _opened(stack, path) if path else sys.stdin.buffer


def _file_of_lines(texts: list[str], path: Place | None) -> Place:
    """Return the one file that is translated in shards."""
    if bool(texts) == bool(path) or len(texts) > 1:
        raise ConfigError("shards are made of one file; name it: regard translate MODEL in.fr --shards 500")
    file = path or place(texts[0])
    _refuse_document(file)
    if feature_file(file) is not None:
        raise ConfigError(f"{file}: holds features, and only lines are translated in shards")
    return file


def _refuse_document(path: Place) -> None:
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


def _opened(stack: contextlib.ExitStack, path: Place) -> IO[bytes]:
    _refuse_document(path)
    try:
        if path.is_file():
            check_expansion(path)  # its last line may be hours away
        raw = stack.enter_context(path.open("rb"))
    except OSError as error:
        raise CorpusError(f"{path}: cannot be opened ({error.strerror})") from error
    return decompressed(path, cast(BinaryIO, raw))


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
