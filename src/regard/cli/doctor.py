"""`regard doctor`: what this machine has and what works on it."""

import argparse
import json

NAME = "doctor"
HELP = "report what works on this machine: Python, torch, cores, precisions, fonts"
DESCRIPTION = """\
Reports what this machine has and what works on it. Each number precision is tested in a separate process,
because on some virtual machines reduced precision crashes with an illegal instruction."""
EXAMPLES = """\
The exit code is 1 if something that regard needs is missing."""

_MARKS = {True: "ok ", False: "BAD", None: "-  "}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(options: argparse.Namespace) -> int:
    """Examine the machine and print the findings."""
    from regard.doctor import examine

    findings = examine()
    if options.json:
        print(
            json.dumps(
                {found.what: {"value": found.value, "fine": found.fine} for found in findings}, indent=1
            )
        )
    else:
        for found in findings:
            print(f"{_MARKS[found.fine]} {found.what:17} {found.value}")
    return 1 if any(found.fine is False for found in findings) else 0
