"""Noun phrases: pronouns, names, determiners, and adjectives on the side of the noun each language likes."""

from functools import cache
from typing import Literal

from grammar.derivation import Derivation, NounPhrase, Phrase, spread
from grammar.inflection import Adjective, Noun
from grammar.lexicon import ADJECTIVES, DEGREES, NAMES, NUMBERS, PEOPLE

Determiner = Literal["the", "a", "this", "own", "my", "number", "lot", "several", "all", "every", "generic"]
Scope = Literal["plain", "not", "never", "question"]
"""What an indefinite falls under: du pain = some bread, (ne) pas de pain = not any bread, (ne) plus de pain =
no longer bread, est-ce que ... du pain = any bread."""

_SUBJECTS = {  # person, plural, feminine
    (1, False, False): ("je|j'", "I"),
    (1, False, True): ("je|j'", "I"),
    (2, False, False): ("tu", "you"),
    (2, False, True): ("tu", "you"),
    (3, False, False): ("il", "he"),
    (3, False, True): ("elle", "she"),
    (1, True, False): ("nous", "we"),
    (1, True, True): ("nous", "we"),
    (2, True, False): ("vous", "you"),
    (2, True, True): ("vous", "you"),
    (3, True, False): ("ils", "they"),
    (3, True, True): ("elles", "they"),
}
_POSSESSIVES = {  # row of the owner: masculine, feminine, plural
    0: ("mon", "ma|mon", "mes"),
    1: ("ton", "ta|ton", "tes"),
    2: ("son", "sa|son", "ses"),
    3: ("notre", "notre", "nos"),
    4: ("votre", "votre", "vos"),
    5: ("leur", "leur", "leurs"),
}
_MASS = frozenset(("dish", "drink"))
_OWNED = frozenset(
    ("thing", "gift", "machine", "clothes", "pet", "text", "press", "furniture", "room", "friend", "kin")
)


def pronoun(d: Derivation, person: int, plural: bool, feminine: bool, human: bool = True) -> NounPhrase:
    """Return a subject pronoun; a thing is `it` in English whatever its gender in French."""
    french, english = _SUBJECTS[person, plural, feminine]
    if not human and not plural:
        english = "it"
    return NounPhrase(d.pair(french, english), person, plural, feminine, human)


def pronoun_for(d: Derivation, antecedent: NounPhrase) -> NounPhrase:
    """Return the subject pronoun that refers back to the noun phrase."""
    return pronoun(d, antecedent.person, antecedent.plural, antecedent.feminine, antecedent.human)


def any_pronoun(d: Derivation) -> NounPhrase:
    """Return a subject pronoun for a person, keeping to one way of saying `you` in a sentence."""
    person, plural = d.number(1, 3), d.chance(0.35)
    feminine = d.chance(0.5)
    if person == 1:
        feminine = d.speaker_feminine
    elif person == 2:
        feminine, plural = d.listener_feminine, d.several_listeners
    return pronoun(d, person, plural, feminine)


def name(d: Derivation) -> NounPhrase:
    """Return a first name, the same in both languages."""
    text, feminine = d.fresh(NAMES)
    return NounPhrase(d.pair(text, text), feminine=feminine, human=True)


def someone(d: Derivation, kinds: tuple[str, ...] = PEOPLE, pronouns: bool = True) -> NounPhrase:
    """Return a subject of one of the kinds: a pronoun, a name, two names, or a noun with its company."""
    if "name" in kinds:
        roll = d.dice.random()
        if pronouns and roll < 0.36:
            return any_pronoun(d)
        if roll < 0.54:
            return name(d)
        if roll < 0.58:
            return both(d, name(d), name(d))
    return noun_phrase(d, d.noun(*kinds))


def both(d: Derivation, first: NounPhrase, second: NounPhrase) -> NounPhrase:
    """Return the two joined by `and`: plural, and feminine only if both are."""
    return NounPhrase(
        phrase=first.phrase + d.pair("et", "and") + second.phrase,
        plural=True,
        feminine=first.feminine and second.feminine,
        human=first.human,
    )


