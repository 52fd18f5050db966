"""Several batches at once: a thread for each processor, with one thread of the matrix library each.

Two threads within every small matrix product wait for each other most of the time; two batches side by side
do not.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

Job = TypeVar("Job")
Done = TypeVar("Done")


def map_batches(
    work: Callable[[Job], Done], jobs: Sequence[Job], num_workers: int | None = None
) -> Iterator[tuple[Job, Done]]:
    """Yield each job with what came of it, in their order; `num_workers` None: one for each processor."""
    num_workers = min(len(jobs), num_workers or num_processors())
    with _matrix_library().limit(limits=1, user_api="blas"):
        if num_workers <= 1:
            yield from ((job, work(job)) for job in jobs)
            return
        with ThreadPoolExecutor(num_workers) as pool:
            try:
                yield from zip(jobs, pool.map(work, jobs), strict=True)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


def num_processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _matrix_library() -> Any:
    import threadpoolctl  # type: ignore[import-untyped]  # here: it looks through all loaded libraries

    return threadpoolctl.ThreadpoolController()
