"""What every engine is given and what it offers, and the legend of the shape letters.

Names bound to arrays end in one capital per axis:

| letter | axis                  | letter | axis                |
|--------|-----------------------|--------|---------------------|
| `B`    | sentences             | `E`    | embedding width     |
| `S`    | source tokens         | `H`    | memory width        |
| `T`    | target tokens         | `Q`    | query width         |
| `R`    | rows being decoded    | `A`    | attention width     |
| `K`    | hypotheses            | `N`    | heads               |
| `V`    | target vocabulary     | `D`    | width of one head   |
| `L`    | layers                | `F`    | feature width       |
| `M`    | real target tokens    | `G`    | gates of a cell     |
| `X`    | any other width       |        |                     |

A digit is an axis of that size.

**An engine** turns a batch into a state (`start`), then a state and the word said last into the scores of the
next word, where it looked, and a new state (`step`). What a decoder remembers travels in its `State`.

**A probe** sees every quantity an engine computes, by name, and hands it back, changed or not. That is how a
translation is recorded and how it is tampered with: one code path, and none of it when nobody looks.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from regard.errors import ConfigError, CorpusError, SourceError
from regard.options.model import FeatureSource, TokenSource, feature_size
from regard.vocabulary import BOS, EOS, PAD, UNK

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]

Probe = Callable[[str, Any], Any]
"""Called with the name and the value of a quantity, returns the value to go on with; it writes into none."""


def unseen(name: str, value: Any) -> Any:
    """Return the value: the probe of a translation that nobody watches."""
    return value


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentence pairs side by side, padded with `<pad>` on the right.

    Every source ends in `</s>`. `target_in_BT` is what the decoder reads (`<s>` first) and
    `target_out_BT` what it should say (`</s>` last); without targets they are `None`.
    `pairs_B` says which pairs of the corpus these are.
    A source of feature vectors stands in `features_BSF`; `source_BS` then only tells which places are real.
    """

    source_BS: Ids
    target_in_BT: Ids | None
    target_out_BT: Ids | None
    pairs_B: Ids
    features_BSF: Floats | None = None

    @property
    def source_real_BS(self) -> NDArray[np.bool_]:
        """True where a source token is real."""
        return np.not_equal(self.source_BS, PAD)

    @property
    def forced_in_BT(self) -> Ids:
        """What the decoder reads, of a batch that must have targets."""
        if self.target_in_BT is None:
            raise ValueError("this batch has no targets to force")
        return self.target_in_BT

    @property
    def num_target_tokens(self) -> int:
        """The number of real target tokens, `</s>` counted."""
        return 0 if self.target_out_BT is None else int((self.target_out_BT != PAD).sum())

    def shard(self, rank: int, num_ranks: int) -> "Batch":
        """Return the rows of one of several processes that share this batch; together they have them all.

        A batch of fewer rows than processes leaves some with none.
        """
        rows = slice(rank, None, num_ranks)
        target_in, target_out, features = self.target_in_BT, self.target_out_BT, self.features_BSF
        return Batch(
            self.source_BS[rows],
            None if target_in is None else target_in[rows],
            None if target_out is None else target_out[rows],
            self.pairs_B[rows],
            None if features is None else features[rows],
        )


@dataclass(frozen=True, slots=True)
class Ragged:
    """Rows of different lengths, end to end: the ids of several sentences, or their feature vectors."""

    flat: NDArray[Any]
    lengths_B: Ids

    @classmethod
    def of(cls, rows: Sequence[NDArray[Any]]) -> "Ragged":
        """Return the rows as one."""
        flat = np.concatenate(rows) if rows else np.empty(0, np.int64)
        return cls(flat, np.array([len(row) for row in rows], np.int64))

    def rows(self) -> list[NDArray[Any]]:
        """Return the rows one by one."""
        return np.split(self.flat, np.cumsum(self.lengths_B)[:-1]) if len(self.lengths_B) else []

    def padded(self, *, first: int | None = None, last: int | None = None) -> Ids:
        """Return one row a sentence, padded on the right, with an id put before or after its own."""
        head, tail = int(first is not None), int(last is not None)
        longest = int(self.lengths_B.max(initial=0))
        padded = np.full((len(self.lengths_B), head + longest + tail), PAD, np.int64)
        inner = padded[:, head : head + longest]
        inner[np.arange(longest) < self.lengths_B[:, None]] = self.flat
        if first is not None:
            padded[:, 0] = first
        if last is not None:
            padded[np.arange(len(padded)), head + self.lengths_B] = last
        return padded


