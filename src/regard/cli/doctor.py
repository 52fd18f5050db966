"""`regard doctor`: what this machine has and what works on it."""

import argparse
import json

NAME = "doctor"
HELP = "report Python, torch, cores, working precisions, fonts, writable folders"
DESCRIPTION = """\
Report what this machine has and what really works on it. Reduced precisions are tried in processes
of their own, because on some virtual machines they die with an illegal instruction."""
EXAMPLES = """\
Exit code 1 if something that regard cannot do without is missing."""

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
