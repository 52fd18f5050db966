"""How a model translates in CTranslate2, beside the same model in ours: the parity report of an export."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.contract import num_source_tokens
from regard.engines import NUMPY, fault
from regard.errors import ConfigError, ForeignModelError
from regard.loaded import Loaded
from regard.modelfile import ModelFile
from regard.options.search import BeamOptions
from regard.search.searcher import Query
from regard.text.imported import ImportedTokenizer

_GREEDY = BeamOptions(beam_size=1, length_penalty=0)


@dataclass(frozen=True)
class Parity:
    """How the other program translates some sentences by greedy search, beside ours."""

    num_sentences: int
    num_identical: int
    largest_difference: float
    """Of the log-probabilities of translations that are identical."""
    num_ties: int = 0
    """Translations that differ where two pieces were equally likely but for rounding."""


def compare_with_ctranslate2(model: ModelFile, translator: Any, sentences: Sequence[str]) -> Parity:
    """Translate sentences by a model and by a `ctranslate2.Translator` that has the same tokens."""
    tokenizers = model.tokenizers
    sources = tokenizers.source.encode_batch([tokenizers.clean_source(one) for one in sentences])
    found = Loaded.of(model, compute=NUMPY).searcher.search([Query(ids) for ids in sources], _GREEDY)
    pieces, num_identical, num_ties, largest = tokenizers.source.pieces, 0, 0, 0.0
    for ids, ours in zip(sources, found, strict=True):
        limit = int(_GREEDY.max_ratio * num_source_tokens(ids)) + _GREEDY.extra_tokens
        (theirs,) = translator.translate_batch(
            [[*(pieces[id] for id in ids.tolist()), "</s>"]],
            beam_size=1, max_decoding_length=limit, min_decoding_length=0, max_input_length=0,
            length_penalty=0, return_scores=True,
        )  # fmt: skip
        best = ours.hypotheses[0]
        said = [tokenizers.target.pieces[id] for id in best.ids]
        if theirs.hypotheses[0] == said:
            num_identical += 1
            largest = max(largest, abs(float(theirs.scores[0]) - best.log_prob))
        else:
            num_ties += ours.in_doubt
    return Parity(len(sources), num_identical, largest, num_ties)


def compare_with_folder(model: ModelFile, folder: Path, sentences: Sequence[str]) -> Parity:
    """Translate sentences by a model and by a CTranslate2 folder exported from it."""
    check_comparable(model, folder)
    import ctranslate2

    try:
        translator = ctranslate2.Translator(str(folder), intra_threads=1)
        return compare_with_ctranslate2(model, translator, sentences)
    except (RuntimeError, ValueError) as error:
        raise ForeignModelError(f"{folder}: CTranslate2 cannot use it ({str(error).strip():.120})") from None


def check_comparable(model: ModelFile, folder: Path) -> None:
    """Raise an error if a model and a folder have no tokens in common or CTranslate2 does not work here."""
    if not (folder / "model.bin").is_file():
        raise ForeignModelError(f"{folder}: is not a CTranslate2 folder: it has no model.bin")
    sides = (model.tokenizers.source, model.tokenizers.target)
    if not all(isinstance(one, ImportedTokenizer) for one in sides):
        raise ConfigError(
            "only imported models can be compared with a folder: the tokens of others are not CTranslate2's"
        )
    if (why := fault("float32")) is not None:
        raise ConfigError(f"the folder cannot be compared: {why}")
