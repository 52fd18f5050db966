"""How far long work has come: the work calls a `Progress`, and a terminal, a page or nobody shows it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Progress(Protocol):
    """Is told what is being done, how much of it is done, and of how much; 0 if that is not known."""

    def __call__(self, stage: str, done: int, total: int, /) -> None:
        """Show it."""


Stages = Callable[[], AbstractContextManager[Progress]]
"""Opens a `Progress` for some stages of work and closes it after them."""


def unshown(stage: str, done: int, total: int, /) -> None:
    """Show nothing."""


def unshown_stages() -> AbstractContextManager[Progress]:
    """Open a `Progress` that shows nothing."""
    return nullcontext(unshown)
