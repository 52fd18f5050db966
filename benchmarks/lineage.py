"""Do fixed vectors fail on long sentences, and does attention not? `regard lineage` on Europarl, and its figures.

    python benchmarks/lineage.py ../shared/data --time 9h --report runs/lineage

Takes the first 80,000 pairs of Europarl fr-en, validates on its dev set, measures on the test set with as many
sentences of each length, and aligns the Alibi gold pairs. Everything goes through the command line; started
again, it goes on. The figures to reach: fixed-vector rungs keep less than half of their BLEU at 1-20 words
on 41-70 words, rungs with attention at least 80 % of theirs.
"""

import argparse
import gzip
import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

_MOST_WITHOUT, _LEAST_WITH = 0.5, 0.8


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder that holds europarl and gold")
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=80_000)
    arguments, options = parser.parse_known_args()
    europarl, gold = arguments.data / "europarl", arguments.data / "gold" / "alibi.fr-en"
    train = [_first(europarl / f"fr-en.train.{side}.gz", arguments) for side in ("fr", "en")]
    command = ["lineage", *train, "--report", arguments.report]
    for flag, name in (("--valid", "dev"), ("--test", "test.bylen")):
        command += [flag, *(europarl / f"fr-en.{name}.{side}" for side in ("fr", "en"))]
    command += ["--gold", *(gold / f"alibi.fr-en.{ending}" for ending in ("fr", "en", "align"))]
    words = [*map(str, command), *options]
    print(f"regard {' '.join(words)}", flush=True)
    subprocess.run([sys.executable, "-m", "regard", *words], check=True)

    found = json.loads((arguments.report / "report.json").read_text("utf-8"))
    print(f"\n{'rung':16} {'1-20':>6} {'41-70':>6}  kept")
    for rung in found["rungs"]:
        print(f"{rung['name']:16} {_told(rung['short'])} {_told(rung['long'])}  {_kept(rung)}")


def _first(path: Path, arguments: argparse.Namespace) -> Path:
    """Return a plain file with the first lines of a compressed one, beside the report."""
    name = path.name.removesuffix(".gz").replace("train", f"train-{arguments.pairs}")
    first = arguments.report.with_name(f"{arguments.report.name}.data") / name
    if not first.exists():
        first.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "rb") as stream:
            first.write_bytes(b"".join(islice(stream, arguments.pairs)))
    return first


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
