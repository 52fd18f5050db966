"""Each cause is found where it is, and nowhere else."""

from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="training needs torch")

from regard.options.training import TrainOptions
from regard.training.diagnose import Measured, about_data, about_learning, diverging
from regard.training.prepare import Facts

DROPOUT, TRAIN = 0.1, TrainOptions()
FACTS = Facts("fr", "en", 10_000, {}, 0, 9_000, 500, 200_000, ("a",), {}, (), 0, (4000, 4000), 0.1)


def learnt(*rows):
    """Validations 500 updates apart: training loss, validation loss, loss with other sources."""
    return [Measured(500 * n, *row, bleu=1.0, entropy=0.95) for n, row in enumerate(rows, 1)]


def causes(history):
    return [finding.cause.split(":")[0] for finding in about_learning(history, DROPOUT, TRAIN)]


def test_a_training_that_goes_well_is_left_alone():
    assert causes(learnt((4, 4, 5), (3, 3, 6), (2, 2.5, 7), (1.5, 2.4, 8))) == []
    assert about_data(FACTS) == []


def test_an_ignored_source_is_found_and_ends_the_run():
    findings = about_learning(learnt((4.92, 4.92, 4.95), (4.91, 4.91, 4.92), (4.9, 4.9, 4.9)), DROPOUT, TRAIN)
    assert "source is ignored" in findings[0].cause and "uniform" in findings[0].cause
    assert findings[0].stop and "regard inspect" in findings[0].advice


def test_a_model_that_first_learns_to_speak_is_given_time():
    assert causes(learnt((7, 7, 7), (6, 6, 6), (5, 5, 5))) == []


def test_over_fitting_is_found_and_the_best_kept():
    findings = about_learning(learnt((3, 3, 5), (2, 2.8, 6), (1.5, 2.9, 7), (1, 3.1, 8)), DROPOUT, TRAIN)
    assert [finding.stop for finding in findings] == [False]
    assert "over-fitting" in findings[0].cause and "model.dropout=0.2" in findings[0].advice


def test_a_rising_loss_diverges_and_names_a_rate_to_try():
    assert diverging(3.0, 2.9, 100, TRAIN) is None
    finding = diverging(5.0, 2.9, 100, TRAIN)
    assert finding.stop and f"rate={TRAIN.optimiser.rate / 4:.2g}" in finding.advice


@pytest.mark.parametrize(
    ("change", "cause", "advice"),
    [
        ({"num_pairs": 500}, "very small: 500 pairs", "--also"),
        ({"rare_share": 0.7}, "vocabulary is too large for the data: 70%", "--vocab 2000\n"),
        ({"num_shifted": 40}, "40 pairs are in blocks", "regard inspect"),
    ],
)
def test_what_is_wrong_with_the_data_is_named(change, cause, advice):
    (finding,) = about_data(replace(FACTS, **change))
    assert cause in finding.cause and advice in f"{finding.advice}\n"
