from pathlib import Path

import pytest

from regard.errors import ConfigError
from regard.options.parse import parse
from regard.options.reference import reference
from regard.options.text import BatchOptions, SubwordOptions, WordOptions


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        ("tokenizer", {"kind": "unigra"}, "tokenizer.kind = 'unigra' is not valid; did you mean 'unigram'?"),
        ("tokenizer", {"vocab_sise": 9}, "tokenizer.vocab_sise does not exist; did you mean 'vocab_size'?"),
        ("tokenizer", {"\n": 9}, "tokenizer.'\\n' does not exist; choose from: kind, vocab_size, joint"),
        (
            "tokenizer",
            {"unknown": "unk"},
            "tokenizer.unknown does not exist; choose from: kind, vocab_size, joint",
        ),
        (
            "tokenizer",
            {"kind": "word", "unknown": "byte"},
            "tokenizer.unknown = 'byte' is not valid; did you mean 'bytes'?",
        ),
        (
            "tokenizer",
            {"vocab_size": 10},
            "tokenizer.vocab_size = 10 is not valid; input should be greater than 260",
        ),
        (
            "batch",
            {"batch_tokens": "many"},
            "batch.batch_tokens = 'many' is not valid; input should be a valid integer",
        ),
    ],
)
def test_a_wrong_option_is_named_with_what_would_be_right(section, values, message):
    with pytest.raises(ConfigError) as caught:
        parse(section, values)
    assert message in str(caught.value)


def test_kind_chooses_the_class_and_defaults_fill_the_rest():
    assert parse("tokenizer", {"kind": "word", "unknown": "unk"}) == WordOptions(unknown="unk")
    assert parse("tokenizer", {"kind": "bpe", "joint": False}) == SubwordOptions(kind="bpe", joint=False)
    assert parse("batch", {}) == BatchOptions()


def test_options_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        BatchOptions().batch_tokens = 7


def test_the_reference_page_is_true():
    page = Path(__file__).parents[1] / "docs" / "options.md"
    assert page.read_text() == reference(), (
        "print it anew: python -m regard.options.reference > docs/options.md"
    )
