"""Scores are sacrebleu's, with signatures, intervals and tests that find what is there and nothing else; reports show it."""

import json
import math
import random
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from small import random_weights, shrink

import regard
from regard.errors import ConfigError, CorpusError, ModelFileError, OutputError
from regard.evaluation.examples import choose, pictured
from regard.evaluation.frequency import by_frequency, count_words
from regard.evaluation.report import report_of, write_report
from regard.evaluation.resample import bootstrap_p, corrected, interval, randomisation_p, resample
from regard.evaluation.run import EvaluationOptions, names_of
from regard.evaluation.run import evaluate as evaluate_on
from regard.evaluation.scores import Interval, LengthScore, length_bins, measures, score
from regard.evaluation.testset import TestSet
from regard.model.presets import PRESETS
from regard.modelfile import ModelFile, load_model, save_model
from regard.options.model import LearnedPositions
from regard.options.search import BeamOptions
from regard.options.text import CharacterOptions
from regard.report.html import page as html_page
from regard.report.markdown import markdown as markdown_of
from regard.text.tokenizer import TokenizerPair

GOLDEN = Path(__file__).parent / "golden" / "model-1.regard"
RIGHT = ["The cat sat on the mat today.", "It was a very fine day indeed, she said."]
NEARLY = ["The cat sat on a mat today.", "It was a very fine day indeed, he said."]


def evaluate(models, sources, references, given=None, beam_size=1, **options):
    """Evaluate, by greedy search unless asked otherwise."""
    how = EvaluationOptions(search=BeamOptions(beam_size=beam_size), **options)
    return evaluate_on(models, TestSet.of(sources, references), how, given=given)


def test_a_perfect_translation_scores_100_and_another_less():
    perfect, nearly = score(RIGHT, RIGHT), score(NEARLY, RIGHT)
    assert perfect.bleu == pytest.approx(100) and perfect.chrf == pytest.approx(100)
    assert 20 < nearly.bleu < 90 and 50 < nearly.chrf < 100
    assert perfect.num_sentences == 2 and perfect.by_length == ()


def test_scores_and_signatures_are_those_of_sacrebleu():
    ours = score(NEARLY, RIGHT, target_language="en")
    assert ours.bleu == sacrebleu.corpus_bleu(NEARLY, [RIGHT]).score
    assert ours.chrf == sacrebleu.corpus_chrf(NEARLY, [RIGHT]).score
    version = sacrebleu.__version__
    assert ours.signatures == {
        "bleu": f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}",
        "chrf": f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{version}",
    }


@pytest.mark.parametrize(
    ("language", "tokenizer"), [("zh", "zh"), ("zh_Hans", "zh"), ("fr-CA", "13a"), (None, "13a")]
)
def test_the_signature_names_the_tokenizer_of_the_language(language, tokenizer):
    assert f"|tok:{tokenizer}|" in score(RIGHT, RIGHT, target_language=language).signatures["bleu"]


@pytest.mark.parametrize(("language", "without"), [("ja", "char"), ("ko", "13a")])
def test_without_a_dictionary_japanese_is_counted_by_character_and_korean_by_space(
    monkeypatch, language, without
):
    monkeypatch.setattr("regard.evaluation.scores.find_spec", lambda name: None)
    assert (
        f"|tok:{without}|"
        in score(["これは猫です。"], ["これは猫だ。"], target_language=language).signatures["bleu"]
    )


def test_bleu_by_length_counts_words_of_the_source():
    def sentence(num_words):
        return " ".join(f"w{number}" for number in range(num_words))

    sources = [sentence(count) for count in (4, 10, 11, 40, 51, 80)] + [""]
    hypotheses = [RIGHT[0]] * 2 + [NEARLY[0]] + [RIGHT[0]] * 4
    found = score(hypotheses, [RIGHT[0]] * 7, sources).by_length
    assert [(one.first_word, one.last_word, one.num_sentences) for one in found] == [
        (1, 10, 3),
        (11, 20, 1),
        (31, 40, 1),
        (51, 60, 1),
        (71, None, 1),
    ]
    assert found[1] == LengthScore(11, 20, 1, sacrebleu.corpus_bleu([NEARLY[0]], [[RIGHT[0]]]).score)
    assert found[0].bleu == pytest.approx(100)


