"""`regard inspect`: what a corpus holds, what is wrong with it and where, and a clean copy of it."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from regard.cli.progress import progress
from regard.cli.settings import add_languages

NAME = "inspect"
HELP = "check a corpus: sizes, problems with line numbers, a clean copy"
DESCRIPTION = """\
Reports the size of a parallel corpus and every problem in it, with line numbers and reasons. Give two
plain text files, source and target line by line, or one file with both languages: TMX, XLIFF, PO, TSV,
JSONL or Parquet. All formats except Parquet may be compressed (.gz, .xz, .zst)."""
EXAMPLES = """\
examples:
  regard inspect train.fr train.en
  regard inspect memory.tmx --source fr --target en --align --clean good
  regard inspect train.fr train.en --test test.fr test.en --json > report.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="the corpus: two files, or one with both languages",
    )
    add_languages(parser)
    parser.add_argument(
        "--test",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="test set; pairs that share a sentence with it are reported",
    )
    parser.add_argument(
        "--align",
        action="store_true",
        help="learn word translations from the corpus and report pairs whose words do not match; takes "
        "minutes for 100,000 pairs",
    )
    parser.add_argument(
        "--clean", type=Path, metavar="OUT",
        help="write the pairs without problems to OUT.SOURCE and OUT.TARGET, or to OUT if it ends in .tsv or "
        ".jsonl (.gz, .xz, .zst may follow)",
    )  # fmt: skip
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="RULE",
        help="with --clean: ignore this rule (can be repeated)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the report as JSON, with every line number"
    )


def run(options: argparse.Namespace) -> None:
    """Inspect, print, and clean if asked to."""
    from regard.alignment.statistical.evidence import relatedness
    from regard.corpus.clean import check_rules, clean
    from regard.corpus.inspect import inspect
    from regard.corpus.read import open_corpus
    from regard.corpus.write import output_paths

    corpus = open_corpus(options.files, options.source, options.target)
    test = open_corpus(options.test, corpus.source_language, corpus.target_language) if options.test else None
    check_rules(options.keep)
    paths = output_paths(options.clean, corpus) if options.clean else []
    with progress() as show:
        report = inspect(corpus, test, show, relatedness if options.align else None)
        cleaning = clean(corpus, report, options.clean, options.keep, show) if options.clean else None
    if options.json:
        found = report.to_json() | {"clean": cleaning and asdict(cleaning)}
        print(json.dumps(found, ensure_ascii=False, indent=1))
        return
    print(report)
    if cleaning:
        print(f"\nwrote {cleaning.num_kept:,} pairs to {' and '.join(map(str, paths))}")
        print(cleaning)
