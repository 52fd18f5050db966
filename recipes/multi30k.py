"""Multi30k in the form of the papers, each model by one command. The data forbid shipping models: measure only.

    python recipes/multi30k.py en-de ../shared/data/multi30k --runs runs/multi30k
    python recipes/multi30k.py de-en-rnn ../shared/data/multi30k --runs runs/multi30k
    python recipes/multi30k.py fr-en ../shared/data/multi30k --runs runs/multi30k

Trains with `regard train`, started again goes on, then runs `regard evaluate` on test2016, beam 5. `--share` makes that
share of the updates, to try it out. On one core `en-de` takes under two hours, the others half an hour
or less.

| recipe | what | compared with |
|---|---|---|
| `en-de` | Transformer 4 + 4, width 128, lower-cased tokenised text, tokenised BLEU | 41.02 (Wu et al. 2021) |
| `de-en-rnn` | GRU with Bahdanau's attention on lower-cased tokenised text | 33.47 (a tutorial's, with subwords) |
| `fr-en` | the same on raw text, cased, detokenised BLEU | |
"""

import argparse
from pathlib import Path

from command import regard

PIECES = "--set tokenizer.kind=bpe --set tokenizer.vocab_size=6000"
TRANSFORMER = f"--preset regard-small {PIECES} --set model.dropout=0.2"
RECURRENT = f"--preset regard-rnn {PIECES} --set model.dropout=0.3 --set train.optimiser.rate=0.0015"
RECIPES = {
    "en-de": ("tok", TRANSFORMER, 18_000),
    "de-en-rnn": ("tok", RECURRENT, 3_600),
    "fr-en": ("raw", RECURRENT, 1_500),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipe", choices=RECIPES)
    parser.add_argument("data", type=Path)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--share", type=float, default=1.0, help="of the updates")
    arguments = parser.parse_args()
    form, options, steps = RECIPES[arguments.recipe]
    sides = arguments.recipe.split("-")[:2]

    def files(part: str, ending: str = "") -> list[Path]:
        folder, form_of = (arguments.data / "tok", ".lc.norm.tok") if form == "tok" else (arguments.data, "")
        return [folder / f"{part}{form_of}.{side}{ending}" for side in sides]

    out = arguments.runs / f"{arguments.recipe}.regard"
    arguments.runs.mkdir(parents=True, exist_ok=True)
    command = ["train", *files("train", ".gz"), "--valid", *files("val")]
    command += ["--source", sides[0], "--target", sides[1]]
    # Tokenised text has its quotes as entities, which look like mark-up.
    command += ["--keep", "markup"] if form == "tok" else []
    regard(*command, "--out", out, "--steps", max(1, round(steps * arguments.share)), *options.split())
    scored = ["--tokenized"] if form == "tok" else []
    regard("evaluate", out, *files("test_2016_flickr"), "--beam", "5", *scored)


if __name__ == "__main__":
    main()