def test_blank_translations_are_scored_and_not_dropped():
    assert score(["", RIGHT[1]], RIGHT).bleu < 80
    assert score(["", ""], RIGHT).bleu == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([], []), "0 translations, 0 references"),
        ((["a"], ["a", "b"]), "1 translations, 2 references"),
        ((["a"], ["a"], ["x", "y"]), "1 translations, 1 references, 2 sources"),
    ],
)
def test_nothing_or_unequal_numbers_cannot_be_scored(given, message):
    with pytest.raises(CorpusError, match=message):
        score(*given)


def test_sacrebleu_is_imported_only_when_scoring():
    code = "import regard.evaluation.run, regard.translate.translator, sys; sys.exit('sacrebleu' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# By hand.


@pytest.mark.parametrize(
    ("name", "said", "wanted", "by_hand"),
    [
        # Of 6, 5, 4 and 3 n-grams 5, 3, 2 and 1 are right: the geometric mean.
        (
            "bleu",
            "the cat sat on the mat",
            "the cat sat on a mat",
            100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25,
        ),
        # Four words for six: all are right, but too few.
        ("bleu", "the cat sat on", "the cat sat on a mat", 100 * math.exp(1 - 6 / 4)),
        # One word of four, and 1/2, 1/4, 1/8 of a longer n-gram by smoothing.
        ("bleu", "a x y z", "a b c d", 100 * (1 / 4 * 1 / 2 / 3 * 1 / 4 / 2 * 1 / 8 / 1) ** 0.25),
        ("bleu", "x y z w", "a b c d", 0),
        ("bleu", "a b c", "a b c", 0),  # no n-gram of four words
        # One letter of two, no pair; there are no longer n-grams.
        ("chrf", "ab", "ac", 25),
        ("ter", "a b c", "a b d", 100 / 3),
        ("ter", "c a b", "a b c", 100 / 3),  # one shift
        ("ter", "a b c d", "x", 400),
    ],
)
def test_a_score_is_the_number_worked_out_by_hand(name, said, wanted, by_hand):
    measure = measures()[name]
    counts = measure.counts([said], [wanted])
    assert measure.score(counts) == pytest.approx(by_hand)
    assert measure.scores(counts)[0] == pytest.approx(by_hand)


def test_words_are_scored_by_frequency_as_worked_out_by_hand():
    wanted = [["the", "cat"], ["the", "dog"]]
    said = [["the", "cat"], ["the", "cat"]]
    rare, frequent = by_frequency(said, wanted, Counter(the=2, cat=1, dog=1), 100, 1)
    assert (rare.label, rare.num_reference_words, rare.num_words) == ("1", 2, 2)
    assert (rare.precision, rare.recall, rare.f) == (50, 50, 50)
    assert (frequent.label, frequent.f) == ("2-4", 100)
    (unseen,) = by_frequency([[]], [["new"]], Counter(), 100, 1)
    assert (unseen.label, unseen.precision, unseen.recall, unseen.f) == ("0", 0, 0, 0)


def test_resamples_without_a_rare_word_say_nothing_of_it():
    wanted = [["new"], ["new"], *[["old"]] * 98]
    new, old = by_frequency(wanted, wanted, Counter(old=98), 200, 1)
    assert (new.f, new.interval) == (100, Interval(100, 100)) and old.interval == Interval(100, 100)
    (alone, _) = by_frequency(wanted[1:], wanted[1:], Counter(old=98), 200, 1)
    assert alone.f == 100 and alone.interval is None


# What chance does.


def corpus(num_sentences, share_wrong, seed=1):
    """References, and translations with this share of their words wrong."""
    rng = random.Random(seed)
    letters = "abcdefghij"
    references = [
        [rng.choice(letters) * rng.randint(1, 3) for _ in range(rng.randint(4, 30))]
        for _ in range(num_sentences)
    ]
    said = [["zz" if rng.random() < share_wrong else word for word in sentence] for sentence in references]
    return [" ".join(one) for one in said], [" ".join(one) for one in references]


SAID, WANTED = corpus(120, 0.25)


