"""Text in, translations out: none lost, none truncated, and none dependent on its neighbours."""

import itertools
import json
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted, one_after_another, straight
from small import SAME_BUT_FOR_SIZE, Brief, random_engine, random_weights, shrink
from small import translator as translator_with

import regard
from regard.errors import ConfigError, ModelFileError, SourceError
from regard.model.presets import PRESETS
from regard.modelfile import ModelFile, save_model
from regard.options.model import LearnedPositions
from regard.options.text import CharacterOptions
from regard.search.task import Found
from regard.text.tokenizer import TokenizerPair
from regard.translate.queue import Queue
from regard.translate.translator import Limits
from regard.vocabulary import EOS, NUM_RESERVED, SPACE, UNK

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
SMALL = {name: shrink(options) for name, options in PRESETS.items() if name not in SAME_BUT_FOR_SIZE}
FEW = pytest.mark.parametrize(
    "options", [SMALL["bahdanau2015"], SMALL["regard-small"]], ids=["rnn", "transformer"]
)
EVERY = pytest.mark.parametrize("options", SMALL.values(), ids=SMALL)
SEARCHES = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 4},
    "beam with all": {"beam_size": 3, "coverage_penalty": 0.2, "diversity": 0.5, "no_repeat_ngram": 2},
    "sample": {"kind": "sample", "top_p": 0.9},
    "risk": {"kind": "risk", "num_samples": 4},
}


def translator_of(options, **more):
    engine = random_engine(options, TOKENIZERS.source.vocab_size, TOKENIZERS.target.vocab_size)
    return translator_with(engine, TOKENIZERS, cls=Brief, **more)


def seen(translation):
    return translation.source, translation.text, translation.pieces, translation.complete, translation.flags


def letters(text):
    """The ids of a text, letter by letter."""
    return tuple(TOKENIZERS.source.encode(text).ids)


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


# What becomes of a text does not depend on the others.


@EVERY
@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_a_text_is_translated_alike_alone_in_company_in_any_order_and_by_several_workers(options, search):
    texts = ["a bc", "cab a", "", "“b", "b"]
    translator = translator_of(options, num_workers=1)
    together = translator.translate(texts, **search)
    for text, one in zip(texts, together, strict=True):
        (alone,) = translator.translate([text], **search)
        assert seen(alone) == seen(one)
        np.testing.assert_allclose(alone.attention_TS, one.attention_TS, atol=1e-4)
    order = random.Random(1).sample(range(len(texts)), len(texts))
    shuffled = translator.translate([texts[number] for number in order], **search)
    assert list(map(seen, shuffled)) == [seen(together[number]) for number in order]
    padded, _ = translator.translate([texts[0], "cab a bc ab"], **search)
    assert seen(padded) == seen(together[0])
    by_two = translator_of(options, num_workers=2, limits=Limits(much_tokens=0)).translate(texts, **search)
    assert list(map(seen, by_two)) == list(map(seen, together))


def test_workers_with_batches_of_their_own_change_nothing():
    many = Limits(batch_tokens=60, much_tokens=0)  # many batches, worth processes
    texts = ["cab " * number for number in range(1, 4)] + ["a", "b", "c", "ab"]
    by_one, by_two = (
        translator_of(SMALL["regard-small"], num_workers=number, limits=many).translate(texts, beam_size=2)
        for number in (1, 2)
    )
    assert list(map(seen, by_one)) == list(map(seen, by_two))


@FEW
@settings(max_examples=6, deadline=None)
@given(st.lists(st.text("abc ’日\n", max_size=7), max_size=5), st.sampled_from(list(SEARCHES)), st.randoms())
def test_any_texts_in_any_order_are_translated_as_each_alone(options, texts, name, rng):
    translator = translator_of(options, num_workers=1)
    order = rng.sample(range(len(texts)), len(texts))
    together = translator.translate([texts[number] for number in order], **SEARCHES[name])
    for number, one in zip(order, together, strict=True):
        (alone,) = translator.translate([texts[number]], **SEARCHES[name])
        assert seen(one) == seen(alone)


