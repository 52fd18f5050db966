"""The tree of a beam search: what was tried, and what became of it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from regard.contract import Ids
from regard.search.scores import Totals
from regard.vocabulary import EOS

Fate = Literal["open", "dropped", "finished"]


@dataclass(frozen=True, slots=True)
class Offers:
    """The continuations that one step of one sentence looked at, best first: what each says, in which row.

    `finished` and `opened` are places among them: those that end, and those that are the rows of the next
    step, in their order.
    """

    ids_X: Ids
    rows_X: Ids
    log_probs_X: Totals
    factor: float
    finished: list[int]
    opened: list[int]


@dataclass(frozen=True, slots=True)
class Node:
    """A hypothesis: what it says last, after what its parent says (None: nothing)."""

    parent: int | None
    step: int
    id: int
    log_prob: float
    score: float
    fate: Fate


class Tree:
    """The hypotheses of one sentence, in the order they were found; of those dropped only the best."""

    def __init__(self, num_dropped: int) -> None:
        self.num_dropped = num_dropped
        self.nodes: list[Node] = []
        self._rows: list[int | None] = [None]  # the node that each row continues
        self._num_steps = 0

    def add(self, offers: Offers) -> None:
        """Take down one step."""
        finished, opened = set(offers.finished), set(offers.opened)
        possible = np.flatnonzero(np.isfinite(offers.log_probs_X)).tolist()
        dropped = [place for place in possible if place not in finished | opened][: self.num_dropped]
        found: dict[int, int] = {}
        for place in sorted({*possible} & {*finished, *opened, *dropped}):
            fate: Fate = "finished" if place in finished else "dropped"
            if place in opened and offers.ids_X[place] != EOS:  # `</s>` fills up a beam wider than the choice
                fate = "open"
            log_prob = float(offers.log_probs_X[place])
            found[place] = len(self.nodes)
            self.nodes.append(
                Node(
                    self._rows[int(offers.rows_X[place])],
                    self._num_steps,
                    int(offers.ids_X[place]),
                    log_prob,
                    log_prob / offers.factor,
                    fate,
                )
            )
        self._rows = [found.get(place) for place in offers.opened]
        self._num_steps += 1

    def path(self, ids: tuple[int, ...], complete: bool) -> list[int]:
        """Return the nodes that say these ids, first to last."""
        path: list[int] = []
        for step, id in enumerate((*ids, EOS) if complete else ids):
            parent = path[-1] if path else None
            path.append(
                next(
                    number
                    for number, node in enumerate(self.nodes)
                    if (node.step, node.id, node.parent) == (step, id, parent)
                )
            )
        return path
