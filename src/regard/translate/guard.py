"""Is a translation to be trusted? What looks wrong with it, from its pieces and its attention alone.

`regard.flags` says what each flag means.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.contract import Floats
from regard.text.protect import missing
from regard.text.words import words

# What is far: a translation of n pieces has about n pieces, and very short ones vary more.
_LONGEST = (3.0, 10)  # times as many, and so many more
_SHORTEST = (0.3, 2)  # times as many, and so many less
_MAX_CYCLE = 8  # pieces of a loop
_LOOP_PIECES = 9  # a loop is said at least three times, and is at least so long in all
_MIN_STEPS = 8  # fewer tell nothing about where a model looks
_STUCK_SHARE = 0.75
_SEEN = 0.2  # of the weight of a step, over all steps: a source piece with less was hardly looked at
_UNCOVERED_SHARE = 0.25  # of what the source tells
_MIN_UNCOVERED = 1.0  # what the rarest piece tells: one alone, perhaps said in other words, is not enough
_GRAVE_SHARE = 0.4  # from here on another search is worth its time
_NEAR = 1e-3  # what another batch may change of sums of weights


@dataclass(frozen=True, slots=True)
class Said:
    """What the guard looks at: texts, pieces without `</s>`, and where each step looked (with `</s>`).

    `information_S` is how much each source piece tells: articles and the like, often looked at by nobody,
    tell little.
    """

    source: str
    text: str
    source_ids: Sequence[int]
    information_S: Floats
    ids: Sequence[int]
    attention_TS: Floats
    complete: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """What looks wrong; whether it is grave enough to try again; and whether it hung on the last digits."""

    flags: tuple[str, ...]
    grave: bool
    near: bool


def judge(said: Said) -> Verdict:
    """Return what looks wrong with a translation."""
    flags = []
    num_source, num_said = len(said.source_ids), len(said.ids)
    if not said.text.strip():
        flags = ["empty"] if words(said.source) else []
        return Verdict((*flags, *_lost(said)), True, False)
    if not said.complete:
        flags.append("cut")
    if _loops(said.ids) and not _loops(said.source_ids):
        flags.append("loops")
    too_long = num_said > _LONGEST[0] * num_source + _LONGEST[1]
    if too_long or num_said < _SHORTEST[0] * num_source - _SHORTEST[1]:
        flags.append("length")
    if said.text == said.source and len(words(said.source)) > 2 and any(map(str.islower, said.source)):
        flags.append("copied")
    flags += _lost(said)
    if not said.attention_TS.shape[1] or num_source < 2:
        return Verdict(tuple(flags), bool(flags), False)
    looks = _looks(said.attention_TS, said.information_S)
    return Verdict((*flags, *looks.flags), bool(flags) or looks.grave, looks.near)


def judge_alone(text: str, ids: Sequence[int], complete: bool) -> Verdict:
    """Return what looks wrong with a target that need not say what its source says, such as a summary."""
    flags = ["cut"] * (not complete) + ["loops"] * _loops(ids)
    return Verdict(tuple(flags) if text.strip() else ("empty",), False, False)


def _lost(said: Said) -> list[str]:
    return ["lost"] if missing(said.source, said.text) else []


def hardly_seen(attention_TS: Floats) -> list[int]:
    """Return the source pieces that were hardly looked at, `</s>` aside."""
    coverage_S = attention_TS[:, :-1].sum(axis=0)
    return np.flatnonzero(coverage_S < _SEEN).tolist()


def _loops(ids: Sequence[int]) -> bool:
    """Tell whether a few pieces are said at least three times in a row."""
    for cycle in range(1, min(_MAX_CYCLE, len(ids) // 3) + 1):
        wanted = max(2 * cycle, _LOOP_PIECES - cycle)  # equal to what stands a cycle before
        run = 0
        for place in range(cycle, len(ids)):
            run = run + 1 if ids[place] == ids[place - cycle] else 0
            if run >= wanted:
                return True
    return False


def _looks(attention_TS: Floats, information_S: Floats) -> Verdict:
    """Return what is wrong with where the model looked."""
    num_steps, num_source = attention_TS.shape
    share = 0.0
    if num_steps >= _MIN_STEPS and num_source >= _MIN_STEPS:
        share = float(attention_TS.sum(axis=0).max()) / num_steps
    coverage_S = attention_TS[:, :-1].sum(axis=0)
    level, at_least, at_most = (
        _level(float(information_S[coverage_S < _SEEN + slack].sum()), float(information_S.sum()))
        for slack in (0, -_NEAR, _NEAR)
    )
    flags = [] if share <= _STUCK_SHARE else ["stuck"]
    if level:
        flags.append("uncovered")
    near = abs(share - _STUCK_SHARE) < _NEAR or at_least != at_most
    return Verdict(tuple(flags), share > _STUCK_SHARE or level == 2, near)


def _level(unseen: float, whole: float) -> int:
    """Return how much of the whole was left out: hardly anything (0), something (1), a grave share (2)."""
    if unseen <= _MIN_UNCOVERED or unseen < _UNCOVERED_SHARE * whole:
        return 0
    return 2 if unseen >= _GRAVE_SHARE * whole else 1