class _Doubtful:
    """An engine whose scores are whole numbers, so that many are equal, but for a noise that depends on how
    many rows it is given: what different matrix products do to real models, made much more frequent."""

    def __init__(self, engine):
        self.engine, self.max_tokens, self.start = engine, engine.max_tokens, engine.start

    def step(self, state, ids_R):
        step = self.engine.step(state, ids_R)
        noise_V = np.sin(np.arange(step.logits_RV.shape[1]) * len(ids_R) ** 2)
        logits_RV = np.round(step.logits_RV / 4) + 1e-5 * noise_V.astype(np.float32)
        return type(step)(logits_RV, step.attention_RLNS, step.state)


@pytest.mark.parametrize("search", [{"beam_size": 1}, {"beam_size": 3}], ids=["greedy", "beam"])
def test_a_choice_between_equals_is_made_alone_and_is_the_same_in_any_batch(monkeypatch, search):
    engine = random_engine(SMALL["regard-rnn"], TOKENIZERS.source.vocab_size, TOKENIZERS.target.vocab_size)
    translator = translator_with(_Doubtful(engine), TOKENIZERS, num_workers=1)
    texts = ["".join(some) for some in itertools.product("abc", "ab ", "abc")]

    def differing():
        together = translator.translate(texts, guard=False, **search)
        alone = [translator.translate([text], guard=False, **search)[0] for text in texts]
        return [one.source for one, other in zip(together, alone, strict=True) if seen(one) != seen(other)]

    assert differing() == []
    monkeypatch.setattr(Found, "in_doubt", False)
    assert differing() != []


def test_a_sample_is_the_same_for_the_same_seed_and_another_for_another():
    translator = translator_of(SMALL["regard-rnn"])
    one, again, other = (
        [found.text for found in translator.translate(TEXTS, kind="sample", seed=seed)] for seed in (1, 1, 2)
    )
    assert one == again != other


# Attention.


@EVERY
def test_attention_is_one_matrix_with_a_column_for_every_source_piece(options):
    (one,) = translator_of(options).translate(["cab a"])
    assert one.source_pieces == ("▁", "c", "a", "b", "▁", "a", "</s>")
    if options.kind == "recurrent" and options.attention.kind == "none":
        assert one.attention_TS.shape == (len(one.pieces), 0)
        assert one.links == () and one.word_attention_TS.shape == (len(one.words), 2)
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

    (one,) = translator.translate(["cab a"], beam_size=1, guard=False)
    engine = translator.model.searcher.engine
    watched = type("Watched", (), {"max_tokens": None, "start": engine.start})()
    watched.step = lambda state, ids_R: engine.step(state, ids_R, probe)
    translator_with(watched, TOKENIZERS, cls=Brief).translate(["cab a"], beam_size=1, guard=False)
    np.testing.assert_allclose(one.attention_TS, shown, atol=1e-6)


# What is given and what is asked for.


def test_sources_are_cleaned_as_they_were_for_training():
    found = translator_of(SMALL["regard-rnn"]).translate(["“bc”  ’a’", "\"bc\" 'a'", "\ufeff\"bc\" 'a' "])
    assert len({one.text for one in found}) == 1
    assert len({one.source for one in found}) == 3


def test_signs_without_a_word_are_copied():
    translator = translator_of(SMALL["regard-rnn"])
    for text in (".", "…", "?!", "→ ♥", "😀"):
        (one,) = translator.translate([text])
        assert (one.text, one.flags) == (text, ())
    (one,) = translator.translate(["Abc. ... Bca."])
    assert one.text.count(" ... ") == 1 and "Abc" not in one.text and len(one.parts) == 3


