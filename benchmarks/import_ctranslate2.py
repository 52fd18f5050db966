"""Imported CTranslate2 models against CTranslate2: tokens of greedy and beam search, and their log-probabilities.

Takes folders of CTranslate2. The sources are random pieces of their vocabularies. Needs ctranslate2.

    python benchmarks/import_ctranslate2.py folder-1 folder-2 --sentences 300
"""

import argparse
from pathlib import Path

import numpy as np

from regard.engines import NUMPY
from regard.importing.run import read_model
from regard.loaded import Loaded
from regard.modelfile import ModelFile
from regard.options.search import BeamOptions
from regard.search.searcher import Query
from regard.vocabulary import NUM_RESERVED

_MAX_NEW = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--sentences", type=int, default=300)
    options = parser.parse_args()
    print("| folder | greedy alike | beam 4 alike | largest difference of log-probabilities |")
    print("|---|---|---|---|")
    for folder in options.folders:
        compare(folder, read_model(folder), options.sentences)


def compare(folder: Path, model: ModelFile, num_sentences: int) -> None:
    import ctranslate2

    translator = ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=1)
    searcher, random = Loaded.of(model, compute=NUMPY).searcher, np.random.default_rng(1)
    source, target = model.tokenizers.source, model.tokenizers.target
    alike, largest = {1: 0, 4: 0}, 0.0
    for _ in range(num_sentences):
        ids = random.integers(NUM_RESERVED, source.vocab_size, random.integers(2, 12))
        for size in alike:
            search = BeamOptions(beam_size=size, length_penalty=0, max_ratio=1e-6, extra_tokens=_MAX_NEW)
            (found,) = searcher.search([Query(ids)], search)
            (theirs,) = translator.translate_batch(
                [[source.pieces[id] for id in ids]], beam_size=size, length_penalty=0, patience=2,
                max_decoding_length=_MAX_NEW, min_decoding_length=0, return_scores=True,
            )  # fmt: skip
            ours = found.hypotheses[0]
            if theirs.hypotheses[0] == [target.pieces[id] for id in ours.ids]:
                alike[size] += 1
                largest = max(largest, abs(theirs.scores[0] - ours.log_prob))
    print(
        f"| {folder.name} | {alike[1]} of {num_sentences} | {alike[4]} of {num_sentences} | {largest:.1e} |"
    )


if __name__ == "__main__":
    main()
