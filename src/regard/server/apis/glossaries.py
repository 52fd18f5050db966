"""DeepL's glossaries, versions 2 (one pair of languages each) and 3 (several)."""

import asyncio
import csv
import io
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, Field
from starlette.responses import Response

from regard.server.body import Fields
from regard.server.errors import ApiError
from regard.server.glossaries import Pair, StoredGlossary
from regard.server.languages import base
from regard.server.reply import text_field, valid
from regard.server.service import Caller, Service


class DictionaryFields(BaseModel):
    """The entries of a pair of languages: a line each, source and target."""

    source_lang: str = Field(max_length=40, examples=["FR"])
    target_lang: str = Field(max_length=40, examples=["EN"])
    entries: str = Field(examples=["étudiant\tpupil"])
    entries_format: Literal["tsv", "csv"] = "tsv"


class GlossaryFields(DictionaryFields):
    """A glossary of version 2."""

    name: str = Field(examples=["school"])


class GlossariesFields(BaseModel):
    """A glossary of version 3."""

    name: str = Field(examples=["school"])
    dictionaries: list[DictionaryFields] = Field(min_length=1)


class ChangeFields(BaseModel):
    """What becomes of a glossary of version 3."""

    name: str | None = Field(None, examples=["school"])
    dictionaries: list[DictionaryFields] = []


