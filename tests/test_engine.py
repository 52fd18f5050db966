"""The engine inside the page against Python: the same pieces, the same numbers, the same words."""

import hashlib
import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from javascript import Node, needs_node
from traces import AFTER, DESIGNS, GIVEN, SUBWORDS, TEXT, Short, ending_of, model_of, tracer_of

from regard.alignment.reading import AFTERWARDS
from regard.cli import run
from regard.model.presets import PRESETS
from regard.options.search import BeamOptions
from regard.options.text import CharacterOptions, SubwordOptions, WordOptions
from regard.sample import read_sample
from regard.starter import bundled
from regard.text.normalize import trace_normalize
from regard.text.tokenizer import TokenizerPair
from regard.text.words import words
from regard.trace.document import HeadOff, LookSo, MaskOff, PositionsOff
from regard.trace.live import facts
from regard.trace.make import Tracer
from regard.trace.views import Trace

pytestmark = needs_node

SENTENCE = "L'accord sur la zone économique européenne a été signé en août 1992."
EXAMPLES = {"fr": SENTENCE, "en": "The agreement was signed in August 1992.", "ko": "나는 학생입니다."}
LETTERS = [
    *(
        "a",
        "E",
        "l'",
        "qu’",
        " ",
        "  ",
        "é",
        "e\u0301",
        "1",
        ".",
        ",",
        "-",
        "--",
        "%s",
        "{a}",
        "▁",
        "\n",
        "\t",
        "\x85",
    ),
    *(
        "\u1100",
        "\u1161",
        "\u11a8",
        "한",
        "中",
        "の",
        "😀",
        "👩\u200d🚀",
        "🇫🇷",
        "\u200d",
        "\ufeff",
        "\u00ad",
        "\ud800",
        "½",
    ),
]


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    return Node(tmp_path_factory.mktemp("node"))


def fuzzed(num, seed=1):
    rng = random.Random(seed)

    def letter():
        code = rng.choice(
            [rng.randrange(32, 0x3000), rng.randrange(0x4E00, 0xD7A3), rng.randrange(0x1F300, 0x1F6FF)]
        )
        return rng.choice([*LETTERS, chr(code)])

    return ["".join(letter() for _ in range(rng.randrange(1, 24))) for _ in range(num)]


def assert_pieces_are_pythons(node, tokenizers, named, texts):
    (answers,) = node.ask({"kind": "encode", "texts": texts, **named})
    for text, answer in zip(texts, answers, strict=True):
        normalized = trace_normalize(text, fold_quotes=True)
        encoded = tokenizers.source.encode(normalized)
        assert answer["text"] == normalized.text
        assert answer["ids"] == list(encoded.ids), text
        assert answer["spans"] == [list(span) for span in encoded.spans], text
        if "\ud800" not in text:  # half a character: Python gives it back, a browser shows it as �
            said, spans = tokenizers.target.decode_spans(encoded.ids)
            assert (answer["decoded"]["text"], answer["decoded"]["spans"]) == (
                said,
                [list(one) for one in spans],
            )


def assert_numbers_are_pythons(found, right):
    found.check()
    hidden = {"attentions", "states", "timing", "created"}
    assert_same(found.model_dump(exclude=hidden), right.model_dump(exclude=hidden), "")
    assert list(found.states) == list(right.states)
    for name, array in right.states.items():
        value = array.unpack()
        assert found.states[name].unpack().shape == value.shape, name
        assert np.abs(found.states[name].unpack() - value).max() < 1e-3 * max(1, np.abs(value).max()), name
    for mine, other in zip(found.attentions, right.attentions, strict=True):
        assert np.abs(mine.weights_LNTS - other.weights_LNTS).max() < 1e-4
        assert (mine.kind, mine.causal, mine.weights is None) == (
            other.kind,
            other.causal,
            other.weights is None,
        )


def assert_same(one, other, where):
    if isinstance(other, dict):
        assert one.keys() == other.keys(), where
        for key in other:
            if key != "flags":  # the guard has no twin, and the page says so
                assert_same(one[key], other[key], f"{where}.{key}")
    elif isinstance(other, list):
        assert len(one) == len(other), where
        for place, (mine, its) in enumerate(zip(one, other, strict=True)):
            assert_same(mine, its, f"{where}[{place}]")
    elif isinstance(other, float):
        # Effects have four digits, and the last of them may be rounded otherwise.
        assert one == pytest.approx(other, rel=1e-4, abs=1.5e-4 if "effects" in where else 1e-4), where
    else:
        assert one == other, where


