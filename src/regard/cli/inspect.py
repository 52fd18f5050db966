"""`regard inspect`: what a corpus holds, what is wrong with it and where, and a clean copy of it."""

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.screen import progress

if TYPE_CHECKING:
    from regard.corpus.inspect import Cleaning, Report

NAME = "inspect"
HELP = "look a corpus over: sizes, problems with line numbers, a clean copy"
DESCRIPTION = """\
Report what a parallel corpus holds and everything that is wrong with it, with line numbers and reasons.
FILE is two plain text files, source and target line by line, or one file with both languages:
TMX, XLIFF, PO, TSV, JSONL or Parquet. Any of them may end in .gz, .xz or .zst."""
EXAMPLES = """\
examples:
  regard inspect train.fr train.en
  regard inspect memory.tmx --source fr --target en --clean good
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
    if options.clean:
        output_paths(options.clean, corpus)
    with progress() as show:
        report = inspect(corpus, test, show)
        cleaning = clean(corpus, report, options.clean, options.keep, show) if options.clean else None
    if options.json:
        removed = {"kept": cleaning.num_kept, "removed": cleaning.removed} if cleaning else None
        json.dump(report.to_json() | {"clean": removed}, sys.stdout, ensure_ascii=False, indent=1)
        print()
    else:
        print("\n".join(_report_lines(report)))
        if cleaning:
            print("\n".join(_cleaning_lines(cleaning, options.clean)))


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
    for problem in report.problems:
        share = f"{len(problem.lines):,} ({100 * len(problem.lines) / report.num_pairs:.2g} %)"
        lines.append(f"PROBLEM {problem.rule}: {share}: {RULES[problem.rule]}")
        if problem.rule == "shift":
            lines += [f"    {report.place}s {block}" for block in report.shifts]
        else:
            shown = problem.examples[:_SHOWN_LINES]
            lines += [f"    {report.place} {line}: {reason}" for line, reason in shown]
            if len(problem.lines) > len(shown):
                others = _numbers([line for line in problem.lines if line not in dict(shown)])
                lines.append(f"    and {report.place}s {others}")
    lines += [f"read over: {count:,} entries: {reason}" for reason, count in report.skipped.items()]
    lines += [f"note: {note}" for note in report.notes]
    sound = report.num_pairs - report.num_broken
    lines.append(
        f"{sound:,} of {report.num_pairs:,} pairs are sound ({100 * sound / report.num_pairs:.4g} %)"
    )
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


def _cleaning_lines(cleaning: "Cleaning", out: Path) -> list[str]:
    removed = ", ".join(f"{rule} {count:,}" for rule, count in cleaning.removed.items())
    total = sum(cleaning.removed.values())
    return [
        "",
        f"wrote {cleaning.num_kept:,} pairs to {out}; removed {total:,}"
        + (f": {removed}" if removed else ""),
    ]
