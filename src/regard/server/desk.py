"""Requests of many clients, translated together in batches and in fair turns.

Every client has as much of the next round as any other, counted in tokens: a book is spread over many rounds,
and a sentence of somebody else joins the current one. All searching is done by `Worker` processes; one thread
for each gives it batches and takes back what it found.
"""

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from regard.engines import NUMPY, Compute
from regard.errors import RegardError, WorkerError
from regard.loaded import Loaded
from regard.server.workers import SearchTask, StopError, Task, Worker
from regard.translate.queue import Batch, Queue
from regard.translate.request import Request
from regard.translate.result import Translation
from regard.vocabulary import BOS

_log = logging.getLogger("regard.server")

_BATCH_TOKENS = 2048  # source tokens in all rows: more is faster, but who comes next waits longer
_ROUND_TOKENS = 256  # of one client in one round
_TRACE_TOKENS = 64  # what a trace counts for
_WATCH_SECONDS = 0.05  # between two looks at an idle worker
_MAX_CLIENTS = 10_000  # whose turns are remembered

Tell = Callable[[int, str], None]


@dataclass(eq=False, slots=True)
class Ticket:
    """Something that was asked for, and its result to come."""

    number: int
    client: str
    model: str
    request: Request | None = None
    task: Task | None = None
    tell: Tell | None = None
    round: int = 0
    is_left: bool = False
    future: Future[Any] = field(default_factory=Future)


class Desk:
    """Takes requests from any thread and translates them.

    A desk has its models for its whole life. To load others, open a new desk and `drain` this one.
    """

    def __init__(self, models: Mapping[str, Path], num_workers: int, compute: Compute | None = None) -> None:
        if compute is not None:
            compute.check()
        # The workers search. Here models are asked for their tokenizers only.
        self.models = {
            name: replace(Loaded.open(path, compute=NUMPY), name=name) for name, path in models.items()
        }
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._inbox: deque[Ticket] = deque()
        self._left: deque[Ticket] = deque()  # tickets whose clients have gone
        self._tickets: dict[int, Ticket] = {}
        self._queues: dict[str | int, Queue] = {  # of a model, or of a ticket that tells
            name: Queue(model, _BATCH_TOKENS) for name, model in self.models.items()
        }
        self._tasks: list[Ticket] = []
        self._turns: dict[str, float] = {}  # the round in which each client's next segment comes
        self._now = 0  # the round that is being worked on
        self._running: dict[int, tuple[Worker, _Searching | Ticket]] = {}
        self._is_closed = False
        self._workers = [Worker(models, compute) for _ in range(num_workers)]
        for worker in self._workers:
            worker.wait_until_ready()
        self._threads = [
            threading.Thread(target=self._work, args=(worker,), daemon=True) for worker in self._workers
        ]
        for thread in self._threads:
            thread.start()

    @property
    def num_waiting(self) -> int:
        """How many requests are not done yet."""
        return len(self._tickets) + len(self._inbox)

    @property
    def is_healthy(self) -> bool:
        """Whether every worker runs."""
        return all(worker.is_alive for worker in self._workers)

    def submit(self, model: str, request: Request, client: str = "", tell: Tell | None = None) -> Ticket:
        """Take a request; `tell` hears the text of each sentence while a greedy search grows it."""
        return self._take_in(Ticket(next(self._numbers), client, model, request, tell=tell))

    def call(self, task: Task, client: str = "") -> Ticket:
        """Take a task of another kind, such as a trace."""
        return self._take_in(Ticket(next(self._numbers), client, task.model, task=task))

    def leave(self, ticket: Ticket) -> None:
        """Say that nobody waits for it any more: what waits of it is dropped, what runs is stopped."""
        ticket.is_left = True
        self._left.append(ticket)
        self._wake()

    def drain(self, timeout: float) -> None:
        """Finish what was taken in, at most so many seconds, and end all workers."""
        until = time.monotonic() + timeout
        while self.num_waiting and time.monotonic() < until:
            time.sleep(0.02)
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.stop()
        for thread in self._threads:
            thread.join(5)
        for worker in self._workers:
            worker.close()
        for ticket in [*self._tickets.values(), *self._inbox]:
            _fail(ticket, WorkerError("the server is stopping"))

    def _take_in(self, ticket: Ticket) -> Ticket:
        self._inbox.append(ticket)  # never waits for a lock that a worker's thread holds
        self._wake()
        return ticket

    def _wake(self) -> None:
        # A thread that holds the lock looks into the boxes before it waits. What came in is split into
        # sentences by a worker's thread: the caller's may have other clients to answer.
        if self._changed.acquire(blocking=False):
            try:
                self._let_go()
                self._changed.notify()
            finally:
                self._changed.release()

    def _work(self, worker: Worker) -> None:
        """Give a worker one batch after another."""
        while True:
            with self._changed:
                found = self._next()
                while found is None:
                    if self._is_closed:
                        return
                    self._changed.wait(_WATCH_SECONDS)
                    worker.revive()
                    found = self._next()
                self._running[id(worker)] = worker, found
            try:
                self._do(worker, found)
            finally:
                with self._changed:
                    del self._running[id(worker)]

    def _do(self, worker: Worker, what: "_Searching | Ticket") -> None:
        try:
            if isinstance(what, Ticket):
                assert what.task is not None
                result = _ask_twice(worker, what.task)
                with self._changed:
                    self._tickets.pop(what.number, None)
                _give(what, result)
                return
            found = _ask_twice(worker, SearchTask(what.model, what.batch.job), what.tell)
            with self._changed:
                self._finish(what.queue.give(what.batch, found))
        except StopError:
            pass
        except Exception as error:
            if not isinstance(error, RegardError):
                _log.exception("a batch failed")
            self._give_up(what, error)

    def _give_up(self, what: "_Searching | Ticket", error: Exception) -> None:
        """Answer everyone whose text was in a failed batch with the error."""
        with self._changed:
            for number in {what.number} if isinstance(what, Ticket) else what.batch.numbers:
                if (ticket := self._tickets.pop(number, None)) is not None:
                    self._forget(ticket)
                    _fail(ticket, error)

    def _next(self) -> "_Searching | Ticket | None":
        """Return what comes next, of the earliest round."""
        self._let_in()
        self._let_go()
        waiting: list[tuple[int, str | int | Ticket]] = [
            (round, key) for key, queue in self._queues.items() if (round := queue.first_round) is not None
        ]
        waiting += [(ticket.round, ticket) for ticket in self._tasks]
        if not waiting:
            return None
        round, chosen = min(waiting, key=lambda one: one[0])
        self._now = max(self._now, round)
        if isinstance(chosen, Ticket):
            self._tasks.remove(chosen)
            return chosen
        queue = self._queues[chosen]
        batch = queue.take()
        assert batch is not None
        if isinstance(chosen, str):
            return _Searching(chosen, queue, batch)
        ticket = self._tickets[chosen]
        assert ticket.tell is not None
        return _Searching(ticket.model, queue, batch, _Spoken(queue, batch, ticket.tell))

    def _let_in(self) -> None:
        """Put what came in into the queues."""
        while self._inbox:
            ticket = self._inbox.popleft()
            if ticket.is_left:
                continue
            self._tickets[ticket.number] = ticket
            try:
                self._enter(ticket)
            except Exception as error:
                self._tickets.pop(ticket.number, None)
                _fail(ticket, error)

    def _let_go(self) -> None:
        """Take out what was left."""
        while self._left:
            ticket = self._left.popleft()
            if self._tickets.pop(ticket.number, None) is not None:
                self._forget(ticket)
                ticket.future.cancel()

    def _enter(self, ticket: Ticket) -> None:
        if ticket.request is None:
            ticket.round = self._turn(ticket.client, _TRACE_TOKENS)
            self._tasks.append(ticket)
            return
        key = _key(ticket)
        if key not in self._queues:
            self._queues[key] = Queue(self.models[ticket.model], 1)  # a sentence at a time

        def turn(num_tokens: int) -> int:
            # The sentences of one that tells come in their order, so each has a round of its own.
            cost = num_tokens if ticket.tell is None else max(num_tokens, _ROUND_TOKENS)
            return self._turn(ticket.client, cost)

        self._finish(self._queues[key].put([(ticket.number, ticket.request)], turn))

    def _turn(self, client: str, num_tokens: int) -> int:
        """Return the round in which so many tokens of a client have their turn."""
        if len(self._turns) > _MAX_CLIENTS:
            self._turns = {one: turn for one, turn in self._turns.items() if turn > self._now}
        turn = max(self._turns.get(client, 0.0), float(self._now))
        self._turns[client] = turn + num_tokens / _ROUND_TOKENS
        return int(turn)

    def _forget(self, ticket: Ticket) -> None:
        """Drop what waits of a ticket, and stop a worker if nobody waits for what it does."""
        if ticket.request is None:
            self._tasks = [one for one in self._tasks if one is not ticket]
        else:
            queue = self._queues[_key(ticket)]
            queue.drop(ticket.number)
            if ticket.tell is not None:
                del self._queues[_key(ticket)]
        for worker, what in self._running.values():
            if what is ticket or (isinstance(what, _Searching) and what.batch.is_dropped):
                worker.stop()

    def _finish(self, done: Sequence[tuple[int, Translation]]) -> None:
        for number, translation in done:
            ticket = self._tickets.pop(number)
            if ticket.tell is not None:
                del self._queues[_key(ticket)]
            _give(ticket, translation)


