"""`regard evaluate`: how good models are on a test set, and whether they differ."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.progress import progress
from regard.cli.settings import add_compute, add_search, read_compute, read_search
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.evaluation.document import Evaluation

NAME = "evaluate"
HELP = "score models on a test set and compare them"
DESCRIPTION = (
    "Translates a test set with each model and compares with the references: BLEU, chrF and TER with\n"
    "confidence intervals; by source length, word frequency and flags; likelihood and speed. Any two of up\n"
    "to six systems are compared, of more the others with the first. Texts are compared cased and\n"
    "detokenised."
)
EXAMPLES = """examples:
  regard evaluate fr-en test.fr test.en
  regard evaluate rnn.regard transformer.regard test.fr test.en --report report
  regard evaluate fr-en test.fr test.en --given theirs.en="another system"
  regard evaluate fr-en test.fr test.en --train train.en.gz --json scores.json
  regard evaluate --given a.en --given b.en test.fr test.en
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "words", nargs="*", metavar="[MODEL ...] SOURCE REFERENCE",
        help="models (files or names of bundled models), then the test set: two plain files, or one TMX, PO, "
        "TSV ... file",
    )  # fmt: skip
    parser.add_argument(
        "--given",
        action="append",
        default=[],
        metavar="FILE[=NAME]",
        help="also evaluate the translations in FILE, one per line; can be repeated",
    )
    parser.add_argument(
        "--train",
        type=Path,
        metavar="FILE",
        help="target side of the training data, to count word frequencies (default: the references)",
    )
    add_search(parser)
    add_compute(parser)
    parser.add_argument(
        "--no-guard",
        action="store_true",
        help="plain search: nothing is tried again, and sources are not split",
    )
    parser.add_argument("--lower", action="store_true", help="compare in lower case")
    parser.add_argument(
        "--tokenized",
        action="store_true",
        help="compare the words as they are in the files, separated by spaces",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="DIR",
        help="write a report: page, Markdown and JSON",
    )
    parser.add_argument("--force", action="store_true", help="replace an earlier report")
    parser.add_argument("--json", metavar="FILE", help="write all scores and sentences; - is standard output")


def run(options: argparse.Namespace) -> None:
    """Evaluate, and show or write what was found."""
    from regard.evaluation.report import check_folder, write_report
    from regard.evaluation.run import EvaluationOptions, evaluate
    from regard.evaluation.testset import read_counts, read_test, read_translations
    from regard.files import refuse_to_replace
    from regard.options.parse import parse

    if options.force and options.report is None:
        raise ConfigError("--force replaces a report; name it with --report DIR")
    if options.report is not None:
        check_folder(options.report, options.force)
    if options.json not in (None, "-") and Path(options.json).is_dir():
        raise ConfigError(f"--json {options.json} is a folder; name a file")
    search = parse("search", read_search(options.beam, options.set))  # mistakes show before reading
    models, files = _models_and_files(options.words, bool(options.given))
    given_files = _given_files(options.given)
    if options.json not in (None, "-"):
        refuse_to_replace([Path(options.json)], (*models, *files, options.train, *given_files.values()))
    test = read_test(files, *_languages(models, files))
    given = {name: read_translations(path, len(test.sources)) for name, path in given_files.items()}
    with progress() as show:
        counts = None
        if options.train is not None:
            show(f"counting words of {options.train}", 0, 0)
            counts = read_counts(options.train, options.lower, options.tokenized)
        how = EvaluationOptions(
            search=search,
            guard=not options.no_guard,
            compute=read_compute(options),
            lower=options.lower,
            tokenized=options.tokenized,
            train_counts=counts,
            heat_maps=options.report is not None,
        )
        found = evaluate(models, test, how, given=given, on_progress=show)
    if options.report is not None:
        title = f"{', '.join(one.name for one in found.systems)} on {files[0].name}"
        write_report(found, options.report, title, options.force)
    if options.json is not None:
        _write_json(found, options.json)
    if options.json != "-":
        print(found)
        for path in (options.report and options.report / "report.html", options.json):
            if path:
                print(f"\nwrote {path}")


def _write_json(found: "Evaluation", place: str) -> None:
    from regard.files import writing
    from regard.report.folder import json_text

    data = json_text(found.to_json())
    if place == "-":
        sys.stdout.write(data)
        return
    with writing(Path(place)) as (stream,):
        stream.write(data.encode("utf-8", "replace"))


def _models_and_files(words: list[str], has_given: bool) -> tuple[list[Path], list[Path]]:
    """Return which words are models and which the test set: models come first."""
    from regard.starter import bundled, default_model

    is_model = [word.endswith(".regard") or word in bundled() for word in words]
    num_models = is_model.index(False) if False in is_model else len(words)
    num_models = max(num_models, len(words) - 2)
    models, files = list(map(Path, words[:num_models])), list(map(Path, words[num_models:]))
    if not files:
        raise ConfigError("name the test set after the models: SOURCE REFERENCE, or one file with both")
    if not models and not has_given:
        models = [default_model()]
    return models, files


def _languages(models: Sequence[Path], files: Sequence[Path]) -> tuple[str | None, str | None]:
    """Return the languages of the first model, by which a file with both languages is read."""
    from regard.modelfile import load_model

    if not models or len(files) == 2:
        return None, None
    first = load_model(models[0])
    return first.source_language, first.target_language


def _given_files(texts: Sequence[str]) -> dict[str, Path]:
    """Return the files of all `--given`, by the names of their systems."""
    found: dict[str, Path] = {}
    for text in texts:
        path, equals, name = text.rpartition("=")
        if not equals or Path(text).is_file():
            path, name = text, Path(text).name
        if not path or not name.strip():
            raise ConfigError(f"--given {text} is not valid; write FILE or FILE=NAME")
        if name.strip() in found:
            raise ConfigError(f"two systems are called {name.strip()!r}; name one as in --given {path}=NAME")
        found[name.strip()] = Path(path)
    return found
