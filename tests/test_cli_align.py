"""`regard align` as a user meets it, with a model, without one, and with links that are given."""

import json

import numpy as np
import pytest
from small import random_weights, shrink

from regard.alignment.align import align, learn_words
from regard.alignment.attention import align_pairs
from regard.alignment.links import from_pharaoh, hard_links, symmetrise, to_words
from regard.cli import run
from regard.errors import SourceError
from regard.model.presets import preset
from regard.modelfile import ModelFile, save_model
from regard.options.model import LearnedPositions
from regard.options.text import SubwordOptions
from regard.sample import read_sample
from regard.text.tokenizer import TokenizerPair
from regard.text.words import cut_words, match_pieces
from regard.translate.translator import Translator

PAIRS = [(one.source, one.target) for one in read_sample(60)]
TOKENIZERS = TokenizerPair.learn([a for a, _ in PAIRS], [b for _, b in PAIRS], SubwordOptions(vocab_size=500))


def model_file(name="regard-rnn", seed=0, flipped=False):
    options = shrink(preset(name))
    pair = TokenizerPair(TOKENIZERS.target, TOKENIZERS.source) if flipped else TOKENIZERS
    weights = random_weights(options, pair.source.vocab_size, pair.target.vocab_size, seed)
    return ModelFile(options, weights, pair, *(("en", "fr") if flipped else ("fr", "en")), {}, {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("align")
    save_model(path / "there.regard", model_file())
    save_model(path / "back.regard", model_file(seed=1, flipped=True))
    save_model(path / "blind.regard", model_file("cho2014"))
    (path / "a.fr").write_text("".join(f"{a}\n" for a, _ in PAIRS), "utf-8")
    (path / "a.en").write_text("".join(f"{b}\n" for _, b in PAIRS), "utf-8")
    return path


@pytest.fixture
def call(capsysbinary):
    def call(*words):
        code = run(["align", *map(str, words)])
        out, err = capsysbinary.readouterr()
        return code, out.decode(), err.decode()

    return call


def by_hand(model, source, target, cut):
    """The links of one pair, from an own forced pass over an own matrix of words."""
    (said,) = Translator.of(model).force([source], [target])
    (part,) = said.parts
    weights = to_words(
        part.attention_TS,
        match_pieces(part.source_spans, cut_words(source, cut)),
        match_pieces(part.spans, cut_words(target, cut)),
    )
    return frozenset(hard_links(weights))


@pytest.mark.parametrize("words", [(), ("--words",)])
def test_a_model_links_each_word_to_where_it_looked_most(call, folder, words):
    code, out, _ = call(folder / "there.regard", folder / "a.fr", folder / "a.en", *words)
    lines = out.splitlines()
    assert code == 0 and len(lines) == len(PAIRS)
    cut = "words" if words else "spaces"
    for (source, target), line in zip(PAIRS[:10], lines, strict=False):
        assert from_pharaoh(line) == by_hand(model_file(), source, target, cut)


@pytest.mark.parametrize("how", ["intersection", "union", "grow-diag", "grow-diag-final-and"])
def test_two_models_become_one_alignment(call, folder, how):
    _, out, _ = call(
        folder / "there.regard",
        folder / "a.fr",
        folder / "a.en",
        "--back",
        folder / "back.regard",
        "--how",
        how,
    )
    for (source, target), line in zip(PAIRS[:10], out.splitlines(), strict=False):
        there = by_hand(model_file(), source, target, "spaces")
        back = by_hand(model_file(seed=1, flipped=True), target, source, "spaces")
        assert from_pharaoh(line) == symmetrise(there, {(b, a) for a, b in back}, how)


def test_without_a_model_the_pairs_themselves_teach_it(call, folder, tmp_path):
    corpus = [(one.source, one.target) for one in read_sample(1500)]
    for number, name in enumerate(("more.fr", "more.en")):
        (tmp_path / name).write_text("".join(f"{pair[number]}\n" for pair in corpus), "utf-8")
    code, out, _ = call(
        folder / "a.fr",
        folder / "a.en",
        "--train",
        tmp_path / "more.fr",
        tmp_path / "more.en",
        "--words",
        "--jsonl",
    )
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and len(found) == len(PAIRS)
    gold = [one.links for one in read_sample(60)]
    hits = sum(
        len({tuple(link) for link in one["links"]} & set(links))
        for one, links in zip(found, gold, strict=True)
    )
    assert hits > 0.6 * sum(map(len, gold))


def test_links_are_scored_against_gold_and_their_own_gold_is_perfect(call, folder, tmp_path):
    _, out, _ = call(folder / "there.regard", folder / "a.fr", folder / "a.en", "--out", tmp_path / "a.align")
    assert out == ""
    gold = tmp_path / "gold"
    gold.write_text((tmp_path / "a.align").read_text("utf-8"), "utf-8")
    code, out, err = call(folder / "a.fr", folder / "a.en", "--given", tmp_path / "a.align", "--gold", gold)
    assert code == 0 and "alignment error rate 0.000 (0.000 to 0.000), precision 1.000, recall 1.000" in err
    assert out == gold.read_text("utf-8")
    turned = tmp_path / "turned"
    lines = [from_pharaoh(line) for line in gold.read_text("utf-8").splitlines()]
    turned.write_text("".join(" ".join(f"{b + 1}-{a + 1}" for a, b in line) + "\n" for line in lines))
    given = (folder / "a.fr", folder / "a.en", "--given", tmp_path / "a.align", "--gold", turned)
    _, _, err = call(*given, "--from-one", "--reversed")
    assert "alignment error rate 0.000 (0.000 to 0.000)" in err
    code, _, err = call(*given, "--reversed")
    assert code == 2 or "error rate 0.000" not in err


def test_words_may_stand_between_flags(call, folder):
    files = (folder / "a.fr", folder / "a.en")
    plain = call(folder / "there.regard", *files, "--back", folder / "back.regard", "--words")
    assert plain[0] == 0
    assert call(folder / "there.regard", "--words", "--back", folder / "back.regard", *files) == plain
    assert (
        call(folder / "there.regard", "--back", folder / "back.regard", "--words", files[0], files[1])
        == plain
    )


def test_a_byte_order_mark_is_no_word(call, folder, tmp_path):
    (tmp_path / "b.fr").write_text("\ufeffil pleut\n", "utf-8")
    (tmp_path / "b.en").write_text("\ufeffit rains\n", "utf-8")
    _, out, _ = call(folder / "there.regard", tmp_path / "b.fr", tmp_path / "b.en", "--words", "--jsonl")
    assert json.loads(out)["source_words"] == [[0, 2], [3, 8]]


@pytest.mark.parametrize("flag", ["--out", "--glossary"])
def test_what_is_read_is_not_written_over(call, folder, flag):
    before = (folder / "a.en").read_bytes()
    code, _, err = call(folder / "a.fr", folder / "a.en", flag, folder / "a.en")
    assert code == 2 and "is read by this command" in err and (folder / "a.en").read_bytes() == before


def test_one_pair_is_drawn(call, folder, tmp_path):
    arguments = (folder / "there.regard", folder / "a.fr", folder / "a.en", "--draw", 3)
    code, out, _ = call(*arguments)
    assert code == 0 and all(any(word in line for line in out.splitlines()) for word in PAIRS[2][1].split())
    code, out, _ = call(*arguments, "--svg", tmp_path / "third.svg")
    assert (code, out) == (0, "")
    assert all(
        f">{word}<" in (tmp_path / "third.svg").read_text("utf-8")
        for word in PAIRS[2][1].split()
        if word.isalpha()
    )


def test_blank_lines_have_no_links(call, folder, tmp_path):
    (tmp_path / "b.fr").write_text("il pleut\n\n  \nil\n\u200b\u00ad\n", "utf-8")
    (tmp_path / "b.en").write_text("it rains\nit\n\n\nit\n", "utf-8")
    code, out, _ = call(folder / "there.regard", tmp_path / "b.fr", tmp_path / "b.en")
    assert code == 0 and [bool(line) for line in out.split("\n")[:-1]][1:] == [False] * 4


def test_of_two_models_what_they_agree_on_is_drawn():
    there, back = Translator.of(model_file()), Translator.of(model_file(seed=1, flipped=True))
    (source, target) = PAIRS[3]
    (forward,), (backward,) = align_pairs([(source, target)], there), align_pairs([(target, source)], back)
    (agreed,) = align_pairs([(source, target)], there, back)
    assert np.allclose(agreed.weights_TS, np.sqrt(forward.weights_TS * backward.weights_TS.T))
    (ruled,) = align_pairs([(source, target)], there, back, "intersection")
    assert {(int(s), int(t)) for t, s in zip(*np.nonzero(ruled.weights_TS), strict=True)} == ruled.links


def test_a_very_long_pair_is_told_and_has_no_links(call, tmp_path):
    (tmp_path / "b.fr").write_text("il pleut\n" * 3 + "il " * 401 + "\n", "utf-8")
    (tmp_path / "b.en").write_text("it rains\n" * 4, "utf-8")
    code, out, err = call(tmp_path / "b.fr", tmp_path / "b.en")
    assert code == 0 and [bool(line) for line in out.split("\n")[:-1]] == [True] * 3 + [False]
    assert "1 pairs are over 400 words" in err


def test_one_function_aligns_by_models_or_by_what_the_pairs_teach(folder):
    there, back = (Translator.open(folder / name) for name in ("there.regard", "back.regard"))
    by_models = align(PAIRS[:9], folder / "there.regard", back=back, how="union")
    wanted = align_pairs(PAIRS[:9], there, back, "union")
    assert [one.to_json() for one in by_models] == [one.to_json() for one in wanted]
    aligner = learn_words(PAIRS, "words")
    taught = list(align(PAIRS[:9], cut="words", more=PAIRS[9:]))
    assert [one.links for one in taught] == [
        aligner.align(*([text[a:b] for a, b in cut_words(text, "words")] for text in pair))
        for pair in PAIRS[:9]
    ]
    assert [(one.source, one.target) for one in taught] == PAIRS[:9]


def test_spaces_and_letters_that_are_cleaned_keep_their_places():
    source, target = "il\u00a0 pleut  fort", "e\u0301te\u0301   chaud"
    (one,) = align_pairs([(source, target)], Translator.of(model_file()))
    assert [target[a:b] for a, b in one.target_words] == ["e\u0301te\u0301", "chaud"]
    assert one.weights_TS.shape == (2, len(one.source_words)) and np.all(one.weights_TS.sum(axis=1) > 0.1)


MISTAKES = {
    "more lines": (("a.fr", "short"), "short has 1"),
    "no such model": (("none.regard", "a.fr", "a.en"), "cannot be read"),
    "no such file": (("a.fr", "none.en"), "no such file"),
    "the other way": (("there.regard", "a.en", "a.fr"), "the other way round"),
    "both the same way": (
        ("there.regard", "a.fr", "a.en", "--back", "there.regard"),
        "translates fr to en",
    ),
    "one direction": (("there.regard", "a.fr", "a.en", "--how", "union"), "--back"),
    "given in two directions": (("a.fr", "a.en", "--given", "links", "--how", "union"), "--how"),
    "counted in nothing": (("a.fr", "a.en", "--given", "links", "--from-one"), "--gold"),
    "drawn and written": (("a.fr", "a.en", "--given", "links", "--draw", "1"), "--draw shows one"),
    "back alone": (("a.fr", "a.en", "--back", "back.regard"), "name the first"),
    "one file": (("a.fr",), "give two files"),
    "given and a model": (("there.regard", "a.fr", "a.en", "--given", "short"), "leave the model"),
    "links of other lines": (("a.fr", "a.en", "--given", "short"), "has 1 lines"),
    "gold out of range": (("a.fr", "a.en", "--given", "links", "--gold", "far"), "out of range"),
    "links out of range": (("a.fr", "a.en", "--given", "far"), "out of range"),
    "no links": (("a.fr", "a.en", "--given", "a.en"), "is not a link"),
    "a picture of nothing": (("a.fr", "a.en", "--given", "links", "--svg", "x.svg"), "--draw"),
    "not UTF-8": (("latin", "latin"), "not UTF-8"),
    "no attention": (("blind.regard", "a.fr", "a.en"), "has no attention"),
}


@pytest.mark.parametrize(("words", "told"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_and_nothing_is_written(call, folder, words, told):
    (folder / "short").write_text("0-0\n")
    (folder / "links").write_text("0-0\n" * 60)
    (folder / "far").write_text("99-0\n" * 60)
    (folder / "latin").write_bytes("été\n".encode("latin-1"))
    before = sorted(folder.iterdir())
    plain = {"union"}
    names = [
        word if word.startswith("--") or word.isdecimal() or word in plain else folder / word
        for word in words
    ]
    code, out, err = call(*names, "--out", folder / "out.align")
    assert code == 2 and told in err and err.count("\n") == 1 and err.startswith("regard: ")
    assert out == "" and sorted(folder.iterdir()) == before


def test_a_line_beyond_the_last_is_not_drawn(call, folder):
    (folder / "links").write_text("0-0\n" * 60)
    code, _, err = call(folder / "a.fr", folder / "a.en", "--given", folder / "links", "--draw", 61)
    assert code == 2 and "no line 61" in err


def test_two_models_link_what_both_look_at_enough(call, folder):
    code, out, _ = call(
        folder / "there.regard", folder / "a.fr", folder / "a.en", "--back", folder / "back.regard"
    )
    assert code == 0
    (source, target), line = PAIRS[3], out.splitlines()[3]
    there, back = (Translator.open(folder / name) for name in ("there.regard", "back.regard"))
    (forward,), (backward,) = align_pairs([(source, target)], there), align_pairs([(target, source)], back)
    together = np.sqrt(forward.weights_TS * backward.weights_TS.T)
    wanted = {(int(s), int(t)) for t, s in zip(*np.nonzero(together > 0.25), strict=True)}
    assert from_pharaoh(line) == wanted


def test_a_glossary_has_the_words_that_were_learnt(call, folder, tmp_path):
    sample = read_sample(800, seed=2)
    (tmp_path / "b.fr").write_text("".join(f"{one.source}\n" for one in sample), "utf-8")
    (tmp_path / "b.en").write_text("".join(f"{one.target}\n" for one in sample), "utf-8")
    terms = tmp_path / "terms.tsv"
    code, out, _ = call(tmp_path / "b.fr", tmp_path / "b.en", "--words", "--glossary", terms)
    assert (code, out) == (0, "")
    rows = [line.split("\t") for line in terms.read_text("utf-8").splitlines()]
    found = {source: target for source, target, _, _ in rows}
    assert found["nous"] == "we" and found["et"] == "and" and "." not in found
    scores, counts = [float(row[2]) for row in rows], [int(row[3]) for row in rows]
    assert (
        min(scores) >= 0.3 and max(scores) <= 1 and counts == sorted(counts, reverse=True) and counts[-1] >= 3
    )
    met = [w for one in sample for w in (one.source[a:b].lower() for a, b in cut_words(one.source, "words"))]
    assert counts[0] == met.count(rows[0][0])


@pytest.mark.parametrize(
    ("words", "left_out"),
    [(["--gold", "x"], "--gold"), (["--draw", "1"], "--draw"), (["model"], "the model")],
)
def test_a_glossary_needs_nothing_but_pairs(call, folder, tmp_path, words, left_out):
    model = [folder / "there.regard"] if words == ["model"] else []
    more = [] if words == ["model"] else words
    files = [folder / "a.fr", folder / "a.en"]
    code, _, err = call(*model, *files, "--glossary", tmp_path / "terms.tsv", *more)
    assert code == 2 and f"remove {left_out}" in err and not list(tmp_path.iterdir())


def test_a_pair_too_long_is_named_by_its_line():
    learned = shrink(preset("vaswani2017")).model_copy(
        update={"positions": LearnedPositions(max_positions=16)}
    )
    size = TOKENIZERS.source.vocab_size
    weights = random_weights(learned, size, size, 0)
    model = Translator.of(ModelFile(learned, weights, TOKENIZERS, "fr", "en", {}, {}))
    pairs = [("il pleut", "it rains")] * 600 + [("", "")] * 3 + [("a " * 40, "a")]
    with pytest.raises(SourceError, match="pair 604 has"):
        list(align_pairs(pairs, model))
    with pytest.raises(SourceError, match="pair 12 has"):
        list(align_pairs(pairs[-1:], model, first_number=12))


@pytest.mark.parametrize(
    "flags",
    [(), ("--words", "--jsonl"), ("--back", "back.regard"), ("--back", "back.regard", "--how", "union")],
)
def test_joined_shards_are_the_links_of_one_run(call, folder, tmp_path, monkeypatch, flags):
    monkeypatch.setattr("regard.alignment.attention.CHUNK", 20)
    monkeypatch.chdir(folder)
    shards = ("there.regard", "a.fr", "a.en", *flags, "--out", tmp_path / "links")
    assert call(*shards, "--shard", "2/4")[0] == 0
    code, _, err = call(*shards, "--shards", 4)
    assert code == 0 and "all 4 shards are done; to join them: regard align --join" in err
    code, plain, _ = call("there.regard", "a.fr", "a.en", *flags)
    assert code == 0 and plain.count("\n") == 60
    assert call("--join", tmp_path / "links")[:2] == (0, plain)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("there.regard", "a.fr", "a.en", "--gold", "a.fr"), "--gold is not for shards"),
        (("a.fr", "a.en", "--given", "a.fr"), "--given is not for shards"),
        (("a.fr", "a.en", "--train", "a.fr", "a.en"), "--train is not for shards"),
        (("a.fr", "a.en"), "name a model, or leave out --shards"),
        (("there.regard", "a.fr", "short.en"), "a.fr has 60 lines and short.en has 1"),
    ],
)
def test_what_cannot_be_done_in_shards_is_told(call, folder, tmp_path, monkeypatch, words, told):
    monkeypatch.chdir(folder)
    (folder / "short.en").write_text("one\n")
    code, out, err = call(*words, "--shards", 4, "--out", tmp_path / "out")
    assert code == 2 and not out and told in err and err.count("\n") == 1
    assert not (tmp_path / "out").exists()