def test_many_texts_go_in_several_batches_and_progress_counts_them_all():
    texts = [f"{'ab ' * (number % 4)}c" for number in range(30)]
    told = []
    translator = translator_of(SMALL["sutskever2014"], limits=Limits(batch_tokens=100))
    found = translator.translate(texts, beam_size=2, guard=False, on_progress=told.append)
    assert [one.source for one in found] == texts
    assert len(told) > 3 and told == sorted(told) and told[-1] == len(texts)
    told.clear()
    assert len(translator.translate(["", " "], on_progress=told.append)) == 2 and told == [2]
    assert translator.translate([]) == []


def test_one_text_outside_a_list_and_a_beam_of_none_are_clear_mistakes():
    translator = translator_of(SMALL["regard-rnn"])
    with pytest.raises(TypeError, match="brackets"):
        translator.translate("abc")
    with pytest.raises(ConfigError, match="beam_size = 0"):
        translator.translate(["abc"], beam_size=0)
    with pytest.raises(ConfigError, match="beam_size"):
        translator.translate(["abc"], beam_sise=2)


@EVERY
@pytest.mark.parametrize(
    "search",
    [
        {"beam_size": 4},
        {"kind": "sample", "temperature": 3.0},
        {"kind": "risk", "num_samples": 6, "temperature": 3.0},
    ],
    ids=["beam", "sample", "risk"],
)
def test_alternatives_differ_and_come_best_first(options, search):
    (one,) = translator_of(options).translate(["cab a"], num_best=4, guard=False, **search)
    texts = [one.text, *(other.text for other in one.alternatives)]
    assert 1 < len(texts) <= 4 and len(set(texts)) == len(texts)
    if search.get("kind") != "risk":  # which is in the order of its risk
        scores = [one.score, *(other.score for other in one.alternatives)]
        assert scores == sorted(scores, reverse=True)


def test_the_alternatives_of_a_beam_are_likelier_than_all_else_that_can_be_said():
    """A beam as wide as the vocabulary, and translations of one piece."""
    tokenizer = TOKENIZERS.target
    scores = {tokenizer.pieces.index("a"): 5.0, tokenizer.pieces.index("b"): 4.0, UNK: 3.0}
    engine = Scripted(tokenizer.vocab_size, lambda source, said: {EOS: 20.0} if said else scores)
    (one,) = translator_with(engine, TOKENIZERS).translate(["a"], num_best=3, beam_size=8, guard=False)
    assert [one.text, *(other.text for other in one.alternatives)] == ["a", "b", "⁇"]


def test_more_alternatives_than_the_beam_is_wide_are_refused():
    translator = translator_of(SMALL["regard-rnn"])
    for num_best in (0, 4):
        with pytest.raises(ConfigError, match=f"num_best = {num_best} .*beam size"):
            translator.translate(["abc"], num_best=num_best, beam_size=3)
    assert len(translator.translate(["abc"], num_best=3, beam_size=3)) == 1


@EVERY
@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_a_translation_begins_with_the_prefix_it_is_given(options, search):
    texts, prefixes = ["cab", "a", "", "b a"], ["c d", "", "a", "ab a"]
    found = translator_of(options).translate(texts, prefixes=prefixes, **search)
    assert all(one.text.startswith(prefix) for one, prefix in zip(found, prefixes, strict=True) if one.source)
    assert found[2].text == ""


def test_every_text_needs_a_prefix_or_none_has_one():
    with pytest.raises(ConfigError, match="2 texts and 1 prefixes"):
        translator_of(SMALL["regard-rnn"]).translate(["a", "b"], prefixes=["c"])


# Given translations.


class _Spelling:
    """An engine that says letters only: bytes and spaces of a random model are not always read as they were said."""

    def __init__(self, engine):
        self.engine, self.max_tokens, self.start = engine, engine.max_tokens, engine.start
        vocab_size = TOKENIZERS.target.vocab_size
        self.bias_V = np.where(np.arange(vocab_size) <= NUM_RESERVED, np.float32(-40), np.float32(0))
        self.bias_V[EOS] = 0

    def step(self, state, ids_R):
        step = self.engine.step(state, ids_R)
        return type(step)(step.logits_RV + self.bias_V, step.attention_RLNS, step.state)

    def force(self, batch):
        forced = self.engine.force(batch)
        return type(forced)(forced.logits_BTV + self.bias_V, forced.attention_BTLNS)


