"""Our own API: translations with alignment, flags and confidence; traces; words as they come."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response, StreamingResponse

from regard.design import design
from regard.errors import ConfigError, CorpusError
from regard.loaded import Loaded
from regard.options.parse import parse
from regard.options.search import BeamOptions
from regard.search.searcher import Search
from regard.server.body import Fields
from regard.server.errors import ApiError
from regard.server.languages import name_of
from regard.server.reply import plain_error, valid
from regard.server.service import AUTO, Answer, Asked, Caller, Service
from regard.server.workers import TraceForm
from regard.terms.glossary import Glossary
from regard.trace.document import Intervention
from regard.trace.live import told_of
from regard.trace.make import TraceArguments

_MEDIA = {"svg": "image/svg+xml", "png": "image/png", "html": "text/html", "csv": "text/csv"}


class SearchFields(BaseModel):
    """How to search; see `docs/options.md`. What is left out is as usual."""

    model_config = ConfigDict(extra="forbid")

    kind: str = Field("beam", description="beam, sample or risk", examples=["beam"], max_length=10)
    beam_size: int | None = Field(None, ge=1, le=12)
    length_penalty: float | None = Field(None, ge=-10, le=10)
    coverage_penalty: float | None = Field(None, ge=0, le=10)
    diversity: float | None = Field(None, ge=0, le=10)
    no_repeat_ngram: int | None = Field(None, ge=1, le=20)
    temperature: float | None = Field(None, gt=0, le=10)
    top_k: int | None = Field(None, ge=1, le=1000)
    top_p: float | None = Field(None, gt=0, le=1)
    typical_p: float | None = Field(None, gt=0, le=1)
    seed: int | None = Field(None, ge=0, le=2**31)
    num_samples: int | None = Field(None, ge=1, le=32)

    def chosen(self) -> Search:
        """Return the options of the search."""
        try:
            search: Search = parse("search", self.model_dump(exclude_none=True))
            return search
        except ConfigError as error:
            raise ApiError(400, str(error)) from None


class Languaged(BaseModel):
    """Which languages, or which model."""

    model_config = ConfigDict(extra="forbid")

    source: str = Field(AUTO, max_length=40, examples=["fr"], description="a code, or auto")
    target: str = Field("", max_length=40, examples=["en"], description="a code; not needed with a model")
    model: str | None = Field(None, max_length=200, examples=["fr-en"], description="the name of a model")
    prefix: str | None = Field(None, max_length=5000, description="what the translation begins with")
    guard: bool = Field(True, description="try again what looks wrong")
    search: SearchFields = SearchFields()

    def asked(self, num_best: int = 1, search: Search | None = None) -> Asked:
        """Return what is asked for."""
        if self.model is None and not self.target:
            raise ApiError(400, "name a target language, or a model")
        search = self.search.chosen() if search is None else search
        if isinstance(search, BeamOptions) and num_best > search.beam_size:
            search = search.model_copy(update={"beam_size": num_best})
        return Asked(self.target, self.source, self.model, num_best, self.prefix, search, self.guard)


class TranslateFields(Languaged):
    """Texts to translate."""

    text: str | list[str] = Field(examples=["Je suis étudiant."])
    num_best: int = Field(1, ge=1, le=11, description="the translation and alternatives to it")
    glossary: dict[str, str | list[str]] = Field(
        {},
        max_length=1000,
        description="terms, each with its translation or several forms of it; -form forbids one",
        examples=[{"étudiant": "pupil"}],
    )


class StreamFields(Languaged):
    """A text to translate word by word."""

    text: str = Field(examples=["Je suis étudiant."])


class DetectFields(BaseModel):
    """A text whose language is asked for."""

    text: str = Field(examples=["Je suis étudiant."])


class TraceFields(Languaged):
    """A text whose translation is to be shown in all its steps."""

    text: str = Field(examples=["Je suis étudiant."])
    force: str | None = Field(None, max_length=5000, description="a given translation")
    raw: bool = Field(False, description="the plain search of the whole text")
    effects: bool = Field(False, description="what each source word does")
    gates: bool = Field(False, description="the gates of recurrent cells")
    interventions: list[Annotated[Intervention, Field(discriminator="type")]] = Field(
        [], max_length=200, description="changes of the running model"
    )
    form: TraceForm = Field("json", description="JSON, or a file; page: JSON with the cards of the mechanics")


async def translate(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `POST /api/v1/translate`."""
    body = valid(TranslateFields, fields)
    texts = [body.text] if isinstance(body.text, str) else body.text
    asked = body.asked(body.num_best)
    if body.glossary:
        try:
            asked = replace(asked, glossary=Glossary.of(body.glossary))
        except CorpusError as error:
            raise ApiError(400, str(error)) from None
    answers = await service.translate(texts, asked, caller)
    return {"translations": [_shown(answer) for answer in answers]}


