"""Nouns, adjectives and verbs with all their forms, made from dictionary entries by rule.

Only what the rules cannot know is written in an entry; the tables themselves are in `lexicon`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Aspect = Literal["action", "event", "accident", "perception", "state"]
"""How a verb behaves in time, which decides its tenses.

action      il lit = he is reading; il a lu = he read
event       over in a moment, so never told in the bare present: il a perdu = he lost
accident    an event that nobody plans, so only told of the past: il a cassé = he broke
perception  il voit = he sees (no "is seeing"); il a vu = he saw
state       il connaît = he knows; il connaissait = he knew
"""

_FUTURE = ("ai", "as", "a", "ons", "ez", "ont")
_IMPERFECT = ("ais", "ais", "ait", "ions", "iez", "aient")


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A French noun and its English one, each as (singular, plural)."""

    feminine: bool
    french: tuple[str, str]
    english: tuple[str, str]
    kinds: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """A French adjective in its four forms, and its English one."""

    masculine: tuple[str, str]
    feminine: tuple[str, str]
    english: str
    kinds: frozenset[str]
    precedes: bool

    def agree(self, feminine: bool, plural: bool) -> str:
        """Return the French form for a noun of this gender and number."""
        return (self.feminine if feminine else self.masculine)[plural]


@dataclass(frozen=True, slots=True, eq=False)
class FrenchVerb:
    """The forms of a French verb; each tuple runs je, tu, il, nous, vous, ils."""

    infinitive: str
    present: tuple[str, ...]
    imperfect: tuple[str, ...]
    future: tuple[str, ...]
    participle: str
    with_etre: bool
    reflexive: bool

    def agree(self, feminine: bool, plural: bool) -> str:
        """Return the past participle for this gender and number."""
        form = self.participle + "e" * feminine
        return form + "s" if plural and not form.endswith("s") else form


@dataclass(frozen=True, slots=True, eq=False)
class EnglishVerb:
    """The forms of an English verb; a form may be several words ("looks for")."""

    base: str
    third: str
    past: str
    participle: str
    progressive: str


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A French verb and its English one, with the kinds of noun that go with them."""

    french: FrenchVerb
    english: EnglishVerb
    aspect: Aspect
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    places: tuple[str, ...]  # where one does it


def noun(entry: str, kinds: frozenset[str]) -> Noun:
    """Return the noun of an entry `gender French[/plural] = English[/plural]`."""
    french, _, english = entry[2:].partition(" = ")
    singular, _, plural = french.partition("/")
    first, _, rest = singular.partition(" ")
    plural = plural or f"{french_plural(first)} {rest}".strip()
    english_singular, _, irregular = english.partition("/")
    return Noun(
        feminine=entry[0] == "f",
        french=(singular, plural),
        english=(english_singular, irregular or english_plural(english_singular)),
        kinds=kinds,
    )


def adjective(entry: str, precedes: bool) -> Adjective:
    """Return the adjective of an entry `masculine feminine = English : kinds`."""
    words, _, kinds = entry.partition(" : ")
    french, _, english = words.partition(" = ")
    masculine, feminine = french.split()
    return Adjective(
        masculine=(masculine, french_plural(masculine.partition("|")[0])),
        feminine=(feminine, french_plural(feminine)),
        english=english,
        kinds=frozenset(kinds.split()),
        precedes=precedes,
    )


def french_plural(word: str) -> str:
    """Return the plural by rule: chat/chats, souris/souris, gâteau/gâteaux, cheval/chevaux."""
    if word[-1] in "sxz":
        return word
    if word.endswith("al"):
        return word[:-1] + "ux"
    return word + ("x" if word.endswith("eau") else "s")


def english_plural(word: str) -> str:
    """Return the plural by rule, which is also the rule for the -s of verbs: box/boxes, city/cities."""
    if word.endswith(("s", "x", "ch", "sh", "o")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def french_verb(entry: str, irregular: Mapping[str, Sequence[str]]) -> FrenchVerb:
    """Return the verb of an entry `[se|s' ]infinitive[+être][:stem]`.

    The stem is that of je, tu, il and ils where a verb in -er has a second one (`acheter:achèt`). Verbs that
    follow neither -er nor -dre stand in `irregular`: six forms of the present, participle, future stem.
    """
    reflexive = entry.startswith("se|s' ")
    entry, _, strong = entry.removeprefix("se|s' ").partition(":")
    infinitive, _, auxiliary = entry.partition("+")
    stem = infinitive[:-2]
    if infinitive in irregular:
        *present, participle, future = irregular[infinitive]
    elif infinitive.endswith("dre"):
        present = [stem + ending for ending in ("s", "s", "", "ons", "ez", "ent")]
        participle, future = stem + "u", stem + "r"
    else:
        strong = strong or stem
        soft = stem + "e" if stem.endswith("g") else stem  # nous mangeons
        present = [strong + "e", strong + "es", strong + "e", soft + "ons", stem + "ez", strong + "ent"]
        participle = stem + "é"
        future = (stem if "è" in strong and "é" in stem else strong) + "er"  # espérera, but achètera
    past_stem = "ét" if infinitive == "être" else present[3][:-3]
    imperfect = tuple((past_stem + ending).replace("gei", "gi") for ending in _IMPERFECT)  # nous mangions
    return FrenchVerb(
        infinitive=infinitive,
        present=tuple(present),
        imperfect=imperfect,
        future=tuple(future + ending for ending in _FUTURE),
        participle=participle,
        with_etre=reflexive or auxiliary == "être",
        reflexive=reflexive,
    )


def english_verb(entry: str) -> EnglishVerb:
    """Return the verb of an entry `base[/past[/participle]][ particle]`; the default past ends in -ed."""
    head, _, particle = entry.partition(" ")
    base, *irregular = head.split("/")
    past = irregular[0] if irregular else _with_ending(base, "ed")
    participle = irregular[1] if len(irregular) > 1 else past
    third = {"be": "is", "have": "has"}.get(base) or english_plural(base)
    forms = (base, third, past, participle, _with_ending(base, "ing"))
    return EnglishVerb(*(f"{form} {particle}".strip() for form in forms))


def _with_ending(base: str, ending: str) -> str:
    vowels = [letter in "aeiou" for letter in base]
    if base.endswith("e") and not base.endswith(("ee", "be")):
        return base[:-1] + ending
    if base.endswith("y") and ending == "ed" and not vowels[-2]:
        return base[:-1] + "ied"
    if vowels[-3:] == [False, True, False] and sum(vowels) == 1 and base[-1] not in "wxy":
        return base + base[-1] + ending  # stop, stopped
    return base + ending