@EVERY
@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_forced_translation_is_as_likely_and_looks_where_it_did_when_it_was_searched(options, beam_size):
    assert TOKENIZERS.target.pieces[NUM_RESERVED] == SPACE
    translator = translator_with(_Spelling(translator_of(options).model.searcher.engine), TOKENIZERS)
    found = translator.translate(
        ["cab a", "“bc” a", "b"], prefixes=["ab", "c d", "'"], beam_size=beam_size, guard=False
    )
    forced = translator.force([one.source for one in found], [one.text for one in found])
    for one, other in zip(found, forced, strict=True):
        num_pieces = len(one.pieces)  # one that was cut does not say </s>
        assert (other.source, other.text, other.pieces[:num_pieces]) == (one.source, one.text, one.pieces)
        assert sum(np.log(other.probs[:num_pieces])) == pytest.approx(one.log_prob, abs=1e-3)
        np.testing.assert_allclose(other.probs[:num_pieces], one.probs, atol=1e-4)
        np.testing.assert_allclose(other.attention_TS[:num_pieces], one.attention_TS, atol=1e-4)
        if one.complete:
            assert other.log_prob == pytest.approx(one.log_prob, abs=1e-3)
            assert other.score == pytest.approx(one.score, abs=1e-3)


def test_what_a_scripted_engine_says_is_forced_alike():
    engine = Scripted(
        TOKENIZERS.target.vocab_size,
        one_after_another(lambda source: [*letters("c ab"), *source]),
        lambda source, said: np.roll(straight(source, ()), len(said)),
    )
    translator = translator_with(engine, TOKENIZERS)
    (one,) = translator.translate(["cab a"], beam_size=4, guard=False)
    (other,) = translator.force(["cab a"], [one.text])
    assert one.text == other.text == "c ab cab a"
    assert one.log_prob == pytest.approx(other.log_prob, abs=1e-5) and one.log_prob < 0
    np.testing.assert_array_equal(one.attention_TS, other.attention_TS)


def test_unlikely_translations_are_less_likely_and_blank_sources_are_refused():
    engine = Scripted(TOKENIZERS.target.vocab_size, one_after_another(lambda source: source))
    translator = translator_with(engine, TOKENIZERS)
    same, other = translator.force(["cab", "cab"], ["cab", "bac"])
    assert same.log_prob > other.log_prob + 20
    with pytest.raises(SourceError, match="source 2 is blank"):
        translator.force(["a", " "], ["a", "b"])
    with pytest.raises(SourceError, match="2 sources and 1 translations"):
        translator.force(["a", "b"], ["a"])


# Long texts.


def copier(window=None, **limits):
    """A translator that says what it reads, looking at each piece as it says it."""
    engine = Scripted(
        TOKENIZERS.target.vocab_size, one_after_another(lambda source: source), straight, **limits
    )
    return translator_with(engine, TOKENIZERS, limits=window)


def test_a_text_too_long_for_the_model_is_split_and_flagged_and_nothing_is_lost():
    options = SMALL["regard-small"].model_copy(update={"positions": LearnedPositions(max_positions=8)})
    fits, too_long = translator_of(options).translate(["abcabc", "abcabca"], guard=False)
    assert len(fits.source_pieces) == 8 and len(fits.pieces) <= 8
    assert "split" not in fits.flags and "split" in too_long.flags
    assert len(fits.parts) == 1 and len(too_long.parts) == 2


