"""What enters a model: word vectors, feature vectors, positions."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.options.model import SourceOptions


class Embedding(nn.Module):
    """A table with one vector for each id; frozen rows get no gradient.

    An optimiser that shrinks weights whatever their gradient must leave embeddings out.
    """

    frozen_V1: Tensor

    def __init__(self, vocab_size: int, embedding_size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, embedding_size))
        self.register_buffer("frozen_V1", torch.zeros(vocab_size, 1, dtype=torch.bool))

    def freeze(self, rows_V: Tensor) -> None:
        """Keep these rows as they are, whatever is learnt."""
        self.frozen_V1 |= rows_V[:, None].to(self.frozen_V1)

    @property
    def has_frozen_rows(self) -> bool:
        """Whether any row is frozen."""
        return bool(self.frozen_V1.any())

    def table(self) -> Tensor:
        """Return the vectors of all ids."""
        if not self.has_frozen_rows:
            return self.weight
        return torch.where(self.frozen_V1, self.weight.detach(), self.weight)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the vectors of these ids."""
        return functional.embedding(ids, self.table())


class FeatureProjection(nn.Module):
    """Feature vectors brought to the width of embeddings: W_f x + b_f."""

    def __init__(self, feature_size: int, embedding_size: int) -> None:
        super().__init__()
        self.W_f = nn.Parameter(torch.empty(embedding_size, feature_size))
        self.b_f = nn.Parameter(torch.zeros(embedding_size))

    def forward(self, features_BSF: Tensor) -> Tensor:
        """Return one vector of embedding width for each feature vector."""
        return functional.linear(features_BSF, self.W_f, self.b_f)


def build_source(
    options: SourceOptions, vocab_size: int, embedding_size: int
) -> Embedding | FeatureProjection:
    """Return what the encoder's input goes through."""
    if options.kind == "features":
        return FeatureProjection(options.feature_size, embedding_size)
    return Embedding(vocab_size, embedding_size)


def sinusoids(first: int, num_positions: int, size: int) -> Tensor:
    """Return sin(p / 10000^(2i/d)) and cos of the same, in turns (Vaswani et al. 2017, section 3.5)."""
    position_T1 = torch.arange(first, first + num_positions, dtype=torch.float64)[:, None]
    wavelength = torch.exp(torch.arange(0, size, 2, dtype=torch.float64) * (-math.log(10_000) / size))
    angle = position_T1 * wavelength
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
