"""`regard align`: which word of a translation came from which."""

import argparse
import contextlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

from regard.draw.progress import progress
from regard.errors import ConfigError, CorpusError
from regard.files import refuse_to_replace, writing

if TYPE_CHECKING:
    from regard.alignment.attention import Alignment, Cut
    from regard.alignment.gold import GoldLinks
    from regard.alignment.links import Link, Symmetrisation
    from regard.alignment.statistical.learn import TwoWayAligner
    from regard.text.words import Span

NAME = "align"
HELP = "align the words of given translations, and score alignments against gold ones"
DESCRIPTION = (
    "Writes for each pair of lines which words belong together, as `0-0 1-2 ...`, source word first,\n"
    "counted from 0: by a model's attention, by two models that read both ways, or, without a model, by a\n"
    "statistical aligner that learns from the pairs. Words are what stands between spaces."
)
EXAMPLES = """examples:
  regard align fr-en.regard a.fr a.en > a.align
  regard align fr-en.regard a.fr a.en --back en-fr.regard --how intersection
  regard align a.fr a.en --train more.fr more.en > a.align
  regard align a.fr a.en --words --glossary terms.tsv
  regard align fr-en.regard gold.fr gold.en --gold gold.align
  regard align gold.fr gold.en --given other.align --gold gold.align
  regard align fr-en.regard a.fr a.en --draw 3 --svg third.svg
"""

_HOWS: "tuple[Symmetrisation, ...]" = ("grow-diag-final-and", "grow-diag", "intersection", "union")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="[MODEL] SOURCE TARGET",
        help="the model file, if one is to align, and two plain files of sentences",
    )  # fmt: skip
    parser.add_argument(
        "--back", type=Path, metavar="MODEL", help="a model from the target language to the source language"
    )
    parser.add_argument(
        "--how",
        choices=_HOWS,
        help="the rule by which two directions become one (else both must agree on a link)",
    )
    parser.add_argument(
        "--train",
        nargs=2,
        type=Path,
        action="append",
        default=[],
        metavar=("SOURCE", "TARGET"),
        help="further pairs for the statistical aligner to learn from",
    )
    parser.add_argument(
        "--glossary",
        type=Path,
        metavar="FILE",
        help="instead of links, write the words the statistical aligner has learnt: word, translation, score "
        "up to 1, times met, with tabs between",
    )
    parser.add_argument("--given", type=Path, metavar="FILE", help="do not align, take the links of a file")
    parser.add_argument(
        "--gold", type=Path, metavar="FILE",
        help="score against links made by hand: `3-4` sure, `3p4` possible; the error rate goes to stderr",
    )  # fmt: skip
    parser.add_argument("--from-one", action="store_true", help="the gold file counts words from 1")
    parser.add_argument("--reversed", action="store_true", help="the gold file has the target's word first")
    parser.add_argument(
        "--words", action="store_true", help="links count words as regard cuts them: l' and . are words"
    )
    parser.add_argument("--jsonl", action="store_true", help="a line of JSON for each pair: words, links")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write to a file, which appears when all is done"
    )
    parser.add_argument("--draw", type=int, metavar="N", help="draw the alignment of line N instead")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="with --draw: as a picture in a file")


def run(options: argparse.Namespace) -> None:
    """Align, write, score, draw."""
    from regard.alignment.gold import GoldLinks, read_gold

    model, paths = _model_and_files(options)
    _refuse_useless_flags(options, model)
    outputs = (options.out, options.glossary, options.svg)
    read = (model, options.back, *paths, *(path for both in options.train for path in both))
    refuse_to_replace(outputs, (*read, options.given, options.gold))
    cut: Cut = "words" if options.words else "spaces"
    if options.glossary:
        _write_glossary(options, paths, cut)
        return
    pairs = _Pairs(*paths)
    if model:
        pairs.check_direction(model)
    if options.back:
        pairs.check_direction(options.back, back=True)
    num_pairs = sum(1 for _ in pairs)  # unequal files and broken encodings show in a second
    gold: list[GoldLinks] | None = None
    if options.gold:
        lengths = [(len(_cut(source, cut)), len(_cut(target, cut))) for source, target in pairs]
        if options.reversed:
            lengths = [(b, a) for a, b in lengths]
        gold = read_gold(options.gold, counted_from=1 if options.from_one else 0, lengths=lengths)
        gold = [one.flipped() for one in gold] if options.reversed else gold
    if options.draw is not None and not 1 <= options.draw <= num_pairs:
        raise ConfigError(f"there is no line {options.draw}: the files have {num_pairs:,}")
    if options.draw is None:
        links = _write(options, _aligned(options, model, pairs, cut), num_pairs, keep=gold is not None)
        if gold is not None:
            _score(links, gold)
        return
    place = options.draw - 1
    if model is None:  # the aligner learns from all pairs, and links that are given stand line by line
        found = next(islice(_aligned(options, model, pairs, cut), place, None))
    else:
        found = next(_aligned(options, model, islice(pairs, place, place + 1), cut, options.draw))
    _draw(found, options.svg)


def _model_and_files(options: argparse.Namespace) -> tuple[Path | None, list[Path]]:
    files: list[Path] = options.files
    if len(files) not in (2, 3):
        raise ConfigError("give two files of sentences, and before them a model, if one is to align")
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
        raise ConfigError(
            f"--glossary is made by the statistical aligner alone; leave {said or 'the model'} out"
        )


