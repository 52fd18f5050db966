"""How many sentences with placeholders, addresses, code and numbers come through whole, and how good is the rest?

    python benchmarks/items.py fr-en ../shared/data/manuals/*.en-fr.tsv.gz [--sentences 500]

Takes pairs whose source and reference have the same items, as many of each kind as there are, up to an equal share.
A sentence is whole if its translation has every item as often as the source, no other item, and none of the signs
that code is made of more often than the source. Numbers are compared by their digits, and those up to twelve may be
words. `chrF of the rest` leaves the items out of translation and reference. The table has a line for each
kind: sentences of the kind have at least one item of it. The name of a file says which language comes first.
What counts as an item is written here and not taken from the package, so that versions of it can be compared.
"""

import argparse
import gzip
import re
import zlib
from collections import Counter
from pathlib import Path

import sacrebleu

import regard

ITEM = re.compile(
    r"""
      (?P<address> https?://[^\s<>"«»]*[\w/] | [\w.+-]+@[\w-]+(?:\.[\w-]+)+ )
    | (?P<placeholder> %\(\w+\)[sd] | %[sdrif]\b | [$%]?\{[\w.]*\} | \$\(\w+\) )
    | (?P<code> `[^`]+` | <\w[^<>]*> | (?<![\w-])--[a-z][\w-]+ | \w+(?:\.\w+)*\(\) | \w*[a-zA-Z]_\w+ | __\w+__
              | (?<![\w/])(?:\.{0,2}/[\w.-]+){2,} | \b\w+\.(?:py|txt|html|xml|json|js|yaml|md|exe|dll|c|h|cfg|toml|odt)\b )
    | (?P<number> \d+(?:[.,:  ]\d+)*(?:\s?[€$£])? | [€$£]\s?\d+(?:[.,]\d+)* )
    """,
    re.VERBOSE,
)
SIGNS = re.compile(r"[{}\[\]\\%$#@<>|~^=*_`€£�]")
MAX_SPELT = 12


def items(text: str) -> Counter[tuple[str, str]]:
    """Return the items of a text, as kind and characters; of numbers the digits and the sign of a currency."""
    found: Counter[tuple[str, str]] = Counter()
    for match in ITEM.finditer(text):
        what = match.group()
        if match.lastgroup == "number":
            what = "".join(sorted(re.findall(r"[€$£]", what))) + "".join(re.findall(r"\d", what))
        found[match.lastgroup or "", what] += 1
    return found


def is_whole(source: str, said: str) -> bool:
    """Tell whether a translation has the items of its source and nothing of the kind beside them."""
    wanted, found = items(source), items(said)
    for key, num in (wanted - found).items():
        kind, what = key
        if not (kind == "number" and what.isdecimal() and int(what) <= MAX_SPELT):
            return False
        wanted[key] -= num
    return not found - wanted and not Counter(SIGNS.findall(said)) - Counter(SIGNS.findall(source))


def rest(text: str) -> str:
    """Return a text without its items."""
    return " ".join(ITEM.sub(" ", text).split())


def pairs(paths: list[Path], source: str, num: int) -> list[tuple[str, str]]:
    """Return pairs with the same items on both sides, spread over the files, by kind in equal shares."""
    by_kind: dict[str, list[tuple[str, str]]] = {}
    known = set()
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                sides = line.rstrip("\n").split("\t")
                pair = (sides[0], sides[1]) if f".{source}-" in path.name else (sides[1], sides[0])
                found = items(pair[0])
                if pair[0] in known or not found or found != items(pair[1]):
                    continue
                if not 4 <= len(pair[0].split()) <= 40 or not any(map(str.islower, rest(pair[0]))):
                    continue
                known.add(pair[0])
                rarest = min(
                    (kind for kind, _ in found), key=["address", "placeholder", "code", "number"].index
                )
                by_kind.setdefault(rarest, []).append(pair)
    chosen: list[tuple[str, str]] = []
    for left, (_, some) in zip(
        range(len(by_kind), 0, -1), sorted(by_kind.items(), key=lambda one: len(one[1])), strict=True
    ):
        some.sort(key=lambda pair: zlib.crc32(pair[0].encode()))
        chosen += some[: (num - len(chosen)) // left]
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument(
        "--source", help="language of the source; without it, the name of the model begins with it"
    )
    parser.add_argument("--show", type=int, default=0, help="print so many sentences that are not whole")
    arguments = parser.parse_args()
    translator = regard.load(arguments.model)
    source = arguments.model.split("-")[0] if arguments.source is None else arguments.source
    chosen = pairs(arguments.files, source, arguments.sentences)
    said = [one.text for one in translator.translate([pair[0] for pair in chosen])]
    rows = [(items(a), is_whole(a, text), text, b) for (a, b), text in zip(chosen, said, strict=True)]
    print("kind         sentences  whole  chrF of the rest")
    for kind in ("all", "address", "placeholder", "code", "number"):
        mine = [row for row in rows if kind == "all" or any(one == kind for one, _ in row[0])]
        if not mine:
            continue
        whole = 100 * sum(row[1] for row in mine) / len(mine)
        chrf = sacrebleu.corpus_chrf([rest(row[2]) for row in mine], [[rest(row[3]) for row in mine]]).score
        print(f"{kind:12} {len(mine):9} {whole:6.1f} {chrf:17.2f}")
    wrong = [(a, text) for (a, _), text in zip(chosen, said, strict=True) if not is_whole(a, text)]
    for a, text in wrong[:: max(1, len(wrong) // max(1, arguments.show))][: arguments.show]:
        print(f"  {a}\n    {text}")


if __name__ == "__main__":
    main()
