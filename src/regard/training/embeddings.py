"""Pre-trained word vectors in a training: checked first, looked up in the vocabulary, kept in the run folder.

The vector of a word becomes that of the piece that stands for it (`text/vectors.py` says which do); other
pieces start as always. Frozen vectors get no gradient, so that no optimiser moves them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from regard.contract import Floats, Ids
from regard.design import design
from regard.errors import ConfigError, CorpusError
from regard.model.build import Model, build_model, freeze_rows, import_arrays, load_vectors, weight_name
from regard.modelfile import ModelFile
from regard.text.tokenizer import TokenizerPair
from regard.text.vectors import Vectors, read_vector_size, vectors_for
from regard.training.recipes import RunOptions
from regard.training.request import Side, VectorFiles

VECTORS_FILE = "vectors.safetensors"


@dataclass(frozen=True, slots=True, eq=False)
class FoundVectors:
    """The pieces that a file has a vector for, and their vectors."""

    ids: Ids
    vectors: Floats


def check_vectors(
    files: VectorFiles, options: RunOptions, start: ModelFile | None, *, width_is_known: bool
) -> None:
    """Raise an error for vectors that cannot be used."""
    if files.freeze and not files.given and not (start and start.frozen):
        raise ConfigError("--freeze-vectors needs vectors; give --source-vectors or --target-vectors")
    model = options.model
    option = design(model).embedding_option
    size = getattr(model, option)
    for side, path in files.given.items():
        vector_size = read_vector_size(path)
        if side == "source" and model.source.kind != "tokens":
            raise ConfigError(f"{path}: the source of this model has no words; leave --source-vectors out")
        if options.tokenizer.kind == "character":
            raise ConfigError(
                f"{path}: has vectors of words, where tokenizer.kind = 'character' knows letters only; "
                "use word, bpe or unigram"
            )
        if width_is_known and vector_size != size:
            raise ConfigError(
                f"{path}: vectors of {vector_size} numbers, where the model has model.{option} = {size}; "
                f"give --set model.{option}={vector_size}, or other vectors"
            )


def look_up(files: VectorFiles, tokenizers: TokenizerPair) -> dict[Side, Vectors]:
    """Return the vectors of each side's pieces, or raise an error for a file that has none of them."""
    found: dict[Side, Vectors] = {}
    for side, path in files.given.items():
        vectors = vectors_for(path, tokenizers.source if side == "source" else tokenizers.target)
        if not vectors.coverage.num_found:
            raise CorpusError(
                f"{path}: none of its {vectors.coverage.num_words:,} words is among the "
                f"{vectors.coverage.num_coverable:,} whole words of the {side} vocabulary; is it of another "
                "language?"
            )
        found[side] = vectors
    return found


def save_vectors(folder: Path, vectors: Mapping[Side, Vectors]) -> None:
    """Write the vectors of a run; without any there is no file."""
    arrays: dict[str, NDArray[Any]] = {}
    for side, one in vectors.items():
        arrays[f"{side}.ids"] = np.flatnonzero(one.found)
        arrays[f"{side}.vectors"] = one.table[one.found]
    if arrays:
        safetensors.numpy.save_file(arrays, folder / VECTORS_FILE)


def read_vectors(folder: Path) -> dict[Side, FoundVectors]:
    """Return what `save_vectors` wrote."""
    path = folder / VECTORS_FILE
    arrays = safetensors.numpy.load_file(path) if path.exists() else {}
    sides: tuple[Side, ...] = ("source", "target")
    return {
        side: FoundVectors(arrays[f"{side}.ids"], arrays[f"{side}.vectors"])
        for side in sides
        if f"{side}.ids" in arrays
    }


def first_model(
    options: RunOptions,
    vocab_sizes: tuple[int, int],
    start: ModelFile | None,
    vectors: Mapping[Side, FoundVectors],
    freeze: bool | None,
) -> Model:
    """Return the model a run begins with, its frozen rows marked.

    Weights are random, then those of the model it starts from, then the vectors of files: those of the target
    come last, and count where both sides share one matrix.
    """
    model = build_model(options.model, *vocab_sizes, seed=options.seed)
    if start is not None:
        import_arrays(model, start.weights)
        if freeze is not False:
            freeze_rows(model, start.frozen)
    for side, found in vectors.items():
        load_vectors(model, side, found.ids, found.vectors)
        if freeze:
            rows_V = np.isin(np.arange(vocab_sizes[side == "target"]), found.ids)
            freeze_rows(model, {weight_name(model, side): rows_V})
    return model