@pytest.mark.parametrize(("name", "metric"), [("bleu", BLEU), ("chrf", CHRF), ("ter", TER)])
def test_intervals_are_those_of_sacrebleu(name, metric):
    theirs = (metric(case_sensitive=True) if name == "ter" else metric()).corpus_score(
        SAID, [WANTED], n_bootstrap=300
    )
    measure = measures()[name]
    counts = measure.counts(SAID, WANTED)
    (sums,) = resample([counts], 300, 12345)
    ours = interval(measure.scores(sums))
    assert measure.score(counts) == theirs.score
    assert measure.scores(sums).mean() == pytest.approx(theirs._mean, abs=1e-3)
    assert (ours.high - ours.low) / 2 == pytest.approx(theirs._ci, abs=1e-3)


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_all_scores_at_once_are_those_one_by_one(name):
    measure = measures()[name]
    counts = measure.counts([*SAID[:40], "", "a", "zz zz"], [*WANTED[:40], "a b c", "a", "a b"])
    assert measure.scores(counts) == pytest.approx([measure.score(row[None]) for row in counts])


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_an_interval_holds_its_score_and_shrinks_with_more_sentences(name):
    measure = measures()[name]
    widths = []
    for num_sentences in (40, 640):
        counts = measure.counts(*corpus(num_sentences, 0.25))
        (sums,) = resample([counts], 500, 1)
        found = interval(measure.scores(sums))
        assert found.low < measure.score(counts) < found.high
        widths.append(found.high - found.low)
    assert widths[1] < widths[0] / 2.5  # four times as narrow, more or less


def test_memory_of_resampling_does_not_change_what_is_drawn():
    counts = measures()["bleu"].counts(SAID, WANTED)
    (at_once,) = resample([counts], 50, 7)
    (in_parts,) = resample([counts], 50, 7, max_cells=7 * len(SAID))
    assert (at_once == in_parts).all()


def test_systems_are_resampled_together():
    counts = measures()["bleu"].counts(SAID, WANTED)
    one, other = resample([counts, counts], 50, 7)
    assert (one == other).all()


def test_a_planted_difference_is_found_and_a_null_one_is_not():
    better, wanted = corpus(150, 0.2, seed=3)
    rng = random.Random(5)

    def spoilt(rows):
        return [
            text.replace(text.split()[1], "zz") if row in rows else text for row, text in enumerate(better)
        ]

    first, second = spoilt(set(rng.sample(range(150), 60))), spoilt(set(rng.sample(range(150), 60)))
    found = evaluate([], wanted, wanted, given={"better": better, "first": first}, num_trials=1000)
    assert all(one.p_randomisation < 0.01 and one.p_bootstrap < 0.01 for one in found.differences)
    by_measure = {one.measure: one for one in found.differences}
    assert by_measure["bleu"].value < 0 < by_measure["ter"].value
    assert by_measure["bleu"].interval.high < 0
    null = evaluate([], wanted, wanted, given={"first": first, "second": second}, num_trials=1000)
    assert all(one.p_randomisation > 0.05 and one.p_bootstrap > 0.05 for one in null.differences)
    assert all(one.interval.low < 0 < one.interval.high for one in null.differences)


def test_any_two_systems_are_compared():
    rng = random.Random(2)
    good, wanted = corpus(150, 0.1, seed=3)

    def spoilt(share):
        return [text.replace(text.split()[1], "zz") if rng.random() < share else text for text in good]

    given = {"bad": spoilt(0.9), "good": good, "middle": spoilt(0.4)}
    found = evaluate([], wanted, wanted, given=given, num_trials=1000)
    pairs = [(one.first, one.system) for one in found.differences if one.measure == "bleu"]
    assert pairs == [("bad", "good"), ("bad", "middle"), ("good", "middle")]
    worse = found.difference("middle", "good")
    alone = evaluate(
        [], wanted, wanted, given={name: given[name] for name in ("good", "middle")}, num_trials=1000
    )
    (twin,) = (one for one in alone.differences if one.measure == "bleu")
    assert worse.value < 0 and worse.is_beyond_chance
    assert replace(worse, p_corrected=twin.p_corrected) == twin and twin.p_corrected == twin.p_randomisation
    assert worse.p_corrected > worse.p_randomisation
    said = str(found)
    assert "Differences between the others" in said and "middle from good" in said
    assert re.search(r"more than chance explains: middle below good by \d+\.\d\.", said)
    assert "corrected for 3 comparisons" in said