def noun_phrase(
    d: Derivation,
    noun: Noun,
    owner: NounPhrase | None = None,
    scope: Scope = "plain",
    determiner: Determiner | None = None,
    plain: bool = False,
    singular: bool = False,
) -> NounPhrase:
    """Return a determiner, the noun and perhaps adjectives.

    The owner is whoever `his` or `her` would refer to, as a rule the subject of the clause. A plain phrase
    has no adjectives.
    """
    determiner = determiner or _any_determiner(d, noun, owner, scope)
    plural = not singular and _any_number(d, noun, determiner, scope)
    before, after = (None, None) if plain else _any_adjectives(d, noun)
    head = d.pair(noun.french[plural], noun.english[plural])
    phrase = _determined(d, noun, plural, determiner, owner, scope, before)
    if before:
        phrase += d.pair(before.agree(noun.feminine, plural), before.english)
    if after:
        quality = d.pair(after.agree(noun.feminine, plural), after.english)
        head = Phrase(head.french + quality.french, quality.english + head.english)
    human = not noun.kinds.isdisjoint(PEOPLE)
    return NounPhrase(phrase + head, 3, plural, noun.feminine, human, noun)


def _any_determiner(d: Derivation, noun: Noun, owner: NounPhrase | None, scope: Scope) -> Determiner:
    # Quantities under a negation could be read two ways ("not all the"), so the dice stop short of them.
    roll = d.dice.random() * (1.0 if scope == "plain" else 0.85)
    if "kin" in noun.kinds:
        return "own" if owner and roll < 0.7 else "my"
    if "friend" in noun.kinds:
        return "a" if roll < 0.3 else "own" if owner and roll < 0.7 else "my"
    if "meal" in noun.kinds:
        return "generic"
    if roll < 0.40:
        return "the"
    if roll < 0.62:
        return "a"
    if roll < 0.72:
        return "own" if owner and ownable(noun) else "the"
    if roll < 0.80:
        return "this"
    if not noun.kinds.isdisjoint(_MASS):
        return "a" if roll < 0.93 else "lot"
    if roll < 0.85:
        return "my" if ownable(noun) else "the"
    if roll < 0.91:
        return "number"
    if roll < 0.94:
        return "lot"
    if roll < 0.96:
        return "several"
    if owner is None:  # a subject: "all the boys do not" could be read two ways
        return "the"
    return "every" if roll < 0.98 and "person" in noun.kinds else "all"


def ownable(noun: Noun) -> bool:
    """Return whether one may say `my` of the noun."""
    return not noun.kinds.isdisjoint(_OWNED)


def _any_number(d: Derivation, noun: Noun, determiner: Determiner, scope: Scope) -> bool:
    if noun.kinds & {"dish", "drink", "meal", "parent"} or determiner == "every":
        return False
    if determiner in ("number", "lot", "several", "all", "generic"):
        return True
    if determiner == "a" and scope == "never":
        return True
    return d.chance(0.3)


def _determined(
    d: Derivation,
    noun: Noun,
    plural: bool,
    determiner: Determiner,
    owner: NounPhrase | None,
    scope: Scope,
    before: Adjective | None,
) -> Phrase:
    """Return the determiner: its French form follows the noun, its English one the meaning."""
    definite = "les" if plural else "la|l'" if noun.feminine else "le|l'"
    match determiner:
        case "the":
            return d.pair(definite, "the")
        case "generic":
            return Phrase(spread(definite), ())
        case "this":
            french = "ces" if plural else "cette" if noun.feminine else "ce|cet"
            return d.pair(french, "these" if plural else "this")
        case "own" | "my":
            return _possessive(d, noun, plural, owner if determiner == "own" else None)
        case "number":
            if d.chance(0.85) or not noun.kinds.isdisjoint(PEOPLE):
                return d.pair(*d.pick(NUMBERS))
            digits = str(d.number(13, 60))
            return d.pair(digits, digits)
        case "lot":
            return d.pair("beaucoup", "a lot") + d.pair("de|d'", "of")
        case "several":
            return d.pair("plusieurs", "several")
        case "all":
            return d.pair("toutes" if noun.feminine else "tous", "all") + d.pair("les", "the")
        case "every":
            return d.pair("chaque", "every")
        case "a":
            return _indefinite(d, noun, plural, scope, before)


def _indefinite(d: Derivation, noun: Noun, plural: bool, scope: Scope, before: Adjective | None) -> Phrase:
    mass = not noun.kinds.isdisjoint(_MASS)
    english = "some" if mass or plural else "a|an"
    if scope != "plain" and english == "some":
        english = "any"
    if scope in ("not", "never"):
        # Nobody says "never eats any meat": after never and no longer the noun stands alone.
        return Phrase(spread("de|d'")) if scope == "never" and english == "any" else d.pair("de|d'", english)
    if mass:
        return d.pair("de|d' la|l'" if noun.feminine else "de|d' le|l'", english)
    if plural:
        return d.pair("de|d'" if before else "des", english)
    return d.pair("une" if noun.feminine else "un", english)


