"""Spelling: from rows of dictionary words to text as people type it, and which words end up linked.

In the lexicon and the grammar a word may carry two marks of the printed dictionaries:

* `le|l'`, `beau|bel`, `a|an`: the second form stands before a vowel sound;
* `*héros`, `*European`: the word begins like a consonant, whatever its first letter.
"""

from collections.abc import Sequence

from regard.alignment.links import Link

Word = tuple[str, tuple[int, ...]]  # a marked word and the numbers of the units of meaning it belongs to

_FRENCH_VOWELS = frozenset("aàâeéèêiîoôuûhœAÀÂEÉÈÊIÎOÔUÛHŒ")
_ENGLISH_VOWELS = frozenset("aeiouAEIOU")
FRENCH_ATTACHED = ".,"  # a question mark stands off with a plain space, as most people type it
ENGLISH_ATTACHED = ".,?"
_CONTRACTIONS = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}


def spell_french(words: Sequence[Word]) -> list[Word]:
    """Return the words with elision (l'homme, s'il, ce/cet) and contraction (du, aux) carried out.

    A contracted word belongs to the units of both its parts. Any `le` after `de` or `à` is taken for an
    article: the grammar never puts an object pronoun there.
    """
    spelt: list[Word] = []
    for (text, units), following in zip(words, _followers(words), strict=True):
        if "|" in text:
            before_consonant, before_vowel = text.split("|")
            vowel = following[0] in _FRENCH_VOWELS or following == "y"
            text = before_vowel if vowel else before_consonant
        elif text == "si" and following in ("il", "ils"):
            text = "s'"
        if spelt and (contracted := _CONTRACTIONS.get((spelt[-1][0], text))):
            spelt[-1] = (contracted, spelt[-1][1] + units)
        else:
            spelt.append((text.lstrip("*"), units))
    return spelt


def spell_english(words: Sequence[Word]) -> list[Word]:
    """Return the words with `a` or `an` chosen by the sound that follows."""
    spelt: list[Word] = []
    for (text, units), following in zip(words, _followers(words), strict=True):
        if "|" in text:
            before_consonant, before_vowel = text.split("|")
            text = before_vowel if following[0] in _ENGLISH_VOWELS else before_consonant
        spelt.append((text.lstrip("*"), units))
    return spelt


def _followers(words: Sequence[Word]) -> list[str]:
    return [text for text, _ in words[1:]] + ["."]


def join(words: Sequence[str], attached: str) -> str:
    """Return the words as a line of text, capital first; no space before the signs in `attached`."""
    text = words[0]
    for word in words[1:]:
        text += word if text.endswith("'") or word in attached else " " + word
    return text[0].upper() + text[1:]


def links_between(french: Sequence[Word], english: Sequence[Word]) -> frozenset[Link]:
    """Return a link for each French and English word that belong to a common unit."""
    places: dict[int, list[int]] = {}
    for place, (_, units) in enumerate(french):
        for unit in units:
            places.setdefault(unit, []).append(place)
    return frozenset(
        (source, target)
        for target, (_, units) in enumerate(english)
        for unit in units
        for source in places.get(unit, ())
    )
