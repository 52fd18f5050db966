"""Formats with one pair to a line or row: TSV, JSON lines and Parquet, which share the choice of columns."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.corpus.input_file import MAX_LINE_BYTES, Format, InputFile, Pair, quoted
from regard.corpus.language_codes import Languages, choose, is_language, languages_in_name, normalised
from regard.errors import CorpusError, MissingExtraError
from regard.files import without_compression

_SOURCE_WORDS = ("source", "src")
_TARGET_WORDS = ("target", "tgt", "trg")
_PARQUET_BATCH_ROWS = 1000
# Numbers are of no interest here, and int() refuses those of more than 4,300 digits.
_JSON = json.JSONDecoder(parse_int=float)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Which columns hold the two sides, by their place, and what languages they are in."""

    source: int
    target: int
    languages: Languages


def tsv(path: Path, wanted: Languages) -> Format:
    """Return how to read lines of columns parted by tabs: the two there are, or those named in a header.

    A file whose name tells two languages (a.en-fr.tsv) has them in its first two columns.

    There is no quoting. A first line is a header if it names a source and a target column, or if every cell,
    and of three or more at least two, are language codes, no two the same.
    """
    with InputFile(path) as file:
        first = next(file.lines(), "").split("\t")
        if len(first) < 2:
            raise file.error(1, "1 column; write the two sides on one line with a tab between them")
    codes = [normalised(cell) for cell in first if is_language(cell)]
    has_header = _role_places(first) is not None or (len(codes) >= 2 and len(set(codes)) == len(codes))
    if len(first) > 2 and not has_header and languages_in_name(path) is None:
        raise CorpusError(
            f"{path}:1: {len(first)} columns, and it is not clear which two to read; name them in a header "
            "line (source and target, or en and fr), or name the file after two columns, such as a.en-fr.tsv"
        )
    columns = (
        _named_columns(path, f"{path}:1", first, wanted) if has_header else _directed(path, 0, 1, wanted)
    )

    def pairs(files: Sequence[InputFile], skipped: Counter[str]) -> Iterator[Pair]:
        (file,) = files
        source, target, num_columns = columns.source, columns.target, len(first)
        for number, line in enumerate(file.lines(), 1):
            cells = line.split("\t")
            if len(cells) != num_columns:
                found = f"{len(cells)} column{'' if len(cells) == 1 else 's'}"
                raise file.error(
                    number, f"{found} where the first line has {num_columns}; correct or remove this line"
                )
            if number == 1 and has_header:
                skipped["header"] += 1
            else:
                yield Pair(number, cells[source], cells[target])

    return Format(columns.languages, pairs)


def jsonl(path: Path, wanted: Languages) -> Format:
    """Return how to read one JSON object to a line, by the keys of the first one.

    The keys are `source` and `target`, `src` and `tgt`, or language codes; they may lie within `translation`,
    as Hugging Face has it.
    """
    with InputFile(path) as file:
        names = list(_record(file, 1, next(file.lines(), "")))
    columns = _named_columns(path, f"{path}:1", names, wanted)

    def pairs(files: Sequence[InputFile], skipped: Counter[str]) -> Iterator[Pair]:
        (file,) = files
        source_key, target_key = names[columns.source], names[columns.target]
        for number, line in enumerate(file.lines(), 1):
            record = _record(file, number, line)
            source, target = record.get(source_key), record.get(target_key)
            if not isinstance(source, str) or not isinstance(target, str):
                raise file.error(
                    number,
                    f"{quoted([source_key, target_key])} must both be there and be text; "
                    f"found the keys {quoted(record)}",
                )
            yield Pair(number, source, target)

    return Format(columns.languages, pairs)


