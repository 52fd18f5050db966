"""Whole sentences: statements joined by conjunctions, and questions."""

from grammar.adverbials import destination, place, when
from grammar.clauses import (
    BACKGROUND,
    FUTURE,
    HABITUAL,
    LASTING,
    ONGOING,
    PAST,
    WHENEVER,
    Predicate,
    Tense,
    clause,
)
from grammar.derivation import EMPTY, Derivation, NounPhrase, Phrase, nouns_of
from grammar.inflection import Verb
from grammar.lexicon import (
    ADJECTIVES,
    AVOIR_AS_BE,
    BE,
    FAIRE_AS_BE,
    FEELINGS,
    GO,
    INTRANSITIVE,
    MOTIVES,
    REPORTING,
    STAY,
    TRANSITIVE,
    WANT,
    WEATHER,
    Time,
)
from grammar.noun_phrases import any_pronoun, noun_phrase, predicative, pronoun_for, someone
from grammar.statements import Told, definite, doing, lasting, object_of, statement, tense_of, usable

_TIMES: tuple[Time, ...] = ("past", "past", "present", "present", "present", "future")
_EVENTS = tuple(verb for verb in INTRANSITIVE if verb.aspect == "event")


def sentence(d: Derivation) -> Phrase:
    """Return a whole sentence with its final sign; of any length, so the caller may have to try again."""
    if d.chance(0.12):
        return _question(d) + d.pair("?", "?")
    return _statements(d) + d.pair(".", ".")


def _statements(d: Derivation) -> Phrase:
    """Return one to six statements about the same time."""
    time = d.pick(_TIMES)
    roll = d.dice.random()
    wanted = 1 if roll < 0.66 else 2 if roll < 0.85 else 3 if roll < 0.92 else d.number(4, 6)
    if d.chance(0.08):
        phrase = when(d, time) + d.pair(",", ",")
        told = [_plain_action(d, {"past": PAST, "present": ONGOING, "future": FUTURE}[time])]
    else:
        phrase = EMPTY
        told = [_block(d, time, None)]
    while len(told) < wanted:
        told.append(_block(d, time, told[-1]))
    phrase += told[0].phrase
    for middle in told[1:-1]:
        phrase += d.pair(",", ",") + middle.phrase
    if wanted == 1:
        return phrase
    if wanted == 2 and d.chance(0.4):
        return phrase + d.pair(",", ",") + d.pair("mais", "but") + told[-1].phrase
    return phrase + d.pair("et", "and") + told[-1].phrase


def _block(d: Derivation, time: Time, before: Told | None) -> Told:
    """Return one statement, alone or with a subordinate clause that goes with the time."""
    roll = d.dice.random()
    if roll < 0.68:
        return statement(d, time, before)
    if roll < 0.80:
        return _because(d, time)
    if roll < 0.88:
        return _while(d, time, before is None)
    if time == "present":
        return _reported(d)
    if time == "future" and d.chance(0.6):
        return _if(d, before is None)
    return _when(d, time, before is None)


def _reported(d: Derivation) -> Told:
    """Return what somebody thinks or says: je pense que la loi est nécessaire."""
    verb = d.pick(REPORTING)
    subject = someone(d)
    time: Time = "future" if verb.english.base == "hope" else d.pick(_TIMES)
    main = clause(d, subject, Predicate(verb), HABITUAL)
    return Told(main + d.pair("que|qu'", "that") + statement(d, time).phrase, subject)


def _because(d: Derivation, time: Time) -> Told:
    """Return an action and its reason: a feeling, the weather or a wish."""
    reason_time: Time = "present" if time == "future" else time
    because = d.expression(("parce:1 que|qu':1", "because:1"))
    roll = d.dice.random()
    if roll < 0.30:
        told, weather = _weathered(d, time, LASTING if time == "past" else ONGOING)
        return Told(told.phrase + because + weather, told.subject)
    subject = someone(d)
    if roll < 0.65:
        verb, feeling = _motive(d, time)
        action = clause(d, subject, Predicate(verb), tense_of(d, verb, time))
        return Told(action + because + _feeling(d, reason_time, pronoun_for(d, subject), feeling), subject)
    going = Predicate(GO, destination(d))
    if d.chance(0.3):
        going = Predicate(STAY, place(d, ("at", "room"), subject))
    action = clause(d, subject, going, tense_of(d, going.verb, time))
    verb = d.fresh(lasting(TRANSITIVE))
    wish = Predicate(verb, object_of(d, verb, subject).phrase, modal=WANT)
    wanted = clause(d, pronoun_for(d, subject), wish, LASTING if time == "past" else HABITUAL)
    return Told(action + because + wanted, subject)


def _if(d: Derivation, may_lead: bool) -> Told:
    """Return a condition and its outcome: s'il pleut, nous resterons dans la cuisine."""
    leads = may_lead and d.chance(0.6)
    roll = d.dice.random()
    if roll < 0.4:
        told, condition = _weathered(d, "future", HABITUAL)
    elif roll < 0.7:
        verb, feeling = _motive(d, "future")
        subject = someone(d)
        again = pronoun_for(d, subject)
        condition = _feeling(d, "present", subject if leads else again, feeling)
        outcome = clause(d, again if leads else subject, Predicate(verb), tense_of(d, verb, "future"))
        told = Told(outcome, subject)
    else:
        told, condition = _plain_action(d, FUTURE, pronouns=False), _event(d, HABITUAL)
    return _subordinate(d, told, d.pair("si", "if") + condition, leads)


