"""Documents of clients: translated among the texts of others, and kept in memory for a while.

Nothing of a document is written to the disk. Of the name that a client gives it only the ending is used.
"""

import asyncio
import contextlib
import hmac
import logging
import secrets
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal
from weakref import WeakValueDictionary

from regard.errors import DocumentError
from regard.formats.document import ENDINGS
from regard.server.document_process import DocumentProcess, DocumentTask, Texts
from regard.server.errors import ApiError
from regard.server.languages import base

if TYPE_CHECKING:
    from regard.server.service import Asked, Caller, Service

_log = logging.getLogger("regard.server")

_AT_ONCE = 4  # documents that are translated at the same time, each of another client
_OF_CLIENT = 8  # documents that are kept of one client
_IN_ALL = 64
_GROWTH = 4  # a translated document may be so many times as large as a request
_CPU_SECONDS = 60  # to read and write a document
_SAMPLE = 100  # segments whose language is looked at

State = Literal["queued", "translating", "done", "error"]


@dataclass(eq=False, slots=True)
class Document:
    """A document that was sent in, and its translation to come. Who knows its name may fetch it."""

    ending: str
    client: str
    name: str = field(default_factory=lambda: secrets.token_hex(16))
    key: str = field(default_factory=lambda: secrets.token_hex(32))
    num_characters: int = 0
    is_begun: bool = False
    task: asyncio.Task[bytes] = field(init=False)
    expiry: asyncio.TimerHandle = field(init=False)

    @property
    def state(self) -> State:
        """How far it is."""
        if not self.task.done():
            return "translating" if self.is_begun else "queued"
        return "done" if self.error is None else "error"

    @property
    def error(self) -> str | None:
        """Why it was not translated, None if it was or is not done."""
        if not self.task.done():
            return None
        error = self.task.exception() if not self.task.cancelled() else "it was stopped"
        return error if error is None else str(error)

    def result(self) -> bytes:
        """Return the translation, or raise why there is none."""
        if not self.task.done():
            raise ApiError(503, "the document is not translated yet", 1)
        return self.task.result()


class Documents:
    """The documents of a service."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._documents: dict[str, Document] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._threads = ThreadPoolExecutor(2 * _AT_ONCE, "document")

    @property
    def num_kept(self) -> int:
        """How many documents there are, done or not."""
        return len(self._documents)

    def begin(self, data: bytes, file_name: str, asked: "Asked", caller: "Caller") -> Document:
        """Take in a document; it is translated when it has its turn."""
        ending = PurePosixPath(file_name).suffix.lower()
        if ending not in ENDINGS:
            raise ApiError(400, f"documents of this kind are not translated; known are {' '.join(ENDINGS)}")
        if asked.is_auto and ending == ".tmx":
            raise ApiError(400, "a TMX document has several languages; name the one to translate from")
        if not asked.is_auto:
            self._service.way("", asked)  # raises if there is none
        self._make_room(caller.client)
        document = Document(ending, caller.client)
        document.task = asyncio.create_task(self._translate(document, data, asked, caller))
        document.task.add_done_callback(
            lambda task: task.cancelled() or task.exception()
        )  # it is told when asked
        self._documents[document.name] = document
        self._touch(document)
        return document

    def find(self, name: str, key: str | None = None) -> Document:
        """Return a document that is kept; if a key is given it must be the document's."""
        document = self._documents.get(name)
        if document is None or not (key is None or _is_same(key, document.key)):
            seconds = self._service.options.document_seconds
            raise ApiError(404, f"there is no such document; one is kept for {seconds:g} seconds")
        document.expiry.cancel()
        self._touch(document)
        return document

    async def translated(self, document: Document) -> bytes:
        """Return the translation when it is done; if it is too late or cancelled, give the document up."""
        try:
            async with asyncio.timeout(self._service.options.deadline):
                return await document.task
        except TimeoutError:
            raise self._service.too_late() from None
        finally:
            if document.state != "done":
                self._remove(document)

    def close(self) -> None:
        """Let go of the threads; the tasks ended with the event loop."""
        self._threads.shutdown(wait=False)

    def _touch(self, document: Document) -> None:
        loop, seconds = asyncio.get_running_loop(), self._service.options.document_seconds
        document.expiry = loop.call_later(seconds, self._remove, document)

    def _remove(self, document: Document) -> None:
        document.expiry.cancel()
        document.task.cancel()
        self._documents.pop(document.name, None)

    def _make_room(self, client: str) -> None:
        own = [one for one in self._documents.values() if one.client == client]
        if len(own) >= _OF_CLIENT:
            oldest = next((one for one in own if one.task.done()), None)
            if oldest is None:
                raise ApiError(429, f"{len(own)} documents of yours are not done; wait for one of them", 5)
            self._remove(oldest)
        if len(self._documents) >= _IN_ALL:
            raise ApiError(503, "too many documents are kept; try again", 30)

    @contextlib.asynccontextmanager
    async def _turn(self, client: str) -> AsyncIterator[None]:
        """Wait until no other document of the client, and not too many of others, are being translated."""
        lock = self._turns.setdefault(client, asyncio.Lock())
        async with lock, self._places:
            yield

    async def _translate(self, document: Document, data: bytes, asked: "Asked", caller: "Caller") -> bytes:
        try:
            async with self._turn(caller.client):
                document.is_begun = True
                return await self._through_process(document, data, asked, caller)
        except ApiError:
            raise
        except DocumentError as error:
            raise ApiError(400, f"the document {error}") from None
        except Exception as error:
            _log.exception("a document failed")
            raise ApiError(500, "a fault of the server; its log says more") from error

    async def _through_process(
        self, document: Document, data: bytes, asked: "Asked", caller: "Caller"
    ) -> bytes:
        options = self._service.options
        task = DocumentTask(
            data,
            document.ending,
            "" if asked.is_auto else base(asked.source),
            base(asked.target),
            max_characters=options.max_document,
            max_bytes=_GROWTH * options.max_body,
            seconds=_CPU_SECONDS,
        )
        with DocumentProcess(self._threads) as process:
            answer = await process.ask(task)
            while not isinstance(answer, bytes):
                texts = [text for text, _ in answer]
                document.num_characters += sum(map(len, texts))
                self._service.check_segments(texts, caller)
                self._service.metrics.count_characters(texts)
                if asked.is_auto and texts:
                    route, _ = self._service.way(" ".join(texts[:_SAMPLE]), asked)
                    asked = replace(asked, source=route.source)
                answer = await process.ask(await self._said(answer, asked, caller))
            return answer

    async def _said(self, texts: Texts, asked: "Asked", caller: "Caller") -> list[str]:
        """Return the translations of segments. Few are asked for at a time: others have their turns."""
        said = [""] * len(texts)
        waiting = iter(enumerate(texts))

        async def work() -> None:
            for place, (text, markup) in waiting:
                said[place] = await self._service.segment(text, replace(asked, markup=markup), caller)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(max(1, self._service.options.max_waiting // (2 * _AT_ONCE))):
                    group.create_task(work())
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return said


def _is_same(key: str, wanted: str) -> bool:
    return hmac.compare_digest(key.encode("utf-8", "surrogatepass"), wanted.encode())
