"""Several batches at once, on all processors, with one thread of the matrix library for each.

Two threads within every small matrix product wait for each other most of the time; two batches side by side
do not. Much work is shared among processes that fork from this one and find all weights in place; little
work, or that of a system without fork, among threads, which wait for Python's lock now and then.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from regard.parallel import num_cores

Job = TypeVar("Job")
Done = TypeVar("Done")

_CAN_FORK = sys.platform == "linux"  # elsewhere the systems' own libraries do not survive it
_INDEX_BYTES = 4


def map_batches(
    work: Callable[[Job], Done], jobs: Sequence[Job], num_workers: int | None = None, much: bool = False
) -> Iterator[tuple[Job, Done]]:
    """Yield each job with what came of it, in their order.

    `num_workers` None is one for each processor. `much` says that the work takes longer than starting
    processes, some hundredths of a second.
    """
    num_workers = min(len(jobs), num_workers or num_cores())
    with _matrix_library().limit(limits=1, user_api="blas"):
        if num_workers <= 1:
            yield from ((job, work(job)) for job in jobs)
        elif much and _CAN_FORK and not multiprocessing.current_process().daemon:
            yield from zip(jobs, _in_processes(work, jobs, num_workers), strict=True)
        else:
            with ThreadPoolExecutor(num_workers) as pool:
                try:
                    yield from zip(jobs, pool.map(work, jobs), strict=True)
                finally:
                    pool.shutdown(wait=True, cancel_futures=True)


def _in_processes(work: Callable[[Job], Done], jobs: Sequence[Job], num_workers: int) -> Iterator[Done]:
    """Yield what comes of each job; processes take the next one from a pipe of their numbers."""
    take, give = os.pipe()
    os.set_blocking(give, False)
    numbers = b"".join(number.to_bytes(_INDEX_BYTES, "little") for number in range(len(jobs)))
    sent = os.write(give, numbers)
    context = multiprocessing.get_context("fork")
    processes, answers = [], []
    try:
        for _ in range(num_workers):
            receiving, sending = context.Pipe(duplex=False)
            answers.append(receiving)
            process = context.Process(
                target=_labour, args=(work, jobs, take, give, sending, answers, os.getpid()), daemon=True
            )
            with warnings.catch_warnings():
                # Of threads, some versions of Python: ours are those of the matrix library, which sleep.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            sending.close()
            processes.append(process)
        done: dict[int, Done] = {}
        for number in range(len(jobs)):
            while number not in done:
                for answer in wait(answers):
                    assert isinstance(answer, Connection)
                    if sent < len(numbers):
                        with contextlib.suppress(BlockingIOError):
                            sent += os.write(give, numbers[sent:])
                    try:
                        finished, result, error = answer.recv()
                    except EOFError:
                        raise ChildProcessError("a worker process was killed; try again") from None
                    if error is not None:
                        raise error
                    done[finished] = result
            yield done.pop(number)
    finally:
        for process in processes:
            process.kill()
            process.join()
        for end in answers:
            end.close()
        os.close(take)
        os.close(give)


def _labour(
    work: Callable[[Job], Any],
    jobs: Sequence[Job],
    take: int,
    give: int,
    sending: Connection,
    answers: Sequence[Connection],
    parent: int,
) -> None:
    """Do jobs until the process that started this one ends it, or is no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that started this one decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.close(give)
    for end in answers:  # as long as anyone could listen, speaking to nobody would not fail but wait
        end.close()
    while os.getppid() == parent and (number := os.read(take, _INDEX_BYTES)):
        index = int.from_bytes(number, "little")
        try:
            sending.send((index, work(jobs[index]), None))
        except BrokenPipeError:
            return
        except Exception as error:
            sending.send((index, None, error))


@cache
def _matrix_library() -> Any:
    import threadpoolctl  # type: ignore[import-untyped]  # here: it looks through all loaded libraries

    return threadpoolctl.ThreadpoolController()