def test_of_many_systems_the_others_are_compared_with_the_first():
    given = {f"system {number}": SAID for number in range(7)}
    found = evaluate([], WANTED, WANTED, given=given, num_trials=20, num_resamples=20)
    assert len(found.differences) == 6 * 3 and {one.first for one in found.differences} == {"system 0"}
    assert "not compared with each other" in str(found) and "between the others" not in str(found).lower()


def test_corrected_p_values_are_those_of_holm():
    assert corrected([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert corrected([0.6, 0.9]) == [1, 1] and corrected([0.03]) == [0.03] and corrected([]) == []


def test_the_same_translations_do_not_differ():
    found = evaluate([], WANTED, WANTED, given={"one": SAID, "two": SAID}, num_trials=200)
    for one in found.differences:
        assert (one.value, one.interval.low, one.interval.high) == (0, 0, 0)
        assert one.p_randomisation == one.p_bootstrap == 1


def test_randomisation_finds_the_p_of_trying_every_exchange():
    measure = measures()["bleu"]
    one, other = measure.counts(SAID[:8], WANTED[:8]), measure.counts(corpus(120, 0.4)[0][:8], WANTED[:8])
    found = abs(measure.score(one) - measure.score(other))
    as_large = [
        abs(measure.score(np.where(mask, one, other)) - measure.score(np.where(mask, other, one)))
        >= found - 1e-9
        for mask in (np.array(bits)[:, None] for bits in product([False, True], repeat=8))
    ]
    assert randomisation_p(one, other, measure.scores, 20_000, 1) == pytest.approx(
        np.mean(as_large), abs=0.02
    )


def test_the_bootstrap_p_counts_both_sides():
    assert bootstrap_p(np.full(999, -1.0)) == pytest.approx(0.002)
    assert bootstrap_p(np.array([-1.0] * 99 + [1.0] * 900)) == pytest.approx(0.2)
    assert bootstrap_p(np.zeros(999)) == 1


# A whole evaluation.

SOURCES = ["il pleut .", "le chat dort .", "un chien mange .", "il mange .", "le chien dort ."]
REFERENCES = ["it rains .", "the cat sleeps .", "a dog eats .", "he eats .", "the dog sleeps ."]
HOSTILE = "</title><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;\x00\x1b[31m"


@pytest.fixture(scope="module")
def found():
    return evaluate(
        {"golden": GOLDEN, "again": regard.load(GOLDEN)},
        SOURCES,
        REFERENCES,
        given={"human": [*REFERENCES[:4], ""]},
        num_trials=100,
        num_resamples=100,
        heat_maps=True,
    )


def test_a_model_is_scored_by_what_the_translator_says(found):
    translations = regard.load(GOLDEN).translate(SOURCES, beam_size=1)
    model, again, human = found.systems
    assert model.texts == again.texts == tuple(one.text for one in translations)
    assert model.flags == tuple(one.flags for one in translations)
    assert model.scores["bleu"].value == score(model.texts, REFERENCES).bleu
    assert model.scores["chrf"].value == score(model.texts, REFERENCES).chrf
    assert (
        human.scores["chrf"].value > 60 and human.chrf[:4] == pytest.approx([100] * 4) and human.chrf[4] == 0
    )
    assert [one.system for one in found.differences] == ["again"] * 3 + ["human"] * 6
    assert found.search == {"beam_size": 1}


def test_likelihood_is_that_of_the_references_as_forced(found):
    forced = regard.load(GOLDEN).force(SOURCES, REFERENCES)
    nats = -sum(one.log_prob for one in forced)
    model, _, human = found.systems
    assert model.likelihood.num_pieces == sum(len(one.pieces) for one in forced)
    assert model.likelihood.perplexity == pytest.approx(math.exp(nats / model.likelihood.num_pieces))
    num_characters = sum(len(text) + 1 for text in REFERENCES)
    assert model.likelihood.bits == pytest.approx(nats / math.log(2) / num_characters)
    assert human.likelihood is human.speed is None and human.by_flag == ()
    assert model.speed.sentences_per_second == pytest.approx(5 / model.speed.seconds)


def test_bins_together_hold_every_sentence(found):
    for system in found.systems:
        assert sum(one.num_sentences for one in system.by_length) == len(SOURCES)
    model = found.systems[0]
    by_flag = {one.flag: one.num_sentences for one in model.by_flag}
    assert by_flag.get("none", 0) + by_flag.get("any", 0) == len(SOURCES)
    assert sum(one.num_reference_words for one in model.by_frequency) == count_words(REFERENCES).total()


def test_a_part_of_one_sentence_has_no_interval():
    one = evaluate(
        [], [" ".join("a" * 15), "a"], ["a b c d", "a"], given={"x": ["a b c d", "a"]}, num_trials=10
    )
    assert [row.interval for row in one.systems[0].by_length] == [None, None]


def test_pairs_too_long_for_the_model_are_counted_and_left_out(tmp_path):
    options = shrink(PRESETS["vaswani2017"])
    options = options.model_copy(update={"positions": LearnedPositions(max_positions=24)})
    path = save_small(tmp_path, options)
    found = evaluate({"short": path}, SOURCES[:2], ["it rains .", "it rains . " * 20], num_trials=10)
    assert found.systems[0].likelihood.num_left_out == 1
    assert "1 references too long" in str(found)


def save_small(folder, options):
    """Write a small model with random weights, and return its path."""
    tokenizers = TokenizerPair.learn(SOURCES, REFERENCES, CharacterOptions(joint=True))
    weights = random_weights(options, tokenizers.source.vocab_size, tokenizers.target.vocab_size)
    save_model(folder / "small.regard", ModelFile(options, weights, tokenizers, "fr", "en", {}, {}))
    return folder / "small.regard"


@pytest.mark.parametrize("preset", ["sutskever2014", "bahdanau2015", "luong2015", "regard-small"])
def test_every_family_of_models_is_evaluated_and_shown_side_by_side(preset, tmp_path):
    path = save_small(tmp_path, shrink(PRESETS[preset]))
    both = evaluate([GOLDEN, path], SOURCES, REFERENCES, heat_maps=True, num_trials=10, guard=False)
    small = both.systems[1]
    assert small.num_parameters == sum(weight.size for weight in load_model(path).weights.values())
    assert all(math.isfinite(one.value) for one in small.scores.values()) and small.likelihood.perplexity > 1
    shown = Reader(page(both, "two families"))
    assert ("no attention" in shown.text) == (preset == "sutskever2014" and bool(small.heat_maps))


def test_lower_cased_and_tokenised_scores_say_so():
    said, wanted = ["The cat sat on the mat ."], ["the cat sat on the mat."]
    plain = evaluate([], wanted, wanted, given={"x": said}, num_trials=10)
    lower = evaluate([], wanted, wanted, given={"x": said}, num_trials=10, lower=True)
    tokenized = evaluate([], wanted, wanted, given={"x": said}, num_trials=10, tokenized=True)
    assert lower.systems[0].scores["bleu"].value == pytest.approx(100)
    assert plain.systems[0].scores["bleu"].value < 90
    assert tokenized.systems[0].scores["bleu"].value < plain.systems[0].scores["bleu"].value
    assert all("|case:mixed|" in text for text in plain.signatures.values())
    assert all("|case:lc|" in text for text in lower.signatures.values())
    assert "|tok:none|" in tokenized.signatures["bleu"]
    for one, words in (
        (plain, "cased, detokenised"),
        (lower, "lower-cased, det"),
        (tokenized, "cased, tokenised"),
    ):
        for shown in (str(one), page(one, "t"), markdown(one, "t"), json.dumps(one.to_json())):
            assert words in shown.replace("Cased", "cased").replace("Lower", "lower")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (([], ["a"], ["b"]), ConfigError, "nothing to evaluate"),
        (([GOLDEN], ["a"], ["b", "c"]), CorpusError, "1 sources, 2 references"),
        (([GOLDEN], ["a", "b"], ["b", " \t"]), CorpusError, "reference 2 is blank"),
        (([GOLDEN], ["", "b"], ["b", "c"]), CorpusError, "source 1 is blank"),
        ((["nowhere.regard"], ["a"], ["b"]), ModelFileError, "nowhere.regard"),
    ],
)
def test_what_cannot_be_evaluated_is_an_error(given, error, message):
    with pytest.raises(error, match=message):
        evaluate(*given)


