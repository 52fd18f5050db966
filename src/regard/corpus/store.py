"""The corpus as ids on disk under a memory-mapped index: built in one pass, read without loading.

A store is a folder:

| file                                  | holds                                                     |
|---------------------------------------|-----------------------------------------------------------|
| `source.ids`, `target.ids`            | all ids end to end, 16 or 32 bits each, no special ids;   |
|                                       | of features their vectors, 32 bits a number               |
| `source.offsets`, `target.offsets`    | where each sentence starts, 64 bits; one more at the end  |
| `lines`                               | the line of the corpus each pair came from, 64 bits       |
| `links.ids`, `links.offsets`          | if pairs are aligned: place in the source, in the target, |
|                                       | again and again, 16 bits each, and where each pair starts |
| `store.json`                          | format, counts, widths, hashes of the tokenizers          |
"""

import json
import mmap
import os
import threading
import weakref
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from regard.alignment.links import Link
from regard.contract import Ids, Ragged
from regard.corpus.read import Pair, chunks
from regard.errors import CorpusError
from regard.files import writing_folder
from regard.parallel import map_in_order
from regard.text.tokenizer import Tokenizer, TokenizerPair

FORMAT = "regard-store/1"
_LINK_WIDTH = np.dtype("<u2")
_CHUNK_PAIRS = 2048  # with small ones the threads would wait for each other more than they work


@dataclass(frozen=True, slots=True)
class _EncodedChunk:
    source: Ragged
    target: Ragged
    lines_B: Ids


def _encode(tokenizer: Tokenizer, texts: list[str]) -> Ragged:
    rows = Ragged.of(tokenizer.encode_batch(texts))
    return Ragged(rows.flat.astype(_width(tokenizer)), rows.lengths_B)


def _width(tokenizer: Tokenizer) -> type[np.uint16] | type[np.uint32]:
    return np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.uint32