@pytest.mark.parametrize(
    "options",
    [
        None,
        SubwordOptions(kind="unigram", vocab_size=420, elisions=True),
        SubwordOptions(kind="bpe", vocab_size=420),
        WordOptions(vocab_size=320),
        WordOptions(vocab_size=320, unknown="unk"),
        CharacterOptions(),
    ],
)
def test_pieces_and_their_places_are_pythons(node, tmp_path, options):
    pairs = read_sample(300)
    real = [text for pair in pairs[:40] for text in (pair.source, pair.target)]
    texts = [*real, *EXAMPLES.values(), "", " ", *fuzzed(200)]
    if options is None:
        tracer = Tracer.open("fr-en-rnn")
        named = {"model": str(bundled()["fr-en-rnn"]), "facts": facts(tracer.loaded)}
        return assert_pieces_are_pythons(node, tracer.model.tokenizers, named, texts)
    tokenizers = TokenizerPair.learn([one.source for one in pairs], [one.target for one in pairs], options)
    model = model_of("regard-rnn", tokenizers)
    named = node.saved(Tracer.of(model, "small"), f"{options.kind}-{getattr(options, 'unknown', '')}")
    return assert_pieces_are_pythons(node, tokenizers, named, texts)


def test_words_are_pythons(node):
    texts = [
        "Voir https://a.fr/b?c=1, moi@x.org ! %(n)s {x} 1,992.50 l'été don't peut-être ... 中文",
        *fuzzed(200),
    ]
    named = {"model": str(bundled()["fr-en-rnn"]), "facts": facts(Tracer.open("fr-en-rnn").loaded)}
    (answers,) = node.ask({"kind": "encode", "texts": texts, **named})
    assert [one["words"] for one in answers] == [[list(span) for span in words(text)] for text in texts]


def changes_of(tracer, num_pieces, num_steps):
    """One request for each kind of intervention that the model allows."""
    found = []
    if tracer.design.has_attention:
        weights = [0.0] * (num_pieces - 2) + [0.25, 0.75]
        found.append([LookSo(step=0, weights=weights)])
        if num_steps > 1:  # the search goes on from there: what was searched before is kept
            found.append([LookSo(step=1, weights=weights[::-1])])
    if tracer.design.parts:
        found += [[HeadOff(kind="cross", layer=0, head=1), PositionsOff()], [MaskOff()]]
        found.append([LookSo(step=0, weights=[1.0] + [0.0] * (num_pieces - 1), layer=0, head=0)])
    return found


def requests_of(tracer, text, given, **search):
    whole = tracer.trace(text, raw=True, **search)
    plain = [{"effects": True, "gates": True}, {"prefix": given}, {"force": given}]
    return plain + [
        {"interventions": one}
        for one in changes_of(tracer, len(whole.source.pieces), len(whole.target.pieces))
    ]


def assert_traces_are_pythons(node, tracer, named, text, given, **search):
    requests = requests_of(tracer, text, given, **search)
    plain = [
        {**one, "interventions": [change.model_dump() for change in one.get("interventions", [])]}
        for one in requests
    ]
    answers = node.ask(*({"kind": "trace", "request": {"text": text, **one}, **named} for one in plain))
    for request, answer in zip(requests, answers, strict=True):
        how = request if "force" in request else request | search
        assert_numbers_are_pythons(Trace.model_validate_json(answer), tracer.trace(text, raw=True, **how))


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("name", [name for name in DESIGNS if name in PRESETS or "StepAttendStep" in name])
def test_every_design_computes_pythons_numbers(node, name, beam_size):
    tracer = tracer_of(name)
    named = node.saved(tracer, name, BeamOptions(beam_size=beam_size, extra_tokens=0))
    assert_traces_are_pythons(node, tracer, named, TEXT, GIVEN, beam_size=beam_size)


@pytest.mark.parametrize("name", AFTER)
def test_the_posterior_attention_is_pythons(node, name):
    tracer = Short.of(replace(ending_of(name), reading=AFTERWARDS), f"after-{name}.regard")
    named = node.saved(tracer, f"after-{name}", BeamOptions(beam_size=2, extra_tokens=0))
    assert_traces_are_pythons(node, tracer, named, TEXT, GIVEN, beam_size=2)


