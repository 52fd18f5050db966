"""Which attention of a model aligns: what its links tell, beside their error against alignments made by hand.

    python benchmarks/readings.py fr-en.regard train.fr train.en gold.fr gold.en gold.align [--reverse]

The first files are some of what the model was trained on; the gold alignment counts words from 0, `1-2` is sure, `1p2`
possible, the first number is of the first gold file (`--reverse`: of the second). Texts are those of the files,
already split into words. AER is that of Och & Ney 2003; links as `Translation.links` has them. If the model has a
posterior attention, the last line says what it costs to compute it while 200 of the sentences are translated.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import regard
from regard.alignment.reading import AFTERWARDS, Reading
from regard.contract import Batch, Ragged, make_batch
from regard.corpus.read import open_corpus
from regard.modelfile import load_model
from regard.training.reading import choose_reading, rank_readings
from regard.translate.translator import IN_THIS_THREAD, Translator

NUM_TOKENS = 40_000


def batches(translator: Translator, paths: list[Path]) -> Iterator[Batch]:
    """Yield the first pairs of a corpus, as many as are looked at in training."""
    tokenizers, num_tokens, pairs = translator.model.tokenizers, 0, []
    for pair in open_corpus(paths, "fr", "en").pairs():
        source = tokenizers.source.encode_batch([tokenizers.clean_source(pair.source)])[0]
        target = tokenizers.target.encode_batch([tokenizers.clean_target(pair.target)])[0]
        if 0 < len(source) <= 100 and 0 < len(target) <= 100:
            pairs.append((source, target))
            num_tokens += len(target)
        if num_tokens >= NUM_TOKENS:
            break
    pairs.sort(key=lambda pair: len(pair[1]))
    for first in range(0, len(pairs), 64):
        sources, targets = zip(*pairs[first : first + 64], strict=True)
        yield make_batch(Ragged.of(list(sources)), Ragged.of(list(targets)), np.arange(len(sources)))


def read_gold(path: Path, reverse: bool) -> list[tuple[set[tuple[int, int]], set[tuple[int, int]]]]:
    """Return the sure and the possible links of each sentence; what is sure is also possible."""
    gold = []
    for line in path.read_text("utf-8").splitlines():
        sure, possible = set(), set()
        for field in line.split():
            left, right = map(int, field.replace("p", "-").split("-"))
            link = (right, left) if reverse else (left, right)
            possible.add(link)
            if "-" in field:
                sure.add(link)
        gold.append((sure, possible))
    return gold


def error_rate(
    translator: Translator, reading: Reading, sources: list[str], targets: list[str], gold: list
) -> float:
    """Return the alignment error rate of a reading, words being what stands between spaces."""
    searcher = replace(translator.model.searcher, reading=reading)
    translator = Translator(replace(translator.model, searcher=searcher, reading=reading))
    hits_sure = hits_possible = num_links = num_sure = 0
    for one, source, target, (sure, possible) in zip(
        translator.force(sources, targets), sources, targets, gold, strict=True
    ):
        links = {
            (place_of(source, one.source_words[a][0]), place_of(target, one.words[b][0]))
            for a, b in one.links
        }
        hits_sure, hits_possible = hits_sure + len(links & sure), hits_possible + len(links & possible)
        num_links, num_sure = num_links + len(links), num_sure + len(sure)
    return 1 - (hits_sure + hits_possible) / (num_links + num_sure)


def price(path: Path, texts: list[str], beam_size: int) -> float:
    """Return the processor time with posterior attention over that without it, median of five rounds in turn."""
    model = load_model(path)
    two = [
        Translator.of(replace(model, reading=reading), pool=IN_THIS_THREAD)
        for reading in (Reading(0, None, False), AFTERWARDS)
    ]
    ratios = []
    for _ in range(5):
        spent = []
        for translator in two:
            start = time.process_time()
            translator.translate(texts, beam_size=beam_size, guard=False)
            spent.append(time.process_time() - start)
        ratios.append(spent[1] / spent[0])
    return statistics.median(ratios)


def place_of(text: str, character: int) -> int:
    """Return the number of the word, between spaces, in which a character stands."""
    return len(text[: character + 1].split()) - 1


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("train", nargs=2, type=Path)
    parser.add_argument("gold", nargs=3, type=Path)
    parser.add_argument("--reverse", action="store_true")
    parser.add_argument("--max-words", type=int, default=1000, help="leave longer gold sentences out")
    arguments = parser.parse_args()
    translator = regard.load(arguments.model)
    ranked = rank_readings(translator.model.searcher.engine, batches(translator, arguments.train))
    sources, targets = (path.read_text("utf-8").splitlines() for path in arguments.gold[:2])
    gold = read_gold(arguments.gold[2], arguments.reverse)
    kept = [
        n
        for n, sides in enumerate(zip(sources, targets, strict=True))
        if all(0 < len(side.split()) <= arguments.max_words for side in sides)
    ]
    sources, targets, gold = ([side[n] for n in kept] for side in (sources, targets, gold))
    print(f"{len(kept)} gold sentences")
    print("layer head  step   bits a piece   AER")
    rows = []
    for reading, bits in ranked:
        rows.append((bits, error_rate(translator, reading, sources, targets, gold)))
        head = "mean" if reading.head is None else str(reading.head + 1)
        print(
            f"{reading.layer + 1:5} {head:>4}  {'reads' if reading.shifted else 'says '}  {bits:12.2f}   {rows[-1][1]:.3f}"
            + ("  posterior attention" if reading.posterior else "")
        )
    bits, errors = np.array(rows).T
    print(f"chosen: AER {errors[0]:.3f}; the best of all readings {errors.min():.3f}; ", end="")
    ranks = np.corrcoef(bits.argsort().argsort(), errors.argsort().argsort())[0, 1]
    print(f"rank correlation of bits and AER {ranks:.2f}")
    if any(reading.posterior for reading, _ in ranked):
        for beam_size in (1, 5):
            print(
                f"beam {beam_size}: {price(arguments.model, sources[:200], beam_size):.2f} of the time without"
            )
    assert (
        choose_reading(translator.model.searcher.engine, batches(translator, arguments.train)) == ranked[0][0]
    )


if __name__ == "__main__":
    main()
