"""The models are what the papers say: twins that must agree, counts, masks, invariances and gradients."""

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from small import (  # noqa: E402
    SAME_BUT_FOR_SIZE,
    SIZES,
    VOCAB,
    batch_of,
    greedy,
    ids_of,
    pairs_of,
    random_batch,
    shrink,
    with_dropout,
)

from regard.contract import Ragged, follow, force_by_steps, make_batch, make_feature_batch  # noqa: E402
from regard.errors import ConfigError, CorpusError  # noqa: E402
from regard.model.build import (  # noqa: E402
    build_model,
    count_parameters,
    export_arrays,
    freeze_rows,
    frozen_rows,
    import_arrays,
    load_vectors,
    weight_name,
)
from regard.model.cells import Cell  # noqa: E402
from regard.model.engine import TorchEngine, batch_loss, forced_logits, forced_readouts  # noqa: E402
from regard.model.noise import Noise  # noqa: E402
from regard.model.presets import PRESETS  # noqa: E402
from regard.model.rnn import RecurrentModel, gold_probability  # noqa: E402
from regard.model.transformer import TransformerModel  # noqa: E402
from regard.options.model import (  # noqa: E402
    FeatureSource,
    RecurrentOptions,
    StepAttendStep,
    TransformerOptions,
)
from regard.options.parse import parse  # noqa: E402
from regard.options.text import WordOptions  # noqa: E402
from regard.probes import (  # noqa: E402
    Recorder,
    force_weights,
    lift_mask,
    remove_positions,
    switch_off_head,
    together,
)
from regard.runtime.build import build_engine  # noqa: E402
from regard.text.tokenizer import Tokenizer  # noqa: E402
from regard.text.vectors import vectors_for  # noqa: E402
from regard.vocabulary import BOS, NUM_RESERVED, PAD  # noqa: E402

# Made small, regard-base is regard-small.
SMALL = {name: shrink(options) for name, options in PRESETS.items() if name not in SAME_BUT_FOR_SIZE}
SMALL["nematus"] = shrink(
    RecurrentOptions(cell="gru-after", attention=StepAttendStep(), readout="tanh", layer_norm=True)
)
SMALL["ssru"] = shrink(TransformerOptions(decoder_self="ssru", norm="post"))
EVERY = pytest.mark.parametrize("options", SMALL.values(), ids=SMALL)


def rough_model(options, seed=0, scale=0.3):
    """A model whose every weight, biases too, is some way from its start, in double precision."""
    model = build_model(options, VOCAB, VOCAB, seed).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += scale * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return model


def twins(options, seed=0):
    """The same weights in PyTorch and in NumPy, in double precision."""
    model = rough_model(options, seed)
    return TorchEngine(model), build_engine(options, export_arrays(model))


def biggest_difference(recorded, other):
    """The largest difference in any quantity, as a share of its largest value if that is above 1."""
    assert set(recorded) == set(other)
    differences = [0.0]
    for name in recorded:
        for one, two in zip(recorded[name], other[name], strict=True):
            assert one.shape == two.shape, name
            difference = np.abs(one.astype(float) - two).max(initial=0)
            differences.append(difference / max(1, np.abs(one.astype(float)).max(initial=0)))
    return max(differences)


def record(engine, batch):
    recorder = Recorder()
    forced = force_by_steps(engine, batch, recorder)
    return recorder, forced


@EVERY
def test_pytorch_and_numpy_agree_in_every_recorded_quantity(options):
    torch_engine, numpy_engine = twins(options)
    batch = random_batch(1)
    (seen, forced), (seen_too, forced_too) = record(torch_engine, batch), record(numpy_engine, batch)
    assert biggest_difference(seen, seen_too) < 1e-10
    np.testing.assert_allclose(forced.logits_BTV, forced_too.logits_BTV, atol=1e-10)
    np.testing.assert_allclose(forced.attention_BTLNS, forced_too.attention_BTLNS, atol=1e-10)


