"""Rebuilds the models that come with the package, from their corpora to the files in `src/regard/starter`.

    python recipes/starter.py ../shared/data --runs runs/starter [--only fr-en,fr-en-rnn] [--install]

Reads `tatoeba/`, `europarl/` and `manuals/` of the data folder, writes what each model learns from into the folder
of the runs, and trains it with `regard train`; started again, it goes on. Each finished model is packed (a byte for
a weight), measured as it ships on the test sets of the data folder, and given a card: data, credits, scores with
signatures, limits. `--install` puts the packed files into the package.

| model | design | time on one core |
|---|---|---|
| `fr-en`, `en-fr` | Transformer, 128 wide, 4 + 4 layers, one head taught to align | STAGES |
| `fr-en-rnn` | GRU with Bahdanau's attention, 128 wide | 30 min |
| `fr-en-fixed` | the same without attention: one vector for the whole sentence | 30 min |

The Transformers learn in two stages: first from a mix with much parliament, then from one with more everyday sentences, and the
taught head more strictly. Ours were trained two at a time, each on one core (`OMP_NUM_THREADS=1`).
"""

import argparse
import gzip
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from regard.evaluate.scores import score
from regard.files import writing
from regard.modelfile import load_model, save_model
from regard.translate import Translator

PACKAGE = Path(__file__).parent.parent / "src" / "regard" / "starter"
CREDITS = (
    "Tatoeba (tatoeba.org), CC BY 2.0 FR, pairs by manythings.org/anki",
    "Europarl: source European Parliament; Koehn 2005; Amponsah-Kaakyire et al. 2021",
    "LibreOffice help, MPL-2.0; Python documentation and its translation, CC0",
)
LIMITS = (
    "A small model, trained for half an hour to some hours on one core: at home in everyday sentences, and to some degree in "
    "parliament speeches and software manuals. Names, numbers and rare words may go wrong; read before use."
)
EUROPARL_WORDS = 50
VOCABULARY = "--set tokenizer.vocab_size=8000"
TRANSFORMER = f"--preset regard-small {VOCABULARY} --set train.guidance=0.1"
RECURRENT = (
    f"--preset regard-rnn {VOCABULARY} --set model.hidden_size=128 --set model.embedding_size=128 "
    "--set model.dropout=0.1 --set train.optimiser.rate=0.002"
)
EVERYDAY = "--set train.optimiser.rate=0.002 --set train.guidance=0.5"


@dataclass(frozen=True)
class Stage:
    """A part of a training: how long, how, and on how much besides the everyday sentences."""

    time: str
    options: str
    europarl_pairs: int = 200_000
    europarl_weight: float = 0.3
    manuals_weight: float = 0.4


@dataclass(frozen=True)
class Recipe:
    """A model to make: from which language, into which, and how."""

    name: str
    source: str
    target: str
    stages: tuple[Stage, ...]


