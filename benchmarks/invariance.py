"""How far scores computed in a batch are from those computed alone, and how often a choice hangs on that.

python benchmarks/invariance.py en-de.regard test.en [--sentences 300] [--batch 50]
"""

import argparse
from pathlib import Path

import numpy as np

from regard.loaded import Loaded
from regard.options.search import BeamOptions
from regard.search.searcher import Query
from regard.search.task import DOUBT


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--sentences", type=int, default=300)
    parser.add_argument("--batch", type=int, default=50)
    arguments = parser.parse_args()
    model = Loaded.open(arguments.model)
    texts = arguments.file.read_text("utf-8").splitlines()[: arguments.sentences]
    ids = model.tokenizers.source.encode_batch(list(map(model.tokenizers.clean_source, texts)))
    ids.sort(key=len)
    for beam_size in (1, 5):
        options = BeamOptions(beam_size=beam_size)
        apart, margins, num_other = [0.0], [], 0
        for first in range(0, len(ids), arguments.batch):
            batch = list(map(Query, ids[first : first + arguments.batch]))
            for source, together in zip(batch, model.searcher.search(batch, options), strict=True):
                (alone,) = model.searcher.search([source], options)
                a, b = alone.hypotheses[0], together.hypotheses[0]
                margins.append(together.margin)
                num_other += a.ids != b.ids
                if a.ids == b.ids:
                    apart.append(abs(a.log_prob - b.log_prob))
                    apart += np.abs(np.subtract(a.log_probs, b.log_probs)).tolist()
        doubtful = np.mean(np.array(margins) < DOUBT)
        print(
            f"beam {beam_size}: log-probabilities up to {max(apart):.1e} apart; {num_other} of {len(ids)} say something "
            f"else in the batch; {doubtful:.1%} have a margin below {DOUBT:g} and are searched again alone"
        )


if __name__ == "__main__":
    main()
