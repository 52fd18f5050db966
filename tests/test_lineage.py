"""The ladder: what its rungs are, that it can be climbed in pieces, and that its report says what was found."""

import contextlib
import json
import os
import re
import signal
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from small import VOCAB, random_batch

torch = pytest.importorskip("torch", reason="training needs torch")

from regard.alignment.gold import read_gold  # noqa: E402
from regard.cli import lineage as verb  # noqa: E402
from regard.draw.labels import texts  # noqa: E402
from regard.errors import ConfigError, CorpusError, OutputError, RegardError  # noqa: E402
from regard.evaluation.document import Estimate  # noqa: E402
from regard.evaluation.run import EvaluationOptions, evaluate  # noqa: E402
from regard.evaluation.scores import Interval, measures  # noqa: E402
from regard.evaluation.testset import TestSet  # noqa: E402
from regard.lineage.climb import Plan, climb  # noqa: E402
from regard.lineage.document import Budget, Climbed, Lineage  # noqa: E402
from regard.lineage.ladder import LADDER, base_of, rungs  # noqa: E402
from regard.lineage.measure import Lengths, choose_sentence, steps  # noqa: E402
from regard.lineage.report import check_folder, report_of, summary, write_report  # noqa: E402
from regard.lineage.run import LineageOptions, lineage, read_gold_pairs  # noqa: E402
from regard.model.build import build_model  # noqa: E402
from regard.model.engine import batch_loss  # noqa: E402
from regard.modelfile import load_model  # noqa: E402
from regard.report.html import page as html_page  # noqa: E402
from regard.report.markdown import markdown as markdown_of  # noqa: E402
from regard.sample import read_sample, write_sample  # noqa: E402
from regard.text.words import words  # noqa: E402
from regard.training.recipes import effective_options  # noqa: E402
from regard.training.request import CorpusFiles  # noqa: E402
from regard.translate.translator import Translator  # noqa: E402

SMALL = {
    "tokenizer": {"vocab_size": 400},
    "batch": {"batch_tokens": 400},
    "model": {"hidden_size": 8},
    "train": {"valid_steps": 3},
}


class Quiet:
    """A display that shows nothing, and can end the work at an update."""

    def __init__(self, end_at=None):
        self.end_at, self.num_updates = end_at, 0

    def note(self, text):
        pass

    def update(self, progress):
        self.num_updates += 1
        if progress.step == self.end_at:
            raise KeyboardInterrupt

    def validation(self, validation):
        pass

    def close(self):
        pass


