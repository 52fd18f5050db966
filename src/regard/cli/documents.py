"""Documents in `regard translate`: which words of the command line name them, and what becomes of them."""

import os
import shlex
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.progress import progress
from regard.errors import ConfigError, DocumentError, OutputError
from regard.files import refuse_to_replace, writing

if TYPE_CHECKING:
    from regard.translate.documents import TranslatedDocument
    from regard.translate.request import Request
    from regard.translate.translator import Translator

SOME_FAILED = 3  # the exit code if some documents could not be translated

_SHOWN = 5


def documents_among(texts: Sequence[str], has_out: bool) -> list[Path]:
    """Return the documents that the words of a command name; none if they are texts.

    A word that is the name of a folder may be meant as a word, unless the translation goes into a file.
    """
    from regard.formats.document import ENDINGS

    # A text may be too long for a path, which only os.path takes for no file.
    files = [text for text in texts if os.path.isfile(text) and Path(text).suffix.lower() in ENDINGS]  # noqa: PTH113
    folders = [text for text in texts if has_out and os.path.isdir(text)]  # noqa: PTH112
    found = [Path(text) for text in texts if text in files or text in folders]
    for text in texts:
        if not has_out and text.endswith(os.sep) and os.path.isdir(text):  # noqa: PTH112
            raise ConfigError(f"{text!r} is a folder; say where its translated documents go: --out FOLDER")
    if found and len(found) < len(texts):
        other = next(text for text in texts if Path(text) not in found)
        raise ConfigError(f"{other[:60]!r} is no document, and {str(found[0])!r} is; give texts or documents")
    return found


def translate_documents(
    translator: "Translator",
    paths: Sequence[Path],
    out: Path | None,
    asked: "Request",
    *,
    again: bool,
    quality: bool,
) -> int:
    """Translate documents into `out`: a file for one, else a folder; report what looks wrong.

    `again` and `quality` are those of `translate_document`.
    """
    from regard.translate.documents import translate_document

    failed = 0
    with progress() as show:
        for source, target in _targets(paths, out):
            refuse_to_replace([target], [source])
            try:
                done = translate_document(
                    translator,
                    _bytes(source),
                    source.suffix.lower(),
                    asked,
                    again=again,
                    quality=quality,
                    on_progress=partial(show, f"translating {source.name}"),
                )
                target.parent.mkdir(parents=True, exist_ok=True)
                with writing(target) as (stream,):
                    stream.write(done.data)
            except DocumentError as error:
                failed += 1
                print(f"regard: {source}: {error}", file=sys.stderr)
                continue
            except OSError as error:
                raise OutputError(f"{target}: cannot be written ({error.strerror})") from error
            for line in _report(done):
                print(f"regard: {source.name}: {line}", file=sys.stderr)
            if quality and not done.has_notes:
                told = f"{source.suffix} has no place for notes, so --quality wrote none"
                print(f"regard: {source.name}: {told}", file=sys.stderr)
    return SOME_FAILED if failed else 0


def _targets(paths: Sequence[Path], out: Path | None) -> Iterator[tuple[Path, Path]]:
    """Yield each document and where its translation goes."""
    from regard.formats.document import ENDINGS

    if out is None:
        one = paths[0]
        name = f"{one.stem}.translated{one.suffix}" if one.is_file() else f"{one.name}.translated"
        raise ConfigError(f"say where the translated document goes: --out {shlex.quote(name)}")
    if len(paths) == 1 and paths[0].is_file() and not out.is_dir():
        if out.suffix.lower() != paths[0].suffix.lower():
            raise ConfigError(
                f"{paths[0].name} stays a {paths[0].suffix} document; end --out in {paths[0].suffix}"
            )
        yield paths[0], out
        return
    if out.is_file():
        raise ConfigError(f"--out {out} is a file; several documents need a folder")
    found: dict[Path, Path] = {}
    for path in paths:
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        for one in inside:
            if one.is_file() and one.suffix.lower() in ENDINGS and not one.is_relative_to(out):
                target = out / (one.relative_to(path) if path.is_dir() else one.name)
                if target in found:
                    raise ConfigError(f"{found[target]} and {one} would both become {target}; rename one")
                found[target] = one
    if not found:
        raise ConfigError(f"{paths[0]}: has no document that can be translated ({' '.join(ENDINGS)})")
    for target, one in found.items():
        yield one, target


def _bytes(path: Path) -> bytes:
    from regard.formats.document import MAX_BYTES

    try:
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise DocumentError(f"cannot be read ({error.strerror})") from error


def _report(done: "TranslatedDocument") -> Iterator[str]:
    """Yield what was translated, what was left as it is, and what looks wrong, with places."""
    from regard.flags import FLAGS
    from regard.translate.lines import similar

    counts = [f"{len(done.segments):,} segments translated"]
    counts += [f"{count:,} {reason} left as they are" for reason, count in done.skipped.items()]
    yield ", ".join(counts)
    flagged: dict[str, list[int]] = defaultdict(list)
    missed, alike = [], []
    for segment, translation in done.segments:
        for flag in translation.flags:
            flagged[flag].append(segment.line)
        missed += [
            f"{done.place} {segment.line:,}: {term.source} → {term.target} ({term.status})"
            for term in translation.terms
            if term.status in ("unused", "impossible", "forbidden")
        ]
        alike += similar(translation, f"{done.place} {segment.line:,}")
    yield from missed[:_SHOWN]
    yield from alike[:_SHOWN]
    for flag, places in flagged.items():
        shown = ", ".join(f"{one:,}" for one in sorted(set(places))[:_SHOWN])
        more = ", ..." if len(set(places)) > _SHOWN else ""
        yield f"{len(places):,} {FLAGS[flag].several} ({done.place} {shown}{more})"
