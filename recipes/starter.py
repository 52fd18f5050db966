"""Rebuilds the models that come with the package, from their corpora to the files in `src/regard/starter`.

    python recipes/starter.py ../shared/data --runs runs/starter [--only fr-en,fr-en-rnn] [--share 0.01] [--install]

Reads the corpora and test sets of the data folder, writes what each model learns from into the folder
of the runs, and trains it with `regard train`; started again, it goes on. Each finished model is packed (a byte for
a weight), measured as it ships on the test sets of the data folder, and given a card: data, credits, scores with
signatures, limits. `--install` puts the packed files into the package; `--share` gives every stage that share of its
time, to try it all out.

| model | design | time on one core |
|---|---|---|
| `fr-en` | Transformer, 128 wide, 4 + 4 layers, one head taught to align | 110 + 70 + 65 + 50 min |
| `en-fr` | LSTM with Luong's attention, 256 wide, 12,000 pieces, elided words cut off, more text | 130 min |
| `en-fr-transformer` | as `fr-en` | 80 + 70 + 60 min |
| `fr-en-rnn` | GRU with Bahdanau's attention, 128 wide, taught to align in its second stage | 30 + 40 min |
| `fr-en-fixed` | the same without attention: one vector for the whole sentence | 30 + 40 min |
| `fr-en-luong` | LSTM with Luong's attention (general score, input feeding), 192 wide, taught to align | 45 + 90 min |
| `fr-en-wide` | as `en-fr`; not bundled yet | 100 min |
| `ko-en` | as `fr-en-rnn`, in one stage; a demonstration of small data | 40 min |

They learn in stages: first from a mix with much parliament, the Transformers then from one with more everyday sentences and the
taught head more strictly; last without dropout, from sentences of every kind, some as people type them. Ours were trained two
at a time, each on one core (`OMP_NUM_THREADS=1`).
"""

import argparse
import gzip
import random
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain, cycle, islice
from pathlib import Path

from command import regard
from phrases import phrases

from regard.evaluation.scores import score
from regard.files import writing
from regard.modelfile import load_model, save_model
from regard.text.known import KnownWords
from regard.text.words import words
from regard.translate.translator import Translator

PACKAGE = Path(__file__).parent.parent / "src" / "regard" / "starter"
EUROPARL_WORDS = 50
SEED = 29
NUM_COMPARED = 2  # test sets on which the packed model is compared with the one not packed
VOCABULARY = "--set tokenizer.vocab_size=8000"
TRANSFORMER = f"--preset regard-small {VOCABULARY} --set train.guidance=0.1"
RECURRENT = (
    f"--preset regard-rnn {VOCABULARY} --set model.hidden_size=128 --set model.embedding_size=128 "
    "--set model.dropout=0.1 --set train.optimiser.rate=0.002"
)
LUONG = (
    f"--preset regard-rnn {VOCABULARY} --set model.cell=lstm --set model.hidden_size=192 "
    "--set model.embedding_size=128 --set model.attention=step-then-attend "
    "--set model.attention.scorer=general --set model.readout=linear --set model.dropout=0.1 "
    "--set train.optimiser.rate=0.002 --set train.guidance=0.2"
)
# More pieces, elided words cut off, wider: the second generation.
WIDER = (
    LUONG.replace("vocab_size=8000", "vocab_size=12000 --set tokenizer.elisions=true")
    .replace("hidden_size=192", "hidden_size=256")
    .replace("embedding_size=128", "embedding_size=256")
    .replace("model.dropout=0.1", "model.dropout=0")
)
TAUGHT = "--set train.optimiser.rate=0.002 --set train.guidance=0.5"
# A model that translates what it has learnt from little better than new text has no use for dropout.
SETTLED = f"{TAUGHT} --set model.dropout=0 --set model.attention_dropout=0 --set model.feed_forward_dropout=0"
SETTLED_RECURRENT = "--set train.optimiser.rate=0.0015 --set model.dropout=0"