def make_batch(sources: Ragged, targets: Ragged | None, pairs_B: Ids) -> Batch:
    """Return the batch of these sentences; training and translating both come through here."""
    return Batch(
        sources.padded(last=EOS),
        None if targets is None else targets.padded(first=BOS),
        None if targets is None else targets.padded(last=EOS),
        pairs_B,
    )


def make_feature_batch(features: Sequence[Floats], targets: Ragged | None, pairs_B: Ids) -> Batch:
    """Return the batch of these rows of feature vectors, one (S, F) array for each."""
    for row, one in enumerate(features):
        if one.ndim != 2 or not len(one) or one.shape[1] != features[0].shape[1]:
            raise CorpusError(
                f"row {row} of the features has shape {one.shape}; wanted are one or more feature vectors, "
                "as (number, width), all of one width"
            )
    longest, width = max(map(len, features), default=0), features[0].shape[1] if features else 0
    features_BSF = np.zeros((len(features), longest, width), np.float32)
    source_BS = np.full((len(features), longest), PAD, np.int64)
    for row, one in enumerate(features):
        features_BSF[row, : len(one)] = one
        source_BS[row, : len(one)] = UNK
    targeted = make_batch(Ragged.of([]), targets, pairs_B)
    return replace(targeted, source_BS=source_BS, features_BSF=features_BSF)


Source = NDArray[np.integer] | Floats
"""What an encoder reads of one sentence: its ids without `</s>` (S,), or its feature vectors (S, F)."""


def source_batch(sources: Sequence[Source], targets: Ragged | None, pairs_B: Ids) -> Batch:
    """Return the batch of these sources, all of them ids or all of them feature vectors."""
    if sources and sources[0].ndim == 2:
        return make_feature_batch(cast(Sequence[Floats], sources), targets, pairs_B)
    return make_batch(Ragged.of(sources), targets, pairs_B)


def num_source_tokens(source: Source) -> int:
    """Return how many tokens the encoder reads: `</s>` follows ids, and nothing feature vectors."""
    return len(source) + (source.ndim == 1)


