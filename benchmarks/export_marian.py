"""Exported models beside Marian: word scores and greedy translations of what `regard export --to marian` wrote.

Takes models that can be imported. Needs pymarian; run it where pymarian and regard are both installed. Sources and
references are random pieces of the vocabularies.

    python benchmarks/export_marian.py tests/golden/marian-npz/* --sentences 100
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from regard.contract import Ragged, make_batch
from regard.importing.export_marian import export_marian
from regard.importing.run import read_model
from regard.modelfile import ModelFile
from regard.runtime.build import build_engine
from regard.vocabulary import EOS, NUM_RESERVED

_SIDES = ("source", "target")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--sentences", type=int, default=100)
    options = parser.parse_args()
    print("| model | largest difference of word scores | greedy alike | of their sums |")
    print("|---|---|---|---|")
    for path in options.models:
        model, random = read_model(path), np.random.default_rng(1)
        pairs = [tuple(_ids(model, side, random) for side in _SIDES) for _ in range(options.sentences)]
        texts = [model.tokenizers.source.decode(source) for source, _ in pairs]
        with tempfile.TemporaryDirectory() as folder:
            parity = export_marian(model, Path(folder) / "marian", texts)
            theirs = scores(Path(folder), model, pairs)
        if parity is None:
            sys.exit("pymarian is not installed here")
        largest = max(
            float(np.abs(ours - one).max())
            for ours, one in zip((word_scores(model, *pair) for pair in pairs), theirs, strict=True)
        )
        print(
            f"| {path.name} | {largest:.1e} | {parity.num_identical} of {parity.num_sentences} "
            f"({parity.num_ties} ties) | {parity.largest_difference:.1e} |",
            flush=True,
        )


def _ids(model: ModelFile, side: str, random: np.random.Generator) -> np.ndarray:
    """Return random pieces."""
    size = getattr(model.tokenizers, side).vocab_size
    return random.integers(NUM_RESERVED, size, random.integers(2, 12)).astype(np.int32)


def scores(folder: Path, model: ModelFile, pairs: list[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
    """Return what Marian gives to each word of the targets."""
    files = []
    for number, side in enumerate(_SIDES):
        pieces = getattr(model.tokenizers, side).pieces
        files.append(folder / side)
        files[-1].write_text("".join(" ".join(pieces[id] for id in pair[number]) + "\n" for pair in pairs))
    vocabularies = [folder / "marian" / f"{side}.yml" for side in _SIDES]
    command = [Path(sys.executable).with_name("pymarian"), "score", "--model", folder / "marian" / "model.npz",
               "--train-sets", *files, "--vocabs", *vocabularies, "--cpu-threads", "1", "--workspace", "500",
               "--quiet", "--word-scores"]  # fmt: skip
    said = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True).stdout
    return [np.array(line.partition("WordScores=")[2].split(), float) for line in said.splitlines()]


def word_scores(model: ModelFile, read: np.ndarray, said: np.ndarray) -> np.ndarray:
    """Return our log-probabilities of the pieces of a target and its end."""
    batch = make_batch(Ragged.of([read]), Ragged.of([said]), np.arange(1))
    logits_TV = build_engine(model.options, model.weights).force(batch).logits_BTV[0].astype(float)
    log_probs_TV = logits_TV - np.log(np.exp(logits_TV).sum(axis=1, keepdims=True))
    return log_probs_TV[range(len(said) + 1), [*said, EOS]]


if __name__ == "__main__":
    main()
