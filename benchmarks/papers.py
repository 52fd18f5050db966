"""What the design of each paper learns at a laptop's size: presets trained one after the other for the same time.

    python benchmarks/papers.py train.fr train.en --valid dev.fr dev.en --time 15m --runs RUNS
        [--only bahdanau2015,luong2015] [--size paper]

Each training uses one thread. The table gives weights, updates, BLEU and the verdict. The same command goes on
with what is missing.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from regard.model.presets import PAPERS
from regard.modelfile import load_model


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+")
    parser.add_argument("--valid", nargs="+", default=[])
    parser.add_argument("--time", default="15m")
    parser.add_argument("--only", default=",".join(PAPERS))
    parser.add_argument("--size", default="laptop")
    parser.add_argument("--runs", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.runs.mkdir(parents=True, exist_ok=True)
    valid = ["--valid", *arguments.valid] if arguments.valid else []
    models = {name: arguments.runs / f"{name}.regard" for name in arguments.only.split(",")}
    for name, out in models.items():
        command = [sys.executable, "-m", "regard", "train", *arguments.files, *valid, "--out", str(out)]
        command += ["--preset", name, "--size", arguments.size, "--time", arguments.time]
        subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    print("\n| preset | width | weights | vocabulary | updates | BLEU | chrF | verdict |")
    print("|---|---|---|---|---|---|---|---|")
    for name, out in models.items():
        model = load_model(out)
        card, scores = model.card, model.card["validation"]
        print(
            f"| `{name}` | {model.options.hidden_size} | {card['data']['num_parameters']:,} "
            f"| {card['data']['vocab_size']:,} | {card['training']['step']:,} | {scores['bleu']:.1f} "
            f"| {scores['chrf']:.1f} | {card['verdict']['level']} |"
        )


if __name__ == "__main__":
    main()
