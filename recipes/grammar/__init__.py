"""A small bilingual grammar: French sentences, their English translations and the gold word alignment.

`recipes/sample.py` is its command; the package ships the first pairs of seed 1 (`regard.sample`).

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
from collections.abc import Iterator

from grammar.derivation import Derivation
from grammar.orthography import (
    ENGLISH_ATTACHED,
    FRENCH_ATTACHED,
    join,
    links_between,
    spell_english,
    spell_french,
)
from grammar.sentences import sentence
from regard.sample import SamplePair

MIN_WORDS = 3
MAX_WORDS = 60


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
