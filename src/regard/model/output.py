"""What a model gives back."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from torch import Tensor

AnyState = TypeVar("AnyState")


@dataclass(frozen=True, slots=True)
class Said(Generic[AnyState]):
    """The scores of every next word, the attention of layers and heads (L, N) to the source, and the state.

    Of one step logits are (R, V) and attention (R, L, N, S); of several both have T after R.
    """

    logits: Tensor
    attention: Tensor
    state: AnyState
