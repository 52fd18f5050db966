"""The pairs of the package: those the grammar makes, with links that fit, read and written whole."""

import lzma
from collections import Counter

import pytest
from grammar import generate

from regard.alignment.links import from_pharaoh
from regard.cli import sample
from regard.errors import ConfigError
from regard.sample import FILE, NUM_PAIRS, SamplePair, read_sample, write_sample
from regard.text.words import words


def test_the_pairs_are_the_first_that_the_grammar_makes():
    assert read_sample(2000) == list(generate(2000))


def test_the_package_has_as_many_pairs_as_it_says():
    with lzma.open(FILE, "rt", encoding="utf-8") as lines:
        assert sum(1 for _ in lines) == NUM_PAIRS
    assert f"{NUM_PAIRS:,} pairs" in sample.DESCRIPTION


def test_links_are_between_words_of_the_pair():
    for pair in read_sample(4000, seed=1):
        num_source, num_target = len(words(pair.source)), len(words(pair.target))
        assert pair.links and all(0 <= i < num_source and 0 <= j < num_target for i, j in pair.links), pair


def test_a_seed_chooses_pairs_without_repetition():
    chosen = read_sample(seed=2)
    assert Counter(chosen) == Counter(read_sample())
    assert read_sample(50, seed=2) == chosen[:50] != read_sample(50)
    assert read_sample(50, seed=3) != chosen[:50]


@pytest.mark.parametrize("num_pairs", [0, -1, NUM_PAIRS + 1])
def test_more_pairs_than_there_are_is_one_line_that_says_how_many(num_pairs):
    with pytest.raises(
        ConfigError, match=rf"--pairs {num_pairs} .*{NUM_PAIRS:,}.*recipes/sample\.py"
    ) as found:
        read_sample(num_pairs)
    assert "\n" not in str(found.value)


def test_files_are_written_line_by_line(tmp_path):
    write_sample(tmp_path / "new", read_sample(300, seed=7))
    french, english, align = (
        (tmp_path / "new" / f"sample.{ending}").read_text(encoding="utf-8").splitlines()
        for ending in ("fr", "en", "align")
    )
    assert [
        SamplePair(source, target, from_pharaoh(line))
        for source, target, line in zip(french, english, align, strict=True)
    ] == read_sample(300, seed=7)


def test_an_interrupted_writing_leaves_nothing(tmp_path):
    def interrupted():
        yield from read_sample(10)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_sample(tmp_path, interrupted())
    assert list(tmp_path.iterdir()) == []