def _aligned(
    options: argparse.Namespace,
    model: Path | None,
    pairs: Iterable[tuple[str, str]],
    cut: "Cut",
    first_number: int = 1,
) -> Iterator["Alignment"]:
    """Yield the alignments, however they are found."""
    from regard.alignment.attention import align_pairs, drawn_links
    from regard.evaluation.testset import read_lines

    if options.given:
        num_lines, num_pairs = sum(1 for _ in read_lines(options.given)), sum(1 for _ in pairs)
        if num_lines != num_pairs:
            raise CorpusError(f"{options.given} has {num_lines:,} lines for {num_pairs:,} pairs of sentences")
        for number, ((source, target), line) in enumerate(
            zip(pairs, read_lines(options.given), strict=True), 1
        ):
            links = _read_links(f"{options.given}, line {number}", line, source, target, cut)
            yield drawn_links(source, target, links, cut)
        return
    if model is None:
        yield from _statistically(options, pairs, cut)
        return
    from regard.translate.translator import Translator

    back = None if options.back is None else Translator.open(options.back)
    yield from align_pairs(pairs, Translator.open(model), back, options.how, cut, first_number)


def _statistically(
    options: argparse.Namespace, pairs: Iterable[tuple[str, str]], cut: "Cut"
) -> Iterator["Alignment"]:
    from regard.alignment.attention import drawn_links

    def words(pair: tuple[str, str]) -> tuple[list[str], list[str]]:
        return _words(pair, cut)

    aligner = _learnt(options, pairs, cut)
    for (source, target), links in zip(
        pairs, aligner.align_many(map(words, pairs), options.how), strict=True
    ):
        yield drawn_links(source, target, links, cut)


def _learnt(options: argparse.Namespace, pairs: Iterable[tuple[str, str]], cut: "Cut") -> "TwoWayAligner":
    """Return the statistical aligner of these pairs and those of --train."""
    from regard.alignment.statistical.learn import learn_both
    from regard.alignment.statistical.pairs import TOO_LONG

    more = (pair for source, target in options.train for pair in _Pairs(source, target))
    with progress() as show:
        aligner = learn_both((_words(pair, cut) for pair in chain(pairs, more)), on_progress=show)
    if num_long := aligner.skipped[TOO_LONG]:
        print(
            f"regard: {num_long:,} pairs are {TOO_LONG}: they teach nothing and have no links",
            file=sys.stderr,
        )
    return aligner


def _words(pair: tuple[str, str], cut: "Cut") -> tuple[list[str], list[str]]:
    return tuple([text[a:b] for a, b in _cut(text, cut)] for text in pair)  # type: ignore[return-value]


def _write_glossary(options: argparse.Namespace, paths: list[Path], cut: "Cut") -> None:
    aligner = _learnt(options, _Pairs(*paths), cut)
    with writing(options.glossary) as (stream,), progress() as show:
        for number, term in enumerate(aligner.glossary(), 1):
            show("writing words", number, 0)
            stream.write(f"{term.source}\t{term.target}\t{term.score:.2f}\t{term.num_met}\n".encode())


def _write(
    options: argparse.Namespace, found: Iterable["Alignment"], num_pairs: int, *, keep: bool
) -> list[frozenset["Link"]]:
    """Write a line for each pair, and return the links if they are to be kept: there may be millions."""
    from regard.alignment.links import to_pharaoh

    links = []
    with contextlib.ExitStack() as stack:
        stream: IO[bytes] = sys.stdout.buffer
        if options.out:
            (stream,) = stack.enter_context(writing(options.out))
        show = stack.enter_context(progress()) if options.out or not sys.stdout.isatty() else None
        for number, one in enumerate(found, 1):
            if keep:
                links.append(one.links)
            line = _json(one) if options.jsonl else to_pharaoh(one.links)
            stream.write(line.encode() + b"\n")
            if show:
                show("aligning", number, num_pairs)
    return links


def _json(one: "Alignment") -> str:
    return json.dumps(
        {
            "source": one.source,
            "target": one.target,
            "source_words": [list(span) for span in one.source_words],
            "target_words": [list(span) for span in one.target_words],
            "links": [list(link) for link in sorted(one.links)],
        },
        ensure_ascii=False,
    )


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


def _cut(text: str, cut: "Cut") -> "Sequence[Span]":
    from regard.alignment.attention import cut_words

    return cut_words(text, cut)


def _read_links(where: str, line: str, source: str, target: str, cut: "Cut") -> frozenset["Link"]:
    from regard.alignment.links import from_pharaoh

    try:
        links = from_pharaoh(line)
    except ValueError as error:
        raise CorpusError(f"{where}: {error}") from None
    lengths = len(_cut(source, cut)), len(_cut(target, cut))
    for a, b in links:
        if a >= lengths[0] or b >= lengths[1]:
            raise CorpusError(
                f"{where}: {a}-{b} is out of range, the pair has {lengths[0]} and {lengths[1]} words"
            )
    return links


class _Pairs:
    """The lines of two files side by side, read anew each time; both must have as many."""

    def __init__(self, source: Path, target: Path) -> None:
        from regard.corpus.read import open_corpus

        self.corpus = open_corpus([source, target])

    def __iter__(self) -> Iterator[tuple[str, str]]:
        from regard.evaluation.testset import check_readable

        for pair in self.corpus.pairs():
            for path, text in zip(self.corpus.paths, (pair.source, pair.target), strict=True):
                check_readable(path, [text], [pair.line])
            yield pair.source, pair.target

    def check_direction(self, model: Path, *, back: bool = False) -> None:
        """Raise an error if a model is known not to translate between the languages of the files."""
        from regard.corpus.language_codes import Languages, check_languages
        from regard.modelfile import load_model

        its, wanted = Languages.of(load_model(model)), Languages.of(self.corpus)
        if back:
            files, wanted = "the files backwards are", wanted.swapped()
        else:
            files = "the files are"
        check_languages(
            f"{model} translates", its, files, wanted, "give the files the other way round, or another model"
        )
