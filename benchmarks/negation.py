"""Is a negation of the source still one in the translation? Korean to English, on sentences negated on both sides.

    python benchmarks/negation.py ../shared/data --model ko-en [--pairs 200] [--show 10]

Taken from Tatoeba (test, then dev), the Bible's test set and FLORES-200, in that order: pairs whose Korean has a
negation (않, 못, 없, 아니, 안 before a word, 말 in prohibitions) and whose English reference has one. Counted: translations
with one. The other way round, of as many pairs without any: translations that invent one.
"""

import argparse
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import regard

KOREAN = re.compile(r"않|못|없|아니|(?<!\S)안(?=\s)|지\s?(마|말)")
ENGLISH = re.compile(
    r"\b(not|no|never|none|nothing|nobody|nor|neither|without|cannot|isnt|dont)\b|n['’]t\b", re.I
)
FILES = (
    "tatoeba/ko-en.test",
    "tatoeba/ko-en.dev",
    "ko-en/bible.test",
    "testsets/flores200.devtest",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", default="ko-en")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--show", type=int, default=0, help="print so many that lost it")
    options = parser.parse_args()
    model = regard.load(options.model)
    for negated in (True, False):
        chosen = list(islice(pairs(options.data, negated), options.pairs))
        said = [one.text for one in model.translate([korean for korean, _ in chosen])]
        found = [bool(ENGLISH.search(one)) for one in said]
        print(
            f"{'negated' if negated else 'not negated':12} {len(chosen)} pairs, with a negation: {sum(found)} "
            f"({sum(found) / len(chosen):.1%})"
        )
        wrong = [
            trio for trio, has in zip(zip(chosen, said, strict=True), found, strict=True) if has != negated
        ]
        for (korean, english), translation in wrong[: options.show]:
            print(f"    {korean}\n    reference: {english}\n    model:     {translation}")


def pairs(data: Path, negated: bool) -> Iterator[tuple[str, str]]:
    for name in FILES:
        sides = ((data / f"{name}.{side}").read_text("utf-8").splitlines() for side in ("ko", "en"))
        for korean, english in zip(*sides, strict=True):
            if bool(KOREAN.search(korean)) == bool(ENGLISH.search(english)) == negated:
                yield korean, english


if __name__ == "__main__":
    main()
