"""Processes that search: each has the models loaded and answers one task at a time.

They are started fresh, not forked: the server has threads. One that dies is replaced. A task can be stopped
between two steps of its search, and can tell the ids of each step while it runs.
"""

import contextlib
import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal, Protocol

from regard.contract import Batch, Engine, Forced, Ids, Probe, Step, unseen
from regard.engines import NUMPY, Compute
from regard.errors import ConfigError, RegardError, WorkerError
from regard.loaded import Loaded
from regard.parallel import one_blas_thread
from regard.trace.make import TraceArguments, Tracer
from regard.trace.mechanics import cards_json
from regard.trace.views import rendered
from regard.translate.queue import Job
from regard.translate.translator import search_job

TraceForm = Literal["json", "page", "svg", "png", "html", "csv"]
"""What a trace is wanted as; `page`: with the cards of its mechanics."""


class StopError(Exception):
    """The task was stopped."""


class Task(Protocol):
    """What a worker does; it is pickled."""

    @property
    def model(self) -> str:
        """The name of the model."""
        ...

    def work(self, loaded: Loaded) -> Any:
        """Return the result; what a search computes goes through the engine of `loaded`."""
        ...


@dataclass(frozen=True, slots=True)
class SearchTask:
    """Searches a batch."""

    model: str
    job: Job

    def work(self, loaded: Loaded) -> Any:
        """Return what is found."""
        return search_job(loaded.searcher, self.job)


@dataclass(frozen=True, slots=True)
class TraceTask:
    """Traces the translation of a text."""

    model: str
    text: str
    asked: TraceArguments
    form: TraceForm = "json"

    def work(self, loaded: Loaded) -> Any:
        """Return all parts, in this form."""
        traces = Tracer(loaded.by_steps()).traces(self.text, **self.asked)
        if self.form == "json":
            documents = ",".join(trace.to_json() for trace in traces)
            return f'{{"traces":[{documents}]}}'.encode("utf-8", "replace")
        if self.form == "page":
            entries = (f'{{"trace":{one.to_json()},"cards":{json.dumps(cards_json(one))}}}' for one in traces)
            return f'{{"entries":[{",".join(entries)}]}}'.encode("utf-8", "replace")
        return rendered(traces if self.form != "csv" else traces[:1], self.form)


class Worker:
    """A process with the models loaded. It is used by one thread at a time; `stop` may be called by any."""

    def __init__(self, models: Mapping[str, Path], compute: Compute | None = None) -> None:
        self._models = dict(models)
        # The processes are as many as are to work at once: each has one thread.
        self._compute = replace(compute or Compute(), num_threads=1)
        context = multiprocessing.get_context("spawn")
        self._stopped = context.RawValue("q", 0)  # the number of the task that is to stop
        self._number = 0
        self._context = context
        self._start()

    def _start(self) -> None:
        self._connection, theirs = self._context.Pipe()
        arguments = (theirs, self._models, self._compute, self._stopped, os.getpid())
        self._process = self._context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self._is_ready = False

    def wait_until_ready(self) -> None:
        """Return when the models are loaded."""
        if not self._is_ready:
            self._receive()
            self._is_ready = True

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.is_alive()

    def ask(self, task: Task, tell: Callable[[Sequence[int]], None] | None = None) -> Any:
        """Return the result of a task. `tell` is called with the ids of each row, step by step.

        Raises `StopError` if it was stopped, and `WorkerError` if the process died; a new one is there then.
        """
        self.wait_until_ready()
        self._number += 1
        try:
            self._connection.send((self._number, task, tell is not None))
        except (OSError, BrokenPipeError):
            self._replace()
        while True:
            kind, value = self._receive()
            if kind == "ids" and tell is not None:
                tell(value)
            elif kind == "done":
                return value
            elif kind == "stopped":
                raise StopError
            elif kind == "failed":
                raise value

    def revive(self) -> None:
        """Start the process again if it has died."""
        if not self.is_alive:
            self.close()
            self._start()

    def stop(self) -> None:
        """Stop the task that is under way at its next step."""
        self._stopped.value = self._number

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._connection.close()

    def _receive(self) -> tuple[str, Any]:
        try:
            received: tuple[str, Any] = self._connection.recv()
            return received
        except (EOFError, OSError):
            self._replace()
            raise AssertionError from None  # `_replace` raises

    def _replace(self) -> None:
        self.close()
        code = self._process.exitcode
        self._start()
        raise WorkerError(f"a translating process ended (exit code {code}); it was started again")


class _Watched:
    """An engine that looks before each step whether it is to stop, and tells which ids it reads."""

    def __init__(self, engine: Engine[Any]) -> None:
        self._engine = engine
        self.check: Callable[[], None] = lambda: None
        self.tell: Callable[[Sequence[int]], None] | None = None

    @property
    def max_tokens(self) -> int | None:
        return self._engine.max_tokens

    def start(self, batch: Batch, probe: Probe = unseen) -> Any:
        self.check()
        return self._engine.start(batch, probe)

    def step(self, state: Any, ids_R: Ids, probe: Probe = unseen) -> Step[Any]:
        self.check()
        if self.tell is not None:
            self.tell(ids_R.tolist())
        return self._engine.step(state, ids_R, probe)

    def force(self, batch: Batch, probe: Probe = unseen) -> Forced:
        self.check()
        return self._engine.force(batch, probe)


def _serve(
    connection: Connection, models: Mapping[str, Path], compute: Compute, stopped: Any, parent: int
) -> None:
    """Answer tasks until the other end is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when to end
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt), one_blas_thread():
        loaded: dict[str, Loaded] = {}
        watched: dict[str, _Watched] = {}
        for name, path in models.items():
            try:
                one = Loaded.open(path, compute=compute)
            except ConfigError:  # one of several models that CTranslate2 does not know
                one = Loaded.open(path, compute=NUMPY)
            watched[name] = _Watched(one.searcher.steps.engine)
            searcher = one.searcher.watched_by(watched[name])
            loaded[name] = replace(one, name=name, searcher=searcher)
        connection.send(("ready", None))
        while True:
            number, task, tells = connection.recv()
            _answer(connection, number, task, loaded[task.model], watched[task.model], stopped, tells)


def _answer(
    connection: Connection,
    number: int,
    task: Task,
    loaded: Loaded,
    watched: _Watched,
    stopped: Any,
    tells: bool,
) -> None:
    def check() -> None:
        if stopped.value == number:
            raise StopError

    watched.check = check
    watched.tell = (lambda ids: connection.send(("ids", ids))) if tells else None
    if tells:
        loaded = loaded.by_steps()
    try:
        check()
        answer: tuple[str, Any] = ("done", task.work(loaded))
    except StopError:
        answer = ("stopped", None)
    except RegardError as error:
        answer = ("failed", error)
    except MemoryError:
        answer = ("failed", WorkerError("not enough memory for this text"))
    except Exception as error:
        print(f"regard: {type(error).__name__}: {error}", file=sys.stderr)
        answer = ("failed", WorkerError(f"a fault of the server ({type(error).__name__})"))
    connection.send(answer)
