"""Do fixed vectors fail on long sentences, and does attention not? `regard lineage` on Europarl, and its figures.

    python benchmarks/lineage.py ../shared/data --time 9h --report runs/lineage [--at-once 2]

Takes the first 80,000 pairs of Europarl fr-en that have at most 50 words a side (as Bahdanau et al. 2015 for their
RNNencdec-50 and RNNsearch-50), learns without dropout, for the time is short, validates on its dev set, measures on the test set with as many sentences of each length, and aligns
the Alibi gold pairs. `--at-once 2` trains two rungs beside one another, with half of the cores for each; `--time`
stays the sum of what the rungs have. Started again, it goes on. The figures to reach: fixed-vector rungs keep less
than half of their BLEU at 1-20 words on 41-70 words, rungs with attention at least 80 % of theirs.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

from regard.cli.settings import read_time
from regard.draw.progress import progress
from regard.lineage.climb import Plan, climb
from regard.lineage.ladder import LADDER, rungs
from regard.lineage.report import MODELS
from regard.training.display import open_display
from regard.training.run import CorpusFiles

_MOST_WITHOUT, _LEAST_WITH = 0.5, 0.8
_MAX_WORDS = 50
_OPTIONS: dict[str, dict[str, Any]] = {"tokenizer": {"vocab_size": 4000}, "model": {"dropout": 0}}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder that holds europarl and gold")
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--time", required=True)
    parser.add_argument("--pairs", type=int, default=80_000)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--rung", help="train this one alone and measure nothing: what --at-once starts")
    arguments = parser.parse_args()
    europarl, gold = arguments.data / "europarl", arguments.data / "gold" / "alibi.fr-en"
    train = _first(europarl, arguments.report, arguments.pairs)
    valid, test = (
        [europarl / f"fr-en.{name}.{side}" for side in ("fr", "en")] for name in ("dev", "test.bylen")
    )
    if arguments.rung:
        seconds = read_time(arguments.time) / len(LADDER)
        files, folder = CorpusFiles(tuple(train)), arguments.report / MODELS
        plan = Plan((files,), folder, seconds, validation=tuple(valid), options=_OPTIONS)
        climb(plan, rungs(arguments.rung), lambda rung: open_display(), progress)
        return
    if arguments.at_once > 1:
        _train_together(arguments.at_once, train[0].parent)
    command = ["lineage", *train, "--valid", *valid, "--test", *test, "--time", arguments.time]
    command += ["--gold", *(gold / f"alibi.fr-en.{ending}" for ending in ("fr", "en", "align"))]
    command += ["--report", arguments.report]
    for section, values in _OPTIONS.items():
        for key, value in values.items():
            command += ["--set", f"{section}.{key}={value}"]
    words = list(map(str, command))
    print(f"regard {' '.join(words)}", flush=True)
    subprocess.run([sys.executable, "-m", "regard", *words], check=True)

    found = json.loads((arguments.report / "report.json").read_text("utf-8"))
    print(f"\n{'rung':16} {'1-20':>6} {'41-70':>6}  kept")
    for rung in found["rungs"]:
        print(f"{rung['name']:16} {_told(rung['short'])} {_told(rung['long'])}  {_kept(rung)}")


def _first(europarl: Path, report: Path, count: int) -> list[Path]:
    """Return plain files, beside the report, of the first pairs that are not too long."""
    folder = report.with_name(f"{report.name}.data")
    paths = [folder / f"fr-en.train-{count}.{side}" for side in ("fr", "en")]
    if not all(path.exists() for path in paths):
        folder.mkdir(parents=True, exist_ok=True)
        with gzip.open(europarl / "fr-en.train.fr.gz") as a, gzip.open(europarl / "fr-en.train.en.gz") as b:
            short = (
                pair for pair in zip(a, b, strict=True) if max(len(x.split()) for x in pair) <= _MAX_WORDS
            )
            sides = zip(*islice(short, count), strict=True)
        for path, lines in zip(paths, sides, strict=True):
            path.write_bytes(b"".join(lines))
    return paths


def _train_together(num_rungs: int, logs: Path) -> None:
    """Train the rungs some at a time, by this very command; `regard lineage` then finds them finished."""
    num_threads = max(1, (os.cpu_count() or 1) // num_rungs)
    environment = os.environ | {"OMP_NUM_THREADS": str(num_threads)}

    def train_one(name: str) -> None:
        with (logs / f"{name}.log").open("ab") as log:
            command = [sys.executable, *sys.argv, "--rung", name]
            subprocess.run(command, check=True, env=environment, stdout=log, stderr=subprocess.STDOUT)
        print(f"{name} is trained", flush=True)

    with ThreadPoolExecutor(num_rungs) as pool:
        list(pool.map(train_one, [rung.name for rung in LADDER]))


def _told(estimate: dict[str, float] | None) -> str:
    return f"{'-':>6}" if estimate is None else f"{estimate['value']:6.1f}"


def _kept(rung: dict) -> str:
    if rung["kept"] is None:
        return "not measured"
    share, around = rung["kept"]["value"], rung["kept"]["interval"]
    reached = share >= _LEAST_WITH if rung["has_attention"] else share < _MOST_WITHOUT
    wanted = (
        f"at least {_LEAST_WITH:.0%} wanted"
        if rung["has_attention"]
        else f"less than {_MOST_WITHOUT:.0%} wanted"
    )
    told = f" ({around['low']:.0%} to {around['high']:.0%})" if around else ""
    return f"{share:.0%}{told}, {wanted}: {'reached' if reached else 'NOT reached'}"


if __name__ == "__main__":
    main()
