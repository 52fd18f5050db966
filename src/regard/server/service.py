"""What every API of the server is made of: translate, trace, detect, suggest, within limits."""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.corpus.suggestions import Suggestion
from regard.errors import RegardError, WorkerError
from regard.options.search import BeamOptions
from regard.parallel import num_cores
from regard.search.searcher import Search
from regard.server.desk import Desk, Ticket
from regard.server.documents import Documents
from regard.server.errors import ApiError
from regard.server.glossaries import Glossaries
from regard.server.languages import Route, Served, base, detect
from regard.server.limits import Keys, Rates
from regard.server.metrics import Metrics
from regard.server.settings import ServerOptions
from regard.server.suggestions import Suggestions
from regard.server.workers import TraceForm, TraceTask
from regard.terms.glossary import Glossary
from regard.text.markup import Markup
from regard.trace.make import TraceArguments
from regard.translate.request import Request
from regard.translate.result import Translation

_log = logging.getLogger("regard.server")

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: a name for the limits, which is never written anywhere."""

    client: str
    key: str | None = None
    url: str = ""
    """Where the client found the server."""


@dataclass(frozen=True, slots=True)
class Asked:
    """How texts are to be translated: between languages, or by a model that is named."""

    target: str = ""
    source: str = AUTO
    model: str | None = None
    num_best: int = 1
    prefix: str | None = None
    search: Search = field(default_factory=BeamOptions)
    guard: bool = True
    glossary: Glossary | None = None
    markup: Markup | None = None

    @property
    def is_auto(self) -> bool:
        """Whether the source language is to be detected."""
        return self.model is None and self.source.strip().lower() == AUTO


@dataclass(frozen=True, slots=True)
class Answer:
    """A translated text. By way of a third language, `first` is the translation into that."""

    text: str
    route: Route
    translation: Translation | None = None  # None: the text is in the language that is wanted
    first: Translation | None = None
    confidence: float | None = None  # of the source language, where it was detected

    @property
    def alternatives(self) -> list[str]:
        """Other translations, best first, each once."""
        others = () if self.translation is None else self.translation.alternatives
        return list(dict.fromkeys(one.text for one in others if one.text != self.text))


class Service:
    """The models of a server, and who may use them how much."""

    def __init__(self, models: Mapping[str, Path], options: ServerOptions) -> None:
        self.options = options
        self._paths = dict(models)
        self.metrics = Metrics(self)
        self.keys = None if options.keys is None else Keys(options.keys)
        self._rates = Rates(options.rate)
        self._suggestions = (
            None if options.suggestions is None else Suggestions(options.suggestions, options.max_suggestions)
        )
        self._cache: OrderedDict[tuple[str, str, object], Translation] = OrderedDict()
        self._cached_characters = 0
        self.documents = Documents(self)
        self.glossaries = Glossaries(options.glossaries)
        self._use(self._open())

    def _open(self) -> Desk:
        return Desk(self._paths, self.options.num_workers or num_cores(), self.options.compute)

    def _use(self, desk: Desk) -> None:
        self.desk = desk
        self.served = Served(desk.models)
        self._cache.clear()
        self._cached_characters = 0

    @property
    def keeps_suggestions(self) -> bool:
        """Whether suggestions are kept."""
        return self._suggestions is not None

    def reload(self) -> None:
        """Read the models and keys again. What was asked before is answered by the models before."""
        before = self.desk
        if self.options.keys is not None:
            self.keys = Keys(self.options.keys)
        self._use(self._open())
        before.drain(self.options.deadline)

    def close(self) -> None:
        """Finish what was asked, and end."""
        self.documents.close()
        self.desk.drain(self.options.deadline)
        if self._suggestions is not None:
            self._suggestions.close()
        self.glossaries.close()

    def why_not_ready(self) -> str | None:
        """Return why requests are refused now, None if they are not."""
        if not self.desk.is_healthy:
            return "a translating process is being started again"
        if self.desk.num_waiting >= self.options.max_waiting:
            return "too many texts wait"
        return None

    async def translate(self, texts: Sequence[str], asked: Asked, caller: Caller) -> list[Answer]:
        """Return the translation of each text."""
        self._check(texts, asked, caller)
        ways = [self.way(text, asked) for text in texts]
        self.metrics.count_characters(texts)
        try:
            async with asyncio.timeout(self.options.deadline):
                return await _all(
                    [self._one(text, *way, asked, caller) for text, way in zip(texts, ways, strict=True)]
                )
        except TimeoutError:
            raise self.too_late() from None

    async def segment(self, text: str, asked: Asked, caller: Caller) -> str:
        """Return the translation of a segment of a document; `check_segments` comes before."""
        return (await self._one(text, *self.way(text, asked), asked, caller)).text

    def too_late(self) -> ApiError:
        """Return the answer for what is not done in time."""
        return ApiError(503, f"not done within {self.options.deadline:g} s; send less at a time", 1)

    async def stream(
        self, text: str, asked: Asked, caller: Caller
    ) -> AsyncIterator[tuple[int, str] | Answer]:
        """Yield each sentence as it grows, with its number, and at the end the answer.

        A text goes through one model, word by word without a beam.
        """
        self._check([text], asked, caller)
        route, confidence = self.way(text, asked)
        if len(route.models) != 1:
            raise ApiError(400, "words can be sent as they come only where one model translates")
        self.metrics.count_characters([text])
        loop = asyncio.get_running_loop()
        told: asyncio.Queue[tuple[int, str] | None] = asyncio.Queue()

        def tell(place: int, words: str) -> None:
            loop.call_soon_threadsafe(told.put_nowait, (place, words))

        request = _request(text, asked)
        ticket = self.desk.submit(route.models[0], request, caller.client, tell)
        ticket.future.add_done_callback(lambda _: loop.call_soon_threadsafe(told.put_nowait, None))
        try:
            async with asyncio.timeout(self.options.deadline):
                while (words := await told.get()) is not None:
                    yield words
                translation = await _result(self.desk, ticket)
        except TimeoutError:
            raise self.too_late() from None
        finally:
            self.desk.leave(ticket)
        yield Answer(translation.text, route, translation, confidence=confidence)

    async def trace(
        self, text: str, asked: Asked, how: TraceArguments, form: TraceForm, caller: Caller
    ) -> bytes:
        """Return the traces of all parts of a text."""
        self._check([text], asked, caller)
        route, _ = self.way(text, asked)
        if len(route.models) != 1:
            raise ApiError(400, "a trace shows one model; name one, or languages that one model has")
        if len(text) > self.options.max_trace:
            raise ApiError(
                400, f"a text has {len(text):,} characters; {self.options.max_trace:,} can be traced"
            )
        try:
            async with asyncio.timeout(self.options.deadline):
                ticket = self.desk.call(TraceTask(route.models[0], text, how, form), caller.client)
                data: bytes = await _result(self.desk, ticket)
                return data
        except TimeoutError:
            raise self.too_late() from None

    def detect(self, text: str, caller: Caller) -> list[tuple[str, float]]:
        """Return the served languages, the likeliest first."""
        self._check_texts([text], caller)
        return detect(text, self.served.sources)

    async def suggest(self, one: Suggestion, caller: Caller) -> None:
        """Keep a suggestion."""
        if self._suggestions is None:
            raise ApiError(403, "this server keeps no suggestions; it was started without --suggestions")
        self._check_texts([one.source, one.target], caller)
        for code in (one.source_language, one.target_language):
            if base(code) not in self.served.codes:
                raise ApiError(400, f"{code[:20]} is not supported")
        if not one.source.strip() or not one.target.strip():
            raise ApiError(400, "a suggestion needs a text and its translation")
        await asyncio.to_thread(self._suggestions.add, one, caller.key or "")

    def _check(self, texts: Sequence[str], asked: Asked, caller: Caller) -> None:
        if asked.num_best - 1 > self.options.max_alternatives:
            raise ApiError(400, f"at most {self.options.max_alternatives} alternatives")
        if self.desk.num_waiting + len(texts) > self.options.max_waiting:
            self.metrics.count_refused("queue")
            raise ApiError(503, "too many texts wait; try again", 1)
        self._check_texts(texts, caller)

    def _check_texts(self, texts: Sequence[str], caller: Caller) -> None:
        if len(texts) > self.options.max_texts:
            raise ApiError(400, f"{len(texts)} texts; at most {self.options.max_texts} in one request")
        for text in texts:
            if len(text) > self.options.max_characters:
                raise ApiError(
                    400, f"a text has {len(text):,} characters; the limit is {self.options.max_characters:,}"
                )
        self.check_segments(texts, caller)

    def check_segments(self, texts: Sequence[str], caller: Caller) -> None:
        """Raise if a text has what is no character, or if the client has sent too many a minute."""
        for text in texts:
            try:
                text.encode()
            except UnicodeEncodeError:
                raise ApiError(400, "a text has half a surrogate pair, which is no character") from None
        try:
            self._rates.take(caller.client, sum(map(len, texts)))
        except ApiError:
            self.metrics.count_refused("rate")
            raise

    def way(self, text: str, asked: Asked) -> tuple[Route, float | None]:
        """Return the way to translate a text, and how likely its language is if that was detected."""
        route, confidence = self._found_way(text, asked)
        if asked.glossary is not None and len(route.models) > 1:
            raise ApiError(400, "a glossary can be used only where one model translates")
        return route, confidence

    def _found_way(self, text: str, asked: Asked) -> tuple[Route, float | None]:
        if asked.model is not None:
            return self.served.route_of(asked.model), None
        if not asked.is_auto:
            return self.served.route(asked.source, asked.target), None
        if base(asked.target) not in self.served.codes:
            raise ApiError(
                400, f"{asked.target[:20]} is not supported; this server has {', '.join(self.served.codes)}"
            )
        ranked = detect(text, self.served.codes)
        target = base(asked.target)
        for place, (code, confidence) in enumerate(ranked):  # the likeliest from which there is a way
            route = self.served.find(code, target)
            if route is not None and (code != target or place == 0):
                return route, confidence
        raise ApiError(400, f"nothing is translated into {asked.target[:20]}")

    async def _one(
        self, text: str, route: Route, confidence: float | None, asked: Asked, caller: Caller
    ) -> Answer:
        translation: Translation | None = None
        first: Translation | None = None
        said = text
        for model in route.models:
            is_last = model == route.models[-1]
            request = _request(said, asked) if is_last else Request(said, markup=asked.markup)
            first, translation = translation, await self._through(model, request, caller)
            said = translation.text if translation.marked is None else translation.marked
        if self.options.log_texts:
            _log.info(json.dumps({"text": text, "translation": said}))
        return Answer(said, route, translation, first, confidence)

    async def _through(self, model: str, request: Request, caller: Caller) -> Translation:
        terms = None if request.glossary is None else request.glossary.digest
        rest = (request.prefix, request.num_best, request.guard, repr(request.search), terms, request.markup)
        key = (model, request.text, rest)
        if (known := self._cache.get(key)) is not None:
            self._cache.move_to_end(key)
            self.metrics.count_cached()
            return known
        desk = self.desk
        translation: Translation = await _result(desk, desk.submit(model, request, caller.client))
        if desk is self.desk and len(request.text) <= self.options.cache_characters:
            self._cache[key] = translation
            self._cached_characters += len(request.text)
            while self._cached_characters > self.options.cache_characters:
                oldest, _ = self._cache.popitem(last=False)
                self._cached_characters -= len(oldest[1])
        return translation


async def _all(work: Sequence[Any]) -> list[Answer]:
    """Return all results; if one fails the others are given up."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def _request(text: str, asked: Asked) -> Request:
    try:
        return Request(
            text,
            prefix=asked.prefix,
            num_best=asked.num_best,
            search=asked.search,
            guard=asked.guard,
            glossary=asked.glossary,
            markup=asked.markup,
        )
    except RegardError as error:
        raise ApiError(400, str(error)) from None


async def _result(desk: Desk, ticket: Ticket) -> Any:
    try:
        return await asyncio.wrap_future(ticket.future)
    except WorkerError as error:
        raise ApiError(503, str(error), 1) from None
    except RegardError as error:
        raise ApiError(400, str(error)) from None
    except asyncio.CancelledError:
        desk.leave(ticket)
        raise
