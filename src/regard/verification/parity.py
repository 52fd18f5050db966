"""How a model translates in another program, beside ours: the parity report of an export."""

import importlib.util
import warnings
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
from regard.search.task import Found
from regard.text.imported import ImportedTokenizer
from regard.vocabulary import NUM_RESERVED

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
    cleaned = [tokenizers.clean_source(one) for one in sentences]
    sources, found = tokenizers.source.encode_batch(cleaned), _greedily(model, cleaned)
    pieces, num_identical, num_ties, largest = tokenizers.source.pieces, 0, 0, 0.0
    for ids, ours in zip(sources, found, strict=True):
        (theirs,) = translator.translate_batch(
            [[pieces[id] for id in ids.tolist()]],
            beam_size=1, max_decoding_length=_limit(num_source_tokens(ids)), min_decoding_length=0,
            max_input_length=0, length_penalty=0, return_scores=True,
        )  # fmt: skip
        best = ours.hypotheses[0]
        said = [tokenizers.target.pieces[id] for id in best.ids]
        if theirs.hypotheses[0] == said:
            num_identical += 1
            largest = max(largest, abs(float(theirs.scores[0]) - best.log_prob))
        else:
            num_ties += ours.in_doubt
    return Parity(len(sources), num_identical, largest, num_ties)


def compare_with_transformers(
    model: ModelFile, folder: Path, sentences: Sequence[str], special: Sequence[int]
) -> Parity | None:
    """Translate sentences by a model and by a MarianMTModel folder, whose first ids are our `special` ones.

    None if transformers and torch are not both installed.
    """
    if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers")):
        return None
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    theirs = transformers.MarianMTModel.from_pretrained(folder, local_files_only=True).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends a package that its tokenizer does not use
        tokenizer = transformers.MarianTokenizer.from_pretrained(folder, local_files_only=True)
    start = theirs.config.decoder_start_token_id
    our_ids = [*special, *range(NUM_RESERVED, model.tokenizers.target.vocab_size)]
    their_id = {ours: id for id, ours in enumerate(our_ids)}
    longest = theirs.config.max_position_embeddings
    cleaned = [model.tokenizers.clean_source(one) for one in sentences]
    lengths = map(len, model.tokenizers.source.encode_batch(cleaned))
    cleaned = [text for text, length in zip(cleaned, lengths, strict=True) if _limit(length + 1) < longest]
    num_identical, num_ties, largest = 0, 0, 0.0
    for text, ours in zip(cleaned, _greedily(model, cleaned), strict=True):
        text = model.tokenizers.source.before + text
        read, best = tokenizer(text, return_tensors="pt"), ours.hypotheses[0]
        asked = {"num_beams": 1, "do_sample": False, "forced_eos_token_id": None}
        wanted = [their_id[id] for id in best.ids] + [theirs.config.eos_token_id] * best.complete
        with torch.no_grad():
            said = theirs.generate(**read, **asked, max_new_tokens=len(wanted))[0, 1:].tolist()
            if said != wanted:
                num_ties += ours.in_doubt
                continue
            logits_TV = theirs(**read, decoder_input_ids=torch.tensor([[start, *wanted[:-1]]])).logits[0]
        logits_TV[:, start] = -torch.inf  # it is never said
        log_probs_T = logits_TV.double().log_softmax(-1)[range(len(wanted)), wanted]
        num_identical += 1
        largest = max(largest, abs(float(log_probs_T.sum()) - best.log_prob))
    return Parity(len(cleaned), num_identical, largest, num_ties)


def compare_with_marian(model: ModelFile, decoder: Path, sentences: Sequence[str]) -> Parity | None:
    """Translate sentences by a model and by a folder of Marian, which `decoder` describes.

    None if pymarian is not installed. Translations that we cut at our limit are compared up to there.
    """
    if importlib.util.find_spec("pymarian") is None:
        return None
    import pymarian

    tokenizers = model.tokenizers
    cleaned = [tokenizers.clean_source(one) for one in sentences]
    sources, found = tokenizers.source.encode_batch(cleaned), _greedily(model, cleaned)
    factor = max((_limit(len(ids) + 1) // len(ids) + 1 for ids in sources if len(ids)), default=1)
    translator = pymarian.Translator(
        config=str(decoder), beam_size=1, normalize=0, n_best=True, word_scores=True, allow_unk=True,
        max_length_factor=factor, cpu_threads=1, quiet=True,
    )  # fmt: skip
    lines = [" ".join(tokenizers.source.pieces[id] for id in ids.tolist()) for ids in sources]
    num_identical, num_ties, largest = 0, 0, 0.0
    for line, ours in zip(translator.translate(lines), found, strict=True):
        text, scores = line.partition(" ||| ")[2].rsplit(" ||| ", 3)[:2]
        best, words = ours.hypotheses[0], text.split()
        said = [tokenizers.target.pieces[id] for id in best.ids]
        if (words if best.complete else words[: len(said)]) == said:
            log_probs = map(float, scores.split()[1:][: len(said) + best.complete])
            num_identical += 1
            largest = max(largest, abs(sum(log_probs) - best.log_prob))
        else:
            num_ties += ours.in_doubt
    return Parity(len(sources), num_identical, largest, num_ties)


def _limit(num_source: int) -> int:
    """Return the most tokens that a translation may have."""
    return int(_GREEDY.max_ratio * num_source) + _GREEDY.extra_tokens


def _greedily(model: ModelFile, cleaned: Sequence[str]) -> list[Found]:
    """Return what greedy search in NumPy finds."""
    sources = model.tokenizers.source.encode_batch(cleaned)
    return Loaded.of(model, compute=NUMPY).searcher.search([Query(ids) for ids in sources], _GREEDY)


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
