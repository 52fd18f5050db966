"""What the command line shows while it works: bars on a terminal, now and then a line elsewhere."""

import contextlib
import sys
import time
from collections.abc import Iterator

from regard.progress import Progress


@contextlib.contextmanager
def progress(patience_seconds: float = 2.0, line_every_seconds: float = 10.0) -> Iterator[Progress]:
    """Show progress on standard error: a bar for each stage on a terminal, plain lines elsewhere.

    The first line comes after `patience_seconds`, the next ones `line_every_seconds` apart.
    """
    if not sys.stderr.isatty():
        yield _plain_lines(patience_seconds, line_every_seconds)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total or None)
            bars.update(tasks[stage], completed=done, total=total or None)

        yield show


def _plain_lines(patience_seconds: float, line_every_seconds: float) -> Progress:
    started = last = time.monotonic()

    def show(stage: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - started > patience_seconds and now - last > line_every_seconds:
            how_far = f"{100 * done // total} %" if total else f"{done:,} done"
            print(f"{stage}: {how_far}", file=sys.stderr, flush=True)
            last = now

    return show
