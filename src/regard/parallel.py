"""Work shared among cores: one function applied to many items by threads or by forked processes.

Processes suit work in Python itself. They are forked, so they find the function and all its data in place;
items and results are pickled. Threads suit work that leaves Python while it computes, and little work; they
are also used where a fork is not safe.
"""

import contextlib
import os
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from regard.errors import WorkerError

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future
    from multiprocessing.connection import Connection

    _Pipe = Connection[Any, Any]

Item = TypeVar("Item")
Result = TypeVar("Result")

_READ_AHEAD = 2  # items for each worker: one being worked on, one waiting


def num_cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_order(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    num_workers: int | None = None,
    *,
    fork: bool = False,
) -> Iterator[Result]:
    """Yield `function(item)` for every item, in order, by a `Pool` that is closed at the end."""
    with Pool(function, num_workers, fork=fork) as pool:
        yield from pool.map(items)


class Pool(Generic[Item, Result]):
    """Workers that apply one function: processes where `fork` is true and forking is safe, else threads.

    With one worker the work is done in the caller's thread. `num_workers` None is one for each processor.
    The matrix library is held to one thread while the pool is open: two threads in every small matrix
    product mostly wait for each other, and results would depend on their number.
    """

    def __init__(
        self, function: Callable[[Item], Result], num_workers: int | None = None, *, fork: bool = False
    ) -> None:
        self.num_workers = num_workers or num_cores()
        self._function = function
        self._processes: list[_Process] = []
        self._threads: Executor | None = None
        self._limits = contextlib.ExitStack()
        self._limits.enter_context(one_blas_thread())
        if self.num_workers == 1:
            return
        from concurrent.futures import ThreadPoolExecutor  # here, for it loads logging

        started = threading.Barrier(self.num_workers + 1)
        try:
            if fork and _can_fork():
                for _ in range(self.num_workers):
                    self._processes.append(_Process(function, self._processes))
            self._idle = deque(self._processes)
            self._threads = ThreadPoolExecutor(self.num_workers)
            # All threads start now: one that Ctrl-C interrupts at its start is not waited for at the end.
            for _ in range(self.num_workers):
                self._threads.submit(started.wait)
            started.wait()
        except BaseException:
            started.abort()
            self.close()
            raise

    def submit(self, item: Item) -> "Future[Result]":
        """Return the future of `function(item)`."""
        if self._threads is not None:
            return self._threads.submit(self._ask if self._processes else self._function, item)
        from concurrent.futures import Future

        done: Future[Result] = Future()
        try:
            done.set_result(self._function(item))
        except Exception as error:
            done.set_exception(error)
        return done

    def map(self, items: Iterable[Item]) -> Iterator[Result]:
        """Yield `function(item)` for every item, in order; only a few items are read ahead."""
        if self._threads is None:
            yield from map(self._function, items)
            return
        pending: deque[Future[Result]] = deque()
        try:
            for item in items:
                pending.append(self.submit(item))
                if len(pending) > _READ_AHEAD * self.num_workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()

    def _ask(self, item: Item) -> Result:
        process = self._idle.popleft()  # there are as many threads as processes, so one is idle
        try:
            result: Result = process.ask(item)
            return result
        finally:
            self._idle.append(process)

    def close(self) -> None:
        """End all workers; processes at once, threads when they have finished what they do."""
        for process in self._processes:
            process.kill()  # first, or the threads would wait for answers that nobody wants any more
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        for process in self._processes:
            process.close()
        self._processes = []
        self._limits.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Process:
    """A forked process that answers each item with a result."""

    def __init__(self, function: Callable[[Any], Any], older: Sequence["_Process"]) -> None:
        import multiprocessing

        context = multiprocessing.get_context("fork")
        self._reaping = threading.Lock()
        self._connection, theirs = context.Pipe()
        # While anyone holds our end of a pipe, its process would not notice that we are gone.
        ours = [self._connection, *(one._connection for one in older)]
        self._process = context.Process(target=_serve, args=(function, theirs, ours), daemon=True)
        with warnings.catch_warnings():
            # Newer Pythons warn of a fork beside threads; those of the matrix library expect it.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        theirs.close()

    def ask(self, item: object) -> Any:
        try:
            self._connection.send(item)
            result, error = self._connection.recv()
        except (EOFError, ConnectionError):
            self._join()
            code = self._process.exitcode or 0
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            hint = "; is there enough memory?" if code == -signal.SIGKILL else "; try again"
            raise WorkerError(f"a worker process {how}{hint}") from None
        if error is not None:
            raise error
        return result

    def kill(self) -> None:
        self._process.kill()

    def _join(self) -> None:
        with (
            self._reaping
        ):  # of two threads that wait at once, one would not learn that the process has ended
            self._process.join()

    def close(self) -> None:
        self._process.kill()
        self._join()
        self._process.close()
        self._connection.close()


def _serve(function: Callable[[Any], Any], connection: "_Pipe", others: Sequence["_Pipe"]) -> None:
    """Answer items until the process that forked this one closes the connection, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in others:
        other.close()
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            item = connection.recv()
            result, failure = None, None
            try:
                result = function(item)
            except Exception as error:
                failure = error
            connection.send((result, failure))


def _can_fork() -> bool:
    """Return whether this process may fork: elsewhere than on Linux, system libraries do not survive it."""
    import multiprocessing

    return sys.platform == "linux" and not multiprocessing.current_process().daemon


class _OneBlasThread(contextlib.AbstractContextManager[None]):
    """Holds the matrix library to one thread while at least one caller wants it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._num_callers = 0
        self._controller: Any = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._num_callers == 0:
                if self._controller is None:
                    import threadpoolctl  # type: ignore[import-untyped]  # here: it looks through all libraries

                    self._controller = threadpoolctl.ThreadpoolController()
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._num_callers += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._num_callers -= 1
            if self._num_callers == 0:
                self._limit.restore_original_limits()


_ONE_BLAS_THREAD = _OneBlasThread()


def one_blas_thread() -> contextlib.AbstractContextManager[None]:
    """Hold the matrix library to one thread within a `with`; calls may overlap, and the last one frees it."""
    return _ONE_BLAS_THREAD
