"""`regard info`: what a model file says about itself."""

import argparse
import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.models import design_of, languages, print_rows
from regard.starter import bundled, locate

if TYPE_CHECKING:
    from regard.design import Design
    from regard.modelfile import ModelFile

NAME = "info"
HELP = "show the card of a model: languages, design, size, data, scores"
DESCRIPTION = (
    "Verifies every part of a model file and shows its model card. Without a model, lists those\n"
    "that have a name, as `regard models` does."
)
EXAMPLES = """examples:
  regard info
  regard info fr-en
  regard info fr-en.regard
  regard info fr-en.regard --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "model", type=Path, nargs="?", metavar="MODEL", help="model file, or name of a bundled model"
    )
    parser.add_argument(
        "--json", action="store_true", help="print everything as JSON, including the configuration"
    )


def run(options: argparse.Namespace) -> None:
    """Show the card."""
    from regard.loaded import Loaded
    from regard.modelfile import load_model

    if options.model is None:
        _print_bundled(as_json=options.json)
        return
    model = load_model(options.model)
    if options.json:
        used = Loaded.of(model).used
        engine = {"name": used.engine, "precision": used.precision, "why": used.why}
        print(json.dumps(_about(model) | {"engine": engine}, indent=1, ensure_ascii=False))
        return
    rows = [*_rows(locate(options.model), model), ("engine", str(Loaded.of(model).used))]
    for name, value in rows:
        print(f"{name:12} {value}")


def _print_bundled(*, as_json: bool) -> None:
    from regard.modelfile import load_model

    if as_json:
        found = {name: _about(load_model(path)) for name, path in bundled().items()}
        print(json.dumps(found, indent=1, ensure_ascii=False))
    elif not print_rows():
        print("this installation has no bundled models")


def _about(model: "ModelFile") -> dict[str, Any]:
    reading = model.reading
    return {
        "source_language": model.source_language,
        "target_language": model.target_language,
        "num_parameters": _num_parameters(model),
        "vocabularies": [model.tokenizers.source.vocab_size, model.tokenizers.target.vocab_size],
        "reading": reading and asdict(reading),
        "split_above": model.split_above,
        "model": model.options.model_dump(),
        "config": model.config,
        "card": model.card,
    }


def _rows(path: Path, model: "ModelFile") -> list[tuple[str, str]]:
    """Return what a person wants to know, line by line; a file without a card says less."""
    from regard.design import design
    from regard.options.model import feature_size

    made = design(model.options)
    card, source, target = model.card, model.tokenizers.source, model.tokenizers.target
    size = feature_size(model.options.source)
    rows = [
        ("file", f"{path}, {path.stat().st_size / 1e6:.1f} MB, every part verified"),
        ("languages", languages(model)),
        ("design", design_of(model)),
        ("weights", f"{_num_parameters(model):,}"),
        (
            "vocabulary",
            f"{target.vocab_size:,} pieces"
            if size is not None
            else f"{source.vocab_size:,} pieces for both languages"
            if source.sha256 == target.sha256
            else f"{source.vocab_size:,} and {target.vocab_size:,} pieces",
        ),
        ("alignment", _alignment(model, made)),
    ]
    if model.split_above:
        rows.append(("splits", f"sources of more than {model.split_above} pieces"))
    for row in (_data, _training, _bleu, _signature, _chrf, _made):
        with contextlib.suppress(KeyError, TypeError, ValueError):  # a card is what its writer made of it
            rows.append(row(card))
    for some in (_imported, _vectors, _began, _adapted, _tests, _credits, _limits, _recipe):
        with contextlib.suppress(KeyError, TypeError, ValueError):
            rows += some(card)
    return rows


def _data(card: dict[str, Any]) -> tuple[str, str]:
    return "data", f"{card['data']['num_pairs']:,} pairs of {card['data']['num_read']:,} read"


def _training(card: dict[str, Any]) -> tuple[str, str]:
    training = card["training"]
    return "training", f"{training['step']:,} updates, {training['seconds'] / 60:.0f} minutes"


def _bleu(card: dict[str, Any]) -> tuple[str, str]:
    scores = card["validation"]
    return "BLEU", f"{scores['bleu']:.1f} on {scores['num_sentences']:,} validation sentences"


def _signature(card: dict[str, Any]) -> tuple[str, str]:
    return "", str(card["validation"]["signatures"]["bleu"])


def _chrf(card: dict[str, Any]) -> tuple[str, str]:
    return "chrF", f"{card['validation']['chrf']:.1f}"


def _made(card: dict[str, Any]) -> tuple[str, str]:
    return "made", f"{card['created']} by regard {card.get('regard', '?')}"


def _imported(card: dict[str, Any]) -> list[tuple[str, str]]:
    """Return where an imported model comes from."""
    given = card["imported"]
    licence = given["licence"] or "not stated"
    return [("imported", f"{given['name']}, {given['format']}; licence: {licence}")]


def _vectors(card: dict[str, Any]) -> list[tuple[str, str]]:
    """Return how many pieces started from pre-trained vectors."""
    lines = [
        f"{row['side']}: {row['num_found']:,} of {row['num_coverable']:,} whole-word pieces from "
        f"{row['name']}, {'frozen' if row['frozen'] else 'tuned'}"
        for row in card["data"]["vectors"]
    ]
    return [("" if place else "vectors", line) for place, line in enumerate(lines)]


def _began(card: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what the model began with, and what that began with."""
    rows: list[tuple[str, str]] = []
    for before in _before(card):
        name, (_, training) = before.get("name") or "a model", _training(before)
        rows.append(("" if rows else "started from", f"{name}: {training}"))
    return rows


