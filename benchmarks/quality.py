"""How good is the default recipe after a given time: train with no option but `--time`, and score a test set.

    python benchmarks/quality.py train.en train.de test.en test.de --time 30m --out runs/quality.regard

Everything goes through the command line and `regard.load`, as a user would. The score is cased, detokenised
sacreBLEU by beam search, with its signature. Started again, it goes on where it was interrupted.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import regard
from regard.corpus.read import open_corpus
from regard.evaluation.scores import score


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs=4, type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--beam", type=int, default=5)
    arguments, options = parser.parse_known_args()
    command = ["train", *map(str, arguments.files[:2]), "--out", str(arguments.out), *options]
    started = time.monotonic()
    subprocess.run([sys.executable, "-m", "regard", *command], check=True)
    print(f"training took {(time.monotonic() - started) / 60:.1f} minutes in all: regard {' '.join(command)}")

    test = open_corpus(arguments.files[2:])
    pairs = list(test.pairs())
    started = time.monotonic()
    translations = regard.load(arguments.out).translate(
        [pair.source for pair in pairs], beam_size=arguments.beam
    )
    seconds = time.monotonic() - started
    scores = score(
        [one.text for one in translations],
        [pair.target for pair in pairs],
        [pair.source for pair in pairs],
        test.target_language,
    )
    print(f"BLEU {scores.bleu:.2f}  {scores.signatures['bleu']}  beam {arguments.beam}")
    print(f"chrF {scores.chrf:.2f}  {scores.signatures['chrf']}")
    for row in scores.by_length:
        print(
            f"{row.first_word:3}-{row.last_word or '':<3} {row.num_sentences:6} sentences  BLEU {row.bleu:.1f}"
        )
    print(f"{len(pairs)} sentences in {seconds:.1f} s")


if __name__ == "__main__":
    main()
