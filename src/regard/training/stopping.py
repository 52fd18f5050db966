"""Signals that end a training: the first is remembered until the run can be saved. No torch.

A handler that raised an error would raise it wherever the program happens to be: in a library that swallows
it, or in an import that takes it for a missing package. The run asks `Signals` instead, after every update
and at every report of progress. A second signal ends the program at once.
"""

import contextlib
import os
import signal
import stat
from collections.abc import Iterator

from regard.progress import Progress, Stages

_NAMES = ("SIGTERM", "SIGINT", "SIGHUP")  # the last not on Windows


class Stopped(Exception):  # noqa: N818 - nothing went wrong
    """A signal asked for the end; the message says what the same command does next."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


class Signals:
    """The first signal that came, if any."""

    def __init__(self) -> None:
        self.number: int | None = None

    def check(self, message: str) -> None:
        """Raise `Stopped` with this message if a signal came."""
        if self.number is not None:
            raise Stopped(self.number, message)

    def stages(self, stages: Stages, message: str) -> Stages:
        """Return the same stages, which check for a signal at every report of progress."""

        @contextlib.contextmanager
        def checked() -> Iterator[Progress]:
            with stages() as progress:

                def report(stage: str, done: int, total: int, /) -> None:
                    self.check(message)
                    progress(stage, done, total)

                yield report
                self.check(message)

        return checked


@contextlib.contextmanager
def catching_signals() -> Iterator[Signals]:
    """Remember the first signal that asks for the end; a second one does what it did before."""
    caught = Signals()

    def remember(number: int, _: object) -> None:
        caught.number = number
        if number == getattr(signal, "SIGHUP", None):
            _leave_dead_terminal()
        restore()

    def restore() -> None:
        for one, old in before.items():
            signal.signal(one, old)

    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    before = {one: signal.getsignal(one) for one in numbers}
    if before.get(getattr(signal, "SIGHUP", None)) == signal.SIG_IGN:
        del before[signal.SIGHUP]  # `nohup` has it ignored
    try:
        for one in before:
            signal.signal(one, remember)
    except ValueError:  # not in the main thread: the program that started it handles signals
        yield caught
        return
    try:
        yield caught
    finally:
        restore()


def _leave_dead_terminal() -> None:
    """Send output nowhere if its terminal was closed: an error in writing would come before the saving."""
    for stream in (1, 2):
        with contextlib.suppress(OSError):
            if stat.S_ISCHR(os.fstat(stream).st_mode) and not os.isatty(stream):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
