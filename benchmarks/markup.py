"""How well are the tags of a text carried into its translation?

    python benchmarks/markup.py en-fr ../shared/data/markup/dev-eurlex.en ../shared/data/markup/dev-eurlex.fr

1. Each source line is translated with its tags and without them. Printed are the share of lines whose
   translation has exactly the tags of its source and is well-formed, and BLEU without tags for both.
2. The tags of each source line are put into its reference translation, aligned by the model, and compared with
   the tags that the reference has: the share of tags at the same place, by alignment and by relative position.
"""

import argparse
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.parsers import expat

from sacrebleu.metrics import BLEU

import regard
from regard.text.markup import read, tokens
from regard.translate.markup import with_tags
from regard.translate.request import Request
from regard.translate.translator import Translator

Places = Counter[tuple[str, int]]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--lines", type=int, default=None)
    parser.add_argument("--only", choices=["tags", "places"], default=None)
    asked = parser.parse_args()
    translator = regard.load(asked.model)
    sources = asked.source.read_text("utf-8").splitlines()[: asked.lines]
    targets = asked.target.read_text("utf-8").splitlines()[: asked.lines]
    if asked.only != "places":
        whole_tags(translator, sources, targets)
    if asked.only != "tags":
        same_places(translator, sources, targets)


def whole_tags(translator: Translator, sources: list[str], targets: list[str]) -> None:
    """Print how many translations have all their tags, and BLEU with and without them."""
    marked = translator.translate([Request(line, markup="xml") for line in sources])
    plain = translator.translate([stripped(line) for line in sources])
    right = sum(
        tags_of(line) == tags_of(str(one.marked)) and is_well_formed(str(one.marked))
        for line, one in zip(sources, marked, strict=True)
    )
    print(f"{right} of {len(sources)} lines have exactly the tags of their source and are well-formed")
    references = [stripped(line) for line in targets]
    for name, found in (("with tags", [stripped(str(one.marked)) for one in marked]), ("without", plain)):
        score = BLEU().corpus_score(list(map(str, found)), [references]).score
        print(f"BLEU of the text, translated {name}: {score:.2f}")


def same_places(translator: Translator, sources: list[str], targets: list[str]) -> None:
    """Print how many tags are put where the reference has them."""
    pairs = [
        (source, target)
        for source, target in zip(sources, targets, strict=True)
        if tags_of(source) == tags_of(target) and tags_of(source) and stripped(target) and stripped(source)
    ]
    texts = [read(source, "xml") for source, _ in pairs]
    forced = translator.force([one.text for one in texts], [stripped(target) for _, target in pairs])
    right: Counter[tuple[str, bool]] = Counter()
    total: Counter[bool] = Counter()
    for (_, target), marked, one in zip(pairs, texts, forced, strict=True):
        wanted = places(target)
        last = len("".join(stripped(target).split()))
        bare = [replace(part, attention_TS=part.attention_TS[:, :0]) for part in one.parts]
        found = {"alignment": one, "relative position": replace(one, parts=tuple(bare))}
        for tag, number in wanted.items():
            total[0 < tag[1] < last] += number
        for way, translation in found.items():
            for tag, number in (wanted & places(str(with_tags(marked, translation).marked))).items():
                right[way, 0 < tag[1] < last] += number
    print(f"{len(pairs)} pairs with the same tags on both sides; at the place of the reference:")
    for is_inner, where in ((True, "within the text"), (False, "at its ends")):
        for way in ("alignment", "relative position"):
            share = right[way, is_inner] / max(1, total[is_inner])
            print(f"  {total[is_inner]} tags {where}, by {way}: {100 * share:.1f} %")


def places(text: str) -> Places:
    """Return the tags of a text, each with the number of visible characters before it."""
    found: Places = Counter()
    size = 0
    for token in tokens(text, "xml"):
        if token.kind == "text":
            size += len("".join(token.value.split()))
        else:
            found[token.written, size] += 1
    return found


def tags_of(text: str) -> Counter[str]:
    """Return how often each tag occurs."""
    return Counter(token.written for token in tokens(text, "xml") if token.kind != "text")


def stripped(text: str) -> str:
    """Return the text without its tags, as the reader of mark-up gives it."""
    return " ".join(read(text, "xml").text.split())


def is_well_formed(text: str) -> bool:
    """Tell whether an XML parser takes the text."""
    try:
        expat.ParserCreate().Parse(f"<all>{text}</all>".encode(), True)
    except expat.ExpatError:
        return False
    return True


if __name__ == "__main__":
    main()
