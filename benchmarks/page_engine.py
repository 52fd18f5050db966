"""Does the engine inside the page say what Python says? On real text, for the bundled models, run by Node.

    python benchmarks/page_engine.py ../shared/data [--models fr-en-rnn,fr-en] [--lines 10000] [--sentences 500]

Two comparisons, each with every one of these models:

- the tokenizer: ids and the characters each piece covers, on so many lines of English, French, German and
  Korean, a quarter each, and as many lines again of fuzzed Unicode as a tenth of that;
- the search, as the model searches by default: the pieces of the translation of so many sentences of newstest2013
  (FLORES-200 for Korean). Where they differ, Python scores the page's translation: a gap below
  1e-4 is rounding, for the two searches add up the same numbers in another order.
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from javascript import Node
from test_engine import fuzzed

from regard.starter import bundled
from regard.text.normalize import trace_normalize
from regard.trace.live import facts
from regard.trace.make import Tracer
from regard.trace.views import Trace

LANGUAGES = {
    "en": ("testsets/newstest2013.en", "testsets/flores200.devtest.en", "tatoeba/fr-en.test.en"),
    "fr": ("testsets/newstest2013.fr", "testsets/flores200.devtest.fr", "tatoeba/fr-en.test.fr"),
    "de": ("multi30k/val.de", "multi30k/test_2016_flickr.de"),
    "ko": ("testsets/flores200.devtest.ko", "ko-en/bible.test.ko", "tatoeba/ko-en.train.ko"),
}
ROUNDING = 1e-4
AT_ONCE = 10


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--models", default=",".join(bundled()))
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--sentences", type=int, default=500)
    options = parser.parse_args()
    quarter = options.lines // len(LANGUAGES)
    lines = [line for language in LANGUAGES for line in islice(texts(options.data, language), quarter)]
    # Half a character cannot be written to a file: a browser never sees one.
    fuzz = [
        text for text in fuzzed(options.lines // 10) if not any("\ud800" <= one <= "\udfff" for one in text)
    ]
    random.Random(1).shuffle(lines)
    for name in options.models.split(","):
        tracer = Tracer.open(name)
        with tempfile.TemporaryDirectory() as folder:
            node = Node(Path(folder))
            named = {"model": str(bundled()[name]), "facts": facts(tracer.loaded)}
            same = sum(same_pieces(node, tracer, named, lines + fuzz))
            print(f"{name:12} tokenizer: {same:,} of {len(lines + fuzz):,} lines alike", flush=True)
            source = "ko" if name.startswith("ko") else name[:2]
            sentences = list(islice(sentences_of(options.data, source), options.sentences))
            gaps = list(differing(node, tracer, named, sentences))
            alike, rounding = gaps.count(None), sum(gap is not None and abs(gap) < ROUNDING for gap in gaps)
            print(
                f"{name:12} search: {alike} of {len(gaps)} sentences piece for piece, {rounding} within rounding, "
                f"largest gap {max((abs(gap) for gap in gaps if gap is not None), default=0):.2g}",
                flush=True,
            )


def texts(data: Path, language: str) -> Iterator[str]:
    for file in LANGUAGES[language]:
        yield from (data / file).read_text("utf-8").splitlines()


def sentences_of(data: Path, language: str) -> Iterator[str]:
    return iter((data / LANGUAGES[language][0]).read_text("utf-8").splitlines())


def same_pieces(
    node: Node, tracer: Tracer, named: Mapping[str, object], lines: Sequence[str]
) -> Iterator[bool]:
    """Tell for each line whether the ids and the places of its pieces are Python's."""
    source = tracer.model.tokenizers.source
    (answers,) = node.ask({"kind": "encode", "texts": list(lines), **named})
    for text, answer in zip(lines, answers, strict=True):
        encoded = source.encode(trace_normalize(text, fold_quotes=True))
        yield answer["ids"] == list(encoded.ids) and answer["spans"] == [list(span) for span in encoded.spans]


def differing(
    node: Node, tracer: Tracer, named: Mapping[str, object], sentences: Sequence[str]
) -> Iterator[float | None]:
    """Yield None for each sentence with Python's pieces, else how much better Python's translation scores."""
    for first in range(0, len(sentences), AT_ONCE):
        some = sentences[first : first + AT_ONCE]
        answers = node.ask(*({"kind": "trace", "request": {"text": text}, **named} for text in some))
        for text, answer in zip(some, answers, strict=True):
            found, right = Trace.model_validate_json(answer), tracer.trace(text)
            if [one.id for one in found.target.pieces] == [one.id for one in right.target.pieces]:
                yield None
                continue
            forced = tracer.trace(text, force=found.target.text)
            yield (right.target.log_prob or 0) - (forced.target.log_prob or 0)


if __name__ == "__main__":
    main()
