"""What the flags of a translation mean. Command line, page and documentation take their words from here.

`python -m regard.flags` prints the table of docs/translating.md.
"""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag in words: a warning that a translation looks wrong, or a remark on how it was made."""

    kind: Literal["warning", "remark"]
    short: str
    """A few words, about one translation."""
    sentence: str
    several: str
    """What several translations do or are, to follow their number: "3 of 90 came out empty"."""
    korean: str
    """The few words in Korean."""


FLAGS = {
    key: Flag(**words)
    for key, words in json.loads((files("regard") / "flags.json").read_text(encoding="utf-8")).items()
}
"""Every flag by its key, as in `Translation.flags`."""


def table() -> str:
    """Return the flags as a table in Markdown."""
    rows = [f"| `{key}` | {flag.kind} | {flag.sentence} |" for key, flag in FLAGS.items()]
    return "\n".join(["| flag | kind | meaning |", "|---|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    print(table(), end="")
