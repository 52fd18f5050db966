"""Measure how many terms of a glossary are used, and what that does to the translations.

The files have sentences with terms marked `<g id="1">...</g>` on both sides, line by line (Hanneman & Dinu
2020). Each sentence is translated with a glossary of its own terms, and without.

    python benchmarks/glossary.py en-fr dev-glossary.en dev-glossary.fr
"""

import argparse
import os
import re
from dataclasses import replace
from pathlib import Path

import sacrebleu

import regard
from regard.search import terms as search_terms
from regard.terms.glossary import Glossary, count
from regard.translate.request import Request

_MARKED = re.compile(r'<g id="(\d+)">(.*?)</g>')
_TAG = re.compile(r"</?g[^>]*>")


def main() -> None:
    """Translate both ways and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--elsewhere", type=float, nargs="*", default=[search_terms.ELSEWHERE])
    parser.add_argument("--sentences", type=int, metavar="N", help="only the first N")
    options = parser.parse_args()
    translator = regard.load(options.model)
    sides = [
        path.read_text("utf-8").splitlines()[: options.sentences] for path in (options.source, options.target)
    ]
    marked = [[dict(_MARKED.findall(line)) for line in lines] for lines in sides]
    terms = [
        [(source[id], target[id]) for id in source if id in target]
        for source, target in zip(*marked, strict=True)
    ]
    sources, references = ([_TAG.sub("", line) for line in lines] for lines in sides)
    glossaries = [Glossary.of(dict(one)) for one in terms]
    plain = [Request(text) for text in sources]
    given = [replace(one, glossary=terms) for one, terms in zip(plain, glossaries, strict=True)]
    runs = [("without", 0.0, plain), *((f"with, {cost:g}", cost, given) for cost in options.elsewhere)]
    print(f"{len(sources)} sentences, {sum(map(len, terms))} terms")
    print(f"{'glossary':12} {'terms used':>11} {'BLEU':>6} {'chrF':>6} {'processor seconds':>18}")
    for name, cost, requests in runs:
        search_terms.ELSEWHERE = cost
        begun = _processor_seconds()
        texts = [one.text for one in translator.translate(requests)]
        seconds = _processor_seconds() - begun
        used = [
            count(target, text) > 0 for text, some in zip(texts, terms, strict=True) for _, target in some
        ]
        bleu, chrf = sacrebleu.corpus_bleu(texts, [references]), sacrebleu.corpus_chrf(texts, [references])
        share = 100 * sum(used) / len(used)
        print(f"{name:12} {share:9.1f} % {bleu.score:6.2f} {chrf.score:6.2f} {seconds:18.1f}", flush=True)


def _processor_seconds() -> float:
    """Return what this process and its children, once they have ended, have used."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    main()
