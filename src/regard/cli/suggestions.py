"""`regard suggestions`: the corrections that a server has kept, as a corpus."""

import argparse
from pathlib import Path

NAME = "suggestions"
HELP = "write the corrections that a server has kept to a TSV or TMX file"
DESCRIPTION = (
    "Writes what clients have sent to `regard serve --suggestions FILE` as sentence pairs. `regard train`\n"
    "reads both formats. The server may go on running."
)
EXAMPLES = """examples:
  regard suggestions corrections.db --out corrections.tmx
  regard suggestions corrections.db --out corrections.tsv --languages fr en
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the SQLite file of the server")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="the .tsv or .tmx file to write"
    )
    parser.add_argument(
        "--languages", nargs=2, metavar=("FROM", "TO"), help="only those from one language into another"
    )


def run(options: argparse.Namespace) -> None:
    """Write the file."""
    from regard.server.suggestions import write_suggestions

    languages = None if options.languages is None else (options.languages[0], options.languages[1])
    count = write_suggestions(options.file, options.out, languages)
    print(f"wrote {options.out}: {count:,} {'pair' if count == 1 else 'pairs'}")
