"""Text in, translations out: none lost, none truncated, and none dependent on its neighbours."""

import random
import subprocess
import sys

import numpy as np
import pytest
from small import random_engine, random_weights, shrink

import regard
from regard.config import CharacterOptions, LearnedPositions
from regard.errors import ConfigError, ModelFileError, SourceError
from regard.model.presets import PRESETS
from regard.modelfile import ModelFile, save_model
from regard.text.tokenizer import TokenizerPair
from regard.translate import Translator

TEXTS = [
    "a bc",
    "",
    "cab cab a",
    "b",
    " \t",
    "“bc” ’a’ cabbage",
    "a b c a b c a b",
    "\n",
    "a\u00a0bc",
    "日本",
]
TOKENIZERS = TokenizerPair.learn(["a bc cab", "“a”"], ["c ab d'", "”"], CharacterOptions(joint=True))
SMALL = {name: shrink(options) for name, options in PRESETS.items() if name != "regard-base"}
FEW = pytest.mark.parametrize(
    "options", [SMALL["bahdanau2015"], SMALL["regard-small"]], ids=["rnn", "transformer"]
)
EVERY = pytest.mark.parametrize("options", SMALL.values(), ids=SMALL)


def translator_of(options):
    return Translator(
        random_engine(options, TOKENIZERS.source.vocab_size, TOKENIZERS.target.vocab_size), TOKENIZERS
    )


def seen(translation):
    return translation.source, translation.text, translation.pieces, translation.complete


@FEW
@pytest.mark.parametrize("beam_size", [1, 3])
def test_every_text_gets_its_translation_in_order_and_blank_stays_blank(options, beam_size):
    found = translator_of(options).translate(TEXTS, beam_size=beam_size)
    assert [one.source for one in found] == TEXTS
    for one in found:
        if one.source.strip():
            assert one.source_pieces[-1] == "</s>"
            assert len(one.pieces) == len(one.probs) == len(one.attention_TS)
            assert (one.pieces[-1] == "</s>") == one.complete
            assert all(0 < prob <= 1 for prob in one.probs)
            assert np.log(one.probs).sum() == pytest.approx(one.log_prob, abs=1e-4)
            ids = [TOKENIZERS.target.pieces.index(piece) for piece in one.pieces]
            assert TOKENIZERS.target.decode(ids) == one.text
        else:
            assert (one.text, one.pieces, one.probs, one.log_prob, one.complete) == ("", (), (), 0, True)


@FEW
@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_text_is_translated_alike_alone_among_others_and_in_any_order(options, beam_size):
    translator = translator_of(options)
    together = translator.translate(TEXTS, beam_size=beam_size)
    for text, one in zip(TEXTS, together, strict=True):
        (alone,) = translator.translate([text], beam_size=beam_size)
        assert seen(alone) == seen(one)
        np.testing.assert_allclose(alone.attention_TS, one.attention_TS, atol=1e-5)
    order = random.Random(1).sample(range(len(TEXTS)), len(TEXTS))
    shuffled = translator.translate([TEXTS[number] for number in order], beam_size=beam_size)
    assert list(map(seen, shuffled)) == [seen(together[number]) for number in order]


@EVERY
def test_attention_is_one_matrix_with_a_column_for_every_source_piece(options):
    (one,) = translator_of(options).translate(["cab a"])
    assert one.source_pieces == ("▁", "c", "a", "b", "▁", "a", "</s>")
    if options.kind == "recurrent" and options.attention.kind == "none":
        assert one.attention_TS.shape == (len(one.pieces), 0)
    else:
        assert one.attention_TS.shape == (len(one.pieces), len(one.source_pieces))
        assert one.attention_TS.min() >= 0
        if options.kind == "transformer":
            np.testing.assert_allclose(one.attention_TS.sum(1), 1, atol=1e-5)


def test_a_transformer_shows_the_mean_head_of_its_last_layer_but_one():
    translator = translator_of(SMALL["regard-small"].model_copy(update={"num_decoder_layers": 3}))
    shown = []

    def probe(name, value):
        if name == "decoder.1.cross.weights":
            shown.append(value[0, :, 0].mean(0))
        return value

    (one,) = translator.translate(["cab a"], beam_size=1)
    engine, step = translator.engine, type(translator.engine).step
    translator.engine = type("Watched", (), {"max_tokens": None, "start": engine.start})()
    translator.engine.step = lambda state, ids_R: step(engine, state, ids_R, probe)
    translator.translate(["cab a"], beam_size=1)
    np.testing.assert_allclose(one.attention_TS, shown, atol=1e-6)


def test_sources_are_cleaned_as_they_were_for_training():
    found = translator_of(SMALL["regard-rnn"]).translate(["“bc”  ’a’", "\"bc\" 'a'", "\ufeff\"bc\" 'a' "])
    assert len({one.text for one in found}) == 1
    assert len({one.source for one in found}) == 3


def test_many_texts_go_in_several_batches_and_progress_counts_them_all():
    texts = [f"{'ab ' * (number % 37)}c" for number in range(150)]
    told = []
    translator = translator_of(SMALL["sutskever2014"])
    found = translator.translate(texts, beam_size=5, on_progress=told.append)
    assert [one.source for one in found] == texts
    assert len(told) > 1 and told == sorted(told) and told[-1] == len(texts)
    told.clear()
    assert len(translator.translate(["", " "], on_progress=told.append)) == 2 and told == [2]
    assert translator.translate([]) == []


def test_a_text_too_long_for_the_model_is_named_and_not_cut():
    options = SMALL["regard-small"].model_copy(update={"positions": LearnedPositions(max_positions=8)})
    translator = translator_of(options)
    (longest,) = translator.translate(["abcabc"])
    assert len(longest.source_pieces) == 8 and len(longest.pieces) <= 8
    with pytest.raises(
        SourceError, match="text 2 has 9 tokens and this model reads no more than 8; split it: 'abcabca'"
    ):
        translator.translate(["a", "abcabca"])


def test_one_text_outside_a_list_and_a_beam_of_none_are_clear_mistakes():
    translator = translator_of(SMALL["regard-rnn"])
    with pytest.raises(TypeError, match="brackets"):
        translator.translate("abc")
    with pytest.raises(ConfigError, match="beam_size = 0"):
        translator.translate(["abc"], beam_size=0)


def test_a_model_file_translates_as_the_model_did(tmp_path):
    options = SMALL["regard-rnn"]
    weights = random_weights(options, TOKENIZERS.source.vocab_size, TOKENIZERS.target.vocab_size)
    save_model(tmp_path / "m.regard", ModelFile(options, weights, TOKENIZERS, None, None, {}, {}))
    found = regard.load(str(tmp_path / "m.regard")).translate(TEXTS)
    assert list(map(seen, found)) == list(map(seen, translator_of(options).translate(TEXTS)))
    with pytest.raises(ModelFileError):
        regard.load(tmp_path / "nowhere.regard")


def test_importing_regard_imports_nothing_heavy():
    code = "import regard, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