@dataclass(frozen=True)
class Stage:
    """A part of a training: how long, how, and on what; the weight of a corpus is how often an epoch sees it."""

    minutes: int
    options: str
    corpora: tuple[tuple[str, float], ...]


MIXED = (("tatoeba", 1.0), ("europarl-200000", 0.3), ("manuals", 0.4))
EVERYDAY = (("tatoeba", 1.0), ("europarl-50000", 0.4), ("manuals", 0.1))
BROAD = {
    source: (
        ("tatoeba", 1.0),
        ("europarl-all", 0.1),
        ("manuals", 0.1),
        ("named", 0.5),
        (f"typed-{source}", 0.5),
    )
    for source in ("fr", "en")
}
WIDE = {
    source: (
        ("tatoeba", 2.0),
        ("europarl-all", 0.25),
        ("manuals", 0.2),
        ("prose", 0.5),
        ("technical", 0.15),
        ("named", 0.3),
        (f"typed-{source}", 0.3),
        (f"careless-{source}", 0.4),
        ("numbered", 0.5),
        ("phrases", 1.0),
    )
    for source in ("fr", "en")
}
KOREAN = (("ko-manuals", 1.0), ("ko-tatoeba", 4.0), ("ko-bible", 0.5), ("ko-phrases", 2.0))


@dataclass(frozen=True)
class Recipe:
    """A model to make: from which language, into which, and how."""

    name: str
    source: str
    target: str
    stages: tuple[Stage, ...]


RECIPES = (
    Recipe(
        "fr-en",
        "fr",
        "en",
        (
            Stage(110, TRANSFORMER, MIXED),
            Stage(70, TAUGHT, EVERYDAY),
            Stage(65, SETTLED, BROAD["fr"]),
            Stage(50, SETTLED, (*BROAD["fr"], ("phrases", 3.0))),
        ),
    ),
    Recipe("en-fr", "en", "fr", (Stage(130, WIDER, WIDE["en"]),)),
    Recipe(
        "en-fr-transformer",
        "en",
        "fr",
        (
            Stage(80, TRANSFORMER, MIXED),
            Stage(70, TAUGHT, EVERYDAY),
            Stage(60, SETTLED, BROAD["en"]),
        ),
    ),
    Recipe(
        "fr-en-rnn",
        "fr",
        "en",
        (
            Stage(30, RECURRENT, MIXED),
            Stage(40, f"{SETTLED_RECURRENT} --set train.guidance=0.5", BROAD["fr"]),
        ),
    ),
    Recipe(
        "fr-en-fixed",
        "fr",
        "en",
        (
            Stage(30, f"{RECURRENT} --set model.attention=none", MIXED),
            Stage(40, SETTLED_RECURRENT, BROAD["fr"]),
        ),
    ),
    Recipe(
        "fr-en-luong",
        "fr",
        "en",
        (
            Stage(45, LUONG, MIXED),
            Stage(90, f"{SETTLED_RECURRENT} --set train.guidance=0.3", (*BROAD["fr"], ("phrases", 1.0))),
        ),
    ),
    Recipe("fr-en-wide", "fr", "en", (Stage(100, WIDER, WIDE["fr"]),)),
    Recipe("ko-en", "ko", "en", (Stage(40, f"{RECURRENT} --set train.guidance=0.1", KOREAN),)),
)


@dataclass(frozen=True)
class Home:
    """What holds for all models of a pair of languages: validation, tests, and what their cards say."""

    dev: str
    tests: Mapping[str, tuple[str, str]]  # folder and file
    credits: tuple[str, ...]
    limits: str


