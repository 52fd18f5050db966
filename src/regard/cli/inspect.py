"""`regard inspect`: what a corpus holds, what is wrong with it and where, and a clean copy of it."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from regard.draw.progress import progress

if TYPE_CHECKING:
    from regard.corpus.inspect import Cleaning, Relatedness, Report

NAME = "inspect"
HELP = "look a corpus over: sizes, problems with line numbers, a clean copy"
DESCRIPTION = """\
Report what a parallel corpus holds and everything that is wrong with it, with line numbers and reasons.
FILE is two plain text files, source and target line by line, or one file with both languages:
TMX, XLIFF, PO, TSV, JSONL or Parquet. All but the last may also end in .gz, .xz or .zst."""
EXAMPLES = """\
examples:
  regard inspect train.fr train.en
  regard inspect memory.tmx --source fr --target en --align --clean good
  regard inspect train.fr train.en --test test.fr test.en --json > report.json"""

_SHOWN_LINES = 8
_BAR_WIDTH = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="the corpus: two files, or one with both languages",
    )
    parser.add_argument(
        "--source", metavar="LANG", help="source language, if the names of the files do not tell"
    )
    parser.add_argument("--target", metavar="LANG", help="target language")
    parser.add_argument(
        "--test",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="a test set that should share nothing with the corpus",
    )
    parser.add_argument(
        "--align",
        action="store_true",
        help="learn word translations from the corpus and find pairs whose words do not belong together: "
        "minutes for some 100,000 pairs",
    )
    parser.add_argument(
        "--clean", type=Path, metavar="OUT",
        help="write the corpus without the pairs that have problems, to OUT.SOURCE and OUT.TARGET, or to OUT "
        "if it ends in .tsv or .jsonl (.gz, .xz, .zst may follow)",
    )  # fmt: skip
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="RULE",
        help="with --clean: keep pairs that break only this rule (may be repeated)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the report as JSON, with every line number"
    )


def run(options: argparse.Namespace) -> None:
    """Inspect, print, and clean if asked to."""
    from regard.corpus.inspect import check_rules, clean, inspect
    from regard.corpus.read import open_corpus
    from regard.corpus.write import output_paths

    corpus = open_corpus(options.files, options.source, options.target)
    test = open_corpus(options.test, corpus.source_language, corpus.target_language) if options.test else None
    check_rules(options.keep)
    paths = output_paths(options.clean, corpus) if options.clean else []
    with progress() as show:
        report = inspect(corpus, test, show, _relatedness() if options.align else None)
        cleaning = clean(corpus, report, options.clean, options.keep, show) if options.clean else None
    if options.json:
        json.dump(
            report.to_json() | {"clean": cleaning and asdict(cleaning)},
            sys.stdout,
            ensure_ascii=False,
            indent=1,
        )
        print()
    else:
        print("\n".join(_report_lines(report)))
        if cleaning:
            print("\n".join(_cleaning_lines(cleaning, paths)))


def _relatedness() -> "Relatedness":
    from regard.alignment.statistical.evidence import relatedness

    return relatedness


def _report_lines(report: "Report") -> list[str]:
    from regard.corpus.checks import RULES
    from regard.corpus.inspect import LENGTH_BINS

    lines = [
        f"{' + '.join(report.files)}: {report.source_language or '?'} -> {report.target_language or '?'}",
        f"{report.num_pairs:,} pairs; {report.num_source_words:,} and {report.num_target_words:,} words",
        "",
        "words of the longer side",
        *_histogram(LENGTH_BINS, report.lengths),
        "",
    ]
    if report.unequal:
        num_source, num_target = report.unequal
        lines += [f"PROBLEM unequal: {num_source:,} source lines, {num_target:,} target lines", ""]
    if report.unrelated:
        lines += [
            "PROBLEM unrelated: the sides have nothing in common; are these translations, in one order?",
            "",
        ]
    for problem in report.problems:
        share = f"{len(problem.lines):,} ({_percent(len(problem.lines), report.num_pairs)})"
        lines.append(f"PROBLEM {problem.rule}: {share}: {RULES[problem.rule]}")
        if problem.rule == "shift":
            lines += [f"    {report.place}s {block}" for block in report.shifts]
        else:
            shown = problem.examples[:_SHOWN_LINES]
            lines += [f"    {report.place} {line}: {reason}" for line, reason in shown]
            if len(problem.lines) > len(shown):
                known = dict(shown)
                others = _numbers([line for line in problem.lines if line not in known])
                lines.append(f"    and {report.place}s {others}")
    lines += [f"read over: {count:,} entries: {reason}" for reason, count in report.skipped.items()]
    lines += [f"note: {note}" for note in report.notes]
    sound = report.num_pairs - report.num_broken
    share = f"{sound:,} of {report.num_pairs:,} pairs"
    if report.unrelated:
        lines.append(f"{share} look sound one by one, but the sides do not belong together")
    else:
        lines.append(f"{share} are sound ({_percent(sound, report.num_pairs)})")
    return lines


def _histogram(bins: Sequence[int], counts: Sequence[int]) -> list[str]:
    last = max((place for place, count in enumerate(counts) if count), default=0)
    labels = [f"{low + 1}-{high}" for low, high in pairwise(bins)] + [f"over {bins[-1]}"]
    width = _BAR_WIDTH / max(1, *counts)
    return [
        f"  {label:>8} {'█' * round(count * width) or ('▏' if count else ''):{_BAR_WIDTH}} {count:,}"
        for label, count in list(zip(labels, counts, strict=True))[: last + 1]
    ]


def _numbers(lines: Sequence[int]) -> str:
    shown = ", ".join(map(str, lines[:12]))
    return shown + (f" and {len(lines) - 12:,} more (--json lists all)" if len(lines) > 12 else "")


def _cleaning_lines(cleaning: "Cleaning", paths: Sequence[Path]) -> list[str]:
    removed = ", ".join(f"{rule} {count:,}" for rule, count in cleaning.removed.items())
    total = sum(cleaning.removed.values())
    lines = ["", f"wrote {cleaning.num_kept:,} pairs to {' and '.join(map(str, paths))}"]
    if cleaning.num_unpaired:
        lines.append(f"left out {cleaning.num_unpaired:,} lines at the end that have no partner")
    lines.append(f"removed {total:,} pairs" + (f": {removed}" if removed else ""))
    return lines


def _percent(part: int, whole: int) -> str:
    percent = 100 * part / whole
    return f"{percent:.1f} %" if percent >= 0.1 or not part else "under 0.1 %"
