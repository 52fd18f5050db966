"""The posterior attention of recurrent models: where a word came from, once it is known."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from small import random_batch, random_engine, random_weights
from traces import AFTER, DESIGNS, model_of

from regard.alignment.reading import AFTERWARDS
from regard.contract import Ragged, force_by_steps, make_batch
from regard.errors import ModelFileError
from regard.modelfile import load_model, save_model
from regard.options.search import BeamOptions
from regard.runtime.build import build_engine
from regard.runtime.equations import linear, maxout, normed
from regard.runtime.recurrent import tells_posterior
from regard.search.beam import beam
from regard.search.task import Task
from regard.search.walk import greedy
from regard.training.reading import rank_readings
from regard.vocabulary import EOS

GREEDY = BeamOptions(beam_size=1)
BATCH = random_batch(seed=3, rows=5, longest=7)


def engines(name):
    options, weights = DESIGNS[name], random_weights(DESIGNS[name])
    return build_engine(options, weights), build_engine(options, weights, posterior=True)


def alone(batch, row):
    """A row of a batch, without padding."""
    return make_batch(
        *(Ragged.of([side[row][side[row] >= EOS][:-1]]) for side in sides_of(batch)), np.arange(1)
    )


def sides_of(batch):
    return batch.source_BS, batch.target_out_BT


def likelihood(word, logits, usual):
    """The probability of a word among itself and, of every 64th word, the one that is usually likeliest."""
    num = min(64, len(usual))
    last = len(usual) // num * num
    rivals = {max(range(first, last, num), key=lambda one: usual[one]) for first in range(num)}
    exponents = np.exp(logits.astype(float) - logits.max())
    return exponents[word] / exponents[sorted(rivals | {word})].sum()


def posteriors(forced, likelihoods_TS):
    """Bayes' rule: the posterior of each word from what each source token alone says of it."""
    joint_TS = forced.attention_BTLNS[0, :, 0, 0] * likelihoods_TS
    return joint_TS / joint_TS.sum(axis=1, keepdims=True)


def test_it_is_bayes_rule_over_what_the_decoder_would_say_from_each_token_alone():
    plain, telling = engines("luong2015")
    batch = alone(BATCH, 2)
    forced, num = telling.force(batch), batch.source_BS.shape[1]
    read, said = batch.forced_in_BT[0], batch.target_out_BT[0]
    likelihoods = np.zeros((len(said), num))
    for step, place in product(range(len(said)), range(num)):
        # Until this step the decoder looks as it does; at this step at one token only.
        state = plain.start(batch)
        for id in read[:step]:
            state = plain.step(state, np.array([id])).state

        def only(name, value, place=place):
            return np.eye(num, dtype=np.float32)[None, place] if name == "attention.weights" else value

        logits = plain.step(state, read[step : step + 1], only).logits_RV[0]
        likelihoods[step, place] = likelihood(said[step], logits, forced.logits_BTV[0, step])
    np.testing.assert_allclose(forced.origin_BTS[0, 1:], posteriors(forced, likelihoods)[:-1], atol=2e-5)


@pytest.mark.parametrize("name", ["bahdanau2015", "StepAttendStep-additive-gru-after"])
def test_where_the_cell_reads_the_context_too_the_readout_alone_is_asked(name):
    _, telling = engines(name)
    batch = alone(BATCH, 1)
    kept = {"memory": [], "top": [], "target.embedded": []}
    top = f"decoder.{telling.options.num_layers - 1}.state"

    def probe(name, value):
        kept.get("top" if name == top else name, []).append(value)
        return value

    forced = force_by_steps(telling, batch, probe)
    w, said = telling.readout, batch.target_out_BT[0]
    likelihoods = np.zeros((len(said), batch.source_BS.shape[1]))
    for step, word in enumerate(said):
        own = normed(linear(kept["top"][step], w["U_o"], w.get("b_m")), "norms.U_o", w)
        own = own + normed(linear(kept["target.embedded"][step], w["V_o"]), "norms.V_o", w)
        sums = own + normed(linear(kept["memory"][0][0], w["C_o"]), "norms.C_o", w)
        t = maxout(sums) if telling.options.readout == "maxout" else np.tanh(sums)
        t = linear(t, w["P_o"]) if "P_o" in w else t
        logits = linear(t, telling.W_o, telling.b_o)
        likelihoods[step] = [likelihood(word, row, forced.logits_BTV[0, step]) for row in logits]
    np.testing.assert_allclose(forced.origin_BTS[0, 1:], posteriors(forced, likelihoods)[:-1], atol=2e-5)


@pytest.mark.parametrize("name", AFTER)
def test_it_changes_no_number_and_is_the_same_alone_and_in_a_batch(name):
    plain, telling = engines(name)
    long = random_batch(seed=4, rows=5, longest=14)  # more tokens than are weighed
    without, whole = plain.force(long), telling.force(long)
    np.testing.assert_array_equal(without.logits_BTV, whole.logits_BTV)
    assert without.origin_BTS is None and whole.origin_BTS.dtype == np.float32
    for row in range(len(long.source_BS)):
        single = telling.force(alone(long, row)).origin_BTS[0]
        num_steps, num_tokens = single.shape
        np.testing.assert_allclose(whole.origin_BTS[row, :num_steps, :num_tokens], single, atol=1e-5)
        np.testing.assert_allclose(single.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("name", AFTER)
@pytest.mark.parametrize("search", [GREEDY, BeamOptions(beam_size=3, coverage_penalty=0.3)], ids=str)
def test_a_search_tells_of_its_translations_what_a_forced_pass_tells(name, search):
    _, telling = engines(name)
    sources = BATCH.source_BS
    task = Task(BATCH, np.full(len(sources), 9), AFTERWARDS.looks)
    found = greedy(telling, task) if search is GREEDY else beam(telling, task, search, 3)
    for row, one in enumerate(found):
        for said in one.hypotheses:
            target = Ragged.of([np.array(said.ids)])
            source = Ragged.of([sources[row][sources[row] >= EOS][:-1]])
            origin_TS = telling.force(make_batch(source, target, np.arange(1))).origin_BTS[0]
            num_said = len(said.attention_TS)
            np.testing.assert_allclose(said.attention_TS, origin_TS[:num_said], atol=1e-5)


def test_a_model_file_keeps_the_reading_and_refuses_one_that_its_design_has_not(tmp_path):
    path = tmp_path / "m.regard"
    save_model(path, replace(model_of("luong2015"), reading=AFTERWARDS))
    assert load_model(path).reading == AFTERWARDS
    without = [
        DESIGNS["vaswani2017"],
        DESIGNS["AttendThenStep-dot-global"].model_copy(update={"readout": "linear"}),
    ]
    for options in without:
        vocab = model_of("luong2015").tokenizers.source.vocab_size
        model = replace(model_of("luong2015"), options=options, weights=random_weights(options, vocab, vocab))
        save_model(tmp_path / "other.regard", model)
        assert not tells_posterior(options)
        with pytest.raises(ModelFileError, match="no posterior attention"):
            save_model(path, replace(model, reading=AFTERWARDS))
    assert load_model(path).reading == AFTERWARDS


def test_it_is_among_the_readings_that_are_compared():
    _, telling = engines("bahdanau2015")
    ranked = rank_readings(telling, [random_batch(seed=seed) for seed in range(4)])
    assert AFTERWARDS in [reading for reading, _ in ranked] and len(ranked) == 3
    assert len(rank_readings(random_engine(DESIGNS["bahdanau2015"]), [BATCH, BATCH])) == 2