@settings(max_examples=40, deadline=None)
@given(st.text("abc .\n’é", max_size=60), st.integers(6, 20))
def test_what_is_split_is_put_together_in_order(text, limit):
    translator = copier(max_tokens=limit)
    (one,) = translator.translate([text], guard=False)
    clean = TOKENIZERS.clean_source(text)
    assert "".join(one.text.split()) == "".join(clean.split())
    if len(letters(clean)) < limit:
        assert one.text == clean and one.flags.count("split") == 0
    else:
        assert "split" in one.flags and len(one.parts) > 1
    for spans, whole in (
        ([span for part in one.parts for span in part.source_spans], text),
        ([span for part in one.parts for span in part.spans], one.text),
    ):
        assert spans == sorted(spans) and all(0 <= start <= end <= len(whole) for start, end in spans)
    for part in one.parts:
        assert len(part.source_pieces) <= limit and part.attention_TS.shape == (len(part.pieces), len(part.source_pieces))  # fmt: skip
    assert all(0 <= a < len(one.source_words) and 0 <= b < len(one.words) for a, b in one.links)
    assert one.attention_TS.shape == (len(one.pieces), len(one.source_pieces))
    json.dumps(one.to_json())


def test_a_split_text_links_each_word_with_its_own():
    text = "ab ca b. ca cab a. b b a"
    (one,) = copier(max_tokens=12).translate([text], guard=False)
    assert one.text == text and len(one.parts) == 3
    assert one.links == tuple((word, word) for word in range(len(one.words)))
    words_TS = one.word_attention_TS
    np.testing.assert_allclose(words_TS, np.eye(len(one.words)), atol=1e-6)


def test_a_text_is_split_above_what_the_model_file_says(tmp_path):
    options = SMALL["regard-rnn"]
    weights = random_weights(options, TOKENIZERS.source.vocab_size, TOKENIZERS.target.vocab_size)
    model = ModelFile(options, weights, TOKENIZERS, None, None, {}, {}, split_above=5)
    save_model(tmp_path / "m.regard", model)
    fits, too_long = regard.load(tmp_path / "m.regard").translate(["abca", "abcab"], guard=False)
    assert "split" not in fits.flags and "split" in too_long.flags


def test_segments_are_joined_without_spaces_in_a_language_without_them():
    engine = Scripted(TOKENIZERS.target.vocab_size, one_after_another(lambda source: source), straight)
    texts = {
        language: translator_with(engine, TOKENIZERS, split_above=3, target_language=language)
        .translate(["ab ca"], guard=False)[0]
        .text
        for language in ("fr", "zh", "zh-TW", "ja", None)
    }
    assert texts == {"fr": "ab ca", "zh": "abca", "zh-TW": "abca", "ja": "abca", None: "ab ca"}


def test_what_the_reader_should_know_of_any_segment_is_told():
    """The second segment has an unknown word."""
    engine = Scripted(
        TOKENIZERS.target.vocab_size,
        one_after_another(lambda source: [UNK] if source == letters("cab") else source),
        straight,
    )
    (one,) = translator_with(engine, TOKENIZERS, split_above=4).translate(["abc cab"], guard=False)
    assert "split" in one.flags and "unknown" in one.flags


# Streams.


def test_a_stream_is_read_as_it_goes_and_gives_what_translate_gives():
    texts = [text * (number + 1) for number, text in enumerate(TEXTS)]
    num_read = 0

    def reading():
        nonlocal num_read
        for text in texts:
            num_read += 1
            yield text

    translator = translator_of(SMALL["regard-rnn"], limits=Limits(window_texts=4))
    stream = translator.stream(reading(), beam_size=1, guard=False)
    assert num_read == 0
    first = next(stream)
    assert num_read == 4
    found = [first, *stream]
    assert list(map(seen, found)) == list(map(seen, translator.translate(texts, beam_size=1, guard=False)))


def test_a_stream_of_long_texts_is_read_in_smaller_portions():
    read = iter(["abcabc", "abcabc", "b", "c"])
    stream = copier(window=Limits(window_characters=10)).stream(read, guard=False)
    assert next(stream).text == "abcabc"
    assert list(read) == ["b", "c"]