def _adapted(card: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what the model was adapted from and with what, and what that changed."""
    said = card["adapted"]
    lines = [f"from {said['from']} with {', '.join([*said['with'], *said['general']])}"]
    lines += [
        f"{name} text: BLEU {test['before']:.1f} before, {test['after']:.1f} after, on "
        f"{test['num_sentences']:,} sentences set aside"
        for name, test in said["tests"].items()
    ]
    return [("" if place else "adapted", line) for place, line in enumerate(lines)]


def _before(card: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the cards of the models that a model began with, the last first."""
    while start := card.get("start"):
        card = start["card"]
        yield card


def _tests(card: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the scores on test sets, those of one signature followed by it."""
    by_signature: dict[str, list[str]] = {}
    for name, scores in card["tests"].items():
        signature = str(scores.get("signatures", {}).get("bleu", ""))
        line = f"{name}: BLEU {scores['bleu']:.1f}, chrF {scores['chrf']:.1f}"
        by_signature.setdefault(signature, []).append(line)
    lines = [line for signature, group in by_signature.items() for line in (*group, signature) if line]
    return [("" if place else "tests", line) for place, line in enumerate(lines)]


def _credits(card: dict[str, Any]) -> list[tuple[str, str]]:
    lines = dict.fromkeys(line for one in (card, *_before(card)) for line in one.get("credits", ()))
    return [("" if place else "credits", str(line)) for place, line in enumerate(lines)]


def _limits(card: dict[str, Any]) -> list[tuple[str, str]]:
    return [("limits", str(card["limits"]))]


def _recipe(card: dict[str, Any]) -> list[tuple[str, str]]:
    return [("recipe", str(card["recipe"]))]


def _alignment(model: "ModelFile", made: "Design") -> str:
    if not made.has_attention:
        return "none: the model has no attention"
    if model.reading is None:
        return "read from the last layer but one"
    if model.reading.posterior:
        return "read from the posterior attention: that of each word once the word is known"
    heads = "the mean of all heads" if model.reading.head is None else f"head {model.reading.head + 1}"
    step = "the step that reads a word" if model.reading.shifted else "the step that says it"
    return f"read from layer {model.reading.layer + 1}, {heads}, at {step}"


def _num_parameters(model: "ModelFile") -> int:
    return sum(weight.size for weight in model.weights.values())
