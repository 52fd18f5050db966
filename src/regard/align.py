"""Word alignments: from attention to links, from two directions to one, and how good against gold."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from regard.contract import Floats
from regard.errors import CorpusError
from regard.text.words import PieceWords

Link = tuple[int, int]  # (source word, target word), both counted from 0
Symmetrisation = Literal["intersection", "union", "grow-diag", "grow-diag-final-and"]

# In this order: first beside and above, then corner to corner (Koehn et al. 2005, figure 1).
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
_GOLD_FIELD = re.compile(r"([0-9]{1,9})([-p?])([0-9]{1,9})")
_GOLD_ROW = re.compile(r"([0-9]{1,9})\s+([0-9]{1,9})\s+([0-9]{1,9})(?:\s+([SP]))?")
_MAX_GOLD_SENTENCES = 1_000_000


@dataclass(frozen=True, slots=True)
class Reading:
    """Which attention of a model tells which source piece became which.

    That of one layer (counted from the last if negative), of one of its heads or the mean of all; and if
    `shifted`, at the step that reads a piece instead of the one that says it (SHIFT-ATT, Chen et al. 2020).
    """

    layer: int
    head: int | None
    shifted: bool

    def look(self, attention_RLNS: Floats) -> Floats:
        """Return the chosen weights of each row (R, S), none if the model has no attention."""
        num_rows, num_layers = attention_RLNS.shape[:2]
        if not num_layers:
            return np.empty((num_rows, 0), np.float32)
        layer = self.layer if self.layer >= 0 else max(num_layers + self.layer, 0)
        heads_RNS = attention_RLNS[:, layer]
        look_RS: Floats = heads_RNS.mean(axis=1) if self.head is None else heads_RNS[:, self.head]
        return look_RS

    def align(self, looks_TS: Floats) -> Floats:
        """Return for each piece said where it came from, given where each step looked.

        The last piece is read by no step and keeps its own.
        """
        return np.concatenate([looks_TS[1:], looks_TS[-1:]]) if self.shifted else looks_TS


AGREEMENT = 0.25
"""The geometric mean of what both directions give to a pair of words, from which they are linked."""

USUAL_READING = Reading(-2, None, False)
"""Where nothing was learnt about a model: the last layer but one, the mean of its heads. In Transformers its
weights align best (Garg et al. 2019, section 4.1)."""


@dataclass(frozen=True, slots=True)
class WordWeights:
    """How much of each target word came from each source word, and how much from no word (mostly `</s>`)."""

    words_TS: Floats
    elsewhere_T: Floats


def to_words(attention_TS: Floats, source: PieceWords, target: PieceWords) -> WordWeights:
    """Return the weights from words to words: the sum over a source word's pieces, the mean over a target's.

    A source piece that touches two words gives half of its weight to each.
    """
    num_words = len(source.pieces_of_word)
    gather_SX: Floats = np.zeros((attention_TS.shape[1], num_words + 1), np.float32)
    for piece in range(len(gather_SX)):
        touched = source.words_of_piece[piece] or (num_words,)
        for word in touched:
            gather_SX[piece, word] = 1 / len(touched)
    mean_XT: Floats = np.zeros((len(target.pieces_of_word), len(attention_TS)), np.float32)
    for word, pieces in enumerate(target.pieces_of_word):
        for piece in pieces:
            mean_XT[word, piece] = 1 / len(pieces)
    weights_TX: Floats = np.matmul(np.matmul(mean_XT, attention_TS), gather_SX)
    return WordWeights(weights_TX[:, :num_words], weights_TX[:, num_words])


def entropy_of_looks(weights_TS: Floats) -> Floats:
    """Return how scattered each row of weights is, in nats: 0 is one place, whatever the row adds up to.

    Weights of a local window (Luong et al. 2015, eq. 10) add up to less than 1.
    """
    share_TS = weights_TS / np.maximum(weights_TS.sum(axis=1, keepdims=True), 1e-12)
    entropy_T: Floats = -(share_TS * np.log(np.maximum(share_TS, 1e-12))).sum(axis=1)
    return entropy_T


def hard_links(weights: WordWeights) -> tuple[Link, ...]:
    """Return for each target word the source word with the most weight, unless no word at all has more."""
    if not weights.words_TS.size:
        return ()
    best_T = weights.words_TS.argmax(axis=1)
    linked_T = weights.words_TS.max(axis=1) > weights.elsewhere_T
    return tuple((int(best_T[word]), int(word)) for word in np.flatnonzero(linked_T))


def to_pharaoh(links: Iterable[Link]) -> str:
    """Return the links in order as `i-j i-j ...`; no links give an empty string."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def from_pharaoh(line: str) -> frozenset[Link]:
    """Return the links of one line written `i-j i-j ...`."""
    links = set()
    for field in line.split():
        source, dash, target = field.partition("-")
        if not (dash and source.isdecimal() and target.isdecimal()):
            raise ValueError(f"{field!r} is not a link; write source-target counted from 0, such as 3-4")
        links.add((int(source), int(target)))
    return frozenset(links)