def source_named(feature_size: int | None) -> str:
    """Return what a source is, in words: text, or feature vectors of so many numbers."""
    return "text" if feature_size is None else f"feature vectors of {feature_size:,} numbers"


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """A source of feature vectors, such as the regions of an image, each at a position with a name.

    Positions without names are counted from 1.
    """

    vectors_SF: Floats
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise an error for what is no row of vectors, and for names that do not fit them."""
        vectors = np.ascontiguousarray(self.vectors_SF, np.float32)
        if vectors.ndim != 2 or not vectors.size:
            raise SourceError(f"shape {vectors.shape} instead of (positions, width)")
        if not np.isfinite(vectors).all():
            raise SourceError("a feature that is not a finite number")
        names = self.names or tuple(map(str, range(1, len(vectors) + 1)))
        if len(names) != len(vectors):
            raise SourceError(f"{len(names)} names for {len(vectors)} positions")
        object.__setattr__(self, "vectors_SF", vectors)
        object.__setattr__(self, "names", tuple("_".join(name.split()) or "_" for name in names))

    @property
    def size(self) -> int:
        """How many numbers each vector has."""
        return int(self.vectors_SF.shape[1])

    @property
    def key(self) -> str:
        """A text of letters that only the same vectors have."""
        digest = hashlib.blake2b(self.vectors_SF.tobytes(), digest_size=16, salt=b"%16d" % self.size)
        return "".join(chr(ord("a") + half) for byte in digest.digest() for half in divmod(byte, 16))

    @property
    def text(self) -> str:
        """The names of the positions, in the place of the text that such a source has not."""
        return " ".join(self.names)


class State(Protocol):
    """All a decoder remembers, one row for each hypothesis."""

    def select(self, rows: Ids) -> Self:
        """Return the state with these rows, in this order; a row may come twice or not at all."""
        ...


AnyState = TypeVar("AnyState", bound=State)


Looks = Callable[[Ids], Floats]
"""Returns for some rows of a step, given by number, a weight for each source token (R, S)."""


@dataclass(frozen=True, slots=True)
class Step(Generic[AnyState]):
    """What one step gives: the scores of every next word, where the decoder looked, and the state after it.

    A recurrent model looks once a step (L = N = 1); one without attention never (L = 0). An engine that is
    asked for it also tells where the ids that were read came from, now that they are known. That takes time,
    so it is computed for the rows that somebody wants to know it of.
    """

    logits_RV: Floats
    attention_RLNS: Floats
    state: AnyState
    origins: Looks | None = None


@dataclass(frozen=True, slots=True)
class Forced:
    """What a model says to a given translation: the scores of every next word, and where it looked."""

    logits_BTV: Floats
    attention_BTLNS: Floats
    origin_BTS: Floats | None = None


class Engine(Protocol[AnyState]):
    """A model ready to translate."""

    @property
    def max_tokens(self) -> int | None:
        """The longest source or target, `</s>` counted, or `None` if there is no limit."""
        ...

    def start(self, batch: Batch, probe: Probe = unseen) -> AnyState:
        """Read the sources; the state has a row for each."""
        ...

    def step(self, state: AnyState, ids_R: Ids, probe: Probe = unseen) -> Step[AnyState]:
        """Read one more target id in each row, the first being `<s>`."""
        ...

    def force(self, batch: Batch, probe: Probe = unseen) -> Forced:
        """Read the batch's own targets: every step at once, the same numbers as step by step."""
        ...


def force_by_steps(engine: Engine[AnyState], batch: Batch, probe: Probe = unseen) -> Forced:
    """Read the batch's own targets step by step."""
    state = engine.start(batch, probe)
    logits, attention, origin = [], [], []
    for ids_B in batch.forced_in_BT.T:
        step = engine.step(state, np.ascontiguousarray(ids_B), probe)
        state = step.state
        logits.append(step.logits_RV)
        attention.append(step.attention_RLNS)
        if step.origins is not None:
            origin.append(step.origins(np.arange(len(ids_B))))
    origin_BTS = np.stack(origin, axis=1) if origin else None
    return Forced(np.stack(logits, axis=1), np.stack(attention, axis=1), origin_BTS)


def follow(engine: Engine[AnyState], state: AnyState, ids_RT: Ids, probe: Probe = unseen) -> Step[AnyState]:
    """Read a prefix, at least one id long, in each row; what comes after it is the engine's own."""
    for ids_R in ids_RT.T[:-1]:
        state = engine.step(state, np.ascontiguousarray(ids_R), probe).state
    return engine.step(state, np.ascontiguousarray(ids_RT[:, -1]), probe)


def check_source(options: TokenSource | FeatureSource, batch: Batch) -> None:
    """Raise an error if a batch is not what the encoder reads."""
    wanted = feature_size(options)
    given = None if batch.features_BSF is None else batch.features_BSF.shape[2]
    if wanted != given:
        raise ConfigError(f"this model reads {source_named(wanted)} and the batch has {source_named(given)}")


def check_length(num_tokens: int, max_positions: int) -> None:
    """Raise an error if a sequence is longer than the positions a model has learnt."""
    if num_tokens > max_positions:
        raise ConfigError(
            f"a sequence of {num_tokens} tokens is longer than the {max_positions} positions this model has "
            "learnt; shorten it, or train with a larger model.positions.max_positions"
        )
