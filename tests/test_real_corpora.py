"""What can only be shown on real text; skipped where there is none."""

from itertools import islice

import pytest

from regard.corpus.batches import Batches, Share
from regard.corpus.inspect import inspect
from regard.corpus.read import open_corpus
from regard.corpus.store import build_store
from regard.options.text import BatchOptions, SubwordOptions
from regard.text.tokenizer import TokenizerPair
from regard.vocabulary import PAD


@pytest.mark.parametrize(
    "files",
    [
        ("multi30k/train.en.gz", "multi30k/train.de.gz"),
        ("europarl/fr-en.train.fr.gz", "europarl/fr-en.train.en.gz"),
    ],
)
@pytest.mark.slow
def test_padding_is_under_five_percent(shared_data, files, tmp_path):
    corpus = open_corpus([shared_data / name for name in files])
    pairs = list(islice(corpus.pairs(), 29_000))
    options = SubwordOptions(kind="bpe")
    tokenizers = TokenizerPair.learn(
        [pair.source for pair in pairs[:8000]], [pair.target for pair in pairs[:8000]], options
    )
    store = build_store(pairs, tokenizers, tmp_path / "store")
    batches = Batches([Share(store)], BatchOptions(), seed=1)
    real = padded = 0
    for _, batch in islice(batches.iterate(), batches.num_batches(0)):
        real += int((batch.source_BS != PAD).sum()) + batch.num_target_tokens
        padded += batch.source_BS.size + batch.target_out_BT.size
    assert 1 - real / padded < 0.05


@pytest.mark.slow
def test_a_shift_of_fifty_lines_is_found_in_korean(shared_data, tmp_path):
    corpus = open_corpus([shared_data / "tatoeba" / f"ko-en.train.{language}" for language in ("ko", "en")])
    pairs = list(corpus.pairs())
    targets = [pair.target for pair in pairs]
    targets[2000:2050] = [targets[2049], *targets[2000:2049]]
    (tmp_path / "a.ko").write_text("".join(pair.source + "\n" for pair in pairs))
    (tmp_path / "a.en").write_text("".join(target + "\n" for target in targets))
    [found] = inspect(open_corpus([tmp_path / "a.ko", tmp_path / "a.en"])).shifts
    assert found.offset == 1 and abs(found.first_line - 2001) <= 15 and abs(found.last_line - 2050) <= 15


def test_real_corpora_have_few_problems_and_no_shift(shared_data):
    report = inspect(
        open_corpus([shared_data / "tatoeba" / f"fr-en.dev.{language}" for language in ("fr", "en")])
    )
    assert report.shifts == () and report.num_broken < 0.02 * report.num_pairs
