"""`regard verify`: whether the promises hold for a model on this machine."""

import argparse
import json
from pathlib import Path

NAME = "verify"
HELP = "test on this machine that a model does what regard promises"
DESCRIPTION = """\
Translates some sentences and tests on them: hashes of the file, round trip of the tokenizer, the same
translation alone and in any batch, the same from both engines, scores of steps against scores of the whole,
alignment within the texts. Speed and memory are measured. The exit code is 1 if a promise is broken."""
EXAMPLES = """examples:
  regard verify fr-en
  regard verify opus.regard --against opus-ct2
  regard verify fr-en --json --out certificate.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="model file, or name of a model")
    parser.add_argument(
        "--against", type=Path, metavar="FOLDER",
        help="a CTranslate2 folder exported from the model, which should translate alike",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="FILE", help="also write the certificate to this file")
    parser.add_argument("--json", action="store_true", help="the certificate as JSON instead of text")


def run(options: argparse.Namespace) -> int:
    """Verify the model and print the certificate."""
    from regard.cli.progress import progress
    from regard.files import refuse_to_replace, writing
    from regard.starter import locate
    from regard.verification.run import verify

    refuse_to_replace([options.out], [locate(options.model)])
    with progress() as show:
        found = verify(options.model, options.against, show)
    text = json.dumps(found.to_json(), indent=1, ensure_ascii=False) if options.json else str(found)
    if options.out is not None:
        with writing(options.out) as (stream,):
            stream.write(f"{text}\n".encode("utf-8", "backslashreplace"))
    print(text)
    return 0 if found.holds else 1