def parquet(path: Path, wanted: Languages) -> Format:
    """Return how to read two columns of text, or two fields of a column `translation`, in batches of rows."""
    if without_compression(path) != path:
        raise CorpusError(f"{path}: Parquet files are compressed inside; decompress the file first")
    try:
        import pyarrow
        from pyarrow import parquet as pyarrow_parquet
    except ImportError as error:
        raise MissingExtraError("reading Parquet", "parquet") from error
    # A damaged file can fail as any of these, depending on which byte is wrong.
    damage = (pyarrow.ArrowException, OSError, ValueError, KeyError)

    def damaged(error: Exception) -> CorpusError:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return CorpusError(f"{path}: not valid Parquet ({reason}); fetch it again or correct its ending")

    def opened(file: InputFile) -> Any:
        try:
            return pyarrow_parquet.ParquetFile(file.raw)
        except damage as error:
            raise damaged(error) from error

    with InputFile(path) as file:
        schema = opened(file).schema_arrow
    nested = "translation" in schema.names and pyarrow.types.is_struct(schema.field("translation").type)
    fields = list(schema.field("translation").type if nested else schema)
    names = [field.name for field in fields]
    columns = _named_columns(path, str(path), names, wanted)
    for place in (columns.source, columns.target):
        kind = fields[place].type
        text = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
        if not (pyarrow.types.is_string(text) or pyarrow.types.is_large_string(text)):
            raise CorpusError(f"{path}: column {quoted([names[place]])} holds {kind}; it must hold strings")

    def texts(batch: Any, name: str) -> list[str | None]:
        if nested:
            struct = batch.column("translation")
            column = struct.flatten()[struct.type.get_field_index(name)]
        else:
            column = batch.column(name)
        if pyarrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        # By way of bytes, for pyarrow refuses text that is not UTF-8 and a later check can name its row.
        values = column.cast(pyarrow.large_binary()).to_pylist()
        return [None if value is None else value.decode("utf-8", "surrogateescape") for value in values]

    def rows(file: InputFile) -> Iterator[tuple[str | None, str | None]]:
        wanted_names = [names[columns.source], names[columns.target]]
        selected = [f"translation.{name}" for name in wanted_names] if nested else wanted_names
        batches = opened(file).iter_batches(_PARQUET_BATCH_ROWS, columns=selected, use_threads=False)
        while True:
            try:
                batch = next(batches, None)
                if batch is None:
                    return
                sides = [texts(batch, name) for name in wanted_names]
            except damage as error:
                raise damaged(error) from error
            yield from zip(*sides, strict=True)

    def pairs(files: Sequence[InputFile], skipped: Counter[str]) -> Iterator[Pair]:
        (file,) = files
        for number, (source, target) in enumerate(rows(file), 1):
            if source is None or target is None:
                skipped["no source text" if source is None else "no target text"] += 1
            elif max(len(source), len(target)) > MAX_LINE_BYTES:
                raise CorpusError(f"{path}: row {number}: more than {MAX_LINE_BYTES:,} characters; remove it")
            else:
                yield Pair(number, source, target)

    return Format(columns.languages, pairs, place="row")


def _record(file: InputFile, number: int, line: str) -> dict[str, Any]:
    """Return the object on a line, or the one under `translation` in it."""
    try:
        record = _JSON.decode(line)
    except RecursionError as error:
        raise file.error(number, "JSON nested too deeply; write one flat object on each line") from error
    except json.JSONDecodeError as error:
        problem = f"not JSON ({error.msg} at column {error.colno}); write one object on each line"
        raise file.error(number, problem) from error
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]
    if not isinstance(record, dict):
        raise file.error(number, "JSON, but not an object; write one object on each line")
    return record


def _role_places(names: Sequence[str]) -> tuple[int, int] | None:
    """Return the places of the columns called source and target, if both are there."""
    words = [name.strip().lower() for name in names]
    sources = [place for place, word in enumerate(words) if word in _SOURCE_WORDS]
    targets = [place for place, word in enumerate(words) if word in _TARGET_WORDS]
    return (sources[0], targets[0]) if sources and targets else None


def _named_columns(path: Path, where: str, names: Sequence[str], wanted: Languages) -> _Columns:
    """Return the columns called source and target or, failing these, those called by languages."""
    if roles := _role_places(names):
        return _directed(path, *roles, wanted)
    asked = [code for code in (wanted.source, wanted.target) if code is not None]
    places = [
        place
        for place, name in enumerate(names)
        if is_language(name) or any(normalised(name) == normalised(code) for code in asked)
    ]
    if len(places) > 2 and "id" not in asked:  # Indonesian, but far more often the number of a record
        places = [place for place in places if normalised(names[place]) != "id"]
    if len(places) < 2:
        raise CorpusError(
            f"{where}: no two fields for the two sides among {quoted(names)}; "
            "name them source and target, or by language code, such as en and fr"
        )
    codes = [normalised(names[place]) for place in places]
    source, target = choose(path, codes, wanted)
    languages = Languages(wanted.source or codes[source], wanted.target or codes[target])
    return _Columns(places[source], places[target], languages)


def _directed(path: Path, first: int, second: int, wanted: Languages) -> _Columns:
    """Return two columns in the direction asked for, if the file's name tells which language each is in."""
    named = languages_in_name(path)
    if named is None:
        return _Columns(first, second, wanted)
    source, target = choose(path, named, wanted)
    languages = Languages(wanted.source or named[source], wanted.target or named[target])
    return _Columns((first, second)[source], (first, second)[target], languages)
