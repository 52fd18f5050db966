"""Does the memory of a training grow with the corpus: the most that all its processes ever held, by corpus size.

    python benchmarks/train_memory.py europarl.fr europarl.en --pairs 100000 300000 [--valid dev.fr dev.en]

Other options go to `regard train`. The first N pairs of the corpus are trained on for a few updates: inspected,
cleaned, split, tokenised, stored, learnt and scored, as `regard train` always does.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from regard.corpus.read import open_corpus


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs=2, type=Path)
    parser.add_argument("--pairs", type=int, nargs="+", default=[100_000, 300_000])
    parser.add_argument("--steps", type=int, default=20)
    arguments, options = parser.parse_known_args()
    corpus = open_corpus(arguments.files)
    peaks = []
    with tempfile.TemporaryDirectory() as name:
        for num_pairs in arguments.pairs:
            paths = [
                Path(name) / f"{num_pairs}.{side.suffix.strip('.')}"
                for side in map(Path, _sides(corpus.paths))
            ]
            with paths[0].open("w") as sources, paths[1].open("w") as targets:
                for pair in islice(corpus.pairs(), num_pairs):
                    print(pair.source, file=sources)
                    print(pair.target, file=targets)
            peaks.append(measure(paths, Path(name) / f"{num_pairs}.regard", arguments.steps, options))
            print(
                f"{num_pairs:10,} pairs: {peaks[-1] / 1024:,.0f} MiB at most, all processes together",
                flush=True,
            )
    print(f"the largest corpus takes {peaks[-1] / peaks[0]:.2f} times the memory of the smallest")


def _sides(paths: tuple[Path, ...]) -> list[Path]:
    """Return the names without the endings of compression."""
    return [path.with_suffix("") if path.suffix in (".gz", ".xz", ".zst") else path for path in paths]


def measure(paths: list[Path], out: Path, steps: int, options: list[str]) -> int:
    """Return the peak in KiB of the sum over the processes of a training, looked at twenty times a second."""
    command = ["-m", "regard", "train", *map(str, paths), "--out", str(out), "--steps", str(steps), *options]
    process = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(_resident(pid) for pid in _family(process.pid)))
        time.sleep(0.05)
    assert process.returncode == 0
    return peak


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in _family(int(child)))]


def _resident(pid: int) -> int:
    """Return the memory of a process that no other shares, and its part of what is shared, in KiB."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


if __name__ == "__main__":
    main()
