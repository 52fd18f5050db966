"""Options to a model: built, initialised, loaded with vectors, counted and taken apart again."""

import math
from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor, nn

from regard.contract import Floats
from regard.errors import ConfigError
from regard.model.cells import Cell, LongShortTermCell
from regard.model.embed import Embedding
from regard.model.rnn import Decoder, RecurrentModel
from regard.model.scorers import AdditiveScorer
from regard.model.transformer import CrossAttention, SelfAttention, TransformerModel
from regard.options.model import InitOptions, RecurrentOptions, TransformerOptions
from regard.text.vectors import Vectors

Model = RecurrentModel | TransformerModel


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


def load_vectors(
    model: Model, side: Literal["source", "target"], vectors: Vectors, *, tuned: bool = True
) -> None:
    """Start the word vectors of one side from a file's, where it has them; untuned ones are never learnt.

    Where sides or output share one matrix they share its vectors too.
    """
    embedding = model.source if side == "source" else model.target
    name, (num_pieces, width) = vectors.coverage.name, vectors.table.shape
    if not isinstance(embedding, Embedding):
        raise ConfigError(
            f"{name} cannot be used: with model.source.kind = 'features' the source has no words"
        )
    if width != embedding.weight.shape[1]:
        option = "embedding_size" if model.options.kind == "recurrent" else "hidden_size"
        raise ConfigError(
            f"{name} has vectors of {width} numbers and the model of {embedding.weight.shape[1]}; "
            f"set model.{option} = {width}"
        )
    if num_pieces != len(embedding.weight):
        raise ConfigError(
            f"{name} was looked up for {num_pieces:,} pieces and the model's {side} has "
            f"{len(embedding.weight):,}; look it up with the model's own tokenizer"
        )
    embedding.load(torch.from_numpy(vectors.table), torch.from_numpy(vectors.found), tuned)


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
    if isinstance(module, CrossAttention) and name == "W_KV":
        num_blocks = 2
    yield from parameter.chunk(num_blocks)
