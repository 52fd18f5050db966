"""When and where: dates, hours and places."""

from grammar.derivation import Derivation, NounPhrase, Phrase, nouns_of, spread
from grammar.inflection import Noun
from grammar.lexicon import (
    CITIES,
    COUNTRIES,
    DAYS,
    MONTHS,
    NUMBERS,
    POSITIONS,
    SURFACE_POSITIONS,
    WHEN,
    Time,
)
from grammar.noun_phrases import Determiner, noun_phrase


def when(d: Derivation, time: Time) -> Phrase:
    """Return a time that fits: yesterday, on July 14, 1992, at eight o'clock, after the concert."""
    roll = d.dice.random()
    if time == "present" or roll < 0.40:
        return d.expression(d.pick(WHEN[time]))
    if roll < 0.55:
        return hour(d)
    if roll < 0.65 and time == "past":
        return _ago(d)
    if roll < 0.70:
        preposition = d.pick((("avant", "before"), ("après", "after"), ("pendant", "during")))
        event = noun_phrase(d, d.noun("gathering", "show"), determiner="the", plain=True, singular=True)
        return d.pair(*preposition) + event.phrase
    if roll < 0.78:
        return d.expression((f"{(day := d.pick(DAYS))[0]}:1", f"on:1 {day[1]}:1"))
    return date(d, time)


def date(d: Derivation, time: Time) -> Phrase:
    """Return a day, a month or a year: le 14 juillet 1992 is on July 14, 1992, with a comma of its own."""
    month = d.pick(MONTHS)
    year = d.number(1950, 2020) if time == "past" else d.number(2030, 2060)
    roll = d.dice.random()
    if roll < 0.25:
        return d.expression((f"en:1 {year}:2", f"in:1 {year}:2"))
    if roll < 0.5:
        return d.expression((f"en:1 {month[0]}:2 {year}:3", f"in:1 {month[1]}:2 {year}:3"))
    number = d.number(1, 28)  # every month has these
    french = f"le:1 {'1er' if number == 1 else number}:2 {month[0]}:3"
    english = f"on:1 {month[1]}:3 {number}:2"
    if roll < 0.75:
        return d.expression((french, english))
    return d.expression((f"{french} {year}:4", f"{english} , {year}:4"))


def hour(d: Derivation) -> Phrase:
    """Return a time of day: à huit heures et demie is at half past eight."""
    roll = d.dice.random()
    if roll < 0.1:
        return d.expression(("à:1 midi:2", "at:1 noon:2"))
    if roll < 0.15:
        return d.expression(("à:1 minuit:2", "at:1 midnight:2"))
    french, english = d.pick(NUMBERS[:-1])  # nobody says twelve o'clock in French
    if roll < 0.4:
        return d.expression((f"à:1 {french}:2 heures:3 et:3 demie:3", f"at:1 half:3 past:3 {english}:2"))
    return d.expression((f"à:1 {french}:2 heures:3", f"at:1 {english}:2 o'clock:3"))


def _ago(d: Derivation) -> Phrase:
    french, english = d.pick(NUMBERS)
    unit = d.pick((("jours", "days"), ("semaines", "weeks"), ("mois", "months"), ("ans", "years")))
    return d.expression((f"il:1 y:1 a:1 {french}:2 {unit[0]}:3", f"{english}:2 {unit[1]}:3 ago:1"))


def place(d: Derivation, kinds: tuple[str, ...], owner: NounPhrase | None = None) -> Phrase:
    """Return where something happens: à la gare, dans sa chambre."""
    noun = d.noun(*kinds)
    at = "at" in noun.kinds
    preposition = d.pair("à", "at") if at else d.pair("dans", "in")
    determiner: Determiner = "own" if owner and "room" in noun.kinds and d.chance(0.4) else "the"
    plain = d.chance(0.7)
    return preposition + noun_phrase(d, noun, owner, determiner=determiner, plain=plain, singular=True).phrase


def town_or_country(d: Derivation, english: str) -> Phrase:
    """Return `à Paris` or `en Italie`, with the English preposition given: in or to."""
    if d.chance(0.5):
        return d.pair("à", english) + d.pair(*d.pick(CITIES))
    preposition, french, english_name = d.pick(COUNTRIES)
    unit, article, named = d.unit(), d.unit(), d.unit()
    first, *articles = preposition.split()
    name = english_name.removeprefix("the ")
    return Phrase(
        ((first, (unit,)), *((word, (article,)) for word in articles), (french, (named,))),
        (
            (english, (unit,)),
            *((("the", (article,)),) if name != english_name else ()),
            *spread(name, named),
        ),
    )


def destination(d: Derivation, nouns: tuple[Noun, ...] = ()) -> Phrase:
    """Return where somebody goes: au marché, à Londres, en Espagne; or to one of the nouns given."""
    if not nouns and d.chance(0.4):
        return town_or_country(d, "to")
    noun = d.fresh(nouns or nouns_of("at"))
    return d.pair("à", "to") + noun_phrase(d, noun, determiner="the", plain=True, singular=True).phrase


def position(d: Derivation, small: bool) -> Phrase:
    """Return where a thing is: a small one on a piece of furniture, anything else near a building."""
    preposition = d.pick(SURFACE_POSITIONS if small else POSITIONS)
    landmark = noun_phrase(d, d.noun("surface" if small else "building"), determiner="the", singular=True)
    return d.pair(*preposition) + landmark.phrase
