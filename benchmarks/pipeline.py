"""What back-translation and distillation bring: the pipeline of docs/scale.md, step by step, on one test set.

    python benchmarks/pipeline.py tatoeba.fr tatoeba.en --dev dev.fr dev.en --test test.fr test.en --runs RUNS

The first `--pairs` pairs of the corpus are the parallel text; of the next `--mono` pairs only the target side is used,
as text in one language. Every model is trained for the same number of updates, so that other work on the machine changes
nothing. The steps, from the source language (S) into the target language (T):

    base      S to T, on the parallel text
    reverse   T to S, on the parallel text; translates the text in one language back, in shards
    both      S to T, on the parallel text and the back-translations
    taught    a narrower model, S to T, on what `both` says to the sources of the parallel text and the back-translations
    untaught  the same narrower model on the translations that `both` learnt from

Stopped and started again, it goes on.
"""

import argparse
import subprocess
import sys
from itertools import islice
from pathlib import Path

from regard.files import writing

PRESET = ("--preset", "regard-quick", "--vocab", "4000")


def main() -> None:
    """Run the steps and print the scores of the models."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path, nargs=2, metavar="FILE")
    parser.add_argument("--dev", type=Path, nargs=2, required=True, metavar="FILE")
    parser.add_argument("--test", type=Path, nargs=2, required=True, metavar="FILE")
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--mono", type=int, default=60_000)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--narrow", type=int, default=64, help="width of the narrower model (of 128)")
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    run = Pipeline(options)
    parallel = run.part("parallel", options.corpus, 0, options.pairs)
    mono = run.part("mono", options.corpus, options.pairs, options.pairs + options.mono)[1]
    good = run.clean(parallel)
    base = run.train("base", good, options.dev)
    reverse = run.train("reverse", good[::-1], options.dev[::-1])
    back = run.translate("back", reverse, mono, "--beam", 1)
    also = ("--also", back, mono)
    both = run.train("both", good, options.dev, *also)
    sources = run.joined("sources", good[0], back)
    taught = run.translate("said", both, sources)
    narrow = (
        "--set",
        f"model.hidden_size={options.narrow}",
        "--set",
        f"model.embedding_size={options.narrow}",
    )
    small = run.train("taught", (sources, taught), options.dev, *narrow)
    untaught = run.train("untaught", good, options.dev, *also, *narrow)
    regard("evaluate", base, both, untaught, small, *options.test)


class Pipeline:
    """Where the files are, and how many updates each training makes."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.folder: Path = options.runs
        self.steps: int = options.steps
        self.sides = [path.suffix for path in options.corpus]

    def part(self, name: str, corpus: list[Path], start: int, stop: int) -> tuple[Path, Path]:
        """Write some lines of both sides of the corpus."""
        paths = tuple(self.folder / f"{name}{side}" for side in self.sides)
        for path, whole in zip(paths, corpus, strict=True):
            with whole.open("rb") as lines, writing(path) as (out,):
                out.writelines(islice(lines, start, stop))
        return paths[0], paths[1]

    def joined(self, name: str, *parts: Path) -> Path:
        """Write files one after the other."""
        path = self.folder / f"{name}{parts[0].suffix}"
        with writing(path) as (out,):
            out.writelines(part.read_bytes() for part in parts)
        return path

    def clean(self, pair: tuple[Path, Path]) -> tuple[Path, Path]:
        """Clean a corpus with `regard inspect`."""
        good = self.folder / "good"
        paths = tuple(good.with_suffix(side) for side in self.sides)
        if not all(path.exists() for path in paths):
            regard("inspect", *pair, "--clean", good)
        return paths[0], paths[1]

    def train(self, name: str, pair: tuple[Path, Path], dev: list[Path], *words: object) -> Path:
        """Train a model, or go on with it."""
        out = self.folder / f"{name}.regard"
        if not out.exists():
            regard("train", *pair, *words, *PRESET, "--valid", *dev, "--steps", self.steps, "--out", out)
        return out

    def translate(self, name: str, model: Path, text: Path, *words: object) -> Path:
        """Translate a file in shards, and join them."""
        side = next(one for one in self.sides if one != text.suffix)
        shards, out = self.folder / name, self.folder / f"{name}{side}"
        regard("translate", model, text, "--shards", 20, "--out", shards, *words)
        regard("translate", "--join", shards, "--out", out)
        return out


def regard(*words: object) -> None:
    """Run a command of regard, and leave with its exit code if it fails."""
    print("regard", *words, flush=True)
    if code := subprocess.run([sys.executable, "-m", "regard", *map(str, words)]).returncode:
        raise SystemExit(code)


if __name__ == "__main__":
    main()
