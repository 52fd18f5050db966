"""Do fixed vectors fail on long sentences, and does attention not? `regard lineage`, and its figures.

    python benchmarks/lineage.py ../shared/data --time 9h --report runs/lineage [--at-once 2]
    python benchmarks/lineage.py grammar --time 45m --report runs/grammar [--at-once 2]

On real text: the first 80,000 pairs of Europarl fr-en that have at most 50 words a side (as Bahdanau et al. 2015 for
their RNNencdec-50 and RNNsearch-50); validated on its dev set, measured on the test set with as many sentences of
each length, and on the Alibi gold pairs. On sentences of our grammar, for which no data is needed: 30,000 pairs of any
length up to 60 words, measured on others, 150 of each ten words of length. Recurrent rungs learn without dropout, for the time is short.

`--at-once 2` trains two rungs beside one another, with half of the cores for each; `--time` stays the sum of what the
rungs have. Started again, it goes on. The figures to reach: fixed-vector rungs keep less than half of their BLEU
at 1-20 words on 41-70 words, rungs with attention at least 80 % of theirs.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from regard.cli.progress import progress
from regard.cli.settings import read_time
from regard.files import writing
from regard.lineage.climb import Plan, climb
from regard.lineage.ladder import LADDER, rungs
from regard.lineage.report import MODELS
from regard.sample import SamplePair, write_sample
from regard.text.words import words
from regard.training.display import open_display
from regard.training.request import CorpusFiles

sys.path.append(str(Path(__file__).parents[1] / "recipes"))
from grammar import generate

_MOST_WITHOUT, _LEAST_WITH = 0.5, 0.8
_MAX_WORDS = 50
_NUM_TEST, _BIN_WORDS, _NUM_DRAWN, _NUM_GOLD = 150, 10, 20_000, 200


@dataclass(frozen=True)
class Material:
    """What the rungs learn from and are measured on, and the flags that go with it."""

    train: tuple[Path, ...]
    valid: tuple[Path, ...]
    test: tuple[Path, ...]
    gold: tuple[Path, ...]
    vocab_size: int
    flags: tuple[str, ...] = ()

    @property
    def options(self) -> dict[str, dict[str, Any]]:
        """What is set for every rung."""
        return {"tokenizer": {"vocab_size": self.vocab_size}, "model": {"dropout": 0}}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder that holds europarl and gold; or `grammar`")
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--time", required=True)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--rung", help="train this one alone and measure nothing: what --at-once starts")
    arguments = parser.parse_args()
    folder = arguments.report.with_name(f"{arguments.report.name}.data")
    folder.mkdir(parents=True, exist_ok=True)
    material = grammar(folder) if str(arguments.data) == "grammar" else europarl(arguments.data, folder)
    if arguments.rung:
        seconds = read_time(arguments.time) / len(LADDER)
        plan = Plan(
            (CorpusFiles(material.train),),
            arguments.report / MODELS,
            seconds,
            validation=material.valid,
            options=material.options,
        )
        climb(plan, rungs(arguments.rung), lambda rung: open_display(), progress)
        return
    if arguments.at_once > 1:
        _train_together(arguments.at_once, folder)
    command: list[object] = [
        "lineage",
        *material.train,
        "--time",
        arguments.time,
        "--report",
        arguments.report,
    ]
    for flag, files in (("--valid", material.valid), ("--test", material.test), ("--gold", material.gold)):
        command += [flag, *files] if files else []
    for section, values in material.options.items():
        for key, value in values.items():
            command += ["--set", f"{section}.{key}={value}"]
    command_words = [*map(str, command), *material.flags]
    print(f"regard {' '.join(command_words)}", flush=True)
    subprocess.run([sys.executable, "-m", "regard", *command_words], check=True)

    found = json.loads((arguments.report / "report.json").read_text("utf-8"))
    print(f"\n{'rung':16} {'1-20':>6} {'41-70':>6}  kept")
    for rung in found["rungs"]:
        print(f"{rung['name']:16} {_told(rung['short'])} {_told(rung['long'])}  {_kept(rung)}")


def europarl(data: Path, folder: Path, num_pairs: int = 80_000) -> Material:
    source, gold = data / "europarl", data / "gold" / "alibi.fr-en"
    train = tuple(folder / f"fr-en.train-{num_pairs}-{_MAX_WORDS}.{side}" for side in ("fr", "en"))
    if not all(path.exists() for path in train):
        with gzip.open(source / "fr-en.train.fr.gz") as a, gzip.open(source / "fr-en.train.en.gz") as b:
            short = (
                pair for pair in zip(a, b, strict=True) if max(len(x.split()) for x in pair) <= _MAX_WORDS
            )
            sides = zip(*islice(short, num_pairs), strict=True)
        with writing(*train) as streams:
            for stream, lines in zip(streams, sides, strict=True):
                stream.writelines(lines)
    valid, test = (
        tuple(source / f"fr-en.{name}.{side}" for side in ("fr", "en")) for name in ("dev", "test.bylen")
    )
    return Material(
        train, valid, test, tuple(gold / f"alibi.fr-en.{end}" for end in ("fr", "en", "align")), 4000
    )


def grammar(folder: Path, num_pairs: int = 30_000) -> Material:
    parts = {
        name: tuple(folder / name / f"sample.{end}" for end in ("fr", "en", "align"))
        for name in ("train", "test", "gold")
    }
    if not all(path.exists() for paths in parts.values() for path in paths):
        write_sample(folder / "train", generate(num_pairs, seed=1))
        write_sample(folder / "gold", generate(_NUM_GOLD, seed=3))
        learnt = set((folder / "train" / "sample.fr").read_text("utf-8").splitlines())
        chosen: dict[int, list[SamplePair]] = {}
        for pair in generate(_NUM_DRAWN, seed=2):
            bin = chosen.setdefault((len(words(pair.source)) - 1) // _BIN_WORDS, [])
            if pair.source not in learnt and len(bin) < _NUM_TEST:
                bin.append(pair)
        write_sample(folder / "test", (pair for _, some in sorted(chosen.items()) for pair in some))
    return Material(parts["train"][:2], (), parts["test"][:2], parts["gold"], 2000, ("--words",))


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
