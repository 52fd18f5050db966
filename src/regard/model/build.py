"""Options to a model: built, initialised, given vectors from outside, counted and taken apart again."""

import math
from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.contract import Floats, Ids
from regard.errors import ConfigError
from regard.model.cells import Cell, LongShortTermCell
from regard.model.embed import Embedding
from regard.model.rnn import Decoder, RecurrentModel
from regard.model.scorers import AdditiveScorer
from regard.model.transformer import CrossAttention, Recurrence, SelfAttention, TransformerModel
from regard.options.model import InitOptions, RecurrentOptions, TransformerOptions

Model = RecurrentModel | TransformerModel
FrozenRows = Mapping[str, NDArray[np.bool_]]
"""Which rows of an embedding are frozen, by the name of the weight."""


def build_model(
    options: RecurrentOptions | TransformerOptions, source_vocab: int, target_vocab: int, seed: int = 1
) -> Model:
    """Return a model with fresh weights, the same for the same seed."""
    if options.tie == "all" and options.source.kind == "tokens" and source_vocab != target_vocab:
        raise ConfigError(
            f"model.tie = 'all' needs one vocabulary for both languages, and these have {source_vocab:,} and "
            f"{target_vocab:,} entries; set tokenizer.joint = true, or model.tie = 'target'"
        )
    model: Model
    if options.kind == "recurrent":
        model = RecurrentModel(options, source_vocab, target_vocab)
    else:
        model = TransformerModel(options, source_vocab, target_vocab)
    _initialise(model, options.init, torch.Generator().manual_seed(seed))
    return model


def load_vectors(model: Model, side: Literal["source", "target"], ids: Ids, vectors: Floats) -> None:
    """Set the word vectors of some ids of one side.

    Where sides or output share one matrix they share its vectors too.
    """
    weight = _embeddings(model)[weight_name(model, side)].weight
    with torch.no_grad():
        weight[torch.from_numpy(ids).to(weight.device)] = torch.from_numpy(vectors).to(weight)


def freeze_rows(model: Model, rows: FrozenRows) -> None:
    """Keep rows of embeddings as they are, whatever is learnt."""
    for name, rows_V in rows.items():
        _embeddings(model)[name].freeze(torch.from_numpy(rows_V))


def frozen_rows(model: Model) -> dict[str, NDArray[np.bool_]]:
    """Return which rows of the embeddings are frozen, where any are."""
    return {
        name: embedding.frozen_V1[:, 0].cpu().numpy()
        for name, embedding in _embeddings(model).items()
        if embedding.has_frozen_rows
    }


def weight_name(model: Model, side: Literal["source", "target"]) -> str:
    """Return the name of the weight that holds the word vectors of a side."""
    wanted = model.source if side == "source" else model.target
    return next(name for name, embedding in _embeddings(model).items() if embedding is wanted)


def _embeddings(model: Model) -> dict[str, Embedding]:
    """Return the tables of word vectors by the name of their weight; a shared one appears once."""
    modules = model.named_modules()
    return {f"{name}.weight": module for name, module in modules if isinstance(module, Embedding)}


def count_parameters(model: Model) -> int:
    """Return the number of weights, tied ones counted once."""
    return sum(parameter.numel() for parameter in model.parameters())


def export_arrays(model: Model) -> dict[str, Floats]:
    """Return a copy of the weights by name, as the NumPy runtime takes them; tied ones appear once."""
    return {name: parameter.detach().cpu().numpy().copy() for name, parameter in model.named_parameters()}


def import_arrays(model: Model, arrays: dict[str, Floats]) -> None:
    """Set the weights from arrays by name, which must be those of this very design."""
    parameters = dict(model.named_parameters())
    for name in parameters.keys() | arrays.keys():
        wanted = tuple(parameters[name].shape) if name in parameters else None
        given = arrays[name].shape if name in arrays else None
        if wanted != given:
            raise ConfigError(
                f"weight {name!r} has shape {given} and the model wants {wanted}; is it another design?"
            )
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(torch.from_numpy(arrays[name]))


def _initialise(model: nn.Module, options: InitOptions, generator: torch.Generator) -> None:
    """Set every weight; biases stay 0 and the gains of layer norms 1.

    With Xavier's start an LSTM's forget gates have a bias of 1 (Jozefowicz et al. 2015); the papers' own
    starts know nothing of that.
    """
    for path, parameter in model.named_parameters():
        owner, _, name = path.rpartition(".")
        if name.isdigit():  # one of a list
            owner, _, name = owner.rpartition(".")
        module = model.get_submodule(owner)
        if not isinstance(module, nn.LayerNorm) and name != "b" and not name.startswith("b_"):
            _fill(module, name, parameter, options, generator)
    if options.kind == "xavier":
        for cell in (module for module in model.modules() if isinstance(module, LongShortTermCell)):
            bias: Tensor = cell.norms[0].bias if cell.b is None else cell.b  # type: ignore[assignment]
            nn.init.ones_(bias[cell.hidden_size : 2 * cell.hidden_size])


def _fill(
    module: nn.Module, name: str, parameter: Tensor, options: InitOptions, generator: torch.Generator
) -> None:
    """Fill one weight as the options say."""
    recurrent = isinstance(module, Cell) and name == "U"
    if options.kind == "uniform":
        nn.init.uniform_(parameter, -options.bound, options.bound, generator=generator)
    elif recurrent:
        for block in parameter.split(parameter.shape[1]):
            nn.init.orthogonal_(block, generator=generator)
    elif options.kind == "gaussian":
        scale = 0.01
        if isinstance(module, AdditiveScorer):
            scale = 0.0 if name == "v_a" else 0.001
        nn.init.normal_(parameter, 0, scale, generator=generator)
    elif isinstance(module, Embedding) or name.endswith("_positions") or parameter.dim() == 1:
        nn.init.normal_(parameter, 0, 1 / math.sqrt(parameter.shape[-1]), generator=generator)
    else:
        for block in _blocks(module, name, parameter):
            nn.init.xavier_uniform_(block, generator=generator)


def _blocks(module: nn.Module, name: str, parameter: Tensor) -> Iterator[Tensor]:
    """Yield the matrices that lie one above the other in a weight."""
    num_blocks = 1
    if isinstance(module, Cell) and name == "W":
        num_blocks = module.num_gates
    if isinstance(module, Decoder) and name == "C":
        num_blocks = module.cells[0].num_gates
    if isinstance(module, SelfAttention) and name == "W_QKV":
        num_blocks = 3
    if isinstance(module, (CrossAttention, Recurrence)) and name in ("W_KV", "W_CF"):
        num_blocks = 2
    yield from parameter.chunk(num_blocks)
