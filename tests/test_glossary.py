"""Glossaries: terms are found in sentences, enforced in the search, and reported."""

import subprocess
import sys
import time

import numpy as np
import pytest
from searches import SMALL
from small import random_engine

import regard
from regard.alignment.reading import USUAL_READING
from regard.errors import ConfigError, CorpusError
from regard.options.search import BeamOptions, SampleOptions
from regard.search.searcher import Query, StepSearcher
from regard.search.terms import Forms, Terms, Wanted
from regard.terms.glossary import Glossary, count
from regard.translate.request import Request


@pytest.fixture(scope="module")
def translator():
    return regard.load("en-fr-transformer")


def sources(glossary, text, **how):
    return [text[slice(*match.span)] for match in glossary.matches(text, **how)]


def test_terms_are_whole_words_in_any_case_unless_they_have_a_capital():
    glossary = Glossary.of({"union": "union", "US": "États-Unis"})
    assert sources(glossary, "The Union, UNION and unions") == ["Union", "UNION"]
    assert sources(glossary, "the US told us") == ["US"]
    assert sources(glossary, "tell us", ignore_case=True) == ["us"]


def test_elided_articles_and_possessives_are_not_part_of_a_term():
    glossary = Glossary.of({"union": "Union", "état membre": "member state", "cat": "chat"})
    assert sources(glossary, "L'union et l'état membre") == ["union", "état membre"]
    assert sources(glossary, "the cat's tail") == ["cat"]


def test_the_longest_term_wins():
    glossary = Glossary.of({"member": "membre", "member state": "État membre", "state aid": "aide d'État"})
    assert sources(glossary, "a member state aid") == ["member state"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("house\tmaison\nhouse\tdemeure\n", "line 2: 'house' is 'demeure', and 'maison' at"),
        ("house\n", "line 1: 'house' has no translation"),
        ("\tmaison\n", "line 1: the source term is empty"),
        ("house\tmaison\t-maison\n", "'maison' is both a translation and forbidden"),
        ("house\t-\n", "write the forbidden word right after the sign"),
        (f"house\t{'x' * 300}\n", "more than 200 characters"),
    ],
)
def test_a_bad_row_is_named(tmp_path, rows, message):
    path = tmp_path / "terms.tsv"
    path.write_text(rows, "utf-8")
    with pytest.raises(CorpusError, match=message):
        Glossary.read(path)


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_a_wrong_encoding_is_named(tmp_path, encoding):
    path = tmp_path / "terms.tsv"
    path.write_text("cat\tété\n", encoding)
    with pytest.raises(CorpusError, match="convert"):
        Glossary.read(path)


