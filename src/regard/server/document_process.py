"""A document read and written in a process of its own: a hostile one costs no more than that process."""

import asyncio
import contextlib
import multiprocessing
import resource
import signal
from concurrent.futures import Executor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Self

from regard.errors import DocumentError
from regard.formats.document import document
from regard.formats.segments import Said, Wanted
from regard.text.markup import Markup

_MEMORY = 512 << 20  # bytes that a document may take

Texts = list[tuple[str, Markup | None]]
"""The texts of segments, and whether they have tags."""


@dataclass(frozen=True, slots=True)
class DocumentTask:
    """A document to translate, and what it may cost."""

    data: bytes
    ending: str
    source: str
    target: str
    max_characters: int
    """Of all segments."""
    max_bytes: int
    """Of the translated document."""
    seconds: int
    """Of processor time, to read and to write it."""


class DocumentProcess:
    """The process of one document; a thread of `threads` waits for it, so that the caller does not block."""

    def __init__(self, threads: Executor) -> None:
        self._threads = threads
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    async def ask(self, given: DocumentTask | list[str]) -> Texts | bytes:
        """Return the texts of segments to translate, or at the end the document.

        The first time it is given the task, then the translations of the texts before.
        """
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._threads, self._connection.send, given)
            answer = await loop.run_in_executor(self._threads, self._connection.recv)
        except (EOFError, OSError):
            raise DocumentError("takes too much time or memory; divide it") from None
        if isinstance(answer, DocumentError):
            raise answer
        found: Texts | bytes = answer
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # A thread that still waits sees the end of the pipe, and closes it when it lets go of it.
        self._process.kill()
        self._process.join()


def _serve(connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when to end
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(EOFError, OSError):
        try:
            _translate(connection, connection.recv())
        except DocumentError as error:
            connection.send(error)
        except MemoryError:
            connection.send(DocumentError("takes too much memory; divide it"))


def _translate(connection: Connection, task: DocumentTask) -> None:
    _limit(resource.RLIMIT_DATA, _MEMORY)
    _limit(resource.RLIMIT_CPU, task.seconds)
    work = document(task.data, task.ending, Wanted(task.source, task.target))
    num_characters = 0
    try:
        segments = next(work)
        while True:
            num_characters += sum(len(one.text) for one in segments)
            if num_characters > task.max_characters:
                raise DocumentError(f"has more than {task.max_characters:,} characters; divide it")
            connection.send([(one.text, one.markup) for one in segments])
            segments = work.send([Said(text) for text in connection.recv()])
    except StopIteration as end:
        if len(end.value) > task.max_bytes:
            raise DocumentError(f"would have {len(end.value):,} bytes when translated; divide it") from None
        connection.send(end.value)


def _limit(kind: int, most: int) -> None:
    """Limit what this process may use, where the system can."""
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(kind)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (allowed, hard))