@pytest.mark.parametrize("cls", [RecurrentOptions, TransformerOptions])
def test_pytorch_and_numpy_agree_for_every_pair_of_option_values(cls):
    for options in pairs_of(cls, seed=1):
        if options.source.kind == "features":
            continue
        torch_engine, numpy_engine = twins(options)
        batch = random_batch(2)
        assert biggest_difference(record(torch_engine, batch)[0], record(numpy_engine, batch)[0]) < 1e-9, (
            options
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_pytorch_and_numpy_agree_to_1e_5_at_the_width_of_the_paper(name):
    model = build_model(PRESETS[name], VOCAB, VOCAB)
    batch = random_batch(3)
    engines = TorchEngine(model), build_engine(PRESETS[name], export_arrays(model))
    seen, seen_too = (record(engine, batch)[0] for engine in engines)
    assert biggest_difference(seen, seen_too) < 1e-5


@EVERY
def test_stepping_gives_what_the_whole_pass_gives(options):
    model = rough_model(options)
    batch = random_batch(4)
    with torch.no_grad():
        whole_BTV = forced_logits(model, batch).numpy()
    real_BT = batch.target_out_BT != PAD
    numpy_engine = build_engine(options, export_arrays(model))
    stepped = [
        TorchEngine(model).force(batch),
        force_by_steps(numpy_engine, batch),
        numpy_engine.force(batch),
    ]
    for forced in stepped:
        np.testing.assert_allclose(forced.logits_BTV[real_BT], whole_BTV[real_BT], atol=1e-10)


@EVERY
def test_padding_gets_no_weight(options):
    for engine in twins(options):
        batch = batch_of(("abcdef", "abc"), ("a", "abcdefgh"), ("abc", "a"))
        attention_BTLNS = engine.force(batch).attention_BTLNS
        padding_BS = ~batch.source_real_BS
        assert not np.moveaxis(attention_BTLNS, -1, 1)[padding_BS].any()


@EVERY
def test_weights_sum_to_one_but_for_the_gaussian_of_local_p(options):
    for engine in twins(options):
        total = engine.force(random_batch(5)).attention_BTLNS.sum(-1)
        if options.kind == "recurrent" and "local-p" in str(options.attention):
            assert (total > 0).all() and (total <= 1 + 1e-9).all()
        else:
            np.testing.assert_allclose(total, 1)


def test_a_decoder_sees_no_word_to_come():
    for engine in twins(SMALL["vaswani2017"]):
        recorder = Recorder("decoder.*.self.weights")
        engine.force(random_batch(6), recorder)
        for name in recorder:
            (weights_BNTT,) = recorder[name]
            assert not np.triu(weights_BNTT, 1).any()
            assert (weights_BNTT[np.tril(np.ones_like(weights_BNTT)) == 1] > 0).all()


@EVERY
def test_a_later_word_changes_no_earlier_score(options):
    _, engine = twins(options)
    logits_TV = engine.force(batch_of(("abcd", "abcdef"))).logits_BTV[0]
    changed_TV = engine.force(batch_of(("abcd", "abcjjj"))).logits_BTV[0]
    np.testing.assert_allclose(logits_TV[:4], changed_TV[:4], atol=1e-12)
    assert np.abs(logits_TV[4:] - changed_TV[4:]).max() > 1e-3


@EVERY
def test_the_source_reaches_every_word(options):
    _, engine = twins(options)
    one, other = batch_of(("abcd", "abcdef")), batch_of(("abcj", "abcdef"))
    difference_TV = np.abs(engine.force(one).logits_BTV - engine.force(other).logits_BTV)[0]
    assert (difference_TV.max(-1) > 1e-6).all()


BATCH_TOLERANCE = 2e-5
"""How far a logit of a small model in single precision may move with its neighbours in a batch."""


@EVERY
def test_a_sentence_does_not_depend_on_its_batch(options):
    model = rough_model(options).float()
    for engine in (TorchEngine(model), build_engine(options, export_arrays(model))):
        words = [("abcde", "jihg"), ("a", "abcdefghij"), ("abcdefghij", "b"), ("dcba", "ab"), ("ij", "ja")]
        together_ = engine.force(batch_of(*words)).logits_BTV
        backwards = engine.force(batch_of(*words[::-1])).logits_BTV[::-1]
        for row, (source, target) in enumerate(words):
            alone_TV = engine.force(batch_of((source, target))).logits_BTV[0]
            length = len(target) + 1
            for batched_BTV in (together_, backwards):
                np.testing.assert_allclose(batched_BTV[row, :length], alone_TV, atol=BATCH_TOLERANCE, rtol=0)


@EVERY
def test_rows_can_be_chosen_repeated_and_left_out(options):
    for engine in twins(options):
        batch = random_batch(8)
        state = engine.step(engine.start(batch), np.full(4, BOS)).state
        ids_R = ids_of("abcd")
        logits_RV = engine.step(state, ids_R).logits_RV
        rows = np.array([2, 0, 0, 3, 2])
        chosen = engine.step(state.select(rows), ids_R[rows])
        np.testing.assert_allclose(chosen.logits_RV, logits_RV[rows], atol=1e-12)
        again = engine.step(chosen.state.select(np.array([4, 1])), ids_of("ij"))
        straight = engine.step(engine.step(state, ids_R).state, ids_of("ijij")[[1, 1, 0, 0]])
        np.testing.assert_allclose(again.logits_RV[0], straight.logits_RV[2], atol=1e-12)
        np.testing.assert_allclose(again.logits_RV[1], straight.logits_RV[0], atol=1e-12)


@EVERY
def test_gradients_are_those_of_finite_differences(options):
    """With all dropout on: the same noise gives the same function, which can be differentiated by hand."""
    options = with_dropout(shrink(options, hidden_size=4, embedding_size=4, feed_forward_size=5), 0.2)
    model = rough_model(options)
    batch = random_batch(9)

    def loss():
        return batch_loss(model, batch, Noise(1, 2), 0.1).smoothed

    loss().backward()
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        expected = (parameter.grad * direction).sum().item()
        values = []
        with torch.no_grad():
            for sign in (1e-6, -2e-6):
                parameter += sign * direction
                values.append(loss().item())
            parameter += 1e-6 * direction
        assert (values[0] - values[1]) / 2e-6 == pytest.approx(expected, rel=1e-4, abs=1e-6), name


def on_paper(name, source_vocab, target_vocab):
    """The model of a paper without the memory for it."""
    options = PRESETS[name]
    kind = RecurrentModel if options.kind == "recurrent" else TransformerModel
    with torch.device("meta"):
        return kind(options, source_vocab, target_vocab)


def test_sutskever_2014_has_the_384_million_weights_of_the_paper():
    model = on_paper("sutskever2014", 160_000, 80_000)
    biases = sum(p.numel() for n, p in model.named_parameters() if n.endswith((".b", "b_o")))
    assert count_parameters(model) - biases == 384_000_000
    recurrent = sum(p.numel() for m in model.modules() if isinstance(m, Cell) for p in (m.W, *m.U))
    assert recurrent == 64_000_000


def test_cho_2014_has_the_weights_of_its_appendix():
    K, m, n = 15_000, 100, 1000
    maxout = 500
    encoder = 3 * (n * m + n * n) + 3 * n
    decoder = 3 * (n * m + n * n + n * n) + 3 * n
    summary = n * n + n * n
    readout = 2 * maxout * (n + m + n) + 2 * maxout
    output = m * maxout + K * m + K
    embeddings = 2 * K * m
    total = embeddings + encoder + decoder + summary + readout + output
    assert count_parameters(on_paper("cho2014", K, K)) == total


def test_bahdanau_2015_has_the_weights_of_its_appendix():
    K, m, n, n_alignment, maxout = 30_000, 620, 1000, 1000, 500
    encoder = 2 * (3 * (n * m + n * n) + 3 * n)
    decoder = 3 * (n * m + n * n + n * 2 * n) + 3 * n
    alignment = n_alignment * n + n_alignment * 2 * n + n_alignment + n_alignment
    first_state = n * n
    readout = 2 * maxout * (n + m + 2 * n) + 2 * maxout
    output = K * maxout + K
    total = 2 * K * m + encoder + decoder + alignment + first_state + readout + output
    assert count_parameters(on_paper("bahdanau2015", K, K)) == total


def test_luong_2015_has_the_weights_of_its_equations():
    K, d = 50_000, 1000
    lstm = 4 * (d * d + d * d) + 4 * d
    first_decoder_layer = lstm + 4 * d * d
    attention = d * d + (d * d + d) + 2 * d * d
    total = 2 * K * d + 4 * lstm + first_decoder_layer + 3 * lstm + attention + K * d + K
    assert count_parameters(on_paper("luong2015", K, K)) == total


def test_vaswani_2017_has_the_65_million_weights_of_the_paper():
    V, d, d_ff, layers = 37_000, 512, 2048, 6
    feed_forward, norm = 2 * d * d_ff + d_ff + d, 2 * d
    encoder = layers * (4 * d * d + feed_forward + 2 * norm)
    decoder = layers * (8 * d * d + feed_forward + 3 * norm)
    total = count_parameters(on_paper("vaswani2017", V, V))
    assert total == V * d + encoder + decoder
    assert total == pytest.approx(65e6, rel=0.04)


def test_bahdanau_2015_starts_as_its_appendix_says():
    options = shrink(PRESETS["bahdanau2015"], hidden_size=64, embedding_size=64)
    model = build_model(options, VOCAB, VOCAB)
    scorer = model.decoder.attention.scorer
    assert scorer.v_a.abs().max() == 0 and scorer.b_a.abs().max() == 0
    for alignment in (scorer.W_a, scorer.U_a):
        assert alignment.std().item() == pytest.approx(0.001, rel=0.1)
    assert model.target.weight.std().item() == pytest.approx(0.01, rel=0.1)
    for U in model.decoder.cells[0].U:
        for block in U.split(64):
            torch.testing.assert_close(block @ block.T, torch.eye(64), atol=1e-5, rtol=0)


def test_a_uniform_start_stays_within_its_bound():
    model = build_model(SMALL["sutskever2014"], VOCAB, VOCAB)
    weights = torch.cat([p.flatten() for n, p in model.named_parameters() if not n.endswith((".b", "b_o"))])
    assert 0.079 < weights.abs().max() <= 0.08


def test_positions_are_the_only_thing_a_transformer_knows_of_order():
    for engine in twins(SMALL["vaswani2017"]):
        first, second = (engine.force(batch, remove_positions).logits_BTV for batch in same_letters())
        np.testing.assert_allclose(first, second, atol=1e-12)
        first, second = (engine.force(batch).logits_BTV for batch in same_letters())
        assert np.abs(first - second).max() > 1e-3


def same_letters():
    """Two sources of the same ids, `</s>` among them, in different orders."""
    batch = batch_of(("abcd", "ab"))
    return batch, replace(batch, source_BS=batch.source_BS[:, [3, 1, 4, 0, 2]])


def test_a_forced_row_is_where_the_decoder_looks():
    for name in ("bahdanau2015", "luong2015"):
        for engine in twins(SMALL[name]):
            batch, recorder = batch_of(("abc", "ab")), Recorder("attention.*", "memory")
            forced = engine.force(batch, together(force_weights("attention.weights", [0, 1, 0, 0]), recorder))
            np.testing.assert_array_equal(forced.attention_BTLNS[0, :, 0, 0], [[0, 1, 0, 0]] * 3)
            for context_RH in recorder["attention.context"]:
                np.testing.assert_allclose(context_RH[0], recorder["memory"][0][0, 1], atol=1e-12)
            assert np.abs(forced.logits_BTV - engine.force(batch).logits_BTV).max() > 1e-4


def test_a_forced_row_must_fit_the_source():
    _, engine = twins(SMALL["bahdanau2015"])
    with pytest.raises(ValueError, match=r"attention\.weights has 4 source tokens, and 2 weights were given"):
        engine.force(batch_of(("abc", "ab")), force_weights("attention.weights", [0, 1]))


@pytest.mark.parametrize("row", [[0.5, 0.2], [1.5, -0.5], [[1.0]]])
def test_a_forced_row_must_be_a_row_of_weights(row):
    with pytest.raises(ValueError, match="weights to force must be one row, none negative, that sums to 1"):
        force_weights("attention.weights", row)


def test_a_recurrent_model_has_no_head_to_force():
    _, engine = twins(SMALL["bahdanau2015"])
    with pytest.raises(ValueError, match=r"attention\.weights has no heads"):
        engine.force(batch_of(("a", "a")), force_weights("attention.weights", [1, 0], head=0))


def test_one_head_can_be_forced_or_switched_off():
    for engine in twins(SMALL["vaswani2017"]):
        batch, recorder = batch_of(("abc", "ab")), Recorder("decoder.1.cross.*")
        probe = together(force_weights("decoder.1.cross.weights", [1, 0, 0, 0], head=1), recorder)
        attention_TLNS = engine.force(batch, probe).attention_BTLNS[0]
        np.testing.assert_array_equal(attention_TLNS[:, 1, 1], [[1, 0, 0, 0]] * 3)
        assert (attention_TLNS[:, 1, 0] > 0).all()
        plain = engine.force(batch).logits_BTV
        assert (
            np.abs(engine.force(batch, switch_off_head("decoder.1.cross", 0)).logits_BTV - plain).max() > 1e-4
        )
        both_off = together(
            switch_off_head("decoder.1.cross", 0), switch_off_head("decoder.1.cross", 1), recorder
        )
        engine.force(batch, both_off)
        assert not recorder["decoder.1.cross.output"][-1].any()


@EVERY
def test_a_forced_prefix_is_followed_by_the_engines_own_words(options):
    for engine in twins(options):
        batch = batch_of(("abc", "defg"), ("jih", "efgh"))
        step = follow(engine, engine.start(batch), batch.target_in_BT[:, :4])
        np.testing.assert_allclose(step.logits_RV, engine.force(batch).logits_BTV[:, 3], atol=1e-12)
        after = engine.step(step.state, batch.target_in_BT[:, 4])
        np.testing.assert_allclose(after.logits_RV, engine.force(batch).logits_BTV[:, 4], atol=1e-12)


def test_without_its_mask_a_decoder_sees_the_words_to_come():
    for engine in twins(SMALL["vaswani2017"]):
        one, other = batch_of(("abc", "abcd")), batch_of(("abc", "abcj"))
        first, second = (engine.force(batch, lift_mask).logits_BTV[0, 0] for batch in (one, other))
        assert np.abs(first - second).max() > 1e-4


@EVERY
def test_an_engine_that_is_watched_says_the_same(options):
    _, engine = twins(options)
    batch = random_batch(10)
    assert np.array_equal(engine.force(batch, Recorder()).logits_BTV, engine.force(batch).logits_BTV)


@EVERY
def test_what_a_probe_changes_is_changed_in_both_engines(options):
    """Every quantity in turn is moved a little; the scores move, and in both engines alike."""
    torch_engine, numpy_engine = twins(options)
    batch = random_batch(15)
    recorder, forced = record(numpy_engine, batch)
    names = [name for name in recorder if recorder[name][0].dtype != bool]
    assert len(names) > 10
    # Without attention the decoder gets to know the last states only.
    fixed = options.kind == "recurrent" and options.attention.kind == "none"
    unused = ["memory", *(name for name in names if name.endswith("ward.states"))] if fixed else []
    for changed in names:

        def probe(name, value, changed=changed):
            return (
                value + 0.1 * np.cos(np.arange(value.size).reshape(value.shape)) if name == changed else value
            )

        results = [force_by_steps(engine, batch, probe).logits_BTV for engine in (torch_engine, numpy_engine)]
        np.testing.assert_allclose(*results, atol=1e-9, err_msg=changed)
        assert changed in unused or np.abs(results[0] - forced.logits_BTV).max() > 1e-9, changed


def test_an_engine_without_rows_has_nothing_to_say():
    for options in SMALL.values():
        for engine in twins(options):
            batch = random_batch(16)
            state = engine.step(engine.start(batch), np.full(4, BOS)).state
            none = engine.step(state.select(np.empty(0, np.int64)), np.empty(0, np.int64))
            assert none.logits_RV.shape == (0, VOCAB)


def test_context_is_the_weighted_sum_of_memories():
    for name in ("bahdanau2015", "luong2015", "regard-rnn"):
        _, engine = twins(SMALL[name])
        recorder, _ = record(engine, random_batch(11))
        memory_BSH = recorder["memory"][0]
        for weights_BS, context_BH in zip(
            recorder["attention.weights"], recorder["attention.context"], strict=True
        ):
            np.testing.assert_allclose(
                np.einsum("bs,bsh->bh", weights_BS, memory_BSH), context_BH, atol=1e-12
            )


def test_dropout_is_a_function_of_the_noise():
    for options in SMALL.values():
        model = rough_model(with_dropout(options, 0.3))
        batch = random_batch(12)
        losses = [
            batch_loss(model, batch, noise, 0.1).smoothed.item()
            for noise in (Noise(1, 1), Noise(1, 1), Noise(1, 2), None, None)
        ]
        assert losses[0] == losses[1] != losses[2]
        assert losses[3] == losses[4] not in losses[:3]


@pytest.mark.parametrize("cls", [RecurrentOptions, TransformerOptions])
def test_every_kind_of_dropout_does_something(cls):
    none = with_dropout(shrink(cls(num_layers=2) if cls is RecurrentOptions else cls()), 0.0)
    batch = random_batch(13)
    kinds = [name for name in cls.model_fields if name.endswith("dropout")]
    assert len(kinds) == 4
    for kind in kinds:
        options = none.model_copy(update={kind: 0.5})
        model = build_model(options, VOCAB, VOCAB)
        assert batch_loss(model, batch, Noise(1, 1), 0).nll != batch_loss(model, batch, None, 0).nll
    model = build_model(none, VOCAB, VOCAB)
    assert batch_loss(model, batch, Noise(1, 1), 0).nll == batch_loss(model, batch, None, 0).nll


def test_variational_dropout_drops_the_same_at_every_step():
    """A model without memory of its own, given the same word again and again, then says the same again and again."""
    for variational in (True, False):
        options = shrink(
            RecurrentOptions(
                dropout=0.5, variational=variational, cell="rnn", attention="none", reading="forward"
            )
        )
        model = rough_model(options)
        with torch.no_grad():
            for cell in model.decoder.cells:
                cell.U[0].zero_()
        batch = batch_of(("ab", "aaaaaa"))
        readout_TQ = forced_readouts(model, batch, Noise(1, 1))[0, 1:]
        assert torch.allclose(readout_TQ, readout_TQ[:1]) == variational


def test_the_right_word_is_read_less_and_less_often():
    def probs(steps, **teacher):
        options = parse("model", {"kind": "recurrent", "teacher": teacher}).teacher
        return [gold_probability(options, step) for step in steps]

    assert probs([0, 10**6], kind="forcing") == [1, 1]
    assert probs([0, 10**6], kind="constant", gold_prob=0.8) == [0.8, 0.8]
    linear = probs([0, 50, 100, 1000], kind="linear", lowest_gold_prob=0.5, decay_steps=100)
    assert linear == pytest.approx([1, 0.75, 0.5, 0.5])
    k = 10
    sigmoid = probs([0, 20, 10**6], kind="inverse-sigmoid", decay_steps=k)
    assert sigmoid == pytest.approx([k / (k + 1), k / (k + math.exp(2)), 0], abs=1e-9)


def test_a_decoder_that_reads_its_own_words_does_not_read_the_right_ones():
    options = shrink(RecurrentOptions(teacher={"kind": "constant", "gold_prob": 0.0}, dropout=0.0))
    model = build_model(options, VOCAB, VOCAB)
    one, other = batch_of(("abc", "abcde")), batch_of(("abc", "jihgf"))
    readouts = [
        model(
            torch.from_numpy(b.source_BS),
            torch.from_numpy(b.source_real_BS),
            torch.from_numpy(b.target_in_BT),
            Noise(1, 1),
        )
        for b in (one, other)
    ]
    torch.testing.assert_close(*readouts)
    said = greedy(TorchEngine(model), one, 6)[0]
    own = replace(one, target_in_BT=np.array([[BOS, *said][:6]]))
    with torch.no_grad():
        forced = model(
            torch.from_numpy(own.source_BS),
            torch.from_numpy(own.source_real_BS),
            torch.from_numpy(own.target_in_BT),
            None,
        )
    torch.testing.assert_close(readouts[0][:, : forced.shape[1]], forced)


@pytest.mark.parametrize("variational", [True, False])
def test_sampling_that_never_samples_is_teacher_forcing(variational):
    dropouts = {"dropout": 0.3, "word_dropout": 0.2, "variational": variational}
    forced = shrink(RecurrentOptions(**dropouts))
    sampled = shrink(RecurrentOptions(**dropouts, teacher={"kind": "constant", "gold_prob": 1 - 1e-12}))
    model, twin = build_model(forced, VOCAB, VOCAB), build_model(sampled, VOCAB, VOCAB)
    import_arrays(twin, export_arrays(model))
    batch = random_batch(14)
    losses = [batch_loss(m, batch, Noise(1, 1), 0.1).smoothed.item() for m in (model, twin)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_feature_vectors_go_through_the_same_contract():
    rng = np.random.default_rng(1)
    for name in ("bahdanau2015", "vaswani2017"):
        options = SMALL[name].model_copy(
            update={"source": parse("model", {"source": {"kind": "features", "feature_size": 3}}).source}
        )
        features = [rng.standard_normal((n, SIZES["feature_size"])).astype("f4") for n in (4, 2)]
        targets = Ragged.of([ids_of("abc"), ids_of("a")])
        batch = make_feature_batch(features, targets, np.arange(2))
        torch_engine, numpy_engine = twins(options)
        seen, seen_too = (record(engine, batch)[0] for engine in (torch_engine, numpy_engine))
        assert biggest_difference(seen, seen_too) < 1e-10
        alone = make_feature_batch(features[1:], Ragged.of([ids_of("a")]), np.arange(1))
        np.testing.assert_allclose(
            numpy_engine.force(alone).logits_BTV[0], numpy_engine.force(batch).logits_BTV[1, :2], atol=1e-10
        )


def test_a_batch_without_targets_cannot_be_forced():
    batch = make_batch(Ragged.of([ids_of("abc")]), None, np.arange(1))
    with pytest.raises(ValueError, match="no targets"):
        twins(SMALL["regard-rnn"])[1].force(batch)


def words_and_vectors(write, width):
    """A tokenizer of whole words, and vectors for two of its three words."""
    tokenizer = Tokenizer.learn(["le chat noir", "le chat", "le"], WordOptions(vocab_size=NUM_RESERVED + 4))
    rows = {"le": range(width), "chat": range(10, 10 + width)}
    text = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows.items())
    return tokenizer, vectors_for(write("some.vec", text), tokenizer), rows


def load(model, side, vectors, found=None):
    found = vectors.found if found is None else found
    load_vectors(model, side, np.flatnonzero(found), vectors.table[found])


def test_vectors_from_outside_start_the_embeddings(write):
    tokenizer, vectors, rows = words_and_vectors(write, 6)
    model = build_model(SMALL["bahdanau2015"], tokenizer.vocab_size, VOCAB)
    before = model.source.weight.detach().clone()
    load(model, "source", vectors)
    assert str(vectors.coverage) == "some.vec: 2 of 3 whole-word pieces found (66.7 %), 0 of them lower-cased"
    ids = {word: int(tokenizer.encode(word).ids[0]) for word in ("le", "chat", "noir")}
    for word, row in rows.items():
        assert model.source.weight[ids[word]].tolist() == list(row)
    torch.testing.assert_close(model.source.weight[ids["noir"]], before[ids["noir"]])


@pytest.mark.parametrize("frozen", [True, False])
def test_frozen_vectors_stay_while_the_others_are_learnt(write, frozen):
    tokenizer, vectors, _ = words_and_vectors(write, 6)
    model = build_model(SMALL["bahdanau2015"], tokenizer.vocab_size, VOCAB)
    load(model, "source", vectors)
    if frozen:
        freeze_rows(model, {"source.weight": vectors.found})
    ids = [tokenizer.encode(text).ids for text in ("le chat noir", "noir")]
    batch = make_batch(Ragged.of(ids), Ragged.of([ids_of("ab"), ids_of("a")]), np.arange(2))
    before = export_arrays(model)["source.weight"]
    optimiser = torch.optim.Adam(model.parameters(), 0.1)
    for step in range(3):
        optimiser.zero_grad()
        batch_loss(model, batch, Noise(1, step), 0.1).smoothed.backward()
        optimiser.step()
    changed_V = (export_arrays(model)["source.weight"] != before).any(1)
    le, chat, noir = ids[0]
    assert changed_V[noir]
    assert changed_V[[le, chat]].tolist() == [not frozen, not frozen]


def test_vectors_of_both_sides_of_one_table_stay(write):
    tokenizer, vectors, _ = words_and_vectors(write, 8)
    model = build_model(SMALL["regard-small"], tokenizer.vocab_size, tokenizer.vocab_size)
    half = vectors.found & (np.arange(len(vectors.found)) % 2 == 0)
    for side, found in (("source", half), ("target", vectors.found & ~half)):
        load(model, side, vectors, found)
        freeze_rows(model, {weight_name(model, side): found})
    (rows,) = frozen_rows(model).values()
    np.testing.assert_array_equal(rows, vectors.found)
    np.testing.assert_array_equal(export_arrays(model)["source.weight"][rows], vectors.table[vectors.found])


def test_weights_of_another_design_are_refused():
    model = build_model(SMALL["regard-rnn"], VOCAB, VOCAB)
    arrays = export_arrays(model)
    with pytest.raises(
        ConfigError, match=r"weight 'decoder\.C' has shape \(1,\) and the model wants \(24, 16\)"
    ):
        import_arrays(model, arrays | {"decoder.C": np.zeros(1, "f4")})
    with pytest.raises(ConfigError, match=r"weight 'more' has shape \(1,\) and the model wants None"):
        import_arrays(model, arrays | {"more": np.zeros(1, "f4")})


def test_a_batch_that_the_encoder_cannot_read_is_refused():
    features = make_feature_batch([np.zeros((2, 3), "f4")], None, np.arange(1))
    reads_features = SMALL["regard-small"].model_copy(update={"source": FeatureSource(feature_size=4)})
    for engine in twins(SMALL["regard-small"]):
        with pytest.raises(ConfigError, match="reads text and the batch has feature vectors"):
            engine.start(features)
    for engine in twins(reads_features):
        with pytest.raises(
            ConfigError, match="reads feature vectors of 4 numbers and the batch has feature vectors of 3"
        ):
            engine.start(features)
        with pytest.raises(ConfigError, match="reads feature vectors of 4 numbers and the batch has text"):
            engine.start(random_batch())


@pytest.mark.parametrize("shape", [(0, 3), (2, 4), (3,)])
def test_rows_of_features_must_be_alike_and_not_empty(shape):
    with pytest.raises(CorpusError, match="row 1 of the features has shape"):
        make_feature_batch([np.zeros((2, 3), "f4"), np.zeros(shape, "f4")], None, np.arange(2))


def test_positions_after_the_last_that_has_a_score_get_no_weight():
    options = parse(
        "model", {"kind": "recurrent", "attention": {"scorer": {"kind": "location", "max_positions": 3}}}
    )
    for window in ("global", "local-m", "local-p"):
        changed = options.attention.model_copy(
            update={
                "window": parse(
                    "model", {"kind": "recurrent", "attention": {"window": window}}
                ).attention.window
            }
        )
        engines = twins(shrink(options.model_copy(update={"attention": changed}), max_positions=3))
        batch = batch_of(("abcdef", "abcdefgh"), ("a", "a"))
        first, second = (engine.force(batch) for engine in engines)
        np.testing.assert_allclose(first.logits_BTV, second.logits_BTV, atol=1e-10)
        assert not first.attention_BTLNS[..., 3:].any()
        assert (first.attention_BTLNS.sum(-1) > 0).all()


def test_translating_needs_no_torch():
    code = """
import sys
import regard.runtime.build, regard.probes, regard.model.presets, regard.text.vectors
print([name for name in sys.modules if name == "torch" or name.startswith("torch.")])
"""
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )


@EVERY
def test_a_state_stays_as_it_was_after_steps_from_it(options):
    for engine in twins(options):
        state = follow(
            engine, engine.start(random_batch(17)), np.stack([np.full(4, BOS), ids_of("abcd")], axis=1)
        ).state
        one, other = ids_of("efgh"), ids_of("hijj")
        first, second = engine.step(state, one), engine.step(state, other)
        again = engine.step(state, one)
        np.testing.assert_array_equal(first.logits_RV, again.logits_RV)
        after = [engine.step(step.state, one).logits_RV for step in (first, second, again)]
        np.testing.assert_array_equal(after[0], after[2])
        assert np.abs(after[0] - after[1]).max() > 1e-6
        chosen = engine.step(state.select(np.array([3, 3, 1])), one[[3, 3, 1]]).logits_RV
        np.testing.assert_allclose(chosen, first.logits_RV[[3, 3, 1]], atol=1e-12)


@EVERY
@pytest.mark.parametrize(
    "rows", [[0, 0, 1, 1, 2, 2, 3, 3], [3, 3, 3, 0, 0, 0], [0, 0, 1, 2, 2, 2], [1, 1, 1], [2, 0, 2, 0]]
)
def test_rows_of_one_source_say_what_they_say_alone(options, rows):
    for engine in twins(options):
        rows = np.array(rows)
        state = engine.step(engine.start(random_batch(18)), np.full(4, BOS)).state
        ids_R = ids_of("abcdefgh")[: len(rows)]
        together = engine.step(state.select(rows), ids_R)
        recorder = Recorder()
        watched = engine.step(state.select(rows), ids_R, recorder)
        np.testing.assert_allclose(together.logits_RV, watched.logits_RV, atol=1e-12)
        np.testing.assert_allclose(together.attention_RLNS, watched.attention_RLNS, atol=1e-12)
        last = engine.step(together.state.select(np.arange(len(rows))[::-1]), ids_R)
        for place, row in enumerate(rows):
            alone = engine.step(state.select(np.array([row])), ids_R[[place]])
            np.testing.assert_allclose(together.logits_RV[place], alone.logits_RV[0], atol=1e-12)
            np.testing.assert_allclose(together.attention_RLNS[place], alone.attention_RLNS[0], atol=1e-12)
            back = len(rows) - 1 - place
            np.testing.assert_allclose(
                last.logits_RV[back], engine.step(alone.state, ids_R[[back]]).logits_RV[0], atol=1e-12
            )
        for name in recorder:
            if not name.endswith((".positions", "self.seen")):
                assert len(recorder[name][0]) == len(rows), name