def _while(d: Derivation, time: Time, may_lead: bool) -> Told:
    """Return two actions at once: il lit pendant que sa sœur dort."""
    tense = {"past": BACKGROUND, "present": ONGOING, "future": FUTURE}[time]
    told = _plain_action(d, tense)
    meanwhile = _plain_action(d, WHENEVER if time == "future" else tense, pronouns=False).phrase
    link = d.expression(("pendant:1 que|qu':1", "while:1"))
    return _subordinate(d, told, link + meanwhile, may_lead and d.chance(0.4))


def _when(d: Derivation, time: Time, may_lead: bool) -> Told:
    """Return an event and what went on: quand je suis arrivé, Marie dormait."""
    event = _event(d, WHENEVER if time == "future" else PAST)
    told = _plain_action(d, FUTURE if time == "future" else BACKGROUND, pronouns=False)
    return _subordinate(d, told, d.pair("quand", "when") + event, may_lead and d.chance(0.6))


def _subordinate(d: Derivation, told: Told, subordinate: Phrase, leads: bool) -> Told:
    """Return the statement with its subordinate clause behind it, or before it with a comma."""
    if leads:
        return Told(subordinate + d.pair(",", ",") + told.phrase, told.subject)
    return Told(told.phrase + subordinate, told.subject)


def _plain_action(d: Derivation, tense: Tense, pronouns: bool = True) -> Told:
    """Return an action that takes a while, with nothing around it."""
    return doing(d, someone(d, pronouns=pronouns), d.fresh(lasting(TRANSITIVE + INTRANSITIVE)), tense)


def _event(d: Derivation, tense: Tense) -> Phrase:
    """Return somebody arriving or leaving."""
    return clause(d, someone(d), Predicate(d.fresh(_EVENTS)), tense)


def _motive(d: Derivation, time: Time) -> tuple[Verb, str]:
    """Return a verb and a feeling that leads to it."""
    verb = d.fresh(tuple(v for v in usable(INTRANSITIVE, time, True) if v.french.infinitive in MOTIVES))
    return verb, d.pick(MOTIVES[verb.french.infinitive])


def _feeling(d: Derivation, time: Time, subject: NounPhrase, feeling: str) -> Phrase:
    """Return that somebody feels so: elle est fatiguée, il a faim."""
    tense = tense_of(d, BE, time)
    if feeling in FEELINGS:
        return clause(d, subject, Predicate(AVOIR_AS_BE, d.pair(feeling, FEELINGS[feeling])), tense)
    adjective = next(a for a in ADJECTIVES if a.masculine[0] == feeling)
    return clause(d, subject, Predicate(BE, predicative(d, subject, adjective)), tense)


def _weathered(d: Derivation, time: Time, weather_tense: Tense) -> tuple[Told, Phrase]:
    """Return what somebody does in some weather, and the weather."""
    subject = someone(d)
    if d.chance(0.6):
        predicate = Predicate(STAY, place(d, ("room", "at"), subject))
        verb = d.pick((*WEATHER, FAIRE_AS_BE))
        felt = d.pair("froid", "cold")
    else:
        predicate, verb = Predicate(GO, destination(d, nouns_of("beach"))), FAIRE_AS_BE
        felt = d.pair("chaud", "hot")
    weather = Predicate(verb, felt if verb is FAIRE_AS_BE else EMPTY)
    if verb is FAIRE_AS_BE and weather_tense is ONGOING:
        weather_tense = HABITUAL
    if verb is not FAIRE_AS_BE and weather_tense is LASTING:
        weather_tense = BACKGROUND
    told = Told(clause(d, subject, predicate, tense_of(d, predicate.verb, time)), subject)
    return told, clause(d, NounPhrase(d.pair("il", "it")), weather, weather_tense)


def _question(d: Derivation) -> Phrase:
    """Return a question without its sign."""
    roll = d.dice.random()
    if roll < 0.12:
        noun = d.noun("thing", "kin", "at", "clothes")
        thing = noun_phrase(d, noun, determiner=definite(d, noun))
        be = d.pair("sont" if thing.plural else "est", "are" if thing.plural else "is")
        return d.pair("où", "where") + be + thing.phrase
    if roll < 0.25:
        verb = d.fresh(usable(TRANSITIVE, "past", True))
        who = NounPhrase(d.pair("qui", "who"), human=True)
        return doing(d, who, verb, tense_of(d, verb, "past")).phrase
    subject = any_pronoun(d)
    if subject.person == 1:
        subject = someone(d, pronouns=False)
    time, asking = d.pick(_TIMES), EMPTY
    if roll < 0.5:
        asking = d.pair(*d.pick((("pourquoi", "why"), ("où", "where"), ("quand", "when"))))
        time = d.pick(("past", "future"))
    verbs = lasting(TRANSITIVE) if asking.french or d.chance(0.7) else usable(TRANSITIVE, time, True)
    verb = d.fresh(lasting(INTRANSITIVE) if d.chance(0.3) else verbs)
    said = object_of(d, verb, subject, "question").phrase if verb.objects else EMPTY
    return asking + clause(d, subject, Predicate(verb, said), tense_of(d, verb, time), question=True)