def test_files_of_one_name_are_told_apart():
    assert names_of(["a/x.regard", "b/y.regard"]) == ["x", "y"]
    assert names_of(["a/x.regard", "b/x.regard"]) == ["a/x.regard", "b/x.regard"]
    assert len(set(names_of(["x.regard", "x.regard"]))) == 2


def test_a_blank_source_is_as_short_as_can_be():
    (one,) = length_bins(["", "a b"])
    assert (one.first_word, one.last_word, one.rows.tolist()) == (1, 10, [0, 1])


# Reports.


def page(found, title):
    return html_page(report_of(found, title))


def markdown(found, title):
    return markdown_of(report_of(found, title))


class Reader(HTMLParser):
    """Checks that elements are closed in order, and keeps what there is."""

    empty = frozenset({"meta", "br", "img"})

    def __init__(self, text):
        super().__init__()
        self.open, self.names, self.attributes, self.text = [], Counter(), [], ""
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.names[tag] += 1
        self.attributes += attributes
        if tag not in self.empty:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.names[tag] += 1
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_a_report_is_a_page_with_figures_sentences_and_heat_maps(found):
    read = Reader(page(found, "golden on test"))
    assert read.names["h1"] == 1 and read.names["table"] == 7
    assert read.names["svg"] >= 3 and read.names["details"] >= 1
    for system in found.systems:
        assert system.name in read.text and all(text in read.text for text in REFERENCES[:1])
    for name in ("BLEU", "chrF2", "TER", *found.signatures.values()):
        assert name in read.text
    assert Reader(found._repr_html_()).names["svg"] == 2


