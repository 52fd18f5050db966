"""What a model can do so far: its loss, its BLEU through the users' own Translator, and whether it looks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.alignment.links import entropy_of_looks
from regard.contract import Batch, Engine, Floats
from regard.corpus.batches import Batches, Share
from regard.evaluation.scores import score
from regard.loaded import Loaded
from regard.model.build import Model, export_arrays
from regard.model.engine import TorchEngine, batch_loss
from regard.options.model import feature_size
from regard.options.text import BatchOptions
from regard.runtime.build import build_engine
from regard.training.display import Validation
from regard.training.prepare import Prepared
from regard.translate.result import Translation
from regard.translate.translator import FORKING, IN_THIS_THREAD, Translator

_PROBE_WORDS = (6, 12)  # a sentence of this many words is shown with its attention


@dataclass(frozen=True)
class Validated:
    """What was measured, and the weights it was measured on."""

    nll: float
    shuffled_nll: float
    bleu: float
    entropy: float | None
    weights: dict[str, Floats]
    probe: Translation
    reference: str

    def shown(self, step: int, best: bool) -> Validation:
        """Return what a display shows of it."""
        return Validation(
            step=step,
            nll=self.nll,
            bleu=self.bleu,
            best=best,
            shuffled_nll=self.shuffled_nll,
            source=self.probe.source,
            translation=self.probe.text,
            reference=self.reference,
            attention_TS=self.probe.attention_TS,
            source_pieces=self.probe.source_pieces,
            pieces=self.probe.pieces,
        )


class Validator:
    """Validates weights of one model on one set of pairs."""

    final_cost = 4.0  # the last validation, by beam search, takes so many times as long as the others

    def __init__(self, prepared: Prepared, options: BatchOptions, model: Model) -> None:
        self._model = model
        self._tokenizers = prepared.tokenizers
        self._sources, self._references = prepared.sources, prepared.references
        self._language = prepared.facts.target_language
        # Room for two rows at least, of which one can be given the other's source.
        room = options.model_copy(update={"batch_tokens": max(options.batch_tokens, 2 * options.max_tokens)})
        self._batches = Batches([Share(prepared.validation_store)], room, seed=0)
        fewest, most = _PROBE_WORDS
        lengths = (len(source.split()) for source, _ in prepared.validation)
        fits = (n for n, length in enumerate(lengths) if fewest <= length <= most)
        self._probe = next(fits, 0)

    def validate(self, weights: Sequence[Tensor]) -> Validated:
        """Return what the model can do with these weights, which it has for the time being only."""
        parameters: list[Tensor] = list(self._model.parameters())
        own = [parameter.detach().clone() for parameter in parameters]
        with torch.no_grad():
            torch._foreach_copy_(parameters, list(weights))
            nll, shuffled_nll = self._losses()
            arrays = export_arrays(self._model)
            if parameters[0].is_cuda:
                engine: Engine[Any] = TorchEngine(self._model)
            else:
                engine = build_engine(self._model.options, arrays)
            size = feature_size(self._model.options.source)
            loaded = Loaded.with_engine(engine, self._tokenizers, feature_size=size)
            translator = Translator(loaded, IN_THIS_THREAD if parameters[0].is_cuda else FORKING)
            # What a model says as yet is what it says: trying again would hide how far it is.
            translations = translator.translate(self._sources, beam_size=1, guard=False)
            torch._foreach_copy_(parameters, own)
        scores = score([one.text for one in translations], self._references, target_language=self._language)
        return Validated(
            nll,
            shuffled_nll,
            scores.bleu,
            _entropy(translations),
            arrays,
            translations[self._probe],
            self._references[self._probe],
        )

    def _losses(self) -> tuple[float, float]:
        """Return the loss per token, and what it is when each target stands beside another's source."""
        nll = gap = 0.0
        num_tokens = num_compared = 0
        for _, batch in islice(self._batches.iterate(), self._batches.num_batches(0)):
            own = batch_loss(self._model, batch, None, 0.0).nll.item()
            nll += own
            num_tokens += batch.num_target_tokens
            if len(batch.source_BS) > 1:
                gap += batch_loss(self._model, _shuffled(batch), None, 0.0).nll.item() - own
                num_compared += batch.num_target_tokens
        return nll / num_tokens, nll / num_tokens + gap / num_compared


def _shuffled(batch: Batch) -> Batch:
    features = None if batch.features_BSF is None else np.roll(batch.features_BSF, 1, axis=0)
    return replace(batch, source_BS=np.roll(batch.source_BS, 1, axis=0), features_BSF=features)


def _entropy(translations: Sequence[Translation]) -> float | None:
    """Return the mean entropy of the attention as a share of the greatest possible; none without one."""
    shares = []
    for translation in translations:
        weights_TS = translation.attention_TS
        if weights_TS.size and weights_TS.shape[1] > 1:
            shares.append(float(entropy_of_looks(weights_TS).mean()) / np.log(weights_TS.shape[1]))
    return float(np.mean(shares)) if shares else None
