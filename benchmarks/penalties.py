"""Which penalties does the beam need: BLEU on a development set for each length and coverage penalty.

    python benchmarks/penalties.py fr-en dev.fr dev.en [--length 0.6,1,1.4] [--coverage 0,0.2] [--beam 5] [--pairs 500]

Choose on development sets, not on those that are reported. `ratio` is that of the characters of all
translations to those of the references; what the guard does is left in, for users have it.
"""

import argparse
from itertools import islice, product
from pathlib import Path

from regard.corpus.read import open_corpus
from regard.evaluation.scores import score
from regard.modelfile import load_model
from regard.translate.translator import Translator


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("files", nargs=2, type=Path)
    parser.add_argument("--length", type=numbers, default=[0.6, 1.0, 1.4])
    parser.add_argument("--coverage", type=numbers, default=[0.0, 0.2])
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=500)
    arguments = parser.parse_args()
    pairs = list(islice(open_corpus(arguments.files).pairs(), arguments.pairs))
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    model = load_model(arguments.model)
    translator = Translator.of(model)
    print("length  coverage   BLEU   chrF   ratio  flagged")
    for length, coverage in product(arguments.length, arguments.coverage):
        found = translator.translate(
            sources, beam_size=arguments.beam, length_penalty=length, coverage_penalty=coverage
        )
        said = [one.text for one in found]
        scores = score(said, references, target_language=model.target_language)
        ratio = sum(len(text) for text in said) / sum(len(text) for text in references)
        flagged = sum(bool(one.flags) for one in found) / len(found)
        print(
            f"{length:6.2f}  {coverage:8.2f}  {scores.bleu:5.2f}  {scores.chrf:5.2f}  {ratio:6.3f}  {flagged:7.1%}",
            flush=True,
        )
    print(scores.signatures["bleu"])


if __name__ == "__main__":
    main()
