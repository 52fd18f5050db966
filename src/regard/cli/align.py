"""`regard align`: which word of a translation came from which."""

import argparse
import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

from regard.cli.progress import progress
from regard.cli.settings import add_gold_format, read_gold_format
from regard.cli.shards import add_shards, asks_for_shards, do_shards, join_shards
from regard.errors import ConfigError
from regard.files import refuse_to_replace, writing
from regard.remote import place

if TYPE_CHECKING:
    from regard.alignment.attention import Alignment
    from regard.alignment.files import PairFiles
    from regard.alignment.gold import GoldLinks
    from regard.alignment.links import Link, Symmetrisation
    from regard.alignment.statistical.learn import TwoWayAligner
    from regard.text.words import Cut
    from regard.translate.translator import Translator

NAME = "align"
HELP = "align words, and score alignments against gold alignments"
DESCRIPTION = (
    "Writes the word alignment of each pair of lines as `0-0 1-2 ...`: source word first, counted from 0.\n"
    "It comes from the attention of a model, from two models of opposite directions, or, without a model,\n"
    "from a statistical aligner that learns from the pairs. Spaces separate words."
)
EXAMPLES = """examples:
  regard align fr-en a.fr a.en > a.align
  regard align fr-en a.fr a.en --back en-fr --how intersection
  regard align a.fr a.en --train more.fr more.en > a.align
  regard align a.fr a.en --words --glossary terms.tsv
  regard align fr-en gold.fr gold.en --gold gold.align
  regard align gold.fr gold.en --given other.align --gold gold.align
  regard align fr-en a.fr a.en --draw 3 --svg third.svg
  regard align fr-en big.fr.gz big.en.gz --shards 500 --out links
  regard align --join links --out big.align
"""

_HOWS: "tuple[Symmetrisation, ...]" = ("grow-diag-final-and", "grow-diag", "intersection", "union")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "files", nargs="*", type=Path, metavar="[MODEL] SOURCE TARGET",
        help="model file or name of a bundled model (optional), then two plain files of sentences",
    )  # fmt: skip
    parser.add_argument("--back", type=Path, metavar="MODEL", help="model for the opposite direction")
    parser.add_argument(
        "--how",
        choices=_HOWS,
        help="rule that combines two directions (default: both must agree on a link)",
    )
    parser.add_argument(
        "--train",
        nargs=2,
        type=Path,
        action="append",
        default=[],
        metavar=("SOURCE", "TARGET"),
        help="more pairs to train the statistical aligner",
    )
    parser.add_argument(
        "--glossary",
        type=Path,
        metavar="FILE",
        help="write the word pairs that the statistical aligner has learnt instead of links: word, "
        "translation, score from 0 to 1, count, separated by tabs",
    )
    parser.add_argument("--given", type=Path, metavar="FILE", help="do not align; read links from a file")
    parser.add_argument(
        "--gold", type=Path, metavar="FILE",
        help="score against a gold alignment (`3-4` sure, `3p4` possible); the result goes to standard error",
    )  # fmt: skip
    add_gold_format(parser)
    parser.add_argument("--jsonl", action="store_true", help="print one JSON object per pair: words, links")
    parser.add_argument(
        "--out", type=place, metavar="FILE", help="write to a file; it appears when everything is done"
    )
    parser.add_argument("--draw", type=int, metavar="N", help="draw the alignment of line N")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="with --draw: write the picture to a file")
    add_shards(parser)


