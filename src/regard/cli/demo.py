"""`regard demo`: what all this is, in a minute, on the models and the sample of the package."""

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from signal import SIGINT
from typing import TYPE_CHECKING, Any

from regard.cli.progress import progress
from regard.cli.settings import add_colour, read_colour
from regard.errors import MissingExtraError, ModelFileError
from regard.files import writing

if TYPE_CHECKING:
    from regard.draw.terminal import Colour
    from regard.sample import SamplePair
    from regard.trace.views import Trace

NAME = "demo"
HELP = "see everything in a minute: translations, attention, a model that learns"
DESCRIPTION = (
    "Translates with the bundled models and shows their attention, compares with a model without attention,\n"
    "trains a small model from nothing, and writes a page on which you can step through it all."
)
EXAMPLES = """examples:
  regard demo
  regard demo --out demo.html
"""

SHORT = "je suis étudiant"
SENTENCES = (
    SHORT,
    "l'accord sur la zone économique européenne a été signé en août 1992 .",
    "Jane s'est rendue en Afrique en septembre dernier, a apprécié la culture et a rencontré beaucoup de "
    "gens merveilleux; elle est revenue en parlant comment son voyage était merveilleux, et elle me tente "
    "d'y aller aussi.",
)
_MODEL, _BACK, _RECURRENT, _FIXED = "fr-en", "en-fr", "fr-en-rnn", "fr-en-fixed"
_MAX_WIDTH = 110
_SHOWN_WORDS = 9  # of the sentence that shows what was learnt
_ALIGNED = 0.3  # the error rate below which attention may be called an alignment

_NUM_TEST_PAIRS = 200
_NUM_WORDS, _MAX_WORDS = 500, 14  # few words in sentences long enough that guessing does not do: soon learnt
_LEARNING: Mapping[str, Mapping[str, Any]] = {
    "tokenizer": {"vocab_size": 1000},
    "batch": {"batch_tokens": 512},
    "model": {
        "hidden_size": 96,
        "embedding_size": 96,
        "dropout": 0.1,
        "word_dropout": 0.1,
        "attention": {"kind": "step-then-attend", "scorer": {"kind": "scaled-general"}},
    },
    "train": {"steps": 600, "valid_steps": 150, "optimiser": {"kind": "adam", "rate": 0.005}},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="file for the page (default: regard-demo.html, or the next free name)",
    )
    add_colour(parser)


def run(options: argparse.Namespace) -> None:
    """Show all of it, one part after the other."""
    from regard.starter import bundled
    from regard.trace.views import rendered

    missing = {_MODEL, _BACK, _RECURRENT, _FIXED} - bundled().keys()
    if missing:
        raise ModelFileError(
            f"this installation lacks the models that the demo shows: {', '.join(sorted(missing))}; "
            "recipes/starter.py makes them"
        )
    page = options.out or next(path for path in _names() if not path.exists())
    colour = read_colour(options.colour)
    with writing(page) as (stream,):  # a place that cannot be written shows now, and not in a minute
        traces = [*_translate(colour), *_compare()]
        try:
            traces.append(_learn(colour))
        except MissingExtraError as missing_extra:
            _print("", f"The third part is skipped: {missing_extra}.")
        stream.write(rendered(traces, "html"))
    _say_what_next(page)


def _translate(colour: "Colour") -> list["Trace"]:
    """Show the sentences of the papers and the courses."""
    from regard.trace.make import Tracer

    tracer = Tracer.open(_MODEL)
    size = f"{tracer.about.num_parameters / 1e6:.1f} million weights"
    _head(1, f"A Transformer of {size} translates, and shows where each word came from")
    traces = [tracer.trace(text, effects=text == SHORT) for text in SENTENCES]
    for trace in traces:
        _show(trace, colour)
    return traces


def _compare() -> list["Trace"]:
    """Show a short and the long sentence through a model that looks at them and through one that may not."""
    from regard.trace.make import Tracer

    _head(2, "A short and a long sentence with two small RNNs: what attention gains")
    traces = []
    for name, about in (
        (_FIXED, "Without attention, one vector for the whole sentence (Sutskever, Cho 2014):"),
        (_RECURRENT, "With attention, otherwise the same (Bahdanau 2015):"),
    ):
        tracer = Tracer.open(name)
        both = [tracer.trace(text) for text in (SHORT, SENTENCES[-1])]
        _print("", about, *_indented(f"→ {trace.target.text}" for trace in both))
        traces += both
    return traces


