"""What becomes of names, decimal marks and quotation marks?

    python benchmarks/names.py fr-en newstest2013.fr newstest2013.en [--out said.en]

A name is a word with a capital, not at the beginning of a sentence, that stands alike in source and reference; it
survives if the translation has it as often. A decimal number counts if the reference writes it in the way of the target
language, and is right if the translation does so too. Quotation marks of a translation are paired if as many open as
close; sentences count whose source has a pair. Nothing is taken from the package but the translator, so that versions of
it can be compared.
"""

import argparse
import re
from collections import Counter
from pathlib import Path

import sacrebleu

import regard

NAME = re.compile(r"(?<![.!?:\"«“] )(?<!^)\b[A-ZÀ-Þ][\w]*[a-zà-ÿ][\w]*\b")
NUMBER = re.compile(
    r"(?<![\w.,])\d+(?:[.,]\d+)+(?![\w.,]*\d)|(?<![\w.,])\d{1,3}(?:[  ]\d{3})+(?:,\d+)?(?!\d)"
)
QUOTES = re.compile(r"[\"“”«»]")


def is_paired(text: str) -> bool:
    """Tell whether as many quotation marks open as close."""
    marks = Counter(QUOTES.findall(text))
    return marks["«"] == marks["»"] and marks["“"] == marks["”"] and marks['"'] % 2 == 0


def numbers(text: str) -> Counter[str]:
    """Return the numbers of a text that have a decimal mark or thousands apart, as they are written."""
    return Counter(re.sub(r"\s", " ", one) for one in NUMBER.findall(text))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--sentences", type=int)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    sources, references = (
        path.read_text("utf-8").splitlines()[: arguments.sentences]
        for path in (arguments.source, arguments.reference)
    )
    translations = regard.load(arguments.model).translate(sources)
    said = [one.text for one in translations]
    if arguments.out:
        arguments.out.write_text("".join(f"{text}\n" for text in said), "utf-8")
    bleu, chrf = sacrebleu.corpus_bleu(said, [references]), sacrebleu.corpus_chrf(said, [references])
    print(f"BLEU {bleu.score:.2f}  chrF {chrf.score:.2f}")
    rows = list(zip(sources, references, said, strict=True))
    num_names = num_kept = num_numbers = num_right = num_quoted = num_paired = 0
    for source, reference, text in rows:
        names = Counter(NAME.findall(source)) & Counter(re.findall(r"\w+", reference))
        num_names += names.total()
        num_kept += (names & Counter(re.findall(r"\w+", text))).total()
        wanted = numbers(reference) - numbers(source)
        digits = Counter(re.sub(r"\D", "", one) for one in numbers(source))
        wanted = Counter({one: num for one, num in wanted.items() if digits[re.sub(r"\D", "", one)]})
        num_numbers += wanted.total()
        num_right += (wanted & numbers(text)).total()
        if QUOTES.search(source) and is_paired(source):
            num_quoted += 1
            num_paired += is_paired(text)
    for what, part, whole in (
        ("names that survive", num_kept, num_names),
        ("numbers written as in the reference", num_right, num_numbers),
        ("sentences with paired quotation marks", num_paired, num_quoted),
    ):
        print(f"{what}: {part:,} of {whole:,} ({100 * part / max(1, whole):.1f} percent)")
    flags = Counter(flag for one in translations for flag in one.flags)
    print("flags:", ", ".join(f"{flag} {num}" for flag, num in flags.most_common()))


if __name__ == "__main__":
    main()
