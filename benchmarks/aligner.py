"""How well and how fast the statistical aligner aligns, against alignments made by hand and beside others.

    python benchmarks/aligner.py alibi.fr-en [golden100.en-fr ...] --train europarl.fr europarl.en [--train ...] \\
        --pairs 300000 [--peer eflomal=PATH] [--reference]

A gold set is a folder `NAME.xx-yy` with the files `NAME.xx-yy.xx`, `.yy` and `.align`, words parted by spaces, counted
from 0. For each set everything is learnt anew from the training pairs and the text of the set, without its
links, as is the custom. Training text is split into words in the way, of two, that makes more of the words of
the gold text known: as `regard.text.words` does, or at every sign. All words count lower-cased.

`--peer` runs an aligner that is installed on the same words: eflomal (Östling & Tiedemann 2016), or fast_align (Dyer et al.
2013), built from its source. `--model FORWARD BACKWARD` aligns the same pairs by the attention of two models, which read the text
with the spaces of ordinary print. `--reference` runs fast_align's algorithm as written here, in NumPy and exactly (its
flags -d -o -v), which wants about 20 kB of memory a pair. Times are of the wall; `processor` is the time that
both processors worked for this program, which other programs on the machine do not lengthen as much.
"""

import argparse
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path

import numpy as np
import regex

from regard.alignment.gold import GoldLinks, aer_interval, read_gold, score_links
from regard.alignment.links import Link, from_pharaoh, symmetrise
from regard.alignment.statistical.learn import learn_both
from regard.alignment.statistical.pairs import PairFile, blocks
from regard.corpus.read import open_corpus
from regard.text.words import words

SYMMETRISATIONS = ("intersection", "union", "grow-diag", "grow-diag-final-and")
SIGNS = regex.compile(r"[\p{L}\p{M}\p{N}]+|[^\s\p{L}\p{M}\p{N}]")
Pairs = list[tuple[list[str], list[str]]]


@lru_cache(1 << 18)
def split_as_words(token: str) -> tuple[str, ...]:
    return tuple(token[start:end] for start, end in words(token))


@lru_cache(1 << 18)
def split_at_signs(token: str) -> tuple[str, ...]:
    return tuple(SIGNS.findall(token))


def clean(text: str) -> list[str]:
    return text.replace("’", "'").lower().split()


