"""Multi30k in the form of the papers, each model by one command. The data forbid shipping models: measure only.

    python recipes/multi30k.py en-de ../shared/data/multi30k --runs runs/multi30k
    python recipes/multi30k.py fr-en ../shared/data/multi30k --runs runs/multi30k
    python recipes/multi30k.py de-en-rnn ../shared/data/multi30k --runs runs/multi30k

Trains with `regard train`, started again goes on, then runs `regard evaluate` on test2016, beam 5.

| recipe | what | compared with |
|---|---|---|
| `en-de` | Transformer 4 + 4, width 128, 2.6 M weights, lower-cased tokenised text, tokenised BLEU | 41.02 (Wu et al. 2021) |
| `fr-en` | the same on raw text, cased, detokenised BLEU | |
| `de-en-rnn` | GRU with Bahdanau's attention on lower-cased tokenised text | 33.47 (a tutorial's, with subwords) |
"""

import argparse
from pathlib import Path

from command import regard

# After Wu et al. 2021: joint BPE of 10,000, dropout 0.3, 8,000 updates of 4,096 tokens. The rate and its way down are ours.
TINY = (
    "--preset regard-small --steps 8000 --set tokenizer.kind=bpe --set tokenizer.vocab_size=10000 "
    "--set batch.batch_tokens=4096 --set model.dropout=0.3"
)
RECIPES = {
    "en-de": ("tok", TINY),
    "fr-en": ("raw", TINY),
    "de-en-rnn": (
        "tok",
        "--preset regard-rnn --set tokenizer.vocab_size=8000 --set model.dropout=0.3 --time 60m",
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipe", choices=RECIPES)
    parser.add_argument("data", type=Path)
    parser.add_argument("--runs", type=Path, required=True)
    arguments = parser.parse_args()
    form, options = RECIPES[arguments.recipe]
    sides = arguments.recipe.split("-")[:2]

    def files(part: str, ending: str = "") -> list[str]:
        if form == "tok":
            return [str(arguments.data / "tok" / f"{part}.lc.norm.tok.{side}{ending}") for side in sides]
        return [str(arguments.data / f"{part}.{side}{ending}") for side in sides]

    out = str(arguments.runs / f"{arguments.recipe}.regard")
    arguments.runs.mkdir(parents=True, exist_ok=True)
    languages = ["--source", sides[0], "--target", sides[1]]
    regard(
        "train", *files("train", ".gz"), "--valid", *files("val"), *languages, "--out", out, *options.split()
    )
    scored = ["--tokenized"] if form == "tok" else []
    regard("evaluate", out, *files("test_2016_flickr"), "--beam", "5", *scored)


if __name__ == "__main__":
    main()