def run(options: argparse.Namespace) -> None:
    """Align, write, score, draw."""
    from regard.alignment.files import PairFiles
    from regard.alignment.gold import read_gold
    from regard.text.words import cut_words

    if options.join:
        join_shards(options, bool(options.files), _no_line_fails)
        return
    model, paths = _model_and_files(options)
    _refuse_useless_flags(options, model)
    unfit = {f"--{name}": getattr(options, name) for name in ("gold", "given", "train", "glossary")}
    if asks_for_shards(options, unfit):
        _align_in_shards(options, model, *paths)
        return
    outputs = (options.out, options.glossary, options.svg)
    read = (model, options.back, *paths, *(path for both in options.train for path in both))
    refuse_to_replace(outputs, (*read, options.given, options.gold))
    cut, counted_from = read_gold_format(options)
    pairs = PairFiles(*paths)
    if options.glossary:
        _write_glossary(options.glossary, _learnt(options.train, pairs, cut))
        return
    translators = _translators(model, options.back, pairs)
    num_pairs = sum(1 for _ in pairs)  # unequal files and broken encodings show in a second
    gold = None
    if options.gold:
        lengths = [(len(cut_words(source, cut)), len(cut_words(target, cut))) for source, target in pairs]
        gold = read_gold(
            options.gold, counted_from=counted_from, target_first=options.reversed, lengths=lengths
        )
    if options.draw is None:
        found = _aligned(options, translators, pairs, cut)
        links = _write(options, found, num_pairs, keep=gold is not None)
        if gold is not None:
            _score(links, gold)
        return
    place = options.draw - 1
    if not 0 <= place < num_pairs:
        raise ConfigError(f"there is no line {options.draw}: the files have {num_pairs:,}")
    if translators:
        alignments = _aligned(options, translators, islice(pairs, place, place + 1), cut, options.draw)
    else:  # the aligner learns from all pairs, and links that are given stand line by line
        alignments = islice(_aligned(options, translators, pairs, cut), place, None)
    _draw(next(alignments), options.svg)


def _align_in_shards(options: argparse.Namespace, model: Path | None, source: Path, target: Path) -> None:
    """Align pairs by models in shards; errors of the files are found before they are cut."""
    from regard.alignment.attention import CHUNK
    from regard.alignment.files import PairFiles
    from regard.shards.cut import Source
    from regard.shards.folder import has_begun
    from regard.shards.work import Aligning

    if model is None:
        raise ConfigError("without a model all pairs are learnt from; name a model, or leave out --shards")
    pairs = PairFiles(source, target)
    _translators(model, options.back, pairs)
    if not has_begun(options.out):
        sum(1 for _ in pairs)
    models = [one for one in (model, options.back) if one is not None]
    cut, _ = read_gold_format(options)
    work = Aligning.of(models, options.how, cut, options.jsonl)
    do_shards(options, NAME, Source(source, target, CHUNK), work, _no_line_fails)


def _no_line_fails(number: int, reason: str) -> None:
    """A pair that cannot be aligned is an error of the whole run."""


def _model_and_files(options: argparse.Namespace) -> tuple[Path | None, list[Path]]:
    files: list[Path] = options.files
    if len(files) not in (2, 3):
        raise ConfigError("give two files of sentences, and a model before them if you want to use one")
    return files[0] if len(files) == 3 else None, files[-2:]


def _refuse_useless_flags(options: argparse.Namespace, model: Path | None) -> None:
    """Raise an error for what would be passed over in silence."""
    for refused, message in (
        (options.back and not model, "--back is the second of two models; name the first before the files"),
        (
            options.given and (model or options.train or options.how),
            "--given takes links as they are; leave the model, --train and --how out",
        ),
        (model and options.train, "a model has learnt already; leave --train out, or the model"),
        (
            model and options.how and not options.back,
            "--how joins two directions; name a second model, --back",
        ),
        (
            (options.from_one or options.reversed) and not options.gold,
            "--from-one and --reversed say how to read gold links; give them with --gold",
        ),
        (options.svg and options.draw is None, "--svg needs --draw N: one pair is drawn at a time"),
        (
            options.draw is not None and (options.gold or options.out or options.jsonl),
            "--draw shows one pair and writes no links; leave --gold, --out and --jsonl out",
        ),
    ):
        if refused:
            raise ConfigError(message)
    if not options.glossary:
        return
    others = ("back", "how", "given", "gold", "jsonl", "out", "draw", "svg")
    said = next((f"--{name}" for name in others if getattr(options, name) not in (None, False)), None)
    if model or said:
        raise ConfigError(f"--glossary uses only the statistical aligner; remove {said or 'the model'}")