def training_pairs(
    trains: list[list[Path]], num_pairs: int, split: Callable[[str], tuple[str, ...]]
) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the first pairs of each corpus; no word has white space in it, so words can be split one by one."""
    for paths in trains:
        for pair in islice(open_corpus(paths).pairs(), num_pairs):
            sides = (
                [part for token in clean(side) for part in split(token)]
                for side in (pair.source, pair.target)
            )
            yield next(sides), next(sides)


def best_split(trains: list[list[Path]], gold_words: list[str]) -> Callable[[str], tuple[str, ...]]:
    """Return the way to split words that makes more of the gold words known."""
    known = {}
    for split in (split_as_words, split_at_signs):
        seen = {word for pair in training_pairs(trains, 5000, split) for side in pair for word in side}
        known[split] = sum(word in seen for word in gold_words) / len(gold_words)
    best = max(known, key=lambda split: known[split])
    print(f"words: {best.__name__}, {known[best]:.1%} of the gold words known ({min(known.values()):.1%} the other way)")  # fmt: skip
    return best


def show(name: str, found: list[frozenset[Link]], gold: list[GoldLinks]) -> None:
    score = score_links(found, gold)
    low, high = aer_interval(found, gold)
    print(
        f"  {name:32} {100 * score.aer:5.1f} [{100 * low:4.1f}, {100 * high:4.1f}] {100 * score.precision:9.1f} {100 * score.recall:6.1f} {score.num_links:7}"
    )


def show_both(
    name: str, forward: list[frozenset[Link]], backward: list[frozenset[Link]], gold: list[GoldLinks]
) -> None:
    show(f"{name} forward", forward, gold)
    show(f"{name} backward", backward, gold)
    for how in SYMMETRISATIONS:
        show(f"{name} {how}", [symmetrise(*both, how) for both in zip(forward, backward, strict=True)], gold)  # type: ignore[arg-type]


class Clock:
    """Wall and processor time since it was made."""

    def __init__(self) -> None:
        self.wall, self.work = time.perf_counter(), self.processor()

    @staticmethod
    def processor() -> float:
        """Return the time that processors worked for this program and for what it started."""
        return sum(
            usage.ru_utime + usage.ru_stime
            for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        )

    def __str__(self) -> str:
        return f"{time.perf_counter() - self.wall:.1f} s (processor {self.processor() - self.work:.1f} s)"


def peak_megabytes() -> str:
    own = next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return f"VmHWM {int(own.split()[1]) / 1024:.0f} MB, largest child {child / 1024:.0f} MB (tables shared)"


def run_peer(name: str, path: str, pairs: Iterator[tuple[list[str], list[str]]], num_gold: int) -> list:
    """Return the links of both directions of the gold sentences, which come first."""
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        source_file, target_file, both_file = (folder / key for key in ("source", "target", "both"))
        outputs = [folder / "forward", folder / "backward"]
        with source_file.open("w") as sources, target_file.open("w") as targets, both_file.open("w") as both:
            for source, target in pairs:
                if source and target:  # fast_align refuses empty lines; no gold sentence is one
                    print(*source, file=sources)
                    print(*target, file=targets)
                    print(*source, "|||", *target, file=both)
        clock = Clock()
        if name == "eflomal":
            command = f"{path} -s {source_file} -t {target_file} -f {outputs[0]} -r {outputs[1]} --overwrite"
            subprocess.run(command.split(), check=True)
        else:
            running = []
            for output, flags in zip(outputs, (["-dov"], ["-dov", "-r"]), strict=True):
                with output.open("w") as out:
                    command = [*path.split(), "-i", str(both_file), *flags]
                    running.append(subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL))
            assert not any(process.wait() for process in running)
        print(f"  {name}: {clock}")
        return [
            [from_pharaoh(line) for line in output.read_text().splitlines()[:num_gold]] for output in outputs
        ]


def digamma(x: np.ndarray) -> np.ndarray:
    x, shift = x.astype(np.float64), 0.0
    for _ in range(6):
        shift, x = shift + 1 / x, x + 1
    square = 1 / (x * x)
    return np.log(x) - 0.5 / x - square * (1 / 12 - square * (1 / 120 - square / 252)) - shift


def fast_align(pairs: PairFile, flipped: bool, num_gold: int) -> list[frozenset[Link]]:
    """Return what fast_align -d -o -v finds in the first pairs (Dyer et al. 2013): five rounds, no more.

    Unseen pairs have 1e-9 as there, alpha is 0.01, p0 0.08, the tension starts at 4 and from the second round on
    takes eight steps of 20 times its gradient, within 0.1 and 14.
    """
    alpha, p0, tension = 0.01, 0.08, 4.0
    all_blocks, gold_places = [], {}
    first_pair = 0
    for source, target in pairs:
        for block in blocks(*((target, source) if flipped else (source, target))):
            for row, pair in enumerate(block.pairs_B.tolist()):
                if first_pair + pair < num_gold:
                    gold_places[len(all_blocks), row] = first_pair + pair
            all_blocks.append(block)
        first_pair += len(source.lengths_B)
    num_said = len(pairs.source_words if flipped else pairs.target_words)
    # The empty word is number 0, given words follow.
    keys = [
        np.concatenate(
            [block.said_M[:, None], (1 + block.given_BS[block.row_M]) * num_said + block.said_M[:, None]],
            axis=1,
        )
        for block in all_blocks
    ]
    types, flat = np.unique(np.concatenate([key.ravel() for key in keys]), return_inverse=True)
    flat = flat.astype(np.int32)
    ends = np.cumsum([key.size for key in keys])
    places = [flat[end - key.size : end].reshape(key.shape) for key, end in zip(keys, ends, strict=True)]
    del keys
    of_given = types // num_said
    shapes: dict[tuple[int, int], int] = {}
    distances = []  # |i/n - j/m| of each cell
    off_by_one = []  # the same with j from 0, from which fast_align counts it where it weighs the tension
    for block in all_blocks:
        steps_B = np.bincount(block.row_M)
        time_M = np.repeat(np.arange(len(block.starts) - 1), np.diff(block.starts))
        num_given = block.given_BS.shape[1]
        where_S = (1 + np.arange(num_given)) / num_given
        distances.append(np.abs(((1 + time_M) / steps_B[block.row_M])[:, None] - where_S).astype(np.float32))
        off_by_one.append(np.abs((time_M / steps_B[block.row_M])[:, None] - where_S).astype(np.float32))
        for steps in steps_B.tolist():
            shapes[num_given, steps] = shapes.get((num_given, steps), 0) + 1
    num_words = sum(steps * count for (_, steps), count in shapes.items())
    probs = np.full(len(types), 1e-9)
    found: list[frozenset[Link]] = [frozenset()] * num_gold
    for number in range(5):
        counts, feature = np.zeros(len(types)), 0.0
        for index, (block, place, distance) in enumerate(zip(all_blocks, places, distances, strict=True)):
            prior = np.exp(-tension * distance)
            prior *= (1 - p0) / prior.sum(axis=1, keepdims=True)
            joint = probs[place]
            joint[:, 0] *= p0
            joint[:, 1:] *= prior
            if number == 4:
                best = joint.argmax(axis=1) - 1
                for row in range(len(block.pairs_B)):
                    if (index, row) in gold_places:
                        links = ((int(best[place]), said) for said, place in enumerate(block.places(row)))
                        found[gold_places[index, row]] = frozenset(
                            (said, given) if flipped else (given, said) for given, said in links if given >= 0
                        )
                continue
            joint /= joint.sum(axis=1, keepdims=True)
            np.add.at(counts, place.ravel(), joint.ravel())
            feature -= float((off_by_one[index] * joint[:, 1:]).sum())
        if number == 4:
            break
        if number > 0:
            for _ in range(8):
                model = 0.0
                for (num_given, steps), count in shapes.items():
                    distance = np.abs((1 + np.arange(steps))[:, None] / steps - (1 + np.arange(num_given)) / num_given)  # fmt: skip
                    weight = np.exp(-tension * distance)
                    model -= count * float(((weight * distance).sum(axis=1) / weight.sum(axis=1)).sum())
                tension = min(14.0, max(0.1, tension + 20 * (feature - model) / num_words))
        totals = np.bincount(of_given, counts + alpha)
        probs = np.exp(digamma(counts + alpha) - digamma(np.maximum(totals, 1e-9))[of_given])
        probs = np.maximum(probs, 1e-300)
    return found


def printed(words: list[str]) -> tuple[str, list[tuple[int, int]]]:
    """Return the words as print would join them, and which characters each of them is."""
    text, spans, open_quote = "", [], False
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        closes = word in (".", ",", ")", "]", "...") or (word == '"' and open_quote) or word.startswith("'")
        opens = before.endswith(("'", "’", "(", "[")) or (before == '"' and open_quote) or before == ""
        open_quote ^= word == '"'
        text += "" if opens or closes else " "
        spans.append((len(text), len(text) + len(word)))
        text += word
    return text, spans


def by_attention(models: list[Path], pairs: Pairs, gold: list[GoldLinks]) -> None:
    """Show how well the attention of two models aligns; the words of the models become those of the gold text."""
    from regard.alignment.attention import align_pairs
    from regard.translate.translator import Translator

    forward, backward = map(Translator.open, models)
    made = [[printed(words) for words in pair] for pair in pairs]
    texts = [(source[0], target[0]) for source, target in made]

    def told(found) -> list[frozenset[Link]]:
        links = []
        for one, sides in zip(found, made, strict=True):
            source, target = (
                [
                    [place for place, (c, d) in enumerate(spans) if c < b and a < d]
                    for a, b in (one.source_words, one.target_words)[side]
                ]
                for side, (_, spans) in enumerate(sides)
            )
            links.append(frozenset((a, b) for s, t in one.links for a in source[s] for b in target[t]))
        return links

    there = told(align_pairs(texts, forward, cut="words"))
    turned = [(b, a) for a, b in texts]
    made = [pair[::-1] for pair in made]
    back = [frozenset((b, a) for a, b in links) for links in told(align_pairs(turned, backward, cut="words"))]
    made = [pair[::-1] for pair in made]
    show_both("attention", there, back, gold)
    show("attention agreement (the usual)", told(align_pairs(texts, forward, backward, cut="words")), gold)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("gold", nargs="+", type=Path)
    parser.add_argument("--train", nargs=2, type=Path, action="append", required=True, help="source, target")
    parser.add_argument("--pairs", type=int, default=20_000, help="of each training corpus")
    parser.add_argument("--peer", action="append", default=[], help="eflomal=PATH or fast_align=PATH")
    parser.add_argument("--reference", action="store_true", help="fast_align's algorithm in NumPy")
    parser.add_argument("--model", nargs=2, type=Path, help="models that translate there and back")
    arguments = parser.parse_args()
    languages = [path.name.removesuffix(".gz").rpartition(".")[2] for path in arguments.train[0]]
    for folder in arguments.gold:
        sides = [(folder / f"{folder.name}.{language}").read_text("utf-8").splitlines() for language in languages]  # fmt: skip
        cased: Pairs = list(
            zip(*([line.replace("’", "'").split() for line in side] for side in sides), strict=True)
        )  # type: ignore[arg-type]
        gold_pairs: Pairs = list(zip(*([clean(line) for line in side] for side in sides), strict=True))  # type: ignore[arg-type]
        lengths = [(len(source), len(target)) for source, target in gold_pairs]
        straight = folder.name.endswith("-".join(languages))
        gold = read_gold(
            folder / f"{folder.name}.align",
            lengths=lengths if straight else [(target, source) for source, target in lengths],
        )
        gold = gold if straight else [one.flipped() for one in gold]
        print(f"{folder.name}: {len(gold)} sentences, {arguments.pairs:,} pairs of each corpus")
        split = best_split(arguments.train, [word for pair in gold_pairs for side in pair for word in side])

        def corpus(gold_pairs: Pairs = gold_pairs, split=split) -> Iterator[tuple[list[str], list[str]]]:
            return chain(gold_pairs, training_pairs(arguments.train, arguments.pairs, split))

        clock, read = Clock(), ""

        def tell(what: str, done: int, of: int, clock: Clock = clock) -> None:
            nonlocal read
            if what == "learning":
                read = read or f"reading, splitting and numbering {clock}; "

        aligner = learn_both(corpus(), on_progress=tell)
        print(f"  regard: {read}all {clock}; {peak_megabytes()}; not learnt from: {dict(aligner.skipped)}")
        print(f"  {'':32}   AER  95 % of it   precision recall   links")
        show_both(
            "regard",
            list(aligner.forward.align_many(gold_pairs)),
            list(aligner.backward.align_many(gold_pairs)),
            gold,
        )
        show("regard agreement (the usual)", list(aligner.align_many(gold_pairs)), gold)
        del aligner
        if arguments.model:
            by_attention(arguments.model, cased, gold)
        for peer in arguments.peer:
            name, _, path = peer.partition("=")
            show_both(name, *run_peer(name, path, corpus(), len(gold)), gold)
        if arguments.reference:
            with tempfile.TemporaryDirectory() as temporary:
                pairs = PairFile(Path(temporary))
                pairs.fill(corpus())
                clock = Clock()
                both = [fast_align(pairs, flipped, len(gold)) for flipped in (False, True)]
                print(f"  fast_align as written here: {clock}")
            show_both("fast_align here", *both, gold)


if __name__ == "__main__":
    main()