@contextlib.contextmanager
def no_stages():
    yield lambda stage, done, total: None


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Short pairs of our grammar in two files, and a few more with their links."""
    folder = tmp_path_factory.mktemp("corpus")
    short = (pair for pair in read_sample(seed=3) if len(pair.source.split()) <= 6)
    pairs, gold = list(islice(short, 120)), list(islice(short, 5))
    write(folder / "some.fr", [pair.source for pair in pairs])
    write(folder / "some.en", [pair.target for pair in pairs])
    write(folder / "gold.fr", [spaced(pair.source) for pair in gold])
    write(folder / "gold.en", [spaced(pair.target) for pair in gold])
    write(folder / "gold.align", [" ".join(f"{a}-{b}" for a, b in sorted(pair.links)) for pair in gold])
    return folder


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def spaced(text):
    return " ".join(text[start:end] for start, end in words(text))


def climbed(corpus, folder, **request):
    request = {"steps": 6, "sections": SMALL, "num_resamples": 40, "num_trials": 40} | request
    display = request.pop("display", lambda rung: Quiet())
    files = [corpus / "some.fr", corpus / "some.en"]
    return lineage(files, folder, LineageOptions(**request), display=display, stages=no_stages)


def plan_of(corpus, folder, **said):
    return Plan((CorpusFiles((corpus / "some.fr", corpus / "some.en")),), folder, **said)


def test_every_rung_builds_on_an_earlier_one_and_speaks_both_languages():
    for place, rung in enumerate(LADDER):
        assert rung.after is None if not place else rung.after in [one.name for one in LADDER[:place]]
        assert set(rung.title) == set(rung.idea) == {"en", "ko"}


def test_without_its_base_a_rung_is_compared_with_what_the_base_builds_on():
    first, last = rungs("luong-local,sutskever")
    assert (first.name, last.name) == ("sutskever", "luong-local")
    assert base_of(last, [first, last]) == first
    assert base_of(last, [last]) is None


def test_every_rung_has_the_same_budget_options_and_seed(corpus, tmp_path):
    plan = plan_of(corpus, tmp_path, seconds_each=90.0, options=SMALL, seed=5)
    plan.check(LADDER)
    requests = [plan.request_of(rung) for rung in LADDER]
    assert {request.seed for request in requests} == {5}
    assert {request.options["train"]["seconds"] for request in requests} == {90.0}
    assert {request.options["model"]["hidden_size"] for request in requests} == {8}
    assert {request.max_validation_pairs for request in requests} == {1000}  # also for a short time
    designs = [(request.preset, json.dumps(request.options["model"])) for request in requests]
    assert len(set(designs)) == len(LADDER) == 9
    assert [rung.name for rung in LADDER if not rung.has_attention] == ["sutskever", "cho"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"seconds_each": 1.0, "steps_each": 1}, "either a time or"),
        ({"steps_each": 1, "options": {"train": {"steps": 3}}}, "--steps"),
        (
            {"steps_each": 1, "options": {"model": {"attention": {"kind": "none"}}}},
            "is different in each design",
        ),
        ({"steps_each": 1, "options": {"model": {"num_haeds": 2}}}, "design sutskever"),
    ],
)
def test_options_that_make_no_ladder_are_refused(corpus, tmp_path, said, told):
    with pytest.raises(ConfigError, match=re.escape(told)):
        plan_of(corpus, tmp_path, **said).check(LADDER)


@pytest.mark.parametrize("rung", LADDER, ids=lambda rung: rung.name)
def test_every_rung_is_a_model_that_learns_from_a_step(corpus, tmp_path, rung):
    request = plan_of(corpus, tmp_path, steps_each=1, options=SMALL).request_of(rung)
    options = effective_options(rung.preset, 1000, request.options, 1).model
    model, batch = build_model(options, VOCAB, VOCAB), random_batch()
    assert options.kind == "transformer" or (options.attention.kind != "none") == rung.has_attention
    before = batch_loss(model, batch, None, 0.0).smoothed
    before.backward()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.grad is not None:
                weight -= 1e-3 * weight.grad
        assert batch_loss(model, batch, None, 0.0).smoothed < before


@pytest.fixture(scope="module")
def two(corpus, tmp_path_factory):
    """Two rungs climbed in one go."""
    folder = tmp_path_factory.mktemp("two")
    gold = read_gold_pairs(*(corpus / f"gold.{ending}" for ending in ("fr", "en", "align")))
    found = climbed(corpus, folder, only="sutskever,bahdanau", gold=gold)
    return folder, found


@pytest.mark.slow
def test_a_ladder_killed_after_the_first_rung_goes_on_to_the_same_models(two, corpus, tmp_path):
    whole, _ = two
    ladder, models = rungs("sutskever,bahdanau"), tmp_path / "models"
    plan = plan_of(corpus, models, steps_each=6, options=SMALL)
    ends = {"sutskever": None, "bahdanau": 4}
    with pytest.raises(KeyboardInterrupt):
        climb(plan, ladder, lambda rung: Quiet(ends[rung.name]), no_stages)
    assert (models / "sutskever.regard").exists() and not (models / "bahdanau.regard").exists()
    check_folder(tmp_path)
    finished = (models / "sutskever.regard").stat().st_mtime_ns
    displays = {rung.name: Quiet() for rung in ladder}
    climb(plan, ladder, lambda rung: displays[rung.name], no_stages)
    assert (models / "sutskever.regard").stat().st_mtime_ns == finished
    assert displays["sutskever"].num_updates == 0 and displays["bahdanau"].num_updates > 0
    for name in ("sutskever", "bahdanau"):
        one, other = (load_model(folder / "models" / f"{name}.regard") for folder in (whole, tmp_path))
        assert all(np.array_equal(array, other.weights[key]) for key, array in one.weights.items())


@pytest.mark.slow
def test_what_was_found_is_measured_on_the_pairs_set_aside(two):
    folder, found = two
    fixed, additive = found.rungs
    assert [one.num_updates for one in found.rungs] == [6, 6] and found.budget.steps_each == 6
    assert found.is_held_out and found.num_gold == 5
    bare = load_model(folder / "models" / "bahdanau.regard")
    said = Translator.of(replace(bare, split_above=None)).translate(found.evaluation.sources, guard=False)
    assert found.evaluation.system("bahdanau").texts == tuple(one.text for one in said)
    data = json.loads((folder / "models" / "bahdanau.run" / "data" / "data.json").read_text("utf-8"))
    assert list(found.evaluation.sources) == [source for source, _ in data["validation"]]
    assert fixed.entropy is None and fixed.aer is None and fixed.heat_map is None
    assert additive.entropy is not None and 0 < additive.entropy < np.log(60)
    assert additive.aer is not None and 0 <= additive.aer.value <= 1
    assert additive.num_parameters > fixed.num_parameters
    (step,) = found.steps
    assert (step.rung.name, step.base.name) == ("bahdanau", "sutskever")
    assert "regard-report" in found._repr_html_() and "<svg" in found._repr_html_()


@pytest.mark.slow
def test_the_report_is_pages_in_two_languages_markdown_a_figure_and_json(two):
    folder, found = two
    write_report(found, folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        "models", "report.html", "report.json", "report.ko.html", "report.ko.md", "report.ko.svg", "report.md",
        "report.svg",
    ]  # fmt: skip
    for language, ending in (("en", ""), ("ko", ".ko")):
        text = (folder / f"report{ending}.html").read_text("utf-8")
        assert "<script" not in text and not re.search(r'(?:src|href)="(?:https?:)?//', text)
        for one in found.rungs:
            assert text.count(one.rung.title[language]) >= 3
            assert one.rung.title[language] in (folder / f"report{ending}.md").read_text("utf-8")
        figure = ElementTree.parse(folder / f"report{ending}.svg").getroot()
        assert texts("report", language)["lineage"]["lengths"] in "".join(figure.itertext())
        assert f"(report{ending}.svg)" in (folder / f"report{ending}.md").read_text("utf-8")
    data = json.loads((folder / "report.json").read_text("utf-8"))
    assert [one["name"] for one in data["rungs"]] == ["sutskever", "bahdanau"]
    write_report(found, folder)  # in place of the one before


SHORT_SOURCE = "un chat noir dort sur le grand lit ."
SHORT = "a black cat sleeps on the big bed ."
LONG_SOURCE, LONG = " ".join([SHORT_SOURCE[:-2]] * 6) + " .", " ".join([SHORT[:-2]] * 6) + " ."


def planted(wrong="yes no yes no yes no"):
    """A ladder whose first rung says nothing right of long sentences, its second all, its third the same."""
    sources = [f"{number} {SHORT_SOURCE}" for number in range(30)] + [f"{n} {LONG_SOURCE}" for n in range(20)]
    references = [f"{number} {SHORT}" for number in range(30)] + [f"{n} {LONG}" for n in range(20)]
    broken = references[:30] + [f"{number} a black cat {wrong}" for number in range(20)]
    ladder = rungs("sutskever,bahdanau,luong-dot")
    given = dict(zip([rung.name for rung in ladder], [broken, references, references], strict=True))
    options = EvaluationOptions(num_resamples=200, num_trials=200)
    evaluation = evaluate([], TestSet.of(sources, references), options, given=given)
    lengths = Lengths.of(evaluation, "en")
    found = [
        Climbed(
            rung, 1000, 50 + place, 60.0, lengths.bleu(rung.name, lengths.short),
            lengths.bleu(rung.name, lengths.long), lengths.kept(rung.name),
            Estimate(0.25, Interval(0.2, 0.3)) if rung.has_attention else None,
            1.5 if rung.has_attention else None, SHORT, None,
        )
        for place, rung in enumerate(ladder)
    ]  # fmt: skip
    return Lineage(
        Budget(60.0, None, 5000, 1), tuple(found), steps(ladder, lengths, 200), evaluation, 12, SHORT_SOURCE,
        False, len(lengths.short), len(lengths.long),
    )  # fmt: skip


def test_differences_have_the_sign_of_what_was_planted():
    found = planted()
    gain, nothing = found.steps
    assert (gain.rung.name, gain.base.name) == ("bahdanau", "sutskever")
    assert gain.bleu.value > 0 and gain.bleu.interval.low > 0 and gain.bleu.p_bootstrap < 0.05
    assert gain.long is not None and gain.long.value > gain.bleu.value
    assert nothing.bleu.value == 0 and nothing.bleu.interval.low == 0 and nothing.bleu.p_bootstrap == 1


def test_what_is_kept_is_long_over_short():
    fixed, additive, _ = planted().rungs
    assert additive.kept is not None and additive.kept.value == pytest.approx(1.0)
    assert additive.kept.interval == Interval(pytest.approx(1.0), pytest.approx(1.0))
    assert fixed.kept is not None and fixed.short is not None and fixed.long is not None
    assert fixed.kept.value == pytest.approx(fixed.long.value / fixed.short.value)
    assert fixed.kept.interval is not None and fixed.kept.interval.high < 0.5


def test_the_summary_says_what_the_numbers_show_and_no_more():
    said = {
        language: " ".join(" ".join([one.text, *one.items]) for one in summary(planted(), language))
        for language in ("en", "ko")
    }
    assert "Equal time is not an equal number of updates" in said["en"] and "the most (52)" in said["en"]
    assert "better, by more than chance explains" in said["en"]
    assert "the interval includes zero" in said["en"]
    assert "Every design with attention keeps more" in said["en"]
    assert "0.250 (0.200 to 0.300)" in said["en"] and "set aside" not in said["en"]
    assert "갱신 횟수가 같은 것은 아닙니다" in said["ko"] and "구간에 0이 들어 있어" in said["ko"]
    assert not re.search("[가-힣]", said["en"])


def test_nothing_is_claimed_of_lengths_that_were_not_tested():
    found = planted()
    without = Lineage(found.budget, found.rungs[:1], (), found.evaluation, None, found.sentence, True, 30, 0)
    said = " ".join(one.text for one in summary(without, "en"))
    assert "cannot show" in said and "One design was" in said and "set aside" in said and "--gold" in said


def page(found, language):
    return html_page(report_of(found, language))


def markdown(found, language):
    return markdown_of(report_of(found, language))


def test_page_and_markdown_show_hostile_sentences_as_text():
    hostile = '<script>alert("x")</script> | *bold*'
    found = planted(wrong=hostile)
    shown = Lineage(found.budget, found.rungs, found.steps, found.evaluation, None, hostile, True, 30, 20)
    for language in ("en", "ko"):
        assert "<script" not in page(shown, language)
        assert not re.search(r"(?<!\\)[<|*](?:script| \\\*|bold)", markdown(shown, language))
        assert "AER ↓" not in page(shown, language) and "AER ↓" in page(found, language)


def test_a_sentence_of_the_right_length_is_shown():
    assert choose_sentence(["un", SHORT_SOURCE, LONG_SOURCE]) == SHORT_SOURCE
    assert choose_sentence(["un", "un chat dort"]) == "un chat dort"


@pytest.mark.parametrize(
    "name", ["thesis.txt", "models/thesis.txt", "report.json", "report.ko.md", "models/sutskever.regard.bak"]
)
def test_a_folder_with_anything_else_is_refused_before_training(corpus, tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"format": "something else"}')
    with pytest.raises(OutputError, match=re.escape(name)):
        climbed(corpus, tmp_path)
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == [path]


def call(*words):
    """Run the verb as `regard` would."""
    import argparse

    parser = argparse.ArgumentParser()
    verb.add_arguments(parser)
    return verb.run(parser.parse_args(list(map(str, words))))


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--time", "soon"], "--time soon"),
        (["--time", "0s"], "not enough"),
        (["--steps", "1", "--only", "luong-dott"], "luong-dot"),
        (["--steps", "1", "--set", "hidden_size=8"], "section.key=value"),
        (["--steps", "1", "--from-one"], "--gold"),
        (["--steps", "1", "--words"], "--gold"),
        (["--steps", "1", "--sentence", " "], "blank"),
        (["--steps", "1", "--test", "none.fr", "none.en"], "none.fr"),
        (["--steps", "1", "--test", "some.en", "some.fr"], "the other way round"),
        (["--steps", "1", "--valid", "none.fr", "none.en"], "none.fr"),
        (["--steps", "1", "--gold", "gold.fr", "some.en", "gold.align"], "some.en"),
        (["--steps", "1", "--gold", "some.fr", "some.en", "gold.align"], "gold.align"),
        (["--steps", "1", "--gold", "gold.en", "gold.fr", "gold.align", "--reversed"], "the other way round"),
        (["--steps", "1", "--device", "abacus"], "abacus"),
        (["--steps", "0"], "steps"),
    ],
)
def test_mistakes_are_told_in_one_line_before_anything_is_written(corpus, tmp_path, monkeypatch, flags, told):
    monkeypatch.chdir(corpus)
    with pytest.raises(RegardError, match=re.escape(told)) as error:
        call("some.fr", "some.en", "--report", tmp_path / "out", *flags)
    assert "\n" not in str(error.value) and not (tmp_path / "out").exists()


class Interrupting(Quiet):
    """A display at whose first update the user presses Ctrl-C."""

    def update(self, progress):
        if progress.step == 1:  # a second one would end it at once
            os.kill(os.getpid(), signal.SIGINT)

    def note(self, text):
        print(text, file=sys.stderr)


@pytest.mark.slow
def test_an_interrupted_command_goes_on_and_says_where_the_report_is(corpus, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(corpus)
    settings = [
        f"--set={section}.{key}={value}" for section, keys in SMALL.items() for key, value in keys.items()
    ]
    asked = ["some.fr", "some.en", "--report", tmp_path / "out", "--steps", "4", "--only", "luong-local"]
    asked += [*settings, "--sentence", "le chat dort ."]
    with monkeypatch.context() as patched:
        patched.setattr("regard.training.display.open_display", Interrupting)
        assert call(*asked) == 130
    assert not list(tmp_path.glob("out/report*")) and "goes on from here" in capsys.readouterr().err
    assert call(*asked) == 0
    told = capsys.readouterr()
    assert "continuing from update 2" in told.err
    assert "One design was" in told.out and str(Path("out") / "report.ko.html") in told.out
    assert "le chat dort ." in (tmp_path / "out" / "report.html").read_text("utf-8")


def test_gold_links_may_count_from_one_and_have_the_target_first(corpus, tmp_path):
    files = [corpus / "gold.fr", corpus / "gold.en"]
    plain = read_gold_pairs(*files, corpus / "gold.align")
    lines = [
        " ".join(f"{b + 1}-{a + 1}" for a, b in sorted(one.sure)) for one in read_gold(corpus / "gold.align")
    ]
    write(tmp_path / "turned.align", lines)
    assert read_gold_pairs(*files, tmp_path / "turned.align", counted_from=1, target_first=True) == plain
    with pytest.raises(CorpusError):
        read_gold_pairs(*files, tmp_path / "turned.align")


def test_rungs_are_as_wide_as_the_transformer_and_options_go_deep(tmp_path):
    plan = Plan((), tmp_path, 60.0, options={"train": {"optimiser": {"beta2": 0.9}}})
    for rung in LADDER:
        options = effective_options(rung.preset, 0, plan.request_of(rung).options, 1)
        assert options.model.hidden_size == 128 and options.train.optimiser.beta2 == 0.9
        if options.model.kind == "recurrent":
            assert options.model.embedding_size == 128 and options.train.optimiser.rate == 2e-3
            assert options.model.layer_norm and options.model.tie == "target"


def test_gold_links_may_count_the_words_of_running_text(corpus, tmp_path):
    write_sample(tmp_path, read_sample(5, seed=9))
    files = [tmp_path / f"sample.{ending}" for ending in ("fr", "en", "align")]
    with pytest.raises(CorpusError, match="out of range"):
        read_gold_pairs(*files)
    gold = read_gold_pairs(*files, cut="words")
    found = climbed(corpus, tmp_path / "ladder", only="luong-dot", gold=gold)
    assert 0 <= found.rungs[0].aer.value <= 1 and found.num_gold == 5


def test_rungs_of_other_shares_or_settings_are_refused_before_training(corpus, tmp_path):
    ladder = rungs("sutskever,cho")
    first = plan_of(corpus, tmp_path, steps_each=6, options=SMALL)
    with pytest.raises(KeyboardInterrupt):  # a checkpoint is written
        climb(first, ladder[1:], lambda rung: Quiet(4), no_stages)
    first.check(ladder)
    plan_of(corpus, tmp_path, steps_each=7, options=SMALL).check(ladder)
    for said, told in (
        (
            {"steps_each": 5, "options": SMALL},
            "was trained for 6 updates and the others would have 5 updates",
        ),
        ({"seconds_each": 60.0, "options": SMALL}, "6 updates and the others would have 60 seconds"),
        ({"steps_each": 6, "options": SMALL, "seed": 2}, r"other settings \(seed\); choose another --report"),
    ):
        with pytest.raises(ConfigError, match=told):
            plan_of(corpus, tmp_path, **said).check(ladder)


def test_a_rung_that_ended_early_is_named():
    found = planted()
    short = replace(found.rungs[0], ended_early=True)
    told = {
        language: summary(replace(found, rungs=(short, *found.rungs[1:])), language)[0].text
        for language in ("en", "ko")
    }
    assert "stopped improving: Fixed vector (Sutskever 2014)." in told["en"]
    assert "그 전에 학습을 마친 모델: 고정 벡터 (Sutskever 2014)." in told["ko"]
    assert "ended before" not in summary(found, "en")[0].text


def test_all_scores_of_a_ladder_cut_words_as_the_language_asks(corpus, tmp_path, monkeypatch):
    """Which language it is may be known from the text alone."""
    for name in ("some", "gold"):
        for ending, new in (("fr", "a"), ("en", "b")):
            (tmp_path / f"{name}.{new}").write_bytes((corpus / f"{name}.{ending}").read_bytes())
    asked = []
    monkeypatch.setattr(
        "regard.lineage.measure.measures", lambda language: asked.append(language) or measures(language)
    )
    options = LineageOptions(
        steps=2, sections=SMALL, num_resamples=20, num_trials=20, only="cho",
        test=[tmp_path / "gold.a", tmp_path / "gold.b"],
    )  # fmt: skip
    files = [tmp_path / "some.a", tmp_path / "some.b"]
    lineage(files, tmp_path / "out", options, display=lambda rung: Quiet(), stages=no_stages)
    assert asked == ["en"]