def test_a_page_makes_no_request_and_needs_no_script(found):
    text = page(found, "t")
    assert set(re.findall(r"https?://[^\"' ]*", text)) <= {"http://www.w3.org/2000/svg"}
    read = Reader(text)
    assert not read.names["script"] and not read.names["link"]
    assert all(
        not value.startswith(("http", "//")) for key, value in read.attributes if key in ("src", "href")
    )


def test_hostile_text_is_shown_as_text(found):
    names = {"system": HOSTILE + "name"}
    hostile = evaluate(
        [],
        [HOSTILE + " a", "b"],
        [HOSTILE + " c", "d"],
        given={names["system"]: [HOSTILE, ""]},
        num_trials=10,
    )
    read = Reader(page(hostile, HOSTILE))
    assert not read.names["script"] and not read.names["img"]
    assert not any(key.startswith("on") for key, _ in read.attributes)
    assert "<script>alert(1)</script>" in read.text
    assert "\x00" not in read.text and "\x1b" not in str(hostile) and "\x1b" not in markdown(hostile, HOSTILE)
    assert "<script" not in markdown(hostile, HOSTILE).replace("\\<script", "")
    assert json.loads(json.dumps(hostile.to_json()))["sentences"][0]["source"] == HOSTILE + " a"


def test_sentences_are_chosen_where_systems_part(found):
    chosen = {(one.system, one.why): one.rows for one in choose(found)}
    apart = {key: rows for key, rows in chosen.items() if key[1] in ("better", "worse")}
    assert {system for system, _ in apart} == {"again", "human"}
    assert apart["again", "better"] == apart["again", "worse"] == ()  # it says the same
    assert apart["human", "better"] and 4 not in apart["human", "better"]
    assert set(found.systems[0].heat_maps) <= set(pictured(found)) and not found.systems[2].heat_maps


def test_a_report_folder_appears_whole_and_is_replaced_only_when_asked(found, tmp_path):
    folder = tmp_path / "report"
    write_report(found, folder, "one")
    assert sorted(one.name for one in folder.iterdir()) == ["report.html", "report.json", "report.md"]
    assert json.loads((folder / "report.json").read_text())["format"] == "regard-evaluation/1"
    with pytest.raises(OutputError, match="contains a report"):
        write_report(found, folder, "two")
    assert "two" not in (folder / "report.md").read_text().splitlines()[0]
    write_report(found, folder, "two", replace=True)
    assert (folder / "report.md").read_text().splitlines()[0] == "# two"
    (folder / "mine.txt").write_text("work")
    with pytest.raises(OutputError, match="not a report of regard"):
        write_report(found, folder, "three", replace=True)
    assert (folder / "mine.txt").read_text() == "work"
    assert [one.name for one in tmp_path.iterdir()] == ["report"]


def test_a_report_that_fails_leaves_nothing(found, tmp_path):
    broken = replace(found, differences=(replace(found.differences[0], value=math.nan),))
    with pytest.raises(ValueError):
        write_report(broken, tmp_path / "report", "one")
    assert not list(tmp_path.iterdir())
