"""What `regard train` makes of a few minutes, in two versions of the code: the same pairs, the same test sentences.

    git worktree add ../before 5419df3
    python benchmarks/short_trainings.py manuals.tsv --before ../before --minutes 6 12 30 --runs RUNS

The table has English, tab, French. A thousand pairs, chosen at random, are set aside for the test, and with them every
pair that shares a sentence with one of them. Each version is a process with the `src` of its checkout, trains with
`--time` and nothing else, and sets its own validation pairs aside. One trains at a time; each has `--threads` threads. The
version of this checkout scores all models. Stopped and started again, it goes on.
"""

import argparse
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from regard.evaluation.scores import score
from regard.files import writing
from regard.translate.translator import Translator

NUM_TEST = 1000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", type=Path)
    parser.add_argument("--before", type=Path, required=True, help="a checkout of the other version")
    parser.add_argument("--now", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--minutes", type=int, nargs="+", default=[6, 12, 30])
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    arguments.runs.mkdir(parents=True, exist_ok=True)
    train, test = arguments.runs / "train.tsv", arguments.runs / "test.tsv"
    if not test.exists():
        set_aside(arguments.table, train, test)
    for minutes in arguments.minutes:
        for name, checkout in (("before", arguments.before), ("now", arguments.now)):
            model = (arguments.runs / f"{name}-{minutes}.regard").resolve()
            began = time.monotonic()
            if not model.exists():
                learn(checkout, train.resolve(), model, minutes, arguments.threads)
            took = (time.monotonic() - began) / 60
            print(f"{minutes} minutes, {name}: {scores(model, test)}; {took:.1f} minutes in all", flush=True)


def set_aside(table: Path, train: Path, test: Path) -> None:
    """Divide the table into what is trained on and what is tested on."""
    pairs = list(dict.fromkeys(table.read_text("utf-8").splitlines()))
    random.Random(1).shuffle(pairs)
    tested = {side for pair in pairs[:NUM_TEST] for side in pair.split("\t")}
    rest = (pair for pair in pairs[NUM_TEST:] if tested.isdisjoint(pair.split("\t")))
    for path, lines in ((train, rest), (test, pairs[:NUM_TEST])):
        with writing(path) as (stream,):
            stream.writelines(f"{line}\n".encode() for line in lines)


def learn(checkout: Path, train: Path, model: Path, minutes: int, threads: int) -> None:
    """Train a model with the code of this checkout; its last lines are printed."""
    environment = os.environ | {
        "PYTHONPATH": str(checkout.resolve() / "src"),
        "OMP_NUM_THREADS": str(threads),
    }
    command = [sys.executable, "-m", "regard", "train", train, "--source", "en", "--target", "fr"]
    command += ["--out", model, "--time", f"{minutes}m"]
    done = subprocess.run(
        [str(word) for word in command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    print(*(f"    {line}" for line in done.stdout.splitlines()), sep="\n", flush=True)
    if done.returncode:
        raise SystemExit(done.returncode)


def scores(model: Path, test: Path) -> str:
    """Return BLEU and chrF of the test sentences, beam 5."""
    pairs = [line.split("\t") for line in test.read_text("utf-8").splitlines()]
    sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    said = [one.text for one in Translator.open(model).translate(sources)]
    found = score(said, references, sources=sources, target_language="fr")
    return f"BLEU {found.bleu:.1f}, chrF {found.chrf:.1f} ({found.signatures['bleu']})"


if __name__ == "__main__":
    main()
