"""A small bilingual grammar: French sentences, their English translations and the gold word alignment.

What links to what, decided once for the whole grammar:

* every content word is linked, and a sign of punctuation to its counterpart (the comma that only an English
  date has stays free);
* a fixed or phrasal whole is linked word by word to its counterpart: `pomme de terre` to `potato`, `cherche`
  to `looks for`, `a mangé` to `ate`, `s'est levée` to `got up`;
* an auxiliary that only English has belongs to the French verb: `mange` to `is eating` or `does ... eat`,
  `mangera` to `will eat`; but `do` in a question belongs to `est-ce que`, which is otherwise free;
* `to` before an infinitive belongs to the French infinitive: `veut lire` is `wants` + `to read`,
  `va lire` is `is going` + `to read`;
* `ne ... pas`, `ne ... plus` and `ne ... jamais` are linked, both parts, to `not`, `no longer` and `never`;
  `cannot` to the verb and both parts of the negation; `ne`, `pas` and `de` of `il n'y a pas de` to `no`;
* a contraction is linked to what both its parts are linked to: `du` to `of the`, `au` to `to the`;
* `du`, `de la` and `des` are linked to `some`, as the `de` that takes their place is to `some`, `any` or `a`;
* a function word without a counterpart stays free: `a` in `he is a doctor` (`il est médecin`), `le` in
  `j'aime le café`, `de` in `ne mange jamais de viande`.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from regard.alignment.links import Link, to_pharaoh
from regard.files import writing
from regard.sample.derivation import Derivation
from regard.sample.orthography import (
    ENGLISH_ATTACHED,
    FRENCH_ATTACHED,
    join,
    links_between,
    spell_english,
    spell_french,
)
from regard.sample.sentences import sentence

MIN_WORDS = 3
MAX_WORDS = 60


@dataclass(frozen=True, slots=True)
class SamplePair:
    """A French sentence, its English translation, and which words belong together (counted from 0)."""

    source: str
    target: str
    links: frozenset[Link]


def generate(num_pairs: int, seed: int = 1) -> Iterator[SamplePair]:
    """Yield sentence pairs; pair number k depends on the seed and k alone.

    So a longer sample starts with the shorter one, in every process and every version of Python.
    """
    for index in range(num_pairs):
        yield _pair(random.Random(f"regard.sample {seed} {index}"))


def _pair(dice: random.Random) -> SamplePair:
    while True:
        phrase = sentence(Derivation(dice))
        french, english = spell_french(phrase.french), spell_english(phrase.english)
        if min(len(french), len(english)) >= MIN_WORDS and max(len(french), len(english)) <= MAX_WORDS:
            return SamplePair(
                source=join([text for text, _ in french], FRENCH_ATTACHED),
                target=join([text for text, _ in english], ENGLISH_ATTACHED),
                links=links_between(french, english),
            )


def write(
    folder: Path, num_pairs: int, seed: int = 1, on_progress: Callable[[int], None] | None = None
) -> None:
    """Write `sample.fr`, `sample.en` and `sample.align` (Pharaoh format), all three whole or none.

    `on_progress` is told the number of pairs written after every thousand.
    """
    paths = [folder / f"sample.{ending}" for ending in ("fr", "en", "align")]
    with writing(*paths) as (french, english, align):
        for number, pair in enumerate(generate(num_pairs, seed), start=1):
            french.write(f"{pair.source}\n".encode())
            english.write(f"{pair.target}\n".encode())
            align.write(f"{to_pharaoh(pair.links)}\n".encode())
            if on_progress and number % 1000 == 0:
                on_progress(number)
