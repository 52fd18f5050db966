"""Small real models and batches for tests."""

import functools
from itertools import product
from types import UnionType
from typing import Annotated, Union, get_args, get_origin

import numpy as np

from regard.contract import Ragged, make_batch
from regard.loaded import Loaded
from regard.options.section import Options
from regard.runtime.build import build_engine
from regard.runtime.shapes import weight_shapes
from regard.translate.translator import Translator, make_pool
from regard.vocabulary import BOS, EOS, NUM_RESERVED

SIZES = {
    "hidden_size": 8,
    "embedding_size": 6,
    "feed_forward_size": 12,
    "num_heads": 2,
    "half_width": 1,
    "max_positions": 16,
    "decay_steps": 2,
    "feature_size": 3,
}
VOCAB = NUM_RESERVED + 10
SAME_BUT_FOR_SIZE = ("regard-base", "regard-quick")  # presets whose design another preset has


def shrink(options, **sizes):
    """The same design, small: widths of `SIZES` or as given, at most two layers."""
    sizes = SIZES | sizes
    update = {}
    for name in type(options).model_fields:
        value = getattr(options, name)
        if isinstance(value, Options):
            update[name] = shrink(value, **sizes)
        elif name in sizes:
            update[name] = sizes[name]
        elif name.endswith("_layers"):
            update[name] = min(value, 2)
    return options.model_copy(update=update)


def with_dropout(options, prob):
    """The same design with every kind of dropout it has."""
    return options.model_copy(
        update={name: prob for name in type(options).model_fields if name.endswith("dropout")}
    )


def values_of(cls, name):
    """Every value worth trying of one option, found by looking at its class: choices, booleans, 0 and some."""
    field = cls.model_fields[name]
    annotation = field.annotation
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else [annotation]
    if all(isinstance(member, type) and issubclass(member, Options) for member in members):
        return [variant for member in members for variant in all_of(member)]
    if get_origin(annotation) is not None:
        return list(get_args(annotation))
    if annotation is bool:
        return [False, True]
    if annotation is float and name.endswith("dropout"):
        return [0.0, 0.3]
    if name.endswith("_layers"):
        return [1, 2]
    return [SIZES.get(name, field.default)]


def all_of(cls):
    """Every combination of the options of a small class."""
    names = list(cls.model_fields)
    for values in product(*(values_of(cls, name) for name in names)):
        yield cls(**dict(zip(names, values, strict=True)))


def pairs_of(cls, seed=0):
    """Designs that together hold every pair of values of two options."""
    names = list(cls.model_fields)
    values = {name: values_of(cls, name) for name in names}
    rng = np.random.default_rng(seed)
    missing = {
        ((a, i), (b, j))
        for x, a in enumerate(names)
        for b in names[x + 1 :]
        for i in range(len(values[a]))
        for j in range(len(values[b]))
    }
    while missing:
        (a, i), (b, j) = min(missing)
        chosen = {a: i, b: j}
        for name in rng.permutation([name for name in names if name not in chosen]).tolist():
            gains = [
                sum(
                    tuple(sorted(((name, value), other), key=lambda item: names.index(item[0]))) in missing
                    for other in chosen.items()
                )
                for value in range(len(values[name]))
            ]
            chosen[name] = int(np.argmax(gains))
        missing -= {((a, chosen[a]), (b, chosen[b])) for x, a in enumerate(names) for b in names[x + 1 :]}
        yield cls(**{name: values[name][index] for name, index in chosen.items()})


def ids_of(text):
    """Letters as ids: a is the first after the reserved ones."""
    return np.array([NUM_RESERVED + ord(letter) - ord("a") for letter in text], np.int64)


def batch_of(*pairs):
    """The batch of pairs of words, letter by letter."""
    sources, targets = zip(*pairs, strict=True)
    return make_batch(
        Ragged.of([ids_of(source) for source in sources]),
        Ragged.of([ids_of(target) for target in targets]),
        np.arange(len(pairs)),
    )


def random_batch(seed=0, rows=4, longest=6, num_letters=10):
    """A batch of random words of different lengths, at least one letter each."""
    rng = np.random.default_rng(seed)

    def words():
        return [
            NUM_RESERVED + rng.integers(0, num_letters, rng.integers(1, longest + 1)) for _ in range(rows)
        ]

    return make_batch(Ragged.of(words()), Ragged.of(words()), np.arange(rows))


def greedy(engine, batch, max_steps):
    """The most likely word at every step, until all rows have ended; one list of ids for each row."""
    state = engine.start(batch)
    ids_R = np.full(len(batch.pairs_B), BOS, np.int64)
    said = []
    for _ in range(max_steps):
        step = engine.step(state, ids_R)
        ids_R, state = step.logits_RV.argmax(-1), step.state
        said.append(ids_R)
        if all((np.array(said) == EOS).any(0)):
            break
    rows = np.array(said).T.tolist()
    return [row[: row.index(EOS)] if EOS in row else row for row in rows]


def random_weights(options, source_vocab=VOCAB, target_vocab=VOCAB, seed=0):
    """Weights of a design, far enough from 0 that it has opinions; no torch is needed."""
    rng = np.random.default_rng(seed)
    shapes = weight_shapes(options, source_vocab, target_vocab)
    return {name: rng.normal(0, 0.7, shape).astype(np.float32) for name, shape in shapes.items()}


def random_engine(options, source_vocab=VOCAB, target_vocab=VOCAB, seed=0):
    """The NumPy engine of a design with random weights."""
    return build_engine(options, random_weights(options, source_vocab, target_vocab, seed))


class Brief(Translator):
    """A translator whose translations may be few tokens longer than their sources.

    Random models seldom come to an end by themselves.
    """

    def translate(self, texts, **how):
        return super().translate(texts, **({"extra_tokens": 4} | how))

    def stream(self, texts, **how):
        return super().stream(texts, **({"extra_tokens": 4} | how))


def translator(engine, tokenizers, reading=None, *, num_workers=None, limits=None, cls=Translator, **known):
    """The translator of an engine that is in no model file."""
    loaded = Loaded.with_engine(engine, tokenizers, reading=reading, **known)
    return cls(loaded, functools.partial(make_pool, num_workers=num_workers), limits)