def _possessive(d: Derivation, noun: Noun, plural: bool, owner: NounPhrase | None) -> Phrase:
    """Return mon, ta, leurs and so on; without an owner it is somebody who takes part in the talk."""
    if owner:
        row, feminine, human = owner.row, owner.feminine, owner.human
    else:
        row, feminine, human = d.pick((0, 0, 3, 4 if d.several_listeners else 1)), False, True
    third = ("her" if feminine else "his") if human else "its"
    english = ("my", "your", third, "our", "your", "their")[row]
    return d.pair(_POSSESSIVES[row][2 if plural else int(noun.feminine)], english)


@cache
def _fitting(noun: Noun, precedes: bool) -> tuple[Adjective, ...]:
    if not noun.kinds.isdisjoint(("kin", "friend")):
        return ()  # "my polite brother" sounds as if there were another
    return tuple(
        a
        for a in ADJECTIVES
        if a.precedes == precedes and not a.kinds.isdisjoint(noun.kinds) and "mood" not in a.kinds
    )


def _any_adjectives(d: Derivation, noun: Noun) -> tuple[Adjective | None, Adjective | None]:
    """Return an adjective before the noun and one after it, or None: un petit chat noir."""
    roll = d.dice.random()
    before, after = _fitting(noun, True), _fitting(noun, False)
    if roll < 0.14 and before:
        return d.pick(before), None
    if roll < 0.30 and after:
        return None, d.pick(after)
    if roll < 0.33 and before and (last := tuple(a for a in after if a.kinds & {"colour", "origin"})):
        return d.pick(before), d.pick(last)
    return None, None


def quality(d: Derivation, subject: NounPhrase, kinds: frozenset[str]) -> Phrase | None:
    """Return an adjective said of the subject (très belle, very beautiful), or None if no adjective suits."""
    fitting = _sayable(kinds)
    if not fitting:
        return None
    adjective = d.fresh(fitting)
    phrase = predicative(d, subject, adjective)
    if adjective.kinds.isdisjoint(("colour", "origin", "absolute")) and d.chance(0.35):
        phrase = d.pair(*d.pick(DEGREES)) + phrase
    return phrase


def predicative(d: Derivation, subject: NounPhrase, adjective: Adjective) -> Phrase:
    """Return the adjective as said of the subject; beau stays beau there, whatever follows."""
    return d.pair(adjective.agree(subject.feminine, subject.plural).partition("|")[0], adjective.english)


@cache
def _sayable(kinds: frozenset[str]) -> tuple[Adjective, ...]:
    return tuple(
        a for a in ADJECTIVES if not a.kinds.isdisjoint(kinds) and a.kinds.isdisjoint(("sector", "region"))
    )


def policy(d: Derivation, kind: str) -> NounPhrase:
    """Return a noun of public life; two adjectives after it come in the opposite order in English.

    La zone économique européenne is the European economic area.
    """
    noun = d.noun(kind)
    plural = kind == "deal" and d.chance(0.25)
    phrase = d.pair("les" if plural else "la|l'" if noun.feminine else "le|l'", "the")
    head = d.pair(noun.french[plural], noun.english[plural])
    for kind_of_adjective in ("state",) if kind == "institution" else ("sector", "region"):
        if kind == "area" or d.chance(0.55):
            adjective = d.pick(_of_kind(kind_of_adjective))
            said = d.pair(adjective.agree(noun.feminine, plural), adjective.english)
            head = Phrase(head.french + said.french, said.english + head.english)
    return NounPhrase(phrase + head, 3, plural, noun.feminine, False, noun)


@cache
def _of_kind(kind: str) -> tuple[Adjective, ...]:
    return tuple(adjective for adjective in ADJECTIVES if kind in adjective.kinds)


def with_words(noun_phrase: NounPhrase, phrase: Phrase) -> NounPhrase:
    """Return the noun phrase with other words, agreeing as before."""
    old = noun_phrase
    return NounPhrase(phrase, old.person, old.plural, old.feminine, old.human, old.noun)
