"""Shards on Ray, the extra `[ray]`: one worker for each core of a cluster, each holding the model.

Only this process reads the input and writes the output, so the machines need no common disk. A shard of a
worker that is lost is given to another one.
"""

import contextlib
import logging
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import regard
from regard.errors import ConfigError, MissingExtraError, WorkerError
from regard.shards.cut import Task
from regard.shards.work import Done, Work
from regard.translate.translator import IN_THIS_THREAD

_log = logging.getLogger("regard")

_MAX_TRIES = 4  # of one shard
_LOOK_SECONDS = 5.0  # so often it is looked whether machines have come


class Worker:
    """Does shards on one core of some machine."""

    def __init__(self) -> None:
        self._do: Callable[[Task], Done] | None = None

    def start(self, version: str, work: list[Any]) -> None:
        """Load the model; `work` is a list so that Ray does not unpack it before the version is known."""
        if version != regard.__version__:
            raise ConfigError(
                f"a machine of the cluster has regard {regard.__version__}, and this one has {version}; "
                "install the same version on all"
            )
        import ray

        found: Work = ray.get(work[0])
        self._do = found.worker(IN_THIS_THREAD, num_threads=1)

    def do(self, task: Task) -> Done:
        """Do the work of a shard."""
        assert self._do is not None
        return self._do(task)


@dataclass(frozen=True, slots=True)
class _Doing:
    """What a worker does: a shard, or it starts."""

    worker: Any
    task: Task | None


def on_ray(work: Work, tasks: Iterator[Task], num_tasks: int) -> Iterator[Done]:
    """Do shards on the cluster RAY_ADDRESS, or on one of this machine alone."""
    try:
        import ray
    except ImportError:
        raise MissingExtraError("--on ray", "ray") from None
    is_ours = not ray.is_initialized()
    try:
        if is_ours:
            _connect(ray)
        yield from _Cluster(ray, work, num_tasks).run(tasks)
    finally:
        if is_ours:
            ray.shutdown()


def _connect(ray: Any) -> None:
    address = os.environ.get("RAY_ADDRESS")
    how = {"address": address} if address else {"address": "local", "include_dashboard": False}
    try:
        with _own_signals():
            ray.init(**how, logging_level=logging.ERROR, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(f"Ray cannot be reached at {address or 'this machine'} ({reason:.200})") from error


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Keep our handler of SIGTERM; those of Ray dump the stack, or end with exit codes of their own."""
    before, install = signal.getsignal(signal.SIGTERM), signal.signal

    def install_others(number: int, handler: Any) -> Any:
        return before if number == signal.SIGTERM else install(number, handler)

    signal.signal = install_others  # type: ignore[assignment]
    try:
        yield
    finally:
        signal.signal = install
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)  # the C++ of Ray has installed one without asking Python


class _Cluster:
    """The workers of a cluster, and what each of them does."""

    def __init__(self, ray: Any, work: Work, num_tasks: int) -> None:
        self._ray = ray
        self._work = [ray.put(work)]
        self._worker = ray.remote(num_cpus=1, max_restarts=0)(Worker)
        self._num_left = num_tasks
        self._doing: dict[Any, _Doing] = {}  # by the reference of its result
        self._again: deque[Task] = deque()
        self._num_lost: Counter[int] = Counter()  # workers, by the shard they had
        self._num_failed_starts = 0

    def run(self, tasks: Iterator[Task]) -> Iterator[Done]:
        """Yield the shards as they are done."""
        try:
            while self._num_left:
                self._hire()
                ready, _ = self._ray.wait(list(self._doing), num_returns=1, timeout=_LOOK_SECONDS)
                for result in ready:
                    yield from self._take(result, tasks)
        finally:
            for one in self._doing.values():
                self._ray.kill(one.worker)

    def _num_cores(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def _hire(self) -> None:
        """Start a worker for each core that is there now, but no more than there are shards left."""
        for _ in range(min(self._num_cores(), self._num_left) - len(self._doing)):
            worker = self._worker.remote()
            self._doing[worker.start.remote(regard.__version__, self._work)] = _Doing(worker, None)

    def _take(self, result: Any, tasks: Iterator[Task]) -> Iterator[Done]:
        """Take the result of a worker, and give it another shard before its result is stored."""
        one = self._doing.pop(result)
        try:
            done = self._ray.get(result)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.RayError as error:
            self._lose(one, error)
            return
        # A lost shard goes to a new worker: another one may be on the lost machine, and not known to be dead.
        is_new = one.task is None
        task = self._again.popleft() if self._again and is_new else next(tasks, None)
        if task is not None:
            self._doing[one.worker.do.remote(task)] = _Doing(one.worker, task)
        else:
            self._ray.kill(one.worker)  # its core is free for a new worker, if another one is lost
        self._num_failed_starts = 0
        if done is not None:
            self._num_left -= 1
            yield done

    def _lose(self, one: _Doing, error: Exception) -> None:
        """Have the shard of a lost worker done by another one."""
        reason = f"{type(error).__name__}: {' '.join(str(error).split()):.200}"
        if one.task is None:
            self._num_failed_starts += 1
            if self._num_failed_starts == self._num_cores() + _MAX_TRIES:
                raise WorkerError(f"no worker of the cluster starts ({reason}); is regard installed there?")
            return
        number = one.task.number
        self._num_lost[number] += 1
        if self._num_lost[number] == _MAX_TRIES:
            raise WorkerError(
                f"shard {number} ended {_MAX_TRIES} workers ({reason}); is there enough memory?"
            )
        _log.warning("regard: a worker was lost; shard %d is given to another one", number)
        self._again.append(one.task)
