"""A validation set that training has not seen."""

from hypothesis import given
from hypothesis import strategies as st

from regard.corpus.read import Pair
from regard.corpus.split import split_off

SIDES = st.sampled_from(
    ["Ja.", "ja!", "Nein", "ein Haus", "Ein Haus 5", "zwei Hunde", "Hunde", "123", "x y z"]
)


def letters(text):
    return "".join(sign for sign in text.casefold() if sign.isalpha()) or text


@given(st.lists(st.tuples(SIDES, SIDES), min_size=4, max_size=40), st.integers(1, 3))
def test_nothing_trained_on_shares_a_side_with_validation_or_its_paraphrases(sides, num_pairs):
    pairs = [Pair(number, source, target) for number, (source, target) in enumerate(sides, 1)]
    split = split_off([lambda: pairs], num_pairs, seed=1)
    kept = list(split.keep(pairs))
    sources = {letters(pair.source) for pair in split.validation} - {""}
    targets = {letters(pair.target) for pair in split.validation} - {""}
    linked = [p for p in pairs if letters(p.source) in sources or letters(p.target) in targets]
    sources |= {letters(pair.source) for pair in linked} - {""}
    targets |= {letters(pair.target) for pair in linked} - {""}
    for pair in kept:
        assert letters(pair.source) not in sources and letters(pair.target) not in targets
    for pair in set(pairs) - set(kept):
        assert letters(pair.source) in sources or letters(pair.target) in targets
    assert len(split.validation) == num_pairs


def test_paraphrases_in_another_corpus_are_held_out_too():
    main = [Pair(n, f"satz {word}", f"sentence {word}") for n, word in enumerate("abcdefgh")]
    other = [Pair(n, f"noch ein satz {pair.source}", pair.target.upper()) for n, pair in enumerate(main)]
    split = split_off([lambda: main, lambda: other], 2, seed=1)
    assert len(list(split.keep(other))) == 6


def test_the_same_seed_gives_the_same_split():
    pairs = [Pair(n, f"satz {n:x}x", f"sentence {n:x}x") for n in range(100)]
    splits = [split_off([lambda: pairs], 10, seed) for seed in (1, 1, 2)]
    assert splits[0].validation == splits[1].validation != splits[2].validation