def build_store(
    pairs: Iterable[Pair],
    tokenizers: TokenizerPair,
    folder: Path,
    *,
    feature_size: int | None = None,
    num_threads: int | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> "Store":
    """Write all pairs as ids into a new folder, whole or not at all, and open it.

    With a `feature_size` the sources are feature vectors of so many numbers.

    One thread reads and writes, the others tokenise (SentencePiece works outside Python, so they run at
    the same time); memory does not grow with the corpus.
    `on_progress` is called with the number of pairs stored so far.
    """

    def encode(chunk: list[Pair]) -> _EncodedChunk:
        return _EncodedChunk(
            _encode(tokenizers.source, [tokenizers.clean_source(pair.source) for pair in chunk])
            if feature_size is None
            else Ragged.of([pair.features.vectors_SF for pair in chunk if pair.features is not None]),
            _encode(tokenizers.target, [tokenizers.clean_target(pair.target) for pair in chunk]),
            np.array([pair.line for pair in chunk], np.int64),
        )

    with writing_folder(folder, "store.json") as temporary:
        with _SideWriter(temporary, "source") as source, _SideWriter(temporary, "target") as target:
            num_pairs = 0
            with (temporary / "lines").open("wb") as lines_file:
                for encoded in map_in_order(encode, chunks(pairs, _CHUNK_PAIRS), num_threads):
                    source.add(encoded.source)
                    target.add(encoded.target)
                    encoded.lines_B.astype("<u8").tofile(lines_file)
                    num_pairs += len(encoded.source.lengths_B)
                    if on_progress:
                        on_progress(num_pairs)
        meta = {
            "format": FORMAT,
            "num_pairs": num_pairs,
            "source": {"num_ids": source.num_ids, "bits": 8 * _width(tokenizers.source)().itemsize}
            if feature_size is None
            else {"num_ids": source.num_ids, "bits": 32, "feature_size": feature_size},
            "target": {"num_ids": target.num_ids, "bits": 8 * _width(tokenizers.target)().itemsize},
            "tokenizers": [tokenizers.source.sha256, tokenizers.target.sha256],
        }
        (temporary / "store.json").write_text(json.dumps(meta, indent=1) + "\n")
    return Store(folder)


def add_links(store: "Store", links: Iterable[Collection[Link]]) -> "Store":
    """Write which pieces of each pair belong together into the folder of a store, and open it again.

    A pair with a place that 16 bits cannot hold has none.
    """
    with _SideWriter(store.folder, "links") as side:
        left = iter(links)
        while several := list(islice(left, _CHUNK_PAIRS)):
            rows = [np.array(sorted(of_pair), np.int64).reshape(-1) for of_pair in several]
            rows = [row if row.max(initial=0) <= np.iinfo(_LINK_WIDTH).max else row[:0] for row in rows]
            flat = Ragged.of(rows)
            side.add(Ragged(flat.flat.astype(_LINK_WIDTH), flat.lengths_B))
    return Store(store.folder)


class _SideWriter:
    """Appends the sentences of one side to its two files."""

    def __init__(self, folder: Path, side: str) -> None:
        self._ids: IO[bytes] = (folder / f"{side}.ids").open("wb")
        self._offsets: IO[bytes] = (folder / f"{side}.offsets").open("wb")
        self.num_ids = 0
        np.zeros(1, "<u8").tofile(self._offsets)

    def add(self, sentences: Ragged) -> None:
        sentences.flat.astype(sentences.flat.dtype.newbyteorder("<"), copy=False).tofile(self._ids)
        (self.num_ids + np.cumsum(sentences.lengths_B)).astype("<u8").tofile(self._offsets)
        self.num_ids += len(sentences.flat)

    def __enter__(self) -> "_SideWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._ids.close()
        self._offsets.close()


class Store:
    """A corpus of ids on disk. Sentences are fetched by number; nothing else is held in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            meta = json.loads((folder / "store.json").read_text())
            if meta["format"] != FORMAT:
                raise CorpusError(
                    f"{folder}: store of format {meta['format']!r}; this version reads {FORMAT!r}"
                )
            self.num_pairs = int(meta["num_pairs"])
            self.tokenizer_hashes: tuple[str, str] = (meta["tokenizers"][0], meta["tokenizers"][1])
            shapes = {
                side: (int(meta[side]["bits"]), int(meta[side]["num_ids"])) for side in ("source", "target")
            }
            size = meta["source"].get("feature_size")
            self.feature_size = None if size is None else int(size)
        except (OSError, ValueError, TypeError, KeyError, IndexError) as error:
            raise CorpusError(
                f"{folder}: not a store of regard ({error!r}); prepare the corpus again"
            ) from None
        self._maps: list[mmap.mmap] = []
        sides = {}
        for side, (bits, num_ids) in shapes.items():
            columns = self.feature_size if side == "source" else None
            width: np.dtype[Any] = np.dtype(f"<u{bits // 8}" if columns is None else "<f4")
            self._check_size(f"{side}.ids", num_ids * width.itemsize * (columns or 1))
            offsets = self._map(f"{side}.offsets", np.dtype("<u8"), self.num_pairs + 1)
            sides[side] = Side(_FileReader(folder / f"{side}.ids"), width, offsets, columns)
        self.source, self.target = sides["source"], sides["target"]
        self._lines = self._map("lines", np.dtype("<u8"), self.num_pairs)
        self.links: Side | None = None
        if (folder / "links.offsets").exists():
            offsets = self._map("links.offsets", np.dtype("<u8"), self.num_pairs + 1)
            self._check_size("links.ids", int(offsets[-1]) * _LINK_WIDTH.itemsize)
            self.links = Side(_FileReader(folder / "links.ids"), _LINK_WIDTH, offsets)

    def _map(self, name: str, width: np.dtype[np.unsignedinteger], count: int) -> NDArray[np.unsignedinteger]:
        path = self._check_size(name, count * width.itemsize)
        if count == 0:  # an empty file cannot be mapped
            return np.empty(0, width)
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._maps.append(mapped)
        return np.frombuffer(mapped, width)

    def _check_size(self, name: str, expected: int) -> Path:
        path = self.folder / name
        actual = path.stat().st_size if path.exists() else -1
        if actual != expected:
            raise CorpusError(f"{path}: damaged ({actual} bytes, not {expected}); prepare the corpus again")
        return path

    def __len__(self) -> int:
        return self.num_pairs

    def check(self, tokenizers: TokenizerPair) -> None:
        """Raise CorpusError if the ids were made by other tokenizers."""
        if self.tokenizer_hashes != (tokenizers.source.sha256, tokenizers.target.sha256):
            raise CorpusError(f"{self.folder}: made with other tokenizers; prepare the corpus again")

    def lines(self, pairs_B: Ids) -> Ids:
        """Return the lines of the corpus that these pairs came from."""
        return self._lines[pairs_B].astype(np.int64)

    def release(self) -> None:
        """Let go of the pages of the index read so far; they come back when needed."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for mapped in self._maps:
                mapped.madvise(mmap.MADV_DONTNEED)


class _FileReader:
    """Reads bytes at any place of a file, and keeps none.

    A memory map would do, but for each sentence touched a recent Linux maps two megabytes around it: a
    hundred sentences from all over a large corpus then show as two hundred megabytes of resident memory.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._file)
        self._lock = threading.Lock()

    def read(self, start: int, num_bytes: int) -> bytes:
        """Return the bytes from `start` on."""
        if hasattr(os, "pread"):
            return os.pread(self._file, num_bytes, start)
        with self._lock:
            os.lseek(self._file, start, os.SEEK_SET)
            return os.read(self._file, num_bytes)


class Side:
    """The sentences of one language, or other rows of numbers; features have so many `columns`."""

    def __init__(
        self,
        ids: _FileReader,
        width: np.dtype[Any],
        offsets: NDArray[np.unsignedinteger],
        columns: int | None = None,
    ) -> None:
        self._ids = ids
        self._width = width
        self._offsets = offsets
        self._columns = columns

    def num_tokens(self, pairs_B: Ids) -> Ids:
        """Return how many tokens a model reads of each sentence: `</s>` follows ids, but no features."""
        return self.lengths(pairs_B) + (self._columns is None)

    def lengths(self, pairs_B: Ids) -> Ids:
        """Return the number of ids of each sentence, or of feature vectors."""
        return (self._offsets[pairs_B + 1] - self._offsets[pairs_B]).astype(np.int64)

    def fetch(self, pairs_B: Ids) -> Ragged:
        """Return the ids of these sentences, or their feature vectors."""
        size = self._width.itemsize * (self._columns or 1)
        starts, lengths_B = self._offsets[pairs_B].tolist(), self.lengths(pairs_B)
        rows = (
            self._ids.read(start * size, length * size)
            for start, length in zip(starts, lengths_B.tolist(), strict=True)
        )
        flat = np.frombuffer(b"".join(rows), self._width)
        return Ragged(flat if self._columns is None else flat.reshape(-1, self._columns), lengths_B)