def symmetrise(forward: Collection[Link], backward: Collection[Link], how: Symmetrisation) -> frozenset[Link]:
    """Return one alignment of two, both written (source, target), by a rule of Koehn et al. 2003 and 2005.

    `grow-diag` starts from the intersection and adds links of the union that touch one it has, also at a
    corner, and join a word that has none; `final-and` then adds those of the forward, then of the backward
    alignment, whose words both have none. As in the paper, links are taken in order of the source, then of
    the target word, and those added count at once.
    """
    both, either = frozenset(forward) & frozenset(backward), frozenset(forward) | frozenset(backward)
    if how == "intersection":
        return both
    if how == "union":
        return either
    grown = _Growing(both)
    in_order = sorted(either)
    num_before = -1
    while num_before < len(grown.links):
        num_before = len(grown.links)
        for source, target in in_order:
            if (source, target) in grown.links:
                for down, right in _NEIGHBOURS:
                    near = (source + down, target + right)
                    if near in either and not (near[0] in grown.sources and near[1] in grown.targets):
                        grown.add(near)
    if how == "grow-diag-final-and":
        for links in (forward, backward):
            for source, target in sorted(links):
                if source not in grown.sources and target not in grown.targets:
                    grown.add((source, target))
    return frozenset(grown.links)


def agreed_links(forward_TS: Floats, backward_TS: Floats) -> frozenset[Link]:
    """Return the words to which both directions together give enough (Liang et al. 2006 multiply, too).

    That is, the geometric mean of the share of a target word that came from a source word, and of the share
    of the source word that went into the target word, is above AGREEMENT.
    """
    targets, sources = np.nonzero(forward_TS * backward_TS > AGREEMENT**2)
    return frozenset(zip(sources.tolist(), targets.tolist(), strict=True))


class _Growing:
    """An alignment being grown, and the words that have a link."""

    def __init__(self, links: Iterable[Link]) -> None:
        self.links = set(links)
        self.sources = {source for source, _ in self.links}
        self.targets = {target for _, target in self.links}

    def add(self, link: Link) -> None:
        self.links.add(link)
        self.sources.add(link[0])
        self.targets.add(link[1])


@dataclass(frozen=True, slots=True)
class GoldLinks:
    """The links of a sentence pair made by hand: those that must be found and those that may be.

    What is sure is also possible.
    """

    sure: frozenset[Link]
    possible: frozenset[Link]

    def flipped(self) -> "GoldLinks":
        """Return the same with source and target exchanged."""
        return GoldLinks(*(frozenset((b, a) for a, b in links) for links in (self.sure, self.possible)))


def read_gold(
    path: Path, *, counted_from: Literal[0, 1] = 0, lengths: Sequence[tuple[int, int]] | None = None
) -> list[GoldLinks]:
    """Return the gold links of each sentence of a file.

    Either a line a sentence, `3-4` for a sure link, `3p4` or `3?4` for a possible one; or a line a link, as
    in the shared tasks (Mihalcea & Pedersen 2003): sentence, source word, target word and `S` or `P`, all
    counted from 1. With `lengths`, the words of source and target of each sentence, links beyond
    them are an error, and so is a file for another number of sentences.
    """
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path}: cannot be read ({error}); gold alignments are plain UTF-8 text") from None
    by_row = any(lines) and bool(_GOLD_ROW.fullmatch(next(line for line in lines if line).strip()))
    found: list[tuple[int, int, str, Link]] = []  # sentence, line, kind, link
    for number, line in enumerate(lines, 1):
        fields = [line.strip()] if by_row else line.split()
        for text in filter(None, fields):
            match = (_GOLD_ROW if by_row else _GOLD_FIELD).fullmatch(text)
            if match is None:
                wanted = "sentence, word, word, S or P" if by_row else "3-4 if sure, 3p4 or 3?4 if possible"
                raise CorpusError(f"{path}, line {number}: {text!r} is not a gold link; write {wanted}")
            if by_row:
                sentence, kind = int(match[1]) - 1, match[4] or "S"
                words = int(match[2]), int(match[3])
            else:
                sentence, kind = number - 1, "S" if match[2] == "-" else "P"
                words = int(match[1]), int(match[3])
            first = 1 if by_row else counted_from
            link = (words[0] - first, words[1] - first)
            _check_gold(f"{path}, line {number}: {text!r}", sentence, link, lengths)
            found.append((sentence, number, kind, link))
    num_sentences = max((sentence + 1 for sentence, *_ in found), default=0) if by_row else len(lines)
    if lengths is not None and num_sentences != len(lengths):
        what = "sentences" if by_row else "lines"
        raise CorpusError(f"{path} has {num_sentences:,} {what} for {len(lengths):,} sentence pairs")
    sure: list[set[Link]] = [set() for _ in range(num_sentences)]
    possible: list[set[Link]] = [set() for _ in range(num_sentences)]
    for sentence, _, kind, link in found:
        possible[sentence].add(link)
        if kind == "S":
            sure[sentence].add(link)
    return [GoldLinks(frozenset(a), frozenset(b)) for a, b in zip(sure, possible, strict=True)]