async def stream(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `POST /api/v1/stream`."""
    body = valid(StreamFields, fields)
    asked = body.asked(search=BeamOptions(beam_size=1))
    events = service.stream(body.text, asked, caller)
    first = await anext(events)  # an error before the first word is an ordinary answer

    async def lines() -> AsyncIterator[str]:
        yield _event(first)
        try:
            async for event in events:
                yield _event(event)
        except ApiError as error:
            yield f"event: error\ndata: {json.dumps(plain_error(error))}\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


async def trace(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `POST /api/v1/trace`."""
    body = valid(TraceFields, fields)
    if body.force is not None and len(body.force) > service.options.max_characters:
        raise ApiError(400, f"a translation has more than {service.options.max_characters:,} characters")
    asked = body.asked()
    how: TraceArguments = {"raw": body.raw, "effects": body.effects, "gates": body.gates}
    how["interventions"] = body.interventions
    if body.force is not None:
        how["force"] = body.force
    if body.prefix is not None:
        how["prefix"] = body.prefix
    if body.search.model_fields_set:
        how |= body.search.model_dump(exclude_none=True)
    data = await service.trace(body.text, asked, how, body.form, caller)
    return Response(data, media_type=_MEDIA.get(body.form, "application/json"))


async def models(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /api/v1/models`."""
    return {"models": [_about(name, model) for name, model in service.served.models.items()]}


async def model(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /api/v1/models/{name}`."""
    name = fields["name"]
    if name not in service.served.models:
        raise ApiError(404, f"no model {name!r} is served; GET /api/v1/models lists them")
    found = service.served.models[name]
    return _about(name, found) | {"card": told_of(found)}


def _about(name: str, model: Loaded) -> dict[str, Any]:
    assert model.file is not None
    return {
        "name": name,
        "source": model.source_language,
        "target": model.target_language,
        "kind": model.file.options.kind,
        "has_attention": design(model.file.options).has_attention,
        "num_parameters": sum(weight.size for weight in model.file.weights.values()),
    }


async def languages(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /api/v1/languages`."""
    served = service.served
    ways = [
        served.route(source, target)
        for source in served.sources
        for target in served.targets(source)
        if source != target
    ]
    return {
        "languages": [{"code": code, "name": name_of(code)} for code in served.codes],
        "directions": [
            {"source": way.source, "target": way.target, "models": list(way.models), "via": way.via}
            for way in ways
        ],
    }


async def detect(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `POST /api/v1/detect`."""
    body = valid(DetectFields, fields)
    return {
        "languages": [
            {"code": code, "confidence": round(confidence, 4)}
            for code, confidence in service.detect(body.text, caller)
        ]
    }


def _shown(answer: Answer) -> dict[str, Any]:
    route = answer.route
    return {
        "text": answer.text,
        "source": route.source,
        "target": route.target,
        "models": list(route.models),
        "via": route.via,
        "confidence_of_source": answer.confidence,
        "translation": None if answer.translation is None else answer.translation.to_json(),
        "first": None if answer.first is None else answer.first.to_json(),
    }


def _event(event: tuple[int, str] | Answer) -> str:
    if isinstance(event, Answer):
        return f"event: done\ndata: {json.dumps(_shown(event))}\n\n"
    place, text = event
    return f"event: words\ndata: {json.dumps({'sentence': place, 'text': text})}\n\n"
