"""Options that several verbs have: `key=value`, times, colours."""

import argparse
import os
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from regard.errors import ConfigError
from regard.files import without_compression
from regard.remote import Place, Remote

if TYPE_CHECKING:
    from regard.draw.terminal import Colour
    from regard.engines import Compute
    from regard.text.words import Cut

_TIME = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")


def feature_file(word: "str | Place | None") -> Path | None:
    """Return the file of feature vectors that a word names, None if it names none."""
    if word is None or isinstance(word, Remote) or not os.path.isfile(word):  # noqa: PTH113 - a text may be too long for a name
        return None
    from regard.corpus.features import ENDINGS, holds_features

    path = Path(word)
    return path if without_compression(path).suffix.lower() in ENDINGS and holds_features(path) else None


def read_setting(setting: str, form: str) -> tuple[list[str], Any]:
    """Return the key of a setting, by its parts, and its value as TOML would read it, or as it stands."""
    key, equals, text = setting.partition("=")
    if not equals or not key:
        raise ConfigError(f"--set {setting} is not valid; write {form}")
    try:
        return key.split("."), tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return key.split("."), text


def read_sections(settings: Iterable[str], values: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """Return the options by section that `--set section.key=value` gives, laid over some values."""
    values = {} if values is None else values
    for setting in settings:
        path, value = read_setting(setting, "section.key=value")
        if len(path) < 2:
            raise ConfigError(f"--set {setting} is not valid; write section.key=value")
        put_setting(values, path, value)
    return values


def put_setting(values: dict[str, Any], path: list[str], value: Any) -> None:
    """Set a value deep inside; a bare word on the way stands for its kind."""
    for key in path[:-1]:
        inner = values.setdefault(key, {})
        if not isinstance(inner, dict):
            inner = values[key] = {"kind": inner}
        values = inner
    values[path[-1]] = value


def add_search(parser: argparse.ArgumentParser) -> None:
    """Declare the options that `read_search` reads."""
    parser.add_argument(
        "--beam", type=int, metavar="N", help="beam size; 1 is greedy search, which is faster (default: 5)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any search option of docs/options.md, such as kind=sample",
    )


def add_compute(parser: argparse.ArgumentParser) -> None:
    """Declare the options that `read_compute` reads."""
    parser.add_argument(
        "--engine",
        choices=("auto", "numpy", "ctranslate2"),
        default="auto",
        help="compute with NumPy or CTranslate2 (default: CTranslate2 for Transformers, if installed)",
    )
    parser.add_argument(
        "--precision",
        choices=("float32", "int8"),
        default="float32",
        help="int8 is faster on CTranslate2; some translations differ (default: float32)",
    )


def read_compute(options: argparse.Namespace) -> "Compute":
    """Return the engine that `--engine` and `--precision` ask for."""
    from regard.engines import Compute

    return Compute(options.engine, options.precision)


def read_search(beam_size: int | None, settings: Iterable[str]) -> dict[str, Any]:
    """Return the options of the section `search` that `--beam` and `--set` give."""
    search: dict[str, Any] = {} if beam_size is None else {"beam_size": beam_size}
    for setting in settings:
        path, value = read_setting(setting, "key=value, such as length_penalty=0.6")
        if path[:-1] not in ([], ["search"]):
            raise ConfigError(f"--set {setting} is not valid; only search options can be set here")
        search[path[-1]] = value
    return search


def read_time(text: str, option: str = "--time") -> float:
    """Return the seconds of a `--time`."""
    match = _TIME.fullmatch(text)
    if not match or not any(match.groups()):
        raise ConfigError(
            f"{option} {text} is not valid; write hours, minutes and seconds as 30m, 2h, 1h30m or 90s"
        )
    hours, minutes, seconds = (float(number or 0) for number in match.groups())
    return 3600 * hours + 60 * minutes + seconds


def add_gold_format(parser: argparse.ArgumentParser) -> None:
    """Declare the options that `read_gold_format` reads."""
    parser.add_argument("--from-one", action="store_true", help="the gold file counts words from 1")
    parser.add_argument("--reversed", action="store_true", help="the gold file has the target word first")
    parser.add_argument(
        "--words",
        action="store_true",
        help="let regard split the words, so that l' and . are words; otherwise spaces separate words",
    )


def read_gold_format(options: argparse.Namespace) -> "tuple[Cut, Literal[0, 1]]":
    """Return which words gold links count, and from which number."""
    return "words" if options.words else "spaces", 1 if options.from_one else 0


def add_corpus(parser: argparse.ArgumentParser) -> None:
    """Declare the files of a corpus to train on, and its languages."""
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE",
        help="two plain files, source and target, or one TMX, XLIFF, PO, TSV, JSONL or Parquet file",
    )  # fmt: skip
    add_languages(parser)
    parser.add_argument(
        "--valid", type=Path, nargs="+", default=[], metavar="FILE",
        help="validation pairs (default: some pairs are set aside)",
    )  # fmt: skip


def add_machine(parser: argparse.ArgumentParser) -> None:
    """Declare `--seed` and `--device`."""
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="random seed (default: 1)")
    parser.add_argument(
        "--device", default="auto", help="cpu, cuda, cuda:1 or mps (default: the best one found)"
    )


def add_languages(parser: argparse.ArgumentParser) -> None:
    """Declare `--source` and `--target`."""
    parser.add_argument("--source", metavar="LANG", help="source language, if the file names do not say")
    parser.add_argument("--target", metavar="LANG", help="target language, if the file names do not say")


def add_colour(parser: argparse.ArgumentParser) -> None:
    """Declare the option that `read_colour` reads."""
    parser.add_argument(
        "--colour",
        choices=("auto", "always", "never"),
        default="auto",
        help="colours in the terminal (default: auto)",
    )


def read_colour(wish: str) -> "Colour":
    """Return which colours to use: those the terminal has, if it is one and nobody minds."""
    if wish == "never" or (wish == "auto" and (not sys.stdout.isatty() or "NO_COLOR" in os.environ)):
        return "none"
    if wish == "auto" and os.environ.get("TERM") in (None, "dumb"):
        return "none"
    return "full" if os.environ.get("COLORTERM") in ("truecolor", "24bit") else "256"
