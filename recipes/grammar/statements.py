"""Simple statements of many sorts: somebody does something, something is so, a law is signed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from grammar.adverbials import date, destination, place, position, town_or_country, when
from grammar.clauses import (
    BORN,
    FUTURE,
    HABITUAL,
    LASTING,
    NEAR,
    ONGOING,
    PAST,
    Predicate,
    Tense,
    clause,
)
from grammar.derivation import EMPTY, Derivation, NounPhrase, Phrase, nouns_of, spread
from grammar.inflection import Noun, Verb
from grammar.lexicon import (
    BE,
    CAN,
    FREQUENCY,
    GIVING,
    GO,
    HABITS,
    INTRANSITIVE,
    LAWMAKING,
    LIVE,
    MUST,
    NEGATIONS,
    PEOPLE,
    STAY,
    TASTES,
    TRANSITIVE,
    WANT,
    Expression,
    Time,
)
from grammar.noun_phrases import (
    Determiner,
    Scope,
    any_pronoun,
    name,
    noun_phrase,
    ownable,
    policy,
    pronoun_for,
    quality,
    someone,
    with_words,
)

_OBJECT_PRONOUNS = {0: ("me|m'", "me"), 1: ("te|t'", "you"), 3: ("nous", "us"), 4: ("vous", "you")}
_DESCRIBED = (
    *("thing", "machine", "clothes", "building", "text"),
    *("dish", "drink", "show", "room", "pet", "part", "gathering"),
)
_BUILD, _WRITE = (
    next(verb for verb in TRANSITIVE if verb.french.infinitive == infinitive)
    for infinitive in ("construire", "écrire")
)


@dataclass(frozen=True, slots=True)
class Told:
    """A statement and whom it was about, so that the next can refer back."""

    phrase: Phrase
    subject: NounPhrase | None = None
    object: NounPhrase | None = None


@dataclass(frozen=True, slots=True)
class _Mood:
    """How an action is told: denied, wanted, frequent or simply so."""

    negation: Expression | None = None
    modal: Verb | None = None
    adverb: Expression | None = None

    @property
    def scope(self) -> Scope:
        if self.negation is None:
            return "plain"
        return "not" if self.negation[1] == "not" else "never"


def statement(d: Derivation, time: Time, before: Told | None = None) -> Told:
    """Return a statement; now and then it takes up the subject or the object of the one before."""
    if before and before.subject and d.chance(0.4):
        if before.object and before.object.noun and d.chance(0.6):
            return _continued(d, time, before.subject, before.object)
        noun = before.subject.noun
        if before.subject.human and before.subject.person == 3:
            return _action(d, time, pronoun_for(d, before.subject))
        if time != "future" and noun and not noun.kinds.isdisjoint((*_DESCRIBED, "deal")):
            return _described(d, time, pronoun_for(d, before.subject), noun)
    roll = d.dice.random()
    for share, make in _SORTS[time]:
        roll -= share
        if roll < 0:
            return make(d, time)
    return _action(d, time)


def tense_of(d: Derivation, verb: Verb, time: Time, mood: _Mood | None = None) -> Tense:
    """Return the tense in which the verb is told of this time."""
    if time == "future":
        near = verb not in (BE, GO) and not (mood and mood.negation)
        return NEAR if near and d.chance(0.4) else FUTURE
    if time == "past":
        return LASTING if verb.aspect == "state" or (mood and mood.modal) else PAST
    simple = verb.aspect != "action" or (mood and (mood.negation or mood.adverb or mood.modal))
    return HABITUAL if simple else ONGOING


@cache
def usable(verbs: tuple[Verb, ...], time: Time, people: bool) -> tuple[Verb, ...]:
    """Return the verbs that can be told of this time, and of people if need be."""
    banned = {"past": "", "present": "event accident", "future": "state perception accident"}[time].split()
    return tuple(v for v in verbs if v.aspect not in banned and ("name" in v.subjects or not people))


@cache
def lasting(verbs: tuple[Verb, ...]) -> tuple[Verb, ...]:
    """Return the verbs for what goes on for a while: those one does in some place."""
    return tuple(v for v in verbs if v.aspect == "action" and v.places and "name" in v.subjects)


def doing(d: Derivation, subject: NounPhrase, verb: Verb, tense: Tense) -> Told:
    """Return the subject doing what the verb says, to an object if it takes one, with nothing around it."""
    thing = object_of(d, verb, subject) if verb.objects else None
    complements = thing.phrase if thing else EMPTY
    return Told(clause(d, subject, Predicate(verb, complements), tense), subject, thing)


def object_of(d: Derivation, verb: Verb, subject: NounPhrase, scope: Scope = "plain") -> NounPhrase:
    """Return an object for the verb."""
    if "name" in verb.objects and d.chance(0.7):
        return _other(d, subject)
    # One has something or other, takes one train and wears one hat.
    determiners: dict[str, Determiner] = {"have": "a", "wear": "a", "take": "the"}
    determiner = determiners.get(verb.english.base)
    noun = d.noun(*(kind for kind in verb.objects if kind != "name"))
    return noun_phrase(d, noun, subject, scope, determiner, singular=verb.english.base in ("wear", "take"))


def _action(d: Derivation, time: Time, subject: NounPhrase | None = None) -> Told:
    """Return somebody doing something, with negation, modal verb, adverb, time and place as they fall."""
    roll = d.dice.random()
    if roll < 0.50:
        return _transitive(d, time, subject)
    if roll < 0.72:
        return _intransitive(d, time, subject)
    if roll < 0.80 and time != "future":
        return _taste(d, time, subject)
    if roll < 0.90:
        return _giving(d, time, subject)
    return _placed(d, time, subject)


def _transitive(d: Derivation, time: Time, subject: NounPhrase | None) -> Told:
    verb = d.fresh(usable(TRANSITIVE, time, True))
    subject = subject or _subject(d, verb, time)
    repeated = not {"text", "dish", "drink", "show", "name"}.isdisjoint(verb.objects)
    mood = _mood(d, verb, time, repeated)
    if d.chance(0.12) and verb.english.base not in ("have", "wear"):
        clitic, thing = _object_pronoun(d, verb, subject)
        predicate = Predicate(verb, clitic=clitic, preceding=thing, modal=mood.modal)
    else:
        thing = object_of(d, verb, subject, mood.scope)
        if mood.scope == "plain" and d.chance(0.15):
            thing = _with_relative(d, thing, time)
        predicate = Predicate(verb, thing.phrase, modal=mood.modal)
    return _told(d, time, subject, predicate, mood, thing)


def _intransitive(d: Derivation, time: Time, subject: NounPhrase | None) -> Told:
    verb = d.fresh(usable(INTRANSITIVE, time, subject is not None))
    subject = subject or _subject(d, verb, time)
    mood = _mood(d, verb, time, True)
    return _told(d, time, subject, Predicate(verb, modal=mood.modal), mood)


def _giving(d: Derivation, time: Time, subject: NounPhrase | None) -> Told:
    verb = d.fresh(GIVING)
    subject = subject or someone(d)
    mood = _mood(d, verb, time, False)
    thing = noun_phrase(d, d.noun(*verb.objects), subject, mood.scope)
    if d.chance(0.5):
        clitic = d.pair(*_OBJECT_PRONOUNS[d.pick(_rows_beside(d, subject))])
        predicate = Predicate(verb, thing.phrase, clitic=clitic, modal=mood.modal)
    else:
        receiver = d.pair("à", "to") + _other(d, subject).phrase
        predicate = Predicate(verb, thing.phrase + receiver, modal=mood.modal)
    return _told(d, time, subject, predicate, mood, thing)


def _taste(d: Derivation, time: Time, subject: NounPhrase | None) -> Told:
    """Return somebody liking a whole kind of thing: the French article has no counterpart."""
    verb = d.fresh(TASTES)
    subject = subject or someone(d)
    liked = noun_phrase(d, d.noun(*verb.objects), determiner="generic", plain=True)
    negation = NEGATIONS[0] if verb.english.base == "like" and d.chance(0.3) else None
    return Told(clause(d, subject, Predicate(verb, liked.phrase), tense_of(d, verb, time), negation), subject)


def _placed(d: Derivation, time: Time, subject: NounPhrase | None) -> Told:
    """Return somebody living, staying or going somewhere."""
    subject = subject or someone(d)
    verb = d.pick((LIVE, STAY, GO, GO)) if time != "future" else d.pick((STAY, GO))
    if verb is GO:
        where = destination(d)
    elif verb is STAY:
        where = place(d, ("at", "room"), subject)
    else:
        where = town_or_country(d, "in")
    mood = _mood(d, verb, time, verb is GO)
    return _told(d, time, subject, Predicate(verb, where, modal=mood.modal), mood)


def _mood(d: Derivation, verb: Verb, time: Time, repeated: bool) -> _Mood:
    """Return a mood that suits the verb; only what may be `repeated` is told as often or rarely done."""
    negation = d.pick((NEGATIONS[0], *NEGATIONS)) if d.chance(0.15) else None
    if negation and negation[1] == "no longer" and time != "present":
        negation = NEGATIONS[0]  # "no longer went" and "will no longer go" are seldom said
    modal = None
    if time != "future" and verb.aspect == "action" and d.chance(0.15):
        modal = d.pick((WANT, CAN, MUST) if time == "present" else (WANT, CAN))
    plain = not negation and not modal and verb.aspect == "action" and time != "future"
    return _Mood(negation, modal, d.pick(FREQUENCY) if repeated and plain and d.chance(0.12) else None)


def _told(
    d: Derivation,
    time: Time,
    subject: NounPhrase,
    predicate: Predicate,
    mood: _Mood,
    thing: NounPhrase | None = None,
) -> Told:
    """Return the clause, with a place and a time at its end if they fall so."""
    verb = predicate.verb
    tense = tense_of(d, verb, time, mood)
    ending = place(d, verb.places, subject) if verb.places and d.chance(0.35) else EMPTY
    if mood == _Mood() and verb.aspect != "state":
        if tense is ONGOING and d.chance(0.12):
            tense = HABITUAL
            ending += d.expression(d.pick(HABITS))
        elif d.chance(0.3) and (time != "present" or tense is ONGOING):
            ending += when(d, time)
    return Told(clause(d, subject, predicate, tense, mood.negation, mood.adverb) + ending, subject, thing)


def _continued(d: Derivation, time: Time, subject: NounPhrase, thing: NounPhrase) -> Told:
    """Return the same subject doing something else to the same object: il la vend, he is selling it."""
    verbs = [v for v in _taking(thing.noun, time) if v not in d.used] if thing.noun else []
    if not verbs:
        return _action(d, time)
    verb, who = d.fresh(verbs), pronoun_for(d, subject)
    predicate = Predicate(verb, clitic=_third_person(d, thing), preceding=thing)
    return Told(clause(d, who, predicate, tense_of(d, verb, time)), who)


def _subject(d: Derivation, verb: Verb, time: Time) -> NounPhrase:
    """Return a subject for the verb, now and then with a relative clause."""
    subject = someone(d, verb.subjects)
    return _with_relative(d, subject, time, aside=True) if d.chance(0.12) else subject


def _other(d: Derivation, subject: NounPhrase) -> NounPhrase:
    """Return a person who is not the subject."""
    return name(d) if d.chance(0.35) else noun_phrase(d, d.noun("person", "profession", "kin"), subject)


def _rows_beside(d: Derivation, subject: NounPhrase) -> list[int]:
    """Return the rows of the first and second person that can be an object beside this subject."""
    return [row for row in (0, 4 if d.several_listeners else 1, 3) if row % 3 != subject.row % 3]


def _object_pronoun(d: Derivation, verb: Verb, subject: NounPhrase) -> tuple[Phrase, NounPhrase]:
    """Return an object pronoun and what it stands for, as far as a participle can tell."""
    people = "name" in verb.objects
    if people and d.chance(0.5):
        row = d.pick(_rows_beside(d, subject))
        feminine = d.speaker_feminine if row % 3 == 0 else d.listener_feminine
        return d.pair(*_OBJECT_PRONOUNS[row]), NounPhrase(EMPTY, row % 3 + 1, row > 2, feminine, True)
    thing = NounPhrase(EMPTY, 3, d.chance(0.3), d.chance(0.5), people)
    return _third_person(d, thing), thing


def _third_person(d: Derivation, thing: NounPhrase) -> Phrase:
    """Return the object pronoun that stands for the thing or person."""
    if thing.plural:
        return d.pair("les", "them")
    english = "it" if not thing.human else "her" if thing.feminine else "him"
    return d.pair("la|l'" if thing.feminine else "le|l'", english)


def _with_relative(d: Derivation, noun_phrase: NounPhrase, time: Time, aside: bool = False) -> NounPhrase:
    """Return the noun phrase with a relative clause, if its noun can bear one: qui or que.

    An aside stands between commas, so only a subject, which the verb follows, may have one.
    """
    noun = noun_phrase.noun
    if noun is None or noun.kinds & {"kin", "friend"}:
        return noun_phrase
    time = "present" if time == "future" else time
    roll = d.dice.random()
    if noun_phrase.human and roll < 0.5:
        who = with_words(noun_phrase, d.pair("qui", "who"))
        verb = d.fresh(lasting(TRANSITIVE + INTRANSITIVE))
        relative = doing(d, who, verb, tense_of(d, verb, time)).phrase
    elif aside and roll < 0.7 and (said := quality(d, noun_phrase, noun.kinds)):
        which = with_words(noun_phrase, d.pair("qui", "who" if noun_phrase.human else "which"))
        inner = clause(d, which, Predicate(BE, said), tense_of(d, BE, time))
        relative = d.pair(",", ",") + inner + d.pair(",", ",")
    elif verbs := [v for v in _taking(noun, time) if v not in d.used]:
        subject = any_pronoun(d) if d.chance(0.5) else name(d)
        verb = d.fresh(verbs)
        inner = clause(d, subject, Predicate(verb, preceding=noun_phrase), tense_of(d, verb, time))
        relative = d.pair("que|qu'", "that") + inner
    else:
        return noun_phrase
    return with_words(noun_phrase, noun_phrase.phrase + relative)


@cache
def _taking(noun: Noun, time: Time) -> tuple[Verb, ...]:
    """Return the verbs that take the noun as an object that is known."""
    return tuple(
        v
        for v in usable(TRANSITIVE, time, True)
        if not noun.kinds.isdisjoint(v.objects) and v.english.base != "have"
    )


def definite(d: Derivation, noun: Noun) -> Determiner:
    """Return a determiner for something that is known."""
    if noun.kinds & {"kin", "friend"}:
        return "my"
    return d.pick(("the", "the", "this", "my" if ownable(noun) else "the"))


def _described(
    d: Derivation, time: Time, subject: NounPhrase | None = None, noun: Noun | None = None
) -> Told:
    """Return what something or somebody is like: la voiture est très belle."""
    if subject is None or noun is None:
        noun = d.noun(*PEOPLE) if d.chance(0.3) else d.noun(*_DESCRIBED)
        subject = noun_phrase(d, noun, determiner=definite(d, noun), plain=True)
        if "part" in noun.kinds:
            whole = noun_phrase(d, d.noun("home", "room"), determiner="the", plain=True, singular=True)
            subject = with_words(subject, subject.phrase + d.pair("de|d'", "of") + whole.phrase)
    said = quality(d, subject, noun.kinds) or EMPTY
    negation = d.pick(NEGATIONS[:2]) if d.chance(0.12) else None
    return Told(clause(d, subject, Predicate(BE, said), tense_of(d, BE, time), negation), subject)


def _profession(d: Derivation, time: Time) -> Told:
    """Return what somebody does for a living: French says it without an article."""
    subject = any_pronoun(d) if d.chance(0.6) else name(d)
    noun = d.fresh([n for n in nouns_of("profession") if n.feminine == subject.feminine])
    work = d.pair(noun.french[subject.plural], noun.english[subject.plural])
    if not subject.plural:
        work = Phrase((), spread("a|an")) + work
    negation = d.pick(NEGATIONS[:2]) if d.chance(0.15) else None
    return Told(clause(d, subject, Predicate(BE, work), tense_of(d, BE, time), negation), subject)


def _located(d: Derivation, time: Time) -> Told:
    """Return where a thing is: le livre est sur la table."""
    small = d.chance(0.6)
    noun = d.noun("thing", "text") if small else d.noun("vehicle", "home", "at")
    subject = noun_phrase(d, noun, determiner=definite(d, noun))
    return Told(clause(d, subject, Predicate(BE, position(d, small)), tense_of(d, BE, time)), subject)


def _there_is(d: Derivation, time: Time) -> Told:
    """Return that something exists: il y a du lait dans la cuisine; ne, pas and de together are `no`."""
    if d.chance(0.5):
        noun, where = d.noun("food", "dish", "drink", "thing"), place(d, ("kitchen",))
    else:
        noun, where = d.noun("person", "animal"), place(d, ("open",))
    mass = not noun.kinds.isdisjoint(("dish", "drink"))
    there, be, denied = d.unit(), d.unit(), d.unit() if d.chance(0.2) else None
    ne, pas = (spread("ne|n'", denied), spread("pas", denied)) if denied else ((), ())
    if denied:
        no = Phrase(spread("de|d'", denied), spread("no", denied))
        thing = NounPhrase(no + d.pair(noun.french[not mass], noun.english[not mass]), plural=not mass)
    else:
        determiners: tuple[Determiner, ...] = ("a",) if mass else ("a", "a", "number", "lot", "several")
        thing = noun_phrase(d, noun, determiner=d.pick(determiners))
    french, one, many = {
        "past": ("avait", "was", "were"),
        "present": ("a", "is", "are"),
        "future": ("aura", "will be", "will be"),
    }[time]
    start = Phrase(
        spread("il", there) + ne + spread("y", there) + spread(french, be) + pas,
        spread("there", there) + spread(many if thing.plural else one, be),
    )
    return Told(start + thing.phrase + where)


def _passive(d: Derivation, time: Time) -> Told:
    """Return a law made, a house built or a book written: l'accord a été signé en août 1992."""
    agent: NounPhrase | None = None
    roll = d.dice.random()
    if roll < 0.7:
        verb, subject = d.fresh(LAWMAKING), policy(d, "deal")
        if d.chance(0.4):
            subject = with_words(subject, subject.phrase + d.pair("sur", "on") + policy(d, "area").phrase)
        agent = policy(d, "institution")
    elif roll < 0.85:
        verb, subject = _BUILD, noun_phrase(d, d.noun("building"), determiner="the")
    else:
        verb, subject, agent = _WRITE, noun_phrase(d, d.noun("text"), determiner="the"), name(d)
    done = d.pair(verb.french.agree(subject.feminine, subject.plural), verb.english.participle)
    if agent and d.chance(0.5):
        done += d.pair("par", "by") + agent.phrase
    if not agent or d.chance(0.6):
        done += date(d, time)
    return Told(clause(d, subject, Predicate(BE, done), FUTURE if time == "future" else PAST), subject)