MORE_CREDITS = (
    "MDN Web Docs by Mozilla Contributors, CC BY-SA 2.5",
    "Contains information licensed under the Open Government Licence - Canada (Department of Justice Canada)",
    ".NET documentation, Microsoft and contributors, CC BY 4.0",
    "PHP Manual, the PHP Documentation Group, CC BY 3.0",
    "Godot Engine documentation, Juan Linietsky, Ariel Manzur and the Godot community, CC BY 3.0",
    "ethereum.org contributors, MIT",
    "React documentation, Meta Platforms and contributors, CC BY 4.0",
    "Kubernetes website, The Kubernetes Authors, CC BY 4.0",
    "Hugging Face course contributors, Apache-2.0",
    "The Programming Historian, authors and translators of each lesson, CC BY 4.0",
    "Free Software Foundation Europe and its translators, CC BY-SA 4.0",
    "LearnOSM, HOT, CC0",
    "tldr-pages team and contributors, CC BY 4.0",
    "Cataclysm: Dark Days Ahead contributors and translators, CC BY-SA 3.0",
)
OWN_PHRASES = "A phrase book of our own, in recipes/, Apache-2.0"
SMALL = "A small model, trained for half an hour to five hours on one core"
FRENCH = Home(
    "dev",
    {
        "Tatoeba": ("tatoeba", "fr-en.test"),
        "Europarl": ("europarl", "fr-en.test"),
        "newstest2013": ("testsets", "newstest2013"),
        "FLORES-200": ("testsets", "flores200.devtest"),
    },
    (
        "Tatoeba (tatoeba.org), CC BY 2.0 FR, pairs by manythings.org/anki",
        "Europarl: source European Parliament; Koehn 2005; Amponsah-Kaakyire et al. 2021",
        "LibreOffice help, MPL-2.0; Python documentation and its translation, CC0",
    ),
    f"{SMALL}: at home in everyday sentences, and to some degree in parliament speeches and software manuals. "
    "Names, numbers and rare words may go wrong; read before use.",
)
KOREA = Home(
    "ko-dev",
    {
        "Tatoeba": ("tatoeba", "ko-en.test"),
        "Bible": ("ko-en", "bible.test"),
        "FLORES-200": ("testsets", "flores200.devtest"),
    },
    (
        "Tatoeba (tatoeba.org), CC BY 2.0 FR, pairs by manythings.org/anki",
        "Korean Bible 1961 (rights expired), Berean Standard Bible (public domain)",
        "LibreOffice help, MPL-2.0; Python documentation and its translation, CC0",
    ),
    f"{SMALL}, from some 85,000 pairs: a demonstration of what small data give. It knows the words of software manuals and "
    "of the Bible, and few everyday sentences; elsewhere it guesses.",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--only", default=",".join(recipe.name for recipe in RECIPES))
    parser.add_argument("--share", type=float, default=1.0, help="of the time of each stage")
    parser.add_argument(
        "--known-words",
        action="store_true",
        help="train nothing; put the words of the corpora into the models",
    )
    parser.add_argument("--install", action="store_true", help="put the packed models into the package")
    arguments = parser.parse_args()
    names = arguments.only.split(",")
    if unknown := set(names) - {recipe.name for recipe in RECIPES}:
        parser.error(f"no such model: {', '.join(sorted(unknown))}")
    for recipe in (one for one in RECIPES if one.name in names):
        if arguments.known_words:
            path = PACKAGE / f"{recipe.name}.regard"
            model = replace(load_model(path), known_words=known_words(recipe, arguments.data))
            save_model(path, model, packed=True)
            continue
        train(recipe, arguments.data, arguments.runs, arguments.share)
        packed = pack(recipe, arguments.data, arguments.runs)
        if arguments.install:
            with writing(PACKAGE / packed.name) as (stream,):
                stream.write(packed.read_bytes())


def train(recipe: Recipe, data: Path, runs: Path, share: float = 1.0) -> None:
    """Train the model, or go on with it; each stage begins with the model of the one before."""
    before: Path | None = None
    for number, stage in enumerate(recipe.stages, 1):
        is_last = number == len(recipe.stages)
        out = runs / (f"{recipe.name}.regard" if is_last else f"{recipe.name}-{number}.regard")
        train_stage(recipe, stage, before, out, data, share)
        before = out


def train_stage(
    recipe: Recipe, stage: Stage, before: Path | None, out: Path, data: Path, share: float = 1.0
) -> None:
    sides = recipe.source, recipe.target

    def files(name: str) -> list[Path]:
        paths = [out.parent / "data" / f"{name}.{side}" for side in sides]
        if not all(path.exists() for path in paths):
            write(paths, CORPORA[name](data))
        return paths

    (first, _), *others = stage.corpora
    command: list[object] = ["train", *files(first)]
    for name, weight in others:
        command += ["--also", *files(name), weight]
    command += ["--valid", *files(home_of(recipe).dev)]
    seconds = max(1, round(60 * stage.minutes * share))
    command += ["--out", out, "--time", f"{seconds}s", *stage.options.split()]
    command += [] if before is None else ["--from", before]
    regard(*command)


def home_of(recipe: Recipe) -> Home:
    return KOREA if "ko" in (recipe.source, recipe.target) else FRENCH


Pairs = Iterator[tuple[str, str]]  # another language, English


def tatoeba(data: Path) -> Pairs:
    return two_files(data / "tatoeba" / "fr-en.train.fr.gz", data / "tatoeba" / "fr-en.train.en.gz")


def europarl(data: Path, num_pairs: int | None) -> Pairs:
    folder = data / "europarl"
    pairs = two_files(folder / "fr-en.train.fr.gz", folder / "fr-en.train.en.gz")
    short = (pair for pair in pairs if max(len(side.split()) for side in pair) <= EUROPARL_WORDS)
    return islice(short, num_pairs)


def typed(data: Path, place: int) -> Pairs:
    """Yield pairs with the side at this place as people type it: no capital, often no mark at the end."""
    some = chain(islice(tatoeba(data), 0, None, 8), islice(europarl(data, 200_000), 0, None, 10))
    for number, pair in enumerate(some):
        text = pair[place]
        if not re.match(r"I\b", text):
            text = text[:1].lower() + text[1:]
        text = text.rstrip(" .!") if number % 2 else text
        yield (text, pair[1]) if place == 0 else (pair[0], text)


def named(data: Path) -> Pairs:
    """Yield the everyday sentences about Tom, each about somebody else: names are to be copied, known or not."""
    names: dict[str, None] = {}
    for pair in europarl(data, None):
        # Not at the beginning, where every word has a capital; *que Tom* would be *qu'Anne*.
        french, english = (
            set(re.findall(r"(?<=[a-zà-ÿ,] )[B-DF-GJ-NP-TV-XZ][a-zà-ÿ]{2,}\b", side)) for side in pair
        )
        names |= dict.fromkeys(sorted(french & english))
    about_tom = (
        pair for pair in tatoeba(data) if all(len(re.findall(r"\bTom\b", side)) == 1 for side in pair)
    )
    for name, (french, english) in zip(cycle(names), about_tom):
        yield tuple(re.sub(r"\bTom\b", name, side) for side in (french, english))


PROSE = ("fsfe", "cataclysm-dda", "learnosm", "programming-historian", "ethereum-org", "canada-laws")
TECHNICAL = (
    "mdn",
    "dotnet-docs",
    "php-manual",
    "godot-docs",
    "react-dev",
    "kubernetes-docs",
    "hf-course",
    "tldr-pages",
)


def more(data: Path, names: Sequence[str], language: str = "fr") -> Pairs:
    """Yield the pairs of these sets of the folder `more`, whose tables have English last; long ones are left out."""
    for name in names:
        for other, english in table(data / "more" / f"{name}.{language}-en.tsv.gz", english_first=False):
            if max(len(other.split()), len(english.split())) <= EUROPARL_WORDS:
                yield other, english


def careless(data: Path, place: int) -> Pairs:
    """Yield pairs with the side at this place as it is often typed: without accents, in one case, with slips.

    A text in capitals has a translation in capitals; everything else is translated as if it were well typed.
    """
    chance = random.Random(SEED)
    some = chain(
        islice(tatoeba(data), 1, None, 6),
        islice(europarl(data, None), 1, None, 12),
        islice(more(data, PROSE), 1, None, 6),
    )
    for pair in some:
        text, other = pair[place], pair[1 - place]
        kind = chance.choices(("accents", "lower", "both", "capitals", "slip"), (4, 2, 2, 1, 2))[0]
        if kind in ("accents", "both"):
            text = "".join(
                sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign)
            )
        if kind in ("lower", "both"):
            text = text.lower()
        if kind == "capitals":
            text, other = text.upper(), other.upper()
        if kind == "slip":
            text = slipped(text, chance)
        yield (text, other) if place == 0 else (other, text)