def _translators(model: Path | None, back: Path | None, pairs: "PairFiles") -> "list[Translator]":
    """Return the translators of the models, each checked against the languages of the files."""
    from regard.corpus.language_codes import Languages
    from regard.translate.translator import Translator

    if model is None:
        return []
    translators = [Translator.open(path) for path in (model, back) if path is not None]
    forward = Languages.of(pairs)
    ways = (("the files are", forward), ("the files backwards are", forward.swapped()))
    for translator, way in zip(translators, ways, strict=False):
        translator.model.check_languages(*way)
    return translators


def _aligned(
    options: argparse.Namespace,
    translators: "Sequence[Translator]",
    pairs: Iterable[tuple[str, str]],
    cut: "Cut",
    first_number: int = 1,
) -> Iterator["Alignment"]:
    """Return the alignments, however they are found."""
    from regard.alignment.align import align_by_words
    from regard.alignment.attention import align_pairs, drawn_links
    from regard.alignment.files import read_links

    if translators:
        forward, backward = translators[0], translators[1] if len(translators) > 1 else None
        return align_pairs(pairs, forward, backward, options.how, cut, first_number)
    if options.given:
        links = read_links(options.given, pairs, cut)
        return (drawn_links(*pair, found, cut) for pair, found in zip(pairs, links, strict=True))
    return align_by_words(_learnt(options.train, pairs, cut), pairs, options.how, cut)


def _learnt(
    train: Sequence[tuple[Path, Path]], pairs: Iterable[tuple[str, str]], cut: "Cut"
) -> "TwoWayAligner":
    """Return the statistical aligner of these pairs and those of --train."""
    from regard.alignment.align import learn_words
    from regard.alignment.files import PairFiles
    from regard.alignment.statistical.pairs import TOO_LONG

    with progress() as show:
        aligner = learn_words(chain(pairs, *(PairFiles(*files) for files in train)), cut, show)
    if num_long := aligner.skipped[TOO_LONG]:
        print(
            f"regard: {num_long:,} pairs are {TOO_LONG}: they teach nothing and have no links",
            file=sys.stderr,
        )
    return aligner


def _write_glossary(path: Path, aligner: "TwoWayAligner") -> None:
    from regard.draw.labels import spreadsheet_cell

    with writing(path) as (stream,), progress() as show:
        for number, term in enumerate(aligner.glossary(), 1):
            show("writing words", number, 0)
            source, target = map(spreadsheet_cell, (term.source, term.target))
            stream.write(f"{source}\t{target}\t{term.score:.2f}\t{term.num_met}\n".encode())


def _write(
    options: argparse.Namespace, found: Iterable["Alignment"], num_pairs: int, *, keep: bool
) -> list[frozenset["Link"]]:
    """Write a line for each pair, and return the links if they are to be kept: there may be millions."""
    from regard.alignment.files import line_of_links

    links = []
    with contextlib.ExitStack() as stack:
        stream: IO[bytes] = sys.stdout.buffer
        if options.out:
            (stream,) = stack.enter_context(writing(options.out))
        show = stack.enter_context(progress()) if options.out or not sys.stdout.isatty() else None
        for number, one in enumerate(found, 1):
            if keep:
                links.append(one.links)
            stream.write(line_of_links(one, as_json=options.jsonl))
            if show:
                show("aligning", number, num_pairs)
    return links


def _score(links: list[frozenset["Link"]], gold: "list[GoldLinks]") -> None:
    from regard.alignment.gold import aer_interval, score_links

    score, (low, high) = score_links(links, gold), aer_interval(links, gold)
    print(
        f"alignment error rate {score.aer:.3f} ({low:.3f} to {high:.3f}), precision {score.precision:.3f}, "
        f"recall {score.recall:.3f}, {score.num_links:,} links in {score.num_sentences:,} pairs",
        file=sys.stderr,
    )


def _draw(one: "Alignment", path: Path | None) -> None:
    from regard.draw.heatmap import heat_maps_svg
    from regard.draw.terminal import heat_map_lines

    if path is None:
        print("\n".join(heat_map_lines(one.heat_map, 100)))
        return
    with writing(path) as (stream,):
        stream.write(heat_maps_svg([one.heat_map]).encode())
