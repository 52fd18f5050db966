"""`regard train`: two files to a translator of one's own."""

import argparse
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from regard.cli.progress import progress
from regard.cli.settings import add_corpus, add_machine, put_setting, read_setting, read_time
from regard.errors import ConfigError
from regard.training import load_torch
from regard.training.request import CorpusFiles, Size, TrainRequest, VectorFiles
from regard.training.stopping import Signals, Stopped, catching_signals

if TYPE_CHECKING:
    from regard.training.finish import Trained

NAME = "train"
HELP = "train a model on your own sentence pairs"
DESCRIPTION = (
    "Checks and cleans the pairs, sets some aside for validation, learns a vocabulary, trains a model that\n"
    "suits the data and the time, and writes it to one file with its scores. To continue an interrupted\n"
    "training, run the same command again."
)
EXAMPLES = """examples:
  regard train train.fr train.en --out fr-en.regard
  regard train memory.tmx --source fr --target en --out fr-en.regard --time 30m
  regard train a.fr a.en --also more.tsv 0.5 --valid dev.fr dev.en --out fr-en.regard
  regard train a.fr a.en --out rnn.regard --preset bahdanau2015 --time 15m
  regard train mine.tmx --from fr-en --out mine.regard --time 10m
  regard train a.fr a.en --out rnn.regard --preset regard-rnn --source-vectors fr.vec
  regard train features.npz captions.en --out captions.regard
  torchrun --nproc-per-node 2 -m regard train a.fr a.en --out fr-en.regard
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_corpus(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="MODEL", help="model file to write")
    parser.add_argument(
        "--also", nargs="+", action="append", default=[], metavar="FILE",
        help="another corpus; a number after its files says how often each epoch uses it",
    )  # fmt: skip
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--time", metavar="TIME", help="total time: 30m, 2h, 1h30m, 90s")
    length.add_argument("--steps", type=int, metavar="N", help="total number of updates")
    parser.add_argument(
        "--preset", metavar="NAME", help="model and training recipe by name; see docs/models.md"
    )
    parser.add_argument(
        "--size", choices=get_args(Size), default="laptop",
        help="of a paper's preset: small enough to learn without a GPU (default), or as in the paper",
    )  # fmt: skip
    parser.add_argument(
        "--from", type=Path, metavar="MODEL", dest="start",
        help="start from a trained model: its weights, architecture and vocabulary",
    )  # fmt: skip
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}-vectors", type=Path, metavar="FILE",
            help=f"pre-trained vectors of {side} words: fastText (.vec), word2vec or GloVe",
        )  # fmt: skip
    parser.add_argument(
        "--freeze-vectors", action=argparse.BooleanOptionalAction,
        help="do not change the pre-trained vectors in training",
    )  # fmt: skip
    parser.add_argument("--vocab", type=int, metavar="N", help="vocabulary size")
    add_machine(parser)
    parser.add_argument(
        "--keep", action="append", default=[], metavar="RULE",
        help="ignore this rule of `regard inspect` when cleaning; can be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help="any option of docs/options.md, such as train.label_smoothing=0.2",
    )  # fmt: skip
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file with options")


def run(arguments: argparse.Namespace) -> int:
    """Train, and print what came of it."""
    options = _options(arguments)
    with catching_signals() as signals:
        return _train(arguments, options, signals)


def _train(arguments: argparse.Namespace, options: dict[str, dict[str, Any]], signals: Signals) -> int:
    load_torch()
    from regard.training.display import open_display, several
    from regard.training.run import train

    request = TrainRequest(
        corpora=(CorpusFiles(tuple(arguments.files)), *map(_also, arguments.also)),
        out=arguments.out,
        validation=tuple(arguments.valid),
        source_language=arguments.source,
        target_language=arguments.target,
        preset=arguments.preset,
        size=arguments.size,
        options=options,
        seed=arguments.seed,
        device=arguments.device,
        keep_rules=tuple(arguments.keep),
        start=arguments.start,
        vectors=VectorFiles(arguments.source_vectors, arguments.target_vectors, arguments.freeze_vectors),
    )
    speaks = os.environ.get("RANK", "0") == "0"  # of the processes of torchrun, the first
    display = open_display() if speaks else several([])
    try:
        trained = train(request, display, progress, signals)
    except Stopped as stopped:
        display.note(str(stopped))
        return 128 + stopped.number
    finally:
        display.close()
    if trained:
        _report(trained)
    return 0


def _options(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the options the user gave, flags over `--set` over `--config`."""
    values: dict[str, Any] = {}
    if arguments.config:
        try:
            values = tomllib.loads(arguments.config.read_text("utf-8"))
        except OSError as error:
            raise ConfigError(f"{arguments.config}: cannot be read ({error.strerror})") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{arguments.config}: is not TOML ({error})") from error
    for setting in arguments.set:
        put_setting(values, *read_setting(setting, "section.key=value"))
    if arguments.time or arguments.steps is not None:
        put_setting(values, ["train", "seconds"], read_time(arguments.time) if arguments.time else None)
        put_setting(values, ["train", "steps"], arguments.steps)
    if arguments.vocab is not None:
        put_setting(values, ["tokenizer", "vocab_size"], arguments.vocab)
    for name, section in values.items():
        if isinstance(section, str):
            values[name] = {"kind": section}  # as everywhere, a bare word stands for the kind
        elif not isinstance(section, dict):
            raise ConfigError(
                f"{name} = {section!r} is not valid; write options in sections, such as [train]"
            )
    return values


def _also(words: list[str]) -> CorpusFiles:
    """Return a further corpus from its files and perhaps a weight."""
    try:
        weight = float(words[-1]) if len(words) > 1 else 1.0
    except ValueError:
        return CorpusFiles(tuple(map(Path, words)))
    return CorpusFiles(tuple(map(Path, words[:-1] if len(words) > 1 else words)), weight)


def _report(trained: "Trained") -> None:
    """Print the scores, the table by length and some translations with their attention."""
    from regard.draw.terminal import heat_map_lines

    scores = trained.scores
    minutes = trained.seconds / 60
    print(f"ended after {trained.num_updates:,} updates and {minutes:.1f} minutes: {trained.reason}")
    print(f"BLEU {scores.bleu:.1f}  chrF {scores.chrf:.1f}  on {scores.num_sentences:,} validation sentences")
    print(f"  {scores.signatures['bleu']}")
    print("\nwords in the source   sentences   BLEU")
    for row in scores.by_length:
        words = f"{row.first_word}-{row.last_word}" if row.last_word else f"{row.first_word} and more"
        print(f"{words:>19}   {row.num_sentences:9,}   {row.bleu:4.1f}")
    for translation, reference in trained.samples:
        print(f"\nsource      {translation.source}\ntranslation {translation.text}\nreference   {reference}")
    for first, _ in trained.samples[:1]:
        if first.attention_TS.size:
            print()
            print("\n".join(heat_map_lines(first.heat_map, 80)))
    print(f"\nwrote {trained.out}")
    if trained.verdict:
        print(f"{trained.verdict}")
