"""Maps over chunks of a corpus by several workers, in order and with a bounded number under way."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, TypeVar, cast

from regard.errors import RegardError

A = TypeVar("A")
R = TypeVar("R")

_IN_FLIGHT_PER_WORKER = 2  # one being worked on, one waiting in the pipe


def num_cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_threads(function: Callable[[A], R], items: Iterable[A], num_threads: int) -> Iterator[R]:
    """Return `function(item)` for every item, in order: for work that leaves Python while it computes."""
    with ThreadPoolExecutor(num_threads) as threads:
        pending: deque[Future[R]] = deque()
        try:
            for item in items:
                pending.append(threads.submit(function, item))
                if len(pending) > _IN_FLIGHT_PER_WORKER * num_threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def map_in_processes(function: Callable[[A], R], items: Iterable[A], num_workers: int) -> Iterator[R]:
    """Return `function(item)` for every item, in order: for work in Python itself.

    With one worker the work is done here. Workers are fresh interpreters fed through pipes: unlike
    `multiprocessing`, this neither forks a process that has threads nor imports the user's script again.
    """
    if num_workers <= 1:
        yield from map(function, items)
        return
    workers: list[_Worker] = []
    try:
        workers += (_Worker(cast(Callable[[object], object], function)) for _ in range(num_workers))
        free = deque(workers)

        def ask(item: A) -> R:
            worker = free.popleft()  # there are as many threads as workers, so one is free
            try:
                return cast(R, worker(item))
            finally:
                free.append(worker)

        answers = map_in_threads(ask, items, num_workers)
        try:
            yield from answers
        finally:
            for worker in workers:
                worker.kill()  # or the threads would wait for answers that nobody wants any more
            cast(Generator[R], answers).close()
    finally:
        for worker in workers:
            worker.close()


class _Worker:
    """A fresh interpreter that answers each pickled item with a pickled result."""

    def __init__(self, function: Callable[[object], object]) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),  # it finds regard where we found it
            "OMP_NUM_THREADS": "1",  # there are as many workers as cores already
            "OPENBLAS_NUM_THREADS": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", "from regard.corpus.parallel import _serve; _serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self._function: Callable[[object], object] | None = function

    def __call__(self, item: object) -> object:
        if self._function is not None:  # sent now and not at the start, so that all workers start together
            self._send(self._function)
            self._function = None
        self._send(item)
        try:
            result = pickle.load(cast(IO[bytes], self._process.stdout))
        except (EOFError, pickle.UnpicklingError) as error:
            raise self._died() from error
        if isinstance(result, _Failure):
            raise result.error
        return result

    def _send(self, message: object) -> None:
        pipe = cast(IO[bytes], self._process.stdin)
        try:
            pickle.dump(message, pipe, protocol=pickle.HIGHEST_PROTOCOL)
            pipe.flush()
        except BrokenPipeError as error:
            raise self._died() from error

    def _died(self) -> RegardError:
        code = self._process.wait()
        return RegardError(
            f"a worker process died (exit code {code})" + ("; is there enough memory?" if code == -9 else "")
        )

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def close(self) -> None:
        """End the process and let go of its pipes."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):
                cast(IO[bytes], pipe).close()


class _Failure:
    """An error that a worker sends home instead of a result."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _serve() -> None:
    """Work as a worker until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends us
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not land among the results
    function: Callable[[object], object] = pickle.load(sys.stdin.buffer)
    while True:
        try:
            item = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            result = function(item)
        except Exception as error:
            result = _Failure(error)
        try:
            pickle.dump(result, results, protocol=pickle.HIGHEST_PROTOCOL)
            results.flush()
        except BrokenPipeError:  # the parent has gone
            os._exit(1)
