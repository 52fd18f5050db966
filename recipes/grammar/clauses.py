"""Clauses: a subject, a verb in some tense, perhaps a negation, and what follows, in both word orders."""

from dataclasses import dataclass
from typing import Literal

from grammar.derivation import EMPTY, Derivation, NounPhrase, Phrase, Words, spread
from grammar.inflection import EnglishVerb, Verb
from grammar.lexicon import BE, GO, WANT, Expression

FrenchTense = Literal["present", "imperfect", "compound", "future", "near"]
EnglishTense = Literal["simple", "progressive", "past", "past progressive", "future", "near"]


@dataclass(frozen=True, slots=True)
class Tense:
    """A French tense and the English one that says the same."""

    french: FrenchTense
    english: EnglishTense


ONGOING = Tense("present", "progressive")  # il lit, he is reading
HABITUAL = Tense("present", "simple")  # il lit souvent, he often reads
PAST = Tense("compound", "past")  # il a lu, he read
LASTING = Tense("imperfect", "past")  # il savait, he knew
BACKGROUND = Tense("imperfect", "past progressive")  # pendant qu'il lisait, while he was reading
FUTURE = Tense("future", "future")  # il lira, he will read
NEAR = Tense("near", "near")  # il va lire, he is going to read
WHENEVER = Tense("future", "simple")  # quand il lira, when he reads
BORN = Tense("present", "past")  # il est né, he was born

_AVOIR = ("ai", "as", "a", "avons", "avez", "ont")
_REFLEXIVE = ("me|m'", "te|t'", "se|s'", "nous", "vous", "se|s'")


@dataclass(frozen=True, slots=True)
class Predicate:
    """A verb with what belongs to it, before it is put in a tense."""

    verb: Verb
    complements: Phrase = EMPTY  # after the verb in both languages
    clitic: Phrase = EMPTY  # before the verb in French, after it in English: je *le* vois, I see *him*
    preceding: NounPhrase | None = None  # a direct object before the verb, with which the participle agrees
    modal: Verb | None = None  # il *veut* lire, he *wants* to read


def clause(
    d: Derivation,
    subject: NounPhrase,
    predicate: Predicate,
    tense: Tense,
    negation: Expression | None = None,
    adverb: Expression | None = None,
    question: bool = False,
) -> Phrase:
    """Return the clause in both languages.

    All words of a compound tense form one unit with the English verb (a mangé, ate). An auxiliary that only
    English has (is, will, does) belongs to the French verb, except that `do` in a question belongs to
    `est-ce que`.
    """
    verb, row = predicate.verb, subject.row
    main = d.unit()
    # The finite word is a unit of its own where both languages have one: va/is going, veut/wants.
    finite = d.unit() if predicate.modal or tense.french == "near" else main
    ne, denied = (EMPTY, EMPTY)
    if negation:
        unit = d.unit()
        ne = Phrase(spread("ne|n'", unit))
        denied = Phrase(spread(negation[0], unit), spread(negation[1], unit))
    middle = d.pair(*adverb) if adverb else EMPTY
    asked = d.unit() if question else None

    clitic = predicate.clitic.french
    if verb.french.reflexive:
        clitic = spread(_REFLEXIVE[row], main)
    head, tail = _french_verb(predicate, tense, subject, main, finite)
    infinitive = predicate.modal is not None or tense.french == "near"
    french = (
        (spread("est-ce que|qu'", asked) if asked else ())
        + subject.phrase.french
        + ne.french
        + (() if infinitive else clitic)
        + head
        + denied.french
        + middle.french
        + (clitic if infinitive else ())
        + tail
        + predicate.complements.french
    )

    supported = question or (negation is not None and negation[1] == "not")
    auxiliary, rest = _english_verb(predicate, tense.english, row, main, finite, supported, asked)
    if auxiliary and auxiliary[0][0] == "can" and denied.english and denied.english[0][0] == "not":
        auxiliary = (("cannot", auxiliary[0][1] + denied.english[0][1]),)
        denied = Phrase(denied.french)
    before_subject, after_subject = (auxiliary, ()) if question else ((), auxiliary)
    english = (
        before_subject
        + subject.phrase.english
        + after_subject
        + denied.english
        + middle.english
        + rest
        + predicate.clitic.english
        + predicate.complements.english
    )
    return Phrase(french, english)


def _french_verb(
    predicate: Predicate, tense: Tense, subject: NounPhrase, main: int, finite: int
) -> tuple[Words, Words]:
    """Return the finite verb and what follows it: (a, mangé), (va, manger), (mange, nothing)."""
    verb, row = predicate.verb.french, subject.row
    infinitive = spread(verb.infinitive, main)
    if predicate.modal:
        modal = predicate.modal.french
        forms = modal.imperfect if tense.french == "imperfect" else modal.present
        return spread(forms[row], finite), infinitive
    match tense.french:
        case "near":
            return spread(GO.french.present[row], finite), infinitive
        case "compound":
            auxiliary = BE.french.present if verb.with_etre else _AVOIR
            master = subject if verb.with_etre else predicate.preceding
            participle = verb.agree(master.feminine, master.plural) if master else verb.participle
            return spread(auxiliary[row], main), spread(participle, main)
        case "present":
            return spread(verb.present[row], main), ()
        case "imperfect":
            return spread(verb.imperfect[row], main), ()
        case "future":
            return spread(verb.future[row], main), ()


def _english_verb(
    predicate: Predicate,
    tense: EnglishTense,
    row: int,
    main: int,
    finite: int,
    supported: bool,
    asked: int | None,
) -> tuple[Words, Words]:
    """Return the auxiliary, if there is one, and the rest of the verb.

    With `supported`, an auxiliary is needed for `not` or a question, and `do` steps in.
    """
    verb = predicate.verb.english
    base = spread(verb.base, main)
    past = tense == "past"
    if modal := predicate.modal:
        if modal is not WANT:
            return spread(modal.english.past if past else modal.english.base, finite), base
        infinitive = spread("to", main) + base
        if supported:
            return spread(_do(row, past), asked or finite), spread(modal.english.base, finite) + infinitive
        return (), spread(_simple(modal.english, row, past), finite) + infinitive
    match tense:
        case "future":
            return spread("will", main), base
        case "near":
            return spread(_be(row, past=False), finite), spread("going", finite) + spread("to", main) + base
        case "progressive":
            return spread(_be(row, past=False), main), spread(verb.progressive, main)
        case "past progressive":
            return spread(_be(row, past=True), main), spread(verb.progressive, main)
    if verb.base == "be":
        return spread(_be(row, past), main), ()
    if supported:
        return spread(_do(row, past), asked or main), base
    return (), spread(_simple(verb, row, past), main)


def _be(row: int, past: bool) -> str:
    if past:
        return "was" if row in (0, 2) else "were"
    return {0: "am", 2: "is"}.get(row, "are")


def _do(row: int, past: bool) -> str:
    return "did" if past else "does" if row == 2 else "do"


def _simple(verb: EnglishVerb, row: int, past: bool) -> str:
    return verb.past if past else verb.third if row == 2 else verb.base