@dataclass(frozen=True, slots=True, eq=False)
class _Searching:
    """A batch that is being searched."""

    model: str
    queue: Queue
    batch: Batch
    tell: "_Spoken | None" = None


class _Spoken:
    """Turns the ids of each step into the text of the sentence so far."""

    def __init__(self, queue: Queue, batch: Batch, tell: Tell) -> None:
        self._decode = queue.model.tokenizers.target.decode
        self._place, self._tell = batch.places[0], tell
        self._ids: list[int] = []

    def __call__(self, ids: Sequence[int]) -> None:
        if ids[0] == BOS:  # the beginning, perhaps once more
            self._ids = []
        else:
            self._ids.append(ids[0])
            self._tell(self._place, self._decode(self._ids))


def _ask_twice(worker: Worker, task: Task, tell: "_Spoken | None" = None) -> Any:
    """Return the result of a task; if the process dies, the new one is asked once more."""
    try:
        return worker.ask(task, tell)
    except WorkerError:
        return worker.ask(task, tell)


def _key(ticket: Ticket) -> str | int:
    return ticket.model if ticket.tell is None else ticket.number


def _give(ticket: Ticket, result: Any) -> None:
    if ticket.future.set_running_or_notify_cancel():
        ticket.future.set_result(result)


def _fail(ticket: Ticket, error: Exception) -> None:
    if not ticket.future.done() and ticket.future.set_running_or_notify_cancel():
        ticket.future.set_exception(error)