def test_subwords_too(node):
    tracer = Short.of(model_of("regard-small", SUBWORDS), "subwords.regard")
    named = node.saved(tracer, "subwords", BeamOptions(beam_size=2, extra_tokens=0))
    assert_traces_are_pythons(node, tracer, named, TEXT, GIVEN, beam_size=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", bundled())
def test_every_bundled_model_says_what_it_says_in_python(node, name):
    tracer = Tracer.open(name)
    named = {"model": str(bundled()[name]), "facts": facts(tracer.loaded)}
    assert_traces_are_pythons(node, tracer, named, EXAMPLES[name[:2]], "Yes, it was")


def test_what_cannot_be_is_said(node):
    tracer = tracer_of("regard-rnn")
    named = node.saved(tracer, "wrong")
    asked = [
        {"text": "  "},
        {"text": "ab " * 300},
        {"text": TEXT, "force": " "},
        {"text": TEXT, "interventions": [{"type": "look", "step": 0, "weights": [1]}]},
        {"text": TEXT, "interventions": [{"type": "look", "step": 99, "weights": [1.0] + [0.0] * 11}]},
        {"text": TEXT, "interventions": [{"type": "head_off", "kind": "cross", "layer": 0, "head": 0}]},
        {"text": TEXT, "interventions": [{"type": "__proto__"}]},
    ]
    answers = node.answers(*({"kind": "trace", "request": one, **named} for one in asked))
    reasons = ("blank", "pieces", "blank", "weights", "no step 100", "no heads", "no change")
    for answer, reason in zip(answers, reasons, strict=True):
        assert reason in answer.get("error", ""), answer


def with_header(data, change):
    """The bytes of a model whose header was changed; `change` is given the tensors and what is told of them."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    about = json.loads(header["__metadata__"]["regard"])
    change(header, about)
    header["__metadata__"]["regard"] = json.dumps(about)
    written = json.dumps(header).encode()
    return len(written).to_bytes(8, "little") + written + data[8 + length :]


def with_weights(data, name, value):
    """The bytes of a model one of whose weights is this value throughout; its hash is right."""
    length = int.from_bytes(data[:8], "little")
    first, last = json.loads(data[8 : 8 + length])[name]["data_offsets"]
    weights = np.full((last - first) // 4, value, "<f4").tobytes()
    start = 8 + length
    changed = data[: start + first] + weights + data[start + last :]

    def rehashed(_, about):
        about["parts"][name] = hashlib.sha256(weights).hexdigest()

    return with_header(changed, rehashed)


def test_a_model_that_lies_is_refused(node, tmp_path):
    tracer = tracer_of("regard-rnn")
    named = node.saved(tracer, "honest")
    good = Path(named["model"]).read_bytes()
    flipped = bytearray(good)
    flipped[-5] ^= 1
    weight = "weight.source.weight"
    lies = {
        "empty": b"",
        "cut": good[:-100],
        "longer": (1 << 40).to_bytes(8, "little") + good[8:],
        "text": b"hello, this is no model at all",
        "flipped": bytes(flipped),
        "format": with_header(good, lambda _, about: about.update(format="regard-model/9")),
        "no hashes": with_header(good, lambda _, about: about.update(parts=None)),
        "no weight": with_header(
            good, lambda header, about: (header.pop(weight), about["parts"].pop(weight))
        ),
        "no tokenizer": with_header(
            good,
            lambda header, about: (header.pop("tokenizer.source"), about["parts"].pop("tokenizer.source")),
        ),
        "null": with_header(good, lambda header, _: header.update({weight: None})),
        "huge": with_header(good, lambda header, _: header[weight].update(shape=[1 << 50, 1 << 50])),
        "below zero": with_header(good, lambda header, _: header[weight].update(data_offsets=[-4, 0])),
        "overlapping": with_header(
            good, lambda header, _: header[weight].update(data_offsets=[0, header[weight]["data_offsets"][1]])
        ),
        "type": with_header(good, lambda header, _: header[weight].update(dtype="F64")),
        "turned": with_header(good, lambda header, _: header[weight]["shape"].reverse()),
        "NaN": with_weights(good, weight, np.nan),
        "infinite": with_weights(good, weight, np.inf),
    }
    asked = []
    for name, data in lies.items():
        (tmp_path / name).write_bytes(data)
        asked.append({"kind": "open", "model": str(tmp_path / name), "facts": named["facts"]})
    for answer, name in zip(node.answers(*asked), lies, strict=True):
        assert "damaged" in answer.get("error", ""), (name, answer)
    (tmp_path / "same").write_bytes(with_header(good, lambda header, about: None))
    (tmp_path / "too large").write_bytes(with_weights(good, "weight.target.weight", 3e38))
    same, too_large = node.answers(
        {"kind": "open", "model": str(tmp_path / "same"), "facts": named["facts"]},
        {
            "kind": "trace",
            "model": str(tmp_path / "too large"),
            "facts": named["facts"],
            "request": {"text": TEXT},
        },
    )
    assert same.get("value") is True, same
    assert "not finite" in too_large.get("error", ""), too_large


def test_a_page_with_its_models_is_written_whole_or_not_at_all(tmp_path, capsys, monkeypatch):
    path = tmp_path / "translator.html"
    assert run(["page", "fr-en-fixed", "--out", str(path)]) == 0
    assert path.stat().st_size < 6_000_000 and "fr-en-fixed" in capsys.readouterr().out
    assert run(["page", "fr-en-fixed", "--out", str(tmp_path / "page.pdf")]) == 2
    monkeypatch.setattr("regard.trace.live._MAX_BYTES", 1000)
    assert run(["page", "fr-en-fixed", "--out", str(tmp_path / "large.html")]) == 2
    assert "regard serve" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["translator.html"]
