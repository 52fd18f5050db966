"""Word alignments made by hand, and the alignment error rate against them."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from regard.alignment.links import Link
from regard.errors import CorpusError

_GOLD_FIELD = re.compile(r"([0-9]{1,9})([-p?])([0-9]{1,9})")
_GOLD_ROW = re.compile(r"([0-9]{1,9})\s+([0-9]{1,9})\s+([0-9]{1,9})(?:\s+([SP]))?")
_MAX_GOLD_SENTENCES = 1_000_000


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
    path: Path,
    *,
    counted_from: Literal[0, 1] = 0,
    target_first: bool = False,
    lengths: Sequence[tuple[int, int]] | None = None,
) -> list[GoldLinks]:
    """Return the gold links of each sentence of a file.

    Either a line a sentence, `3-4` for a sure link, `3p4` or `3?4` for a possible one; or a line a link, as
    in the shared tasks (Mihalcea & Pedersen 2003): sentence, source word, target word and `S` or `P`, all
    counted from 1. With `target_first`, links have the target's word first. With `lengths`, the words of
    source and target of each sentence, links beyond them are an error, and so is a file for another number of
    sentences.
    """
    if target_first:
        turned = None if lengths is None else [(b, a) for a, b in lengths]
        return [one.flipped() for one in read_gold(path, counted_from=counted_from, lengths=turned)]
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
            raise CorpusError(f"{where} refers to a sentence beyond {_MAX_GOLD_SENTENCES:,}")
        return
    if sentence >= len(lengths):
        raise CorpusError(f"{where} refers to sentence {sentence + 1:,}, and there are {len(lengths):,}")
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
            f"links of {len(found):,} sentences and a gold alignment of {len(gold):,}; use the same sentences"
        )
    rows = [
        (len(one.sure & links), len((one.possible | one.sure) & links), len(links), len(one.sure))
        for links, one in zip(map(frozenset, found), gold, strict=True)
    ]
    return np.array(rows, np.int64).reshape(-1, 4)


def _error_rate(hits_sure: int, hits_possible: int, num_links: int, num_sure: int) -> float:
    return 1 - (hits_sure + hits_possible) / (num_links + num_sure) if num_links + num_sure else 0.0