def slipped(text: str, chance: random.Random) -> str:
    """Return the text with a letter left out, doubled or changed with the next, in a word of five letters or more."""
    places = [
        place
        for found in re.finditer(r"[^\W\d_]{5,}", text)
        for place in range(found.start() + 1, found.end() - 1)
    ]
    if not places:
        return text
    place = chance.choice(places)
    before, here, after = text[:place], text[place : place + 2], text[place + 2 :]
    return before + chance.choice((here[1:], here[0] + here, here[::-1])) + after


NUMBER = re.compile(r"(?<![\w.,])\d{1,6}(?![\w.,]*\d)")


def numbered(data: Path) -> Pairs:
    """Yield pairs with the same numbers on both sides, each with other numbers: they are to be copied."""
    chance = random.Random(SEED)
    for pair in chain(tatoeba(data), islice(europarl(data, None), 0, None, 3), more(data, PROSE)):
        numbers = [sorted(NUMBER.findall(side)) for side in pair]
        if numbers[0] and numbers[0] == numbers[1]:
            new = {
                old: str(chance.randrange(10 ** len(old) // 10, 10 ** (len(old) + 1))) for old in numbers[0]
            }
            french, english = (NUMBER.sub(partial(look_up, new), side) for side in pair)
            yield french, english


def look_up(new: Mapping[str, str], found: re.Match[str]) -> str:
    return new[found[0]]


def manuals(data: Path) -> Pairs:
    for path in sorted((data / "manuals").glob("*.en-fr.tsv.gz")):
        yield from table(path)


def dev(data: Path) -> Pairs:
    """Yield what is validated on: mostly everyday sentences, some speeches."""
    for folder, count in (("tatoeba", 700), ("europarl", 300)):
        paths = (data / folder / f"fr-en.dev.{side}" for side in ("fr", "en"))
        yield from islice(two_files(*paths), count)


def korean_manuals(data: Path) -> Pairs:
    for name in ("libreoffice-help", "python-docs-3.13"):
        yield from table(data / "ko-en" / f"{name}.en-ko.tsv.gz")


CORPORA: Mapping[str, Callable[[Path], Pairs]] = {
    "tatoeba": tatoeba,
    "europarl-200000": partial(europarl, num_pairs=200_000),
    "europarl-50000": partial(europarl, num_pairs=50_000),
    "europarl-all": partial(europarl, num_pairs=None),
    "named": named,
    "typed-fr": partial(typed, place=0),
    "typed-en": partial(typed, place=1),
    "careless-fr": partial(careless, place=0),
    "careless-en": partial(careless, place=1),
    "numbered": numbered,
    "prose": partial(more, names=PROSE),
    "technical": partial(more, names=TECHNICAL),
    "phrases": lambda data: phrases("fr"),
    "ko-phrases": lambda data: phrases("ko"),
    "manuals": manuals,
    "dev": dev,
    "ko-tatoeba": lambda data: two_files(
        *(data / "tatoeba" / f"ko-en.train.{side}" for side in ("ko", "en"))
    ),
    "ko-bible": lambda data: two_files(*(data / "ko-en" / f"bible.train.{side}.gz" for side in ("ko", "en"))),
    "ko-manuals": korean_manuals,
    "ko-dev": lambda data: two_files(*(data / "tatoeba" / f"ko-en.dev.{side}" for side in ("ko", "en"))),
}


def two_files(other: Path, english: Path) -> Pairs:
    opened = [gzip.open if path.suffix == ".gz" else open for path in (other, english)]
    with opened[0](other, "rt", encoding="utf-8") as a, opened[1](english, "rt", encoding="utf-8") as b:
        for pair in zip(a, b, strict=True):
            yield pair[0].rstrip("\n"), pair[1].rstrip("\n")


def table(path: Path, english_first: bool = True) -> Pairs:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            first, _, second = line.rstrip("\n").partition("\t")
            yield (second, first) if english_first else (first, second)


def write(paths: Sequence[Path], pairs: Pairs) -> None:
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    lines = list(pairs)
    if not lines:
        raise SystemExit(f"no pairs for {paths[0].stem}: the data folder lacks them")
    for path in paths:
        place = 1 if path.suffix == ".en" else 0
        with writing(path) as (stream,):
            stream.writelines(f"{pair[place]}\n".encode() for pair in lines)


def known_words(recipe: Recipe, data: Path) -> KnownWords:
    """Return the words of the target side of all that a model learns from."""
    found: set[str] = set()
    for corpus in sorted({name for stage in recipe.stages for name, _ in stage.corpora}):
        for other, english in CORPORA[corpus](data):
            text = english if recipe.target == "en" else other
            found.update(text[start:end].lower() for start, end in words(text))
    print(f"{recipe.name}: {len(found):,} words", flush=True)
    return KnownWords.of(found)


def pack(recipe: Recipe, data: Path, runs: Path) -> Path:
    """Write the model as it ships, with a card that says how good it is so."""
    whole, packed = runs / f"{recipe.name}.regard", runs / "packed" / f"{recipe.name}.regard"
    packed.parent.mkdir(exist_ok=True)
    if (
        packed.exists()
        and load_model(packed).card.get("tests")
        and packed.stat().st_mtime > whole.stat().st_mtime
    ):
        return packed
    print(f"measuring {recipe.name} on the test sets: minutes", flush=True)
    model, home = load_model(whole), home_of(recipe)
    save_model(packed, model, packed=True)
    tests = {}
    for number, (name, (folder, file)) in enumerate(home.tests.items()):
        paths = [data / folder / f"{file}.{side}" for side in (recipe.source, recipe.target)]
        sources, references = (path.read_text("utf-8").splitlines() for path in paths)
        for path in (whole, packed) if number < NUM_COMPARED else (packed,):
            said = [one.text for one in Translator.open(path).translate(sources)]
            found = score(said, references, sources=sources, target_language=recipe.target)
            print(
                f"{recipe.name:12} {name:13} {'as it ships' if path == packed else 'not packed':11} "
                f"BLEU {found.bleu:.2f}  chrF {found.chrf:.2f}  {found.signatures['bleu']}",
                flush=True,
            )
        tests[name] = asdict(found)
    learnt = {name for stage in recipe.stages for name, _ in stage.corpora}
    credits = (
        *home.credits,
        *(MORE_CREDITS if learnt & {"prose", "technical"} else ()),
        *((OWN_PHRASES,) if any("phrases" in name for name in learnt) else ()),
    )
    card = model.card | {
        "name": recipe.name,
        "tests": tests,
        "credits": credits,
        "limits": home.limits,
        "recipe": f"python recipes/starter.py DATA --runs RUNS --only {recipe.name} --install",
        "packed": "a byte for a weight, a scale for each row",
    }
    save_model(packed, replace(model, card=card), packed=True)
    return packed


if __name__ == "__main__":
    main()