def _lawmaking(d: Derivation, time: Time) -> Told:
    """Return an institution at work: le parlement européen a adopté la loi."""
    subject, deal = policy(d, "institution"), policy(d, "deal")
    complements = deal.phrase + (date(d, time) if d.chance(0.5) else EMPTY)
    tense = FUTURE if time == "future" else PAST
    return Told(clause(d, subject, Predicate(d.fresh(LAWMAKING), complements), tense), subject)


def _policy_described(d: Derivation, time: Time) -> Told:
    """Return what public life is like: la politique agricole européenne est nécessaire."""
    subject = policy(d, d.pick(("area", "deal")))
    said = quality(d, subject, frozenset(("area",))) or EMPTY
    return Told(clause(d, subject, Predicate(BE, said), tense_of(d, BE, time)), subject)


def _born(d: Derivation, time: Time) -> Told:
    """Return where and when somebody was born."""
    subject = someone(d, ("kin", "name"))
    born = d.pair("né" + "e" * subject.feminine + "s" * subject.plural, "born")
    where = town_or_country(d, "in") if d.chance(0.6) else EMPTY
    return Told(clause(d, subject, Predicate(BE, born + where + date(d, time)), BORN), subject)


# How often each sort is told; the rest is action.
_SORTS: dict[Time, tuple[tuple[float, Callable[[Derivation, Time], Told]], ...]] = {
    "past": (
        (0.08, _described),
        (0.04, _profession),
        (0.05, _located),
        (0.07, _there_is),
        (0.03, _policy_described),
        (0.16, _passive),
        (0.08, _lawmaking),
        (0.04, _born),
    ),
    "present": (
        (0.12, _described),
        (0.06, _profession),
        (0.06, _located),
        (0.07, _there_is),
        (0.04, _policy_described),
    ),
    "future": ((0.03, _profession), (0.05, _there_is), (0.10, _passive), (0.05, _lawmaking)),
}