def _learn(colour: "Colour") -> "Trace":
    """Train a small model, and say how well it translates and aligns sentences it has not met."""
    from regard.alignment.attention import align_pairs
    from regard.alignment.gold import GoldLinks, score_links
    from regard.evaluation.scores import score
    from regard.trace.make import Tracer
    from regard.training import load_torch
    from regard.translate.translator import Translator

    load_torch()
    learnt, test = lesson()
    _head(3, f"A model learns from nothing, on {len(learnt):,} simple sentence pairs")
    with tempfile.TemporaryDirectory(prefix="regard-demo-") as folder:
        tracer = Tracer.open(_train(learnt, Path(folder)))
    translator = Translator.of(tracer.model)
    sources, references = [pair.source for pair in test], [pair.target for pair in test]
    said = [one.text for one in translator.translate(sources)]
    bleu = score(said, references, target_language="en")
    found = align_pairs(zip(sources, references, strict=True), translator, cut="words")
    gold = [GoldLinks(pair.links, pair.links) for pair in test]
    aer = score_links([one.links for one in found], gold).aer
    right = [source for source, text, pair in zip(sources, said, test, strict=True) if text == pair.target]
    trace = tracer.trace(min(right or sources, key=lambda text: abs(len(text.split()) - _SHOWN_WORDS)))
    _show(trace, colour)
    _print(
        "",
        f"It translates {len(right)} of {len(test)} new sentences word for word (BLEU {bleu.bleu:.1f})"
        + (", such as this one." if right else "."),
        f"Its alignment error rate is {aer:.2f}, against correct links that it never saw:",
        "its attention has become the alignment."
        if aer < _ALIGNED
        else "its attention is not an alignment yet.",
    )
    return trace


def lesson() -> tuple[list["SamplePair"], list["SamplePair"]]:
    """Return pairs of the sample's commonest words to learn, and others that are not among them."""
    from regard.sample import read_sample

    def words(pair: "SamplePair") -> list[str]:
        return pair.source.lower().split()

    short = [pair for pair in read_sample() if len(words(pair)) <= _MAX_WORDS]
    counted = Counter(word for pair in short for word in words(pair))
    common = {word for word, _ in counted.most_common(_NUM_WORDS)}
    pairs = list({pair.source: pair for pair in short if common.issuperset(words(pair))}.values())
    return pairs[_NUM_TEST_PAIRS:], pairs[:_NUM_TEST_PAIRS]


def _train(pairs: Sequence["SamplePair"], folder: Path) -> Path:
    """Train on the pairs and return the model file in the folder."""
    import torch

    from regard.sample import write_sample
    from regard.training.display import open_display
    from regard.training.request import CorpusFiles, TrainRequest
    from regard.training.run import train
    from regard.training.stopping import Stopped

    write_sample(folder, pairs)
    corpus = CorpusFiles((folder / "sample.fr", folder / "sample.en"))
    request = TrainRequest((corpus,), folder / "sample.regard", preset="regard-rnn", options=_LEARNING)
    display = open_display(sys.stdout)
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # two would wait for each other: so small a model does not keep them busy
    try:
        train(request, display, progress)
    except Stopped as stopped:  # nothing of the demo is kept, so there is nothing to go on with
        how = KeyboardInterrupt() if stopped.number == SIGINT else SystemExit(128 + stopped.number)
        raise how from stopped
    finally:
        torch.set_num_threads(num_threads)
        display.close()
    return request.out


def _say_what_next(page: Path) -> None:
    _print(
        "",
        f"Open {page} in a browser to see the same translations step by step and head by head. Then try",
        "",
        '  regard translate "Il fait beau aujourd\'hui."',
        f'  regard translate {_BACK} "My sister lives in Paris."',
        '  regard show "Il fait beau aujourd\'hui." --step 2',
        f'  regard show {_FIXED} {_RECURRENT} {_MODEL} "Il fait beau aujourd\'hui." --html look.html',
        "  regard train your.fr your.en --out mine.regard --time 30m",
    )


def _names() -> Iterable[Path]:
    yield Path("regard-demo.html")
    yield from (Path(f"regard-demo-{number}.html") for number in count(2))


def _head(number: int, text: str) -> None:
    _print(*[""] * (number > 1), f"{number}. {text}")


def _show(trace: "Trace", colour: "Colour") -> None:
    _print(
        "",
        *_indented([trace.source.text, f"→ {trace.target.text}"]),
        "",
        *trace.lines(_width(), colour, title=""),
    )
    if trace.target.flags:
        _print("", *_indented([f"flags: {', '.join(trace.target.flags)} (docs/translating.md)"]))


def _indented(texts: Iterable[str]) -> list[str]:
    from regard.draw.labels import folded, printable

    return [f"   {line}" for text in texts for line in folded(printable(text), _width() - 3)]


def _width() -> int:
    return max(40, min(shutil.get_terminal_size((100, 40)).columns, _MAX_WIDTH))


def _print(*lines: str) -> None:
    print("\n".join(lines), flush=True)