async def pairs(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /v2/glossary-language-pairs`."""
    served = service.served
    routes = [served.find(source, target) for source in served.sources for target in served.codes]
    return {
        "supported_languages": [
            {"source_lang": route.source, "target_lang": route.target}
            for route in routes
            if route is not None and len(route.models) == 1
        ]
    }


async def create(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `POST /v2/glossaries`."""
    body: GlossaryFields = valid(GlossaryFields, fields)
    return _shown(await _create(service, caller, body.name, [body]))


async def all_of(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /v2/glossaries`."""
    found = await asyncio.to_thread(service.glossaries.all_of, _owner(caller))
    return {"glossaries": [_shown(one) for one in found if len(one.sizes) == 1]}


async def one(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /v2/glossaries/{glossary_id}`."""
    return _shown(await _find(service, fields, caller))


async def entries(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /v2/glossaries/{glossary_id}/entries`."""
    pair = _only_pair(await _find(service, fields, caller))
    return Response(await _tsv(service, fields, caller, pair), media_type="text/tab-separated-values")


async def delete(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `DELETE` of a glossary, in both versions."""
    await asyncio.to_thread(service.glossaries.delete, _owner(caller), fields["glossary_id"])
    return Response(status_code=204)


async def create_several(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `POST /v3/glossaries`."""
    body: GlossariesFields = valid(GlossariesFields, fields)
    return _shown_several(await _create(service, caller, body.name, body.dictionaries))


async def all_several(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /v3/glossaries`."""
    found = await asyncio.to_thread(service.glossaries.all_of, _owner(caller))
    return {"glossaries": list(map(_shown_several, found))}


async def one_several(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /v3/glossaries/{glossary_id}`."""
    return _shown_several(await _find(service, fields, caller))


async def change(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `PATCH /v3/glossaries/{glossary_id}`: another name, further entries."""
    body: ChangeFields = valid(ChangeFields, fields)
    return _shown_several(await _change(service, fields, caller, body, merges=True))


async def replace_entries(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `PUT /v3/glossaries/{glossary_id}/dictionaries`."""
    body: DictionaryFields = valid(DictionaryFields, fields)
    found = await _change(service, fields, caller, ChangeFields(dictionaries=[body]), merges=False)
    pair = _pair(service, body)
    return _shown_dictionary(pair, found.sizes[pair])


async def entries_of_pair(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /v3/glossaries/{glossary_id}/entries`."""
    pair = _named_pair(fields)
    text = await _tsv(service, fields, caller, pair)
    languages = {"source_lang": pair[0], "target_lang": pair[1]}
    return {"dictionaries": [{**languages, "entries": text, "entries_format": "tsv"}]}


async def delete_entries(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `DELETE /v3/glossaries/{glossary_id}/dictionaries`."""
    pair = _named_pair(fields)
    await asyncio.to_thread(service.glossaries.delete, _owner(caller), fields["glossary_id"], pair)
    return Response(status_code=204)


def _owner(caller: Caller) -> str:
    """Return whose glossaries a client sees: those of its key; without keys there is one owner."""
    return caller.key or ""


async def _create(service: Service, caller: Caller, name: str, given: list[Any]) -> StoredGlossary:
    dictionaries = {_pair(service, one): _terms(one) for one in given}
    return await asyncio.to_thread(service.glossaries.create, _owner(caller), name, dictionaries)


async def _find(service: Service, fields: Fields, caller: Caller) -> StoredGlossary:
    return await asyncio.to_thread(service.glossaries.find, _owner(caller), fields["glossary_id"])


async def _change(
    service: Service, fields: Fields, caller: Caller, body: ChangeFields, *, merges: bool
) -> StoredGlossary:
    dictionaries = {_pair(service, one): _terms(one) for one in body.dictionaries}
    return await asyncio.to_thread(
        service.glossaries.change,
        _owner(caller),
        fields["glossary_id"],
        body.name,
        dictionaries,
        merges=merges,
    )


async def _tsv(service: Service, fields: Fields, caller: Caller, pair: Pair) -> str:
    terms = await asyncio.to_thread(service.glossaries.terms, _owner(caller), fields["glossary_id"], pair)
    return "\n".join(f"{source}\t{target}" for source, target in terms.items())


def _pair(service: Service, given: DictionaryFields) -> Pair:
    """Return the languages of a dictionary, between which one model must translate."""
    route = service.served.route(given.source_lang, given.target_lang)
    if len(route.models) != 1:
        raise ApiError(400, "a glossary can be used only where one model translates")
    return route.source, route.target


def _named_pair(fields: Fields) -> Pair:
    return base(text_field(fields, "source_lang")), base(text_field(fields, "target_lang"))


def _only_pair(found: StoredGlossary) -> Pair:
    if len(found.sizes) != 1:
        raise ApiError(
            400, "the glossary has not one pair of languages; ask for it with version 3 of the API"
        )
    return next(iter(found.sizes))


def _terms(given: DictionaryFields) -> dict[str, str]:
    """Return the terms of a table."""
    try:
        rows = (
            list(csv.reader(io.StringIO(given.entries), strict=True))
            if given.entries_format == "csv"
            else [line.split("\t") for line in given.entries.splitlines()]
        )
    except csv.Error as error:
        raise ApiError(400, f"the entries are not CSV ({error})") from None
    terms: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) != 2 and not (given.entries_format == "csv" and len(cells) == 4):  # with languages
            raise ApiError(400, f"entry {number:,}: write a source and a target, and nothing else")
        source, target = cells[:2]
        if terms.setdefault(source, target) != target:
            raise ApiError(400, f"entry {number:,}: {source[:60]!r} has two translations")
    return terms


def _shown(found: StoredGlossary) -> dict[str, Any]:
    pair = _only_pair(found)
    return {**_about(found), "ready": True, **_shown_dictionary(pair, found.sizes[pair])}


def _shown_several(found: StoredGlossary) -> dict[str, Any]:
    return {**_about(found), "dictionaries": [_shown_dictionary(*one) for one in found.sizes.items()]}


def _about(found: StoredGlossary) -> dict[str, Any]:
    time = datetime.fromtimestamp(found.time, UTC).isoformat(timespec="microseconds")
    return {"glossary_id": found.id, "name": found.name, "creation_time": time}


def _shown_dictionary(pair: Pair, size: int) -> dict[str, Any]:
    return {"source_lang": pair[0], "target_lang": pair[1], "entry_count": size}
