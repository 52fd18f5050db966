"""`regard models`: the models that have a name here, and how to get others."""

import argparse
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.starter import FOLDER_VARIABLE, PACKAGE, bundled, folder

if TYPE_CHECKING:
    from regard.modelfile import ModelFile, Summary

NAME = "models"
HELP = "list the models that have a name, and how to get others"
DESCRIPTION = (
    "Lists the bundled models, or those of the folder that the environment variable REGARD_MODELS names:\n"
    "name, languages, design, size, and the first score of the card. You can use the names wherever a\n"
    "command takes a model file."
)
EXAMPLES = """examples:
  regard models
  regard models --json
  REGARD_MODELS=~/models regard models
"""
_OTHERS = """more models:
  regard import Helsinki-NLP/opus-mt-de-en --out de-en.regard   one of more than a thousand OPUS-MT models
  regard train corpus.de corpus.en --out de-en.regard           your own"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--json", action="store_true", help="print a JSON list")


def run(options: argparse.Namespace) -> None:
    """List the models."""
    if options.json:
        print(json.dumps([one for _, _, one in _known()], indent=1, ensure_ascii=False))
        return
    own = folder() != PACKAGE
    print(f"in {folder()}, the folder of {FOLDER_VARIABLE}:" if own else "bundled:")
    if not print_rows():
        print("no model files (*.regard)")
    print(f"\n{_OTHERS}\n")
    if own:
        print(f"The bundled models are in {PACKAGE}; their names work if {FOLDER_VARIABLE} is not set.")
    else:
        print(f"Names are looked up in a folder of your own if the variable {FOLDER_VARIABLE} names it.")


def print_rows() -> bool:
    """Print a line for each model that has a name; return whether there is any."""
    printed, width = False, max(map(len, bundled()), default=0)
    for name, path, one in _known():
        told = [one["error"]] if "error" in one else [one["languages"], one["design"]]
        told += [f"{path.stat().st_size / 1e6:.1f} MB", *filter(None, [one.get("score")])]
        print(f"{name:{width}}  {'; '.join(told)}")
        printed = True
    return printed


def languages(model: "ModelFile | Summary") -> str:
    """Return from which language into which a model translates."""
    from regard.contract import source_named
    from regard.options.model import feature_size

    size = feature_size(model.options.source)
    read = model.source_language or "?" if size is None else source_named(size)
    return f"{read} to {model.target_language or '?'}"


def design_of(model: "ModelFile | Summary") -> str:
    """Return family, preset and sizes of a model."""
    from regard.design import design

    preset = model.card.get("preset") or "none"
    return f"{model.options.kind}, preset {preset}, {design(model.options).description}"


def _known() -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Yield name, file and facts of every model that has a name; a file that cannot be read says so."""
    from regard.errors import ModelFileError
    from regard.modelfile import summarise

    for name, path in bundled().items():
        one: dict[str, Any] = {"name": name, "file": str(path), "bytes": path.stat().st_size}
        try:
            found = summarise(path)
        except ModelFileError as error:
            one["error"] = str(error)
        else:
            one |= {
                "source_language": found.source_language,
                "target_language": found.target_language,
                "languages": languages(found),
                "design": design_of(found),
                "score": _score(found.card),
            }
        yield name, path, one


def _score(card: dict[str, Any]) -> str | None:
    """Return the first score of a card, which is what its writer made of it."""
    with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError, StopIteration):
        name, scores = next(iter(card["tests"].items()))
        return f"{name}: BLEU {scores['bleu']:.1f}"
    with contextlib.suppress(KeyError, TypeError, ValueError):
        return f"validation: BLEU {card['validation']['bleu']:.1f}"
    return None
