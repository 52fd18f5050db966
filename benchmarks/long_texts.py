"""Texts of many sentences against the same sentences line by line, in one run.

    python benchmarks/long_texts.py fr-en test.fr test.en [--sentences 240] [--join 4,24]

The sentences of a text are joined by spaces. BLEU is that of the whole texts against the joined references;
line by line, the translations are joined in the same way.
"""

import argparse
import time
from pathlib import Path

import regard
from regard.evaluation.scores import score


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--sentences", type=int, default=240)
    parser.add_argument("--join", default="4,24")
    arguments = parser.parse_args()
    sources, references = (
        path.read_text("utf-8").splitlines()[: arguments.sentences]
        for path in (arguments.source, arguments.reference)
    )
    translator = regard.load(arguments.model)
    start = time.perf_counter()
    by_line = [one.text for one in translator.translate(sources)]
    seconds = time.perf_counter() - start
    for size in map(int, arguments.join.split(",")):
        texts, wanted, lines = (
            [" ".join(side[first : first + size]) for first in range(0, len(side), size)]
            for side in (sources, references, by_line)
        )
        start = time.perf_counter()
        said = [one.text for one in translator.translate(texts)]
        ratio = (time.perf_counter() - start) / seconds
        bleu, whole = score(lines, wanted).bleu, score(said, wanted).bleu
        words = [sum(len(text.split()) for text in side) for side in (texts, lines, said)]
        print(
            f"{size:3} sentences a text: BLEU {whole:.1f}, line by line {bleu:.1f}; "
            f"words {words[2]:,} from {words[0]:,}, line by line {words[1]:,}; {ratio:.2f} times the time",
            flush=True,
        )


if __name__ == "__main__":
    main()
