"""Phrases that grow on both sides at once, and the dice and counters of one sentence in the making.

A unit of meaning has a number; words of the two languages that carry the same number are linked. Because
the links hang on the words, a phrase can be put together in each language's own order without any counting.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TypeVar

from grammar.inflection import Noun
from grammar.lexicon import NOUNS, Expression
from grammar.orthography import Word

T = TypeVar("T")
Words = tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Phrase:
    """The words of a phrase in both languages, each in its own order."""

    french: Words = ()
    english: Words = ()

    def __add__(self, other: "Phrase") -> "Phrase":
        return Phrase(self.french + other.french, self.english + other.english)


EMPTY = Phrase()


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """A phrase that can be a subject or an object, with what verbs, adjectives and pronouns agree with."""

    phrase: Phrase
    person: int = 3
    plural: bool = False
    feminine: bool = False
    human: bool = False
    noun: Noun | None = None

    @property
    def row(self) -> int:
        """The place of the verb form in je, tu, il, nous, vous, ils."""
        return self.person - 1 + 3 * self.plural


def spread(text: str, *units: int) -> Words:
    """Return the words of the text, all belonging to the same units."""
    if " " not in text:  # by far the most common case, and this is the busiest function
        return ((text, units),)
    return tuple((word, units) for word in text.split())


@cache
def nouns_of(*kinds: str) -> tuple[Noun, ...]:
    """Return the nouns that belong to any of the kinds."""
    return tuple(noun for noun in NOUNS if not noun.kinds.isdisjoint(kinds))


@lru_cache(maxsize=4096)
def _read(marked: str) -> tuple[tuple[str, int], ...]:
    """Return the words and numbers of one side of a fixed expression; 0 is for a word with no number."""
    parts = [word.partition(":") for word in marked.split()]
    return tuple((word, int(number or 0)) for word, _, number in parts)


@dataclass(slots=True)
class Derivation:
    """One sentence in the making: its dice, its count of units, and what must stay the same throughout.

    Only `random()` of the generator is used: it alone is promised to give the same numbers in every version
    of Python.
    """

    dice: random.Random
    num_units: int = 0
    used: set[object] = field(default_factory=set)
    speaker_feminine: bool = False
    listener_feminine: bool = False
    several_listeners: bool = False  # vous and not tu

    def __post_init__(self) -> None:
        self.speaker_feminine = self.chance(0.5)
        self.listener_feminine = self.chance(0.5)
        self.several_listeners = self.chance(0.4)

    def chance(self, prob: float) -> bool:
        """Return true with this probability."""
        return self.dice.random() < prob

    def pick(self, table: Sequence[T]) -> T:
        """Return one element, each as likely as the next."""
        return table[int(self.dice.random() * len(table))]

    def number(self, first: int, last: int) -> int:
        """Return a whole number from `first` to `last`, both included."""
        return first + int(self.dice.random() * (last - first + 1))

    def fresh(self, table: Sequence[T]) -> T:
        """Return one element that the sentence has not used, or after a few tries any."""
        for _ in range(8):
            choice = self.pick(table)
            if choice not in self.used:
                break
        self.used.add(choice)
        return choice

    def noun(self, *kinds: str) -> Noun:
        """Return a noun of one of the kinds that the sentence has not used."""
        return self.fresh(nouns_of(*kinds))

    def unit(self) -> int:
        """Return the number of a new unit of meaning."""
        self.num_units += 1
        return self.num_units

    def pair(self, french: str, english: str) -> Phrase:
        """Return a phrase of one new unit: every French word is linked to every English word."""
        unit = self.unit()
        return Phrase(spread(french, unit), spread(english, unit))

    def expression(self, expression: Expression) -> Phrase:
        """Return a fixed expression, linked as its numbers say."""
        first = self.num_units
        french, english = map(_read, expression)
        self.num_units += max(number for _, number in french)
        return Phrase(
            tuple((word, (first + number,) if number else ()) for word, number in french),
            tuple((word, (first + number,) if number else ()) for word, number in english),
        )
