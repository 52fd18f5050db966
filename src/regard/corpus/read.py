"""The road from a user's files to sentence pairs: which format, which languages, and the pairs in order."""

import random
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from regard.corpus.features import FeatureRow, feature_rows, holds_features, read_features, target_column
from regard.corpus.input_file import MAX_LINE_BYTES, Format, InputFile, Pair
from regard.corpus.language_codes import Languages, is_language, language_of_ending, matches, normalised
from regard.corpus.po_format import po
from regard.corpus.suggestions import is_sqlite, suggestions
from regard.corpus.table_formats import jsonl, parquet, tsv
from regard.corpus.xml_formats import tmx, xliff
from regard.errors import CorpusError, UnequalError
from regard.files import check_expansion, is_unfinished, without_compression

__all__ = ["MAX_LINE_BYTES", "Corpus", "Pair", "chunks", "open_corpus", "sample_pairs"]

_ONE_FILE_FORMATS: dict[str, Callable[[Path, Languages], Format]] = {
    ".tmx": tmx,
    ".xlf": xliff,
    ".xliff": xliff,
    ".po": po,
    ".tsv": tsv,
    ".jsonl": jsonl,
    ".ndjson": jsonl,
    ".parquet": parquet,
}
AnySource = TypeVar("AnySource", str, FeatureRow)

_PROGRESS_PAIRS = 1000
_MAX_CHUNK_CHARS = 8 << 20


@dataclass(frozen=True)
class Corpus:
    """A parallel corpus on disk, checked as far as its first lines; pairs() reads it."""

    paths: tuple[Path, ...]
    source_language: str | None
    target_language: str | None
    place: str  # what Pair.line counts: "line" or "row"
    num_bytes: int
    _pairs: Callable[[Sequence[InputFile], Counter[str]], Iterator[Pair]] = field(repr=False)
    feature_size: int | None = None  # numbers in each vector, if the sources are features
    # What the last run of pairs() read over, by reason.
    skipped: Counter[str] = field(default_factory=Counter, init=False)

    def pairs(self, on_progress: Callable[[int], None] | None = None) -> Iterator[Pair]:
        """Yield the pairs in order, from the start at each call.

        `on_progress` is told how many bytes on disk have been consumed.
        Raises CorpusError for what cannot be read, once all pairs before it have been yielded.
        """
        self.skipped.clear()
        with ExitStack() as stack:
            files = [stack.enter_context(InputFile(path)) for path in self.paths]
            number = 0
            for number, pair in enumerate(self._pairs(files, self.skipped), 1):
                yield pair
                if on_progress is not None and number % _PROGRESS_PAIRS == 0:
                    on_progress(sum(file.position() for file in files))
        if number == 0:
            reasons = ", ".join(f"{reason}: {count:,}" for reason, count in self.skipped.items())
            raise CorpusError(
                f"{' and '.join(map(str, self.paths))}: contains no sentence pair"
                + (f" (skipped: {reasons})" if reasons else "")
                + "; check that these are the right files and languages"
            )
        if on_progress is not None:
            on_progress(self.num_bytes)


def holds_both(path: Path) -> bool:
    """Tell by its name or its first bytes whether a file has sources and targets."""
    return without_compression(path).suffix.lower() in _ONE_FILE_FORMATS or is_sqlite(path)


def up_to_shorter_end(corpus: Corpus, on_progress: Callable[[int], None] | None = None) -> Iterator[Pair]:
    """Yield the pairs of a corpus whose sides may differ in length."""
    try:
        yield from corpus.pairs(on_progress)
    except UnequalError:
        return


def chunks(pairs: Iterable[Pair], max_pairs: int) -> Iterator[list[Pair]]:
    """Return the pairs in lists of at most `max_pairs`, or fewer where they are very long."""
    chunk: list[Pair] = []
    num_chars = 0
    for pair in pairs:
        chunk.append(pair)
        num_chars += len(pair.source) + len(pair.target)
        num_chars += 0 if pair.features is None else pair.features.vectors_SF.nbytes
        if len(chunk) >= max_pairs or num_chars > _MAX_CHUNK_CHARS:
            yield chunk
            chunk, num_chars = [], 0
    if chunk:
        yield chunk


def sample_pairs(pairs: Iterable[Pair], num_pairs: int, seed: int = 1) -> list[Pair]:
    """Return a random sample, every pair as likely as any other, of a corpus of any size, read once."""
    rng = random.Random(seed)
    sample: list[Pair] = []
    for number, pair in enumerate(pairs):
        if number < num_pairs:
            sample.append(pair)
        elif (place := rng.randrange(number + 1)) < num_pairs:
            sample[place] = pair
    return sample