RECIPES = (
    Recipe("fr-en", "fr", "en", (Stage("110m", TRANSFORMER), Stage("45m", EVERYDAY, 50_000, 0.4, 0.1))),
    Recipe("en-fr", "en", "fr", (Stage("80m", TRANSFORMER), Stage("60m", EVERYDAY, 50_000, 0.4, 0.1))),
    Recipe("fr-en-rnn", "fr", "en", (Stage("30m", RECURRENT),)),
    Recipe("fr-en-fixed", "fr", "en", (Stage("30m", f"{RECURRENT} --set model.attention=none"),)),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--only", default=",".join(recipe.name for recipe in RECIPES))
    parser.add_argument("--install", action="store_true", help="put the packed models into the package")
    arguments = parser.parse_args()
    names = arguments.only.split(",")
    if unknown := set(names) - {recipe.name for recipe in RECIPES}:
        parser.error(f"no such model: {', '.join(sorted(unknown))}")
    for recipe in (one for one in RECIPES if one.name in names):
        train(recipe, arguments.data, arguments.runs)
        packed = pack(recipe, arguments.data, arguments.runs)
        if arguments.install:
            (PACKAGE / packed.name).write_bytes(packed.read_bytes())


def train(recipe: Recipe, data: Path, runs: Path) -> None:
    """Train the model, or go on with it; each stage begins with the model of the one before."""
    before: Path | None = None
    for number, stage in enumerate(recipe.stages, 1):
        is_last = number == len(recipe.stages)
        out = runs / (f"{recipe.name}.regard" if is_last else f"{recipe.name}-{number}.regard")
        if is_last or not out.exists():
            train_stage(recipe, stage, before, out, data)
        before = out


def train_stage(recipe: Recipe, stage: Stage, before: Path | None, out: Path, data: Path) -> None:
    corpora = {
        "tatoeba": tatoeba,
        f"europarl-{stage.europarl_pairs}": partial(europarl, num_pairs=stage.europarl_pairs),
        "manuals": manuals,
        "dev": dev,
    }
    sides = recipe.source, recipe.target
    files = []
    for part, read in corpora.items():
        files.append([out.parent / "data" / f"{part}.{side}" for side in sides])
        if not all(path.exists() for path in files[-1]):
            write(files[-1], sides, read(data))
    everyday, speeches, handbooks, validation = files
    command = ["train", *everyday, "--also", *speeches, stage.europarl_weight]
    command += ["--also", *handbooks, stage.manuals_weight, "--valid", *validation]
    command += ["--out", out, "--time", stage.time, *stage.options.split()]
    command += [] if before is None else ["--from", before]
    words = list(map(str, command))
    print("regard", *words, flush=True)
    subprocess.run([sys.executable, "-m", "regard", *words], check=True)


Pairs = Iterator[tuple[str, str]]  # French, English


def tatoeba(data: Path) -> Pairs:
    return two_files(data / "tatoeba" / "fr-en.train.fr.gz", data / "tatoeba" / "fr-en.train.en.gz")


def europarl(data: Path, num_pairs: int) -> Pairs:
    folder = data / "europarl"
    pairs = two_files(folder / "fr-en.train.fr.gz", folder / "fr-en.train.en.gz")
    short = (pair for pair in pairs if max(len(side.split()) for side in pair) <= EUROPARL_WORDS)
    return islice(short, num_pairs)


def manuals(data: Path) -> Pairs:
    for path in sorted((data / "manuals").glob("*.en-fr.tsv.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                english, _, french = line.rstrip("\n").partition("\t")
                yield french, english


def dev(data: Path) -> Pairs:
    """Yield what is validated on: mostly everyday sentences, some speeches."""
    for folder, count in (("tatoeba", 700), ("europarl", 300)):
        paths = (data / folder / f"fr-en.dev.{side}" for side in ("fr", "en"))
        yield from islice(two_files(*paths), count)


def two_files(french: Path, english: Path) -> Pairs:
    opened = [gzip.open if path.suffix == ".gz" else open for path in (french, english)]
    with opened[0](french, "rt", encoding="utf-8") as a, opened[1](english, "rt", encoding="utf-8") as b:
        for pair in zip(a, b, strict=True):
            yield pair[0].rstrip("\n"), pair[1].rstrip("\n")


def write(paths: Sequence[Path], sides: Sequence[str], pairs: Pairs) -> None:
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    lines = list(pairs)
    for path, side in zip(paths, sides, strict=True):
        place = ("fr", "en").index(side)
        with writing(path) as (stream,):
            stream.writelines(f"{pair[place]}\n".encode() for pair in lines)


def pack(recipe: Recipe, data: Path, runs: Path) -> Path:
    """Write the model as it ships, with a card that says how good it is so."""
    whole, packed = runs / f"{recipe.name}.regard", runs / "packed" / f"{recipe.name}.regard"
    packed.parent.mkdir(exist_ok=True)
    print(f"measuring {recipe.name} on the test sets: minutes", flush=True)
    model = load_model(whole)
    save_model(packed, model, packed=True)
    tests = {}
    for name, (folder, file) in TEST_SETS.items():
        paths = [data / folder / f"{file}.{side}" for side in (recipe.source, recipe.target)]
        sources, references = (path.read_text("utf-8").splitlines() for path in paths)
        for path in (whole, packed) if name in COMPARED else (packed,):
            said = [one.text for one in Translator.open(path).translate(sources)]
            found = score(said, references, sources=sources, target_language=recipe.target)
            print(
                f"{recipe.name:12} {name:13} {'as it ships' if path == packed else 'not packed':11} "
                f"BLEU {found.bleu:.2f}  chrF {found.chrf:.2f}  {found.signatures['bleu']}",
                flush=True,
            )
        tests[name] = asdict(found)
    card = model.card | {
        "name": recipe.name,
        "tests": tests,
        "credits": CREDITS,
        "limits": LIMITS,
        "recipe": f"python recipes/starter.py DATA --runs RUNS --only {recipe.name} --install",
        "packed": "a byte for a weight, a scale for each row",
    }
    save_model(packed, replace(model, card=card), packed=True)
    return packed


COMPARED = ("Tatoeba", "Europarl")  # packed with not packed
TEST_SETS = {
    "Tatoeba": ("tatoeba", "fr-en.test"),
    "Europarl": ("europarl", "fr-en.test"),
    "newstest2013": ("testsets", "newstest2013"),
    "FLORES-200": ("testsets", "flores200.devtest"),
}

if __name__ == "__main__":
    main()