def test_comments_blank_lines_equal_rows_and_a_byte_order_mark_are_read_over(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("\ufeff# terms\n\ncat\tchat\r\ncat\tchat\n-v\t-v\n", "utf-8")
    assert [(one.source, one.targets) for one in Glossary.read(path).entries] == [
        ("cat", ("chat",)),
        ("-v", ("-v",)),
    ]


def test_a_form_is_counted_as_whole_words():
    assert count("mesure", "Mesure, mesures, mesure") == 2
    assert count("mesure", "MESURE") == 0
    assert count("mesure", "MESURE", ignore_case=True) == 1


class Letters:
    """A tokenizer of the test: no id goes on with a word."""

    ends_word_V = np.ones(7, bool)
    joins_V = np.zeros(7, bool)


def terms_of(*forms, forbidden=()):
    wanted = tuple(Wanted(Forms((form,)), (0,)) for form in forms)
    return Terms(wanted, tuple(Forms((form,)) for form in forbidden))


@pytest.fixture(scope="module", params=list(SMALL.values())[:3], ids=list(SMALL)[:3])
def searcher(request):
    return StepSearcher(random_engine(request.param, 7, 7), USUAL_READING, Letters())


def holds(ids, form):
    return any(ids[n : n + len(form)] == form for n in range(len(ids)))


def test_every_term_is_said_and_no_forbidden_one(searcher):
    rng = np.random.default_rng(1)
    for _ in range(10):
        source = rng.integers(3, 7, 5)
        forms = [tuple(rng.integers(4, 7, 2).tolist()), tuple(rng.integers(4, 7, 3).tolist())]
        (found,) = searcher.search([Query(source, None, terms_of(*forms))], BeamOptions())
        best = found.hypotheses[0]
        assert best.complete and all(holds(best.ids, form) for form in forms)
    plain = searcher.search([Query(source)], BeamOptions())[0].hypotheses[0].ids
    if plain:
        avoided = searcher.search([Query(source, None, terms_of(forbidden=[plain[:1]]))], BeamOptions())[0]
        assert not holds(avoided.hypotheses[0].ids, plain[:1])


def test_a_search_without_terms_is_as_ever(searcher):
    source = np.array([3, 4, 5, 6])
    both = [Query(source), Query(source, None, terms_of((4, 5)))]
    assert searcher.search(both, BeamOptions())[0].hypotheses[0].ids == (
        searcher.search([Query(source)], BeamOptions())[0].hypotheses[0].ids
    )


def test_scores_are_those_of_a_forced_pass(searcher):
    source = np.array([3, 4, 5, 6])
    best = searcher.search([Query(source, None, terms_of((4, 5)))], BeamOptions())[0].hypotheses[0]
    (forced,) = searcher.force([source], [np.array(best.ids)])
    assert best.log_prob == pytest.approx(forced.log_prob, abs=1e-4)


def test_terms_replace_their_own_words_and_are_reported(translator):
    text = "The authorities took measures."
    (one,) = translator.translate([text], glossary={"measures": "dispositions", "authorities": "autorités"})
    assert one.text == "Les autorités ont pris des dispositions."
    assert [(term.target, term.status) for term in one.terms] == [
        ("autorités", "used"),
        ("dispositions", "used"),
    ]
    assert text[slice(*one.terms[1].span)] == "measures"
    assert one.to_json()["terms"][1]["status"] == "used"


def test_a_translation_that_holds_its_terms_anyway_is_not_searched_again(translator, monkeypatch):
    monkeypatch.setattr("regard.search.searcher.beam_with_terms", None)
    (plain,) = translator.translate(["The cat is big."])
    (one,) = translator.translate(["The cat is big."], glossary={"cat": "chat"})
    assert one.text == plain.text and [term.status for term in one.terms] == ["used"]


def test_alternatives_hold_the_terms_too(translator):
    text = "The authorities took measures."
    (one,) = translator.translate([text], glossary={"authorities": "autorités"}, num_best=4)
    assert len(one.alternatives) > 1
    assert all("autorités" in other for other in [one.text, *(other.text for other in one.alternatives)])


def test_code_and_addresses_have_no_terms(translator):
    text = "See `house.py` and https://house.org/house in the house."
    (one,) = translator.translate([text], glossary={"house": "demeure"})
    assert "`house.py`" in one.text and "https://house.org/house" in one.text and "la demeure" in one.text
    assert [term.span for term in one.terms] == [(text.rindex("house"), len(text) - 1)]


def test_a_forbidden_translation_is_avoided(translator):
    (one,) = translator.translate(["The house is big."], glossary={"house": "-maison"})
    assert "maison" not in one.text and one.terms[0].status == "avoided"


def test_a_further_form_is_allowed(translator):
    (one,) = translator.translate(["The houses are big."], glossary={"houses": ["xyzzy", "demeures"]})
    assert "demeures" in one.text and one.terms[0].status == "used"


def test_a_batch_changes_nothing(translator):
    texts = ["The cat is big.", "I saw the cat yesterday.", "The cat and the dog sleep.", "It rains."]
    glossary = Glossary.of({"cat": "matou", "dog": "toutou"})
    together = [one.text for one in translator.translate(texts, glossary=glossary)]
    alone = [translator.translate([text], glossary=glossary)[0].text for text in texts]
    assert together == alone
    assert all("matou" in text for text in together[:3])


def test_a_glossary_needs_beam_search():
    with pytest.raises(ConfigError, match="beam search"):
        Request("x", glossary=Glossary.of({"a": "b"}), search=SampleOptions())


def test_many_terms_cost_little():
    begun = time.process_time()
    glossary = Glossary.of({f"terme{n} long": f"term{n}" for n in range(100_000)})
    for _ in range(100):
        assert len(glossary.matches("le terme5 long et le terme99999 long de ce matin " * 4)) == 8
    assert time.process_time() - begun < 10


def regard_translate(*words):
    command = [sys.executable, "-m", "regard", "translate", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", stdin=subprocess.DEVNULL)


def test_the_command_line_follows_a_glossary_and_says_so(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("measures\tdispositions\n", "utf-8")
    done = regard_translate("en-fr-transformer", "The authorities took measures.", "--glossary", path)
    assert done.stdout == "Les autorités ont pris des dispositions.\n"
    assert "terms of the glossary: 1 used" in done.stderr
    path.write_text("house\tmaison\nhouse\tdemeure\n", "utf-8")
    done = regard_translate("en-fr-transformer", "The house.", "--glossary", path)
    assert done.returncode == 2 and "line 2" in done.stderr and len(done.stderr.splitlines()) == 1