def test_only_a_stream_begins_with_a_small_batch(monkeypatch):
    sizes, take = [], Queue.take

    def taken(queue, num_idle):
        batch = take(queue, num_idle)
        if batch is not None and len(batch.entries) > 1:  # not what is decided again alone
            sizes.append(len(batch.entries))
        return batch

    monkeypatch.setattr(Queue, "take", taken)
    translator = copier()
    translator.translate(["ab"] * 150, guard=False)
    assert sizes == [150]
    sizes.clear()
    for num_texts, expected in ((150, [37, 38, 75]), (40, [40])):
        assert len(list(translator.stream(["ab"] * num_texts, guard=False))) == num_texts
        assert sizes == expected
        sizes.clear()


def test_a_stream_without_end_is_no_trouble():
    stream = copier(window=Limits(window_texts=2)).stream(itertools.cycle(["a", "b"]), guard=False)
    assert [one.text for one in itertools.islice(stream, 3)] == ["a", "b", "a"]


# Files.


def test_a_model_file_translates_as_the_model_did(tmp_path):
    options = SMALL["regard-rnn"]
    weights = random_weights(options, TOKENIZERS.source.vocab_size, TOKENIZERS.target.vocab_size)
    save_model(tmp_path / "m.regard", ModelFile(options, weights, TOKENIZERS, None, None, {}, {}))
    found = regard.load(str(tmp_path / "m.regard")).translate(TEXTS, extra_tokens=4)
    assert list(map(seen, found)) == list(map(seen, translator_of(options).translate(TEXTS)))
    with pytest.raises(ModelFileError):
        regard.load(tmp_path / "nowhere.regard")


def test_importing_regard_imports_nothing_heavy():
    code = "import regard, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_single_texts_outside_a_list_are_mistakes_everywhere():
    translator = translator_of(SMALL["regard-rnn"])
    with pytest.raises(TypeError, match="brackets"):
        list(translator.stream("abc"))
    with pytest.raises(TypeError, match="brackets"):
        translator.force("abc", ["abc"])
    with pytest.raises(ConfigError, match="prefixes does not exist"):
        list(translator.stream(["abc"], prefixes=["a"]))


# Sentences.


def test_a_text_is_translated_sentence_by_sentence_and_keeps_its_spacing():
    spaced = "ab ca!  b ca !\n\ncab b. "
    (one,) = copier().translate([spaced])
    assert one.text == "ab ca!  b ca !\n\ncab b." and "split" not in one.flags
    assert [spaced[slice(*part.source_span)] for part in one.parts] == ["ab ca!", "b ca !", "cab b."]
    assert [one.text[slice(*part.span)] for part in one.parts] == ["ab ca!", "b ca !", "cab b."]
    assert len(copier().translate([spaced], guard=False)[0].parts) == 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["ab ca.", "Cab b!", "b", "a?", "cab", "ca.", " "]), max_size=8))
def test_no_word_is_lost_or_added_however_many_sentences_there_are(some):
    text = " ".join(some)
    (one,) = copier().translate([text])
    assert one.text.split() == text.split()
    assert one.links == tuple((word, word) for word in range(len(one.words)))


def test_alternatives_of_a_text_change_one_sentence():
    translator = translator_of(SMALL["regard-rnn"])
    sentences = ["cab a!", "bc ab!"]
    alone = [translator.translate([one], num_best=3)[0] for one in sentences]
    (both,) = translator.translate([" ".join(sentences)], num_best=3)
    assert both.text == " ".join(one.text for one in alone) and len(both.alternatives) == 2
    possible = {f"{other.text} {alone[1].text}" for other in alone[0].alternatives}
    possible |= {f"{alone[0].text} {other.text}" for other in alone[1].alternatives}
    assert {other.text for other in both.alternatives} <= possible
    assert both.alternatives[0].score >= both.alternatives[1].score
