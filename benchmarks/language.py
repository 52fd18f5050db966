"""How often is the flag `language` right, by the length of the text?

    python benchmarks/language.py fr-en --right tatoeba.fr europarl.fr --wrong tatoeba.en europarl.en [--sentences 400]

Files of `--right` are in the language that the model reads: what is flagged there is a false alarm. Those of `--wrong`
are in another one. `asked` are the texts with at least four words whose translation is poor enough to ask for their
language. The last line is the processor time that the first question costs.
"""

import argparse
import time
from pathlib import Path

import regard
from regard.corpus.checks import sure_language
from regard.translate.language import MAX_QUALITY

BINS = ((1, 3), (4, 5), (6, 8), (9, 15), (16, 1000))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--right", nargs="+", type=Path, default=[])
    parser.add_argument("--wrong", nargs="+", type=Path, default=[])
    parser.add_argument("--sentences", type=int, default=400)
    arguments = parser.parse_args()
    start = time.process_time()
    sure_language("to load it", 1.0)
    seconds = time.process_time() - start
    translator = regard.load(arguments.model)
    for what, paths in (("right", arguments.right), ("wrong", arguments.wrong)):
        for path in paths:
            texts = path.read_text("utf-8").splitlines()[: arguments.sentences]
            found = translator.translate(texts)
            for least, most in BINS:
                mine = [one for one in found if least <= len(one.source.split()) <= most]
                if mine:
                    flagged = 100 * sum("language" in one.flags for one in mine) / len(mine)
                    asked = 100 * sum(one.quality < MAX_QUALITY for one in mine) / len(mine)
                    print(
                        f"{what} {path.name} {least}-{most} words: {len(mine)} texts, flagged {flagged:.1f} percent, "
                        f"asked {asked if least >= 4 else 0:.1f} percent",
                        flush=True,
                    )
    print(f"the first question: {seconds:.2f} s of processor time")


if __name__ == "__main__":
    main()