def open_corpus(
    paths: Sequence[Path | str], source_language: str | None = None, target_language: str | None = None
) -> Corpus:
    """Return the corpus in two plain files, line by line, or in one file that holds both languages.

    The first file may hold feature vectors (`features.py`) and the second their texts, or one file both. One
    file may be that in which a server keeps suggestions.

    Languages that are not given are taken from the file or its name. In two files the first is always
    the source; one file is read in the direction asked for. Raises CorpusError for files that cannot be read.
    """
    files = tuple(map(Path, paths))
    if len(files) not in (1, 2):
        raise CorpusError(f"{len(files)} files; give two plain ones, source and target, or one with both")
    num_bytes = sum(map(_checked_size, files))
    wanted = Languages(
        None if source_language is None else normalised(source_language),
        None if target_language is None else normalised(target_language),
    )
    if holds_features(files[0]):
        format_ = _with_features(files, wanted)
    elif len(files) == 2:
        format_ = _plain(files[0], files[1], wanted)
    elif is_sqlite(files[0]):
        format_ = suggestions(files[0], wanted)
    else:
        ending = without_compression(files[0]).suffix.lower()
        if ending not in _ONE_FILE_FORMATS:
            raise CorpusError(
                f"{files[0]}: a single file must end in {', '.join(_ONE_FILE_FORMATS)}, or be one of "
                "regard serve --suggestions; plain text needs two files, source and target"
            )
        format_ = _ONE_FILE_FORMATS[ending](files[0], wanted)
    languages = format_.languages
    return Corpus(
        files,
        languages.source,
        languages.target,
        format_.place,
        num_bytes,
        format_.pairs,
        format_.feature_size,
    )


def _checked_size(path: Path) -> int:
    """Return the size of a file that can be read more than once and is not empty."""
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise CorpusError(f"{path}: no such file; check the name") from error
    except OSError as error:
        raise CorpusError(
            f"{path}: cannot be opened ({error.strerror}); check the name and permissions"
        ) from error
    if is_unfinished(path):
        raise CorpusError(f"{path}: is the unfinished output of another command; name a whole file")
    if stat.S_ISDIR(status.st_mode):
        raise CorpusError(f"{path}: is a folder; name the file in it")
    if not stat.S_ISREG(status.st_mode):
        raise CorpusError(
            f"{path}: is not a regular file, and it is read more than once; save it as a file first"
        )
    if status.st_size == 0:
        raise CorpusError(f"{path}: is empty; check how it was written")
    check_expansion(path)
    return status.st_size


def _plain(source_path: Path, target_path: Path, wanted: Languages) -> Format:
    """Return how to read two plain files, in which the same line holds the same sentence."""
    for path in (source_path, target_path):
        with InputFile(path) as file:
            next(file.lines(), None)  # a wrong encoding or compression shows now and not an hour later
    source_language = _plain_language(source_path, "source", wanted.source)
    target_language = _plain_language(target_path, "target", wanted.target)

    def pairs(files: Sequence[InputFile], _: Counter[str]) -> Iterator[Pair]:
        def unequal(num_sources: int, num_targets: int) -> str:
            return (
                f"{source_path} has {num_sources:,} lines and {target_path} has {num_targets:,}; "
                "run `regard inspect` on the two files to see where they begin to differ"
            )

        both = _side_by_side(files[0].lines(), files[1].lines(), unequal)
        return (Pair(number, source, target) for number, (source, target) in enumerate(both, 1))

    return Format(Languages(source_language, target_language), pairs)


def _with_features(paths: Sequence[Path], wanted: Languages) -> Format:
    """Return how to read features and the text of each: a line of a second file, or a field of the same."""
    features_path = paths[0]
    size = next(read_features(features_path)).size
    if wanted.source is not None:
        raise CorpusError(
            f"{features_path}: features have no language, and {wanted.source!r} was given; leave it out"
        )
    if len(paths) == 1:
        column = target_column(features_path)
        if column is None:
            raise CorpusError(
                f"{features_path}: features without texts; name a second file with a text a line, or add a "
                "field `target`"
            )
        language = wanted.target or (normalised(column) if is_language(column) else None)
    else:
        with InputFile(paths[1]) as file:
            next(file.lines(), None)
        language = _plain_language(paths[1], "target", wanted.target)

    def unequal(num_items: int, num_lines: int) -> str:
        return f"{paths[0]} has {num_items:,} items and {paths[1]} has {num_lines:,} lines; give one for each"

    def pairs(files: Sequence[InputFile], _: Counter[str]) -> Iterator[Pair]:
        rows = feature_rows(files[0])
        if len(files) == 1:
            both: Iterator[tuple[FeatureRow, str]] = ((row, row.target or "") for row in rows)
        else:
            both = _side_by_side(rows, files[1].lines(), unequal)
        for number, (row, text) in enumerate(both, 1):
            yield Pair(number, row.features.key, text, row.features)

    return Format(Languages(None, language), pairs, "line" if len(paths) == 2 else "row", size)


def _side_by_side(
    sources: Iterator[AnySource], targets: Iterator[str], unequal: Callable[[int, int], str]
) -> Iterator[tuple[AnySource, str]]:
    """Yield each source with its target; raise an error in these words if there are more of one side."""
    number = 0
    for source, target in zip_longest(sources, targets):
        if source is None or target is None:
            break
        yield source, target
        number += 1
    else:
        return
    num_sources = number + (source is not None) + sum(1 for _ in sources)
    num_targets = number + (target is not None) + sum(1 for _ in targets)
    raise UnequalError(unequal(num_sources, num_targets), num_sources, num_targets)


def _plain_language(path: Path, side: str, wanted: str | None) -> str | None:
    named = language_of_ending(path)
    if named is not None and wanted is not None and not matches(named, wanted):
        raise CorpusError(
            f"{path}: its name says {named!r} but the {side} language was given as {wanted!r}; "
            "the first file is the source: swap the files or the languages"
        )
    return wanted or named