def _check_gold(where: str, sentence: int, link: Link, lengths: Sequence[tuple[int, int]] | None) -> None:
    if min(link) < 0 or sentence < 0:
        raise CorpusError(f"{where} has a number 0 where counting starts at 1")
    if lengths is None:
        if sentence >= _MAX_GOLD_SENTENCES:
            raise CorpusError(f"{where} is of a sentence beyond {_MAX_GOLD_SENTENCES:,}")
        return
    if sentence >= len(lengths):
        raise CorpusError(f"{where} is of sentence {sentence + 1:,}, and there are {len(lengths):,}")
    num_source, num_target = lengths[sentence]
    if link[0] >= num_source or link[1] >= num_target:
        raise CorpusError(
            f"{where} is out of range: the sentences have {num_source} and {num_target} words; "
            "check which side comes first and whether words are counted from 0 or 1"
        )


@dataclass(frozen=True, slots=True)
class AlignmentScore:
    """How good links are against gold ones (Och & Ney 2003, section 5.1).

    `precision` is the share of the links found that are possible, `recall` that of the sure ones that are
    found, each 1 where there is none; `aer` the alignment error rate, 0 at best.
    """

    aer: float
    precision: float
    recall: float
    num_links: int
    num_sentences: int


def score_links(found: Sequence[Collection[Link]], gold: Sequence[GoldLinks]) -> AlignmentScore:
    """Return the score of the links found in all sentences together."""
    hits_sure, hits_possible, num_links, num_sure = _tally(found, gold).sum(axis=0).tolist()
    return AlignmentScore(
        aer=_error_rate(hits_sure, hits_possible, num_links, num_sure),
        precision=hits_possible / num_links if num_links else 1.0,
        recall=hits_sure / num_sure if num_sure else 1.0,
        num_links=num_links,
        num_sentences=len(gold),
    )


def aer_interval(
    found: Sequence[Collection[Link]],
    gold: Sequence[GoldLinks],
    *,
    confidence: float = 0.95,
    num_samples: int = 1000,
    seed: int = 1,
) -> tuple[float, float]:
    """Return the bounds between which the error rate of sentences drawn again lies (Efron 1979)."""
    tally = _tally(found, gold)
    dice = np.random.default_rng(seed)
    rates = [
        _error_rate(*tally[dice.integers(len(tally), size=len(tally))].sum(axis=0).tolist())
        for _ in range(num_samples if len(tally) else 0)
    ]
    if not rates:
        return 0.0, 0.0
    low, high = np.quantile(rates, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def _tally(found: Sequence[Collection[Link]], gold: Sequence[GoldLinks]) -> NDArray[np.int64]:
    """Return for each sentence how many links found are sure, are possible, are there; how many are sure."""
    if len(found) != len(gold):
        raise CorpusError(
            f"links of {len(found):,} sentences against gold of {len(gold):,}; give the same ones"
        )
    rows = [
        (len(one.sure & links), len((one.possible | one.sure) & links), len(links), len(one.sure))
        for links, one in zip(map(frozenset, found), gold, strict=True)
    ]
    return np.array(rows, np.int64).reshape(-1, 4)


def _error_rate(hits_sure: int, hits_possible: int, num_links: int, num_sure: int) -> float:
    return 1 - (hits_sure + hits_possible) / (num_links + num_sure) if num_links + num_sure else 0.0
