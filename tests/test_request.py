"""What is asked for is checked; each request has its own options; the result keeps to its schema."""

import typing

import jsonschema
import pytest
from small import random_engine, shrink, translator

from regard.errors import ConfigError, SourceError
from regard.model.presets import PRESETS
from regard.options.search import BeamOptions, RiskOptions, SampleOptions
from regard.options.text import CharacterOptions
from regard.text.tokenizer import TokenizerPair
from regard.translate.queue import Queue
from regard.translate.request import Request, SearchArguments
from regard.translate.result import FORMAT, schema
from regard.translate.translator import Limits

TOKENIZERS = TokenizerPair.learn(["a bc cab"], ["c ab d"], CharacterOptions(joint=True))


def small(name="regard-rnn", **known):
    engine = random_engine(shrink(PRESETS[name]), TOKENIZERS.source.vocab_size, TOKENIZERS.target.vocab_size)
    return translator(engine, TOKENIZERS, **known)


@pytest.mark.parametrize("wrong", [None, 1, b"x", ["a"]])
def test_what_is_no_text_gets_a_sentence(wrong):
    with pytest.raises(TypeError, match=r"text 2: a text must be a string, and this is "):
        small().translate(["a", wrong])
    with pytest.raises(TypeError, match="text 1: a text must be a string"):
        list(small().stream([wrong]))
    with pytest.raises(TypeError, match="a prefix must be a string"):
        Request("a", prefix=b"x")


def test_a_text_with_nul_characters_is_refused_by_number():
    with pytest.raises(SourceError, match="text 2: a text must not have NUL"):
        small().translate(["a", "b\0c"])


def test_a_request_asks_for_no_more_than_the_beam_holds():
    with pytest.raises(ConfigError, match="num_best = 3"):
        Request("a", num_best=3, search=BeamOptions(beam_size=2))
    with pytest.raises(ConfigError, match="num_best = 0"):
        Request("a", num_best=0)


def test_each_request_has_its_own_options():
    requests = [
        Request("cab a", search=BeamOptions(beam_size=1, extra_tokens=3)),
        Request("cab a", num_best=2, search=BeamOptions(beam_size=3, extra_tokens=3)),
        Request("cab a", prefix="d", search=BeamOptions(extra_tokens=3)),
        Request("cab a", search=SampleOptions(seed=7, extra_tokens=3), guard=False),
    ]
    together = small().translate(requests)
    for request, one in zip(requests, together, strict=True):
        (alone,) = small().translate([request])
        assert (alone.text, alone.flags, alone.alternatives) == (one.text, one.flags, one.alternatives)
    assert together[1].alternatives and together[2].text.startswith("d")
    assert len({one.text for one in together}) > 1


def test_the_keyword_arguments_are_the_options_of_the_section():
    options = {name for cls in (BeamOptions, SampleOptions, RiskOptions) for name in cls.model_fields}
    assert set(typing.get_type_hints(SearchArguments)) == options


@pytest.mark.parametrize("name", ["regard-rnn", "regard-small", "sutskever2014"])
def test_a_translation_keeps_to_its_schema(name):
    texts = ["cab a", "", "日本 48213 {x}", "cab " * 9, "CAB BAC ABC"]
    for one in small(name, split_above=6).translate(texts, num_best=2, extra_tokens=4):
        document = one.to_json()
        assert document["format"] == FORMAT
        jsonschema.validate(document, schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document | {"links": [[0]]}, schema())


# The queue: like lengths together, earlier texts first, second tries when they are worth a batch.


def put(queue, *texts, **how):
    numbers = range(len(texts))
    return queue.put([(n, Request(text, **how)) for n, text in zip(numbers, texts, strict=True)])


def lengths(batch):
    return [len(query.source) for query in batch.job.queries]


def test_batches_hold_like_lengths_longest_first_within_their_tokens():
    queue = Queue(small().model, batch_tokens=60)
    put(queue, "a", "abcabc", "ab", "abcab", "b", search=BeamOptions(beam_size=2))
    taken = []
    while batch := queue.take():
        assert len(batch.entries) * (max(lengths(batch)) + 1) * 2 <= 60 or len(batch.entries) == 1
        taken += lengths(batch)
    assert taken == sorted(taken, reverse=True) and len(taken) == 5
    assert queue.take() is None


def test_a_batch_leaves_something_for_idle_workers_if_it_is_not_too_little():
    sizes = {}
    for num_texts, num_idle in ((40, 2), (40, 1), (20, 2), (10, 2), (50, 3)):
        queue = Queue(small().model, batch_tokens=1000)
        put(queue, *["ab"] * num_texts)
        taken = [len(queue.take(num_idle - number).entries) for number in range(num_idle) if queue.num_tokens]
        sizes[num_texts, num_idle] = taken
        assert queue.take() is None
    assert sizes == {
        (40, 2): [20, 20],
        (40, 1): [40],
        (20, 2): [16, 4],
        (10, 2): [10],
        (50, 3): [17, 17, 16],
    }


def test_what_came_earlier_is_taken_earlier_and_blank_texts_at_once():
    queue = Queue(small().model, batch_tokens=1000)
    assert [number for number, one in put(queue, "a", " ", "") if one.text == ""] == [1, 2]
    put(queue, "abcabcabc")
    assert [lengths(queue.take()) for _ in range(2)] == [[2], [10]]


def test_searches_of_other_kinds_are_never_in_one_batch():
    queue = Queue(small().model, batch_tokens=1000)
    requests = [
        Request("a"),
        Request("b", search=BeamOptions(beam_size=1)),
        Request("c", num_best=2),
        Request("ab"),
    ]
    queue.put(list(enumerate(requests)))
    sizes = []
    while batch := queue.take():
        assert len({(entry.search, entry.segment.text.request.num_best) for entry in batch.entries}) == 1
        sizes.append(len(batch.entries))
    assert sorted(sizes) == [1, 1, 2]


def test_windows_are_read_one_at_a_time_and_nothing_is_lost():
    limits = Limits(window_texts=3)
    texts = ["abc"[: n % 4] for n in range(20)]
    found = small(limits=limits).translate(texts, extra_tokens=4, beam_size=2)
    assert [one.source for one in found] == texts
