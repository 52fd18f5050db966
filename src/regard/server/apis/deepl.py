"""DeepL's API, version 2, as far as its official client uses it for texts and documents."""

import asyncio
from dataclasses import replace
from typing import Any, cast

from regard.server.body import Fields
from regard.server.documents import Document
from regard.server.errors import ApiError
from regard.server.languages import base, name_of
from regard.server.reply import file_answer, file_field, text_field, texts_field
from regard.server.service import AUTO, Asked, Caller, Service
from regard.text.markup import Markup

_NO_LIMIT = 1_000_000_000_000
_MAX_GLOSSARIES = 5  # of one request
_PATIENCE = 2.0  # seconds to wait for a document before saying that it is not done: clients ask every five


def shape(error: ApiError) -> dict[str, Any]:
    """Return an error as DeepL shows it."""
    return {"message": error.message}


async def translate(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `POST /v2/translate`."""
    texts = texts_field(fields, "text")
    markup = text_field(fields, "tag_handling", "")
    if markup not in ("", "xml", "html"):
        raise ApiError(400, "tag_handling must be xml or html")
    asked = await _asked(service, fields, caller)
    asked = replace(asked, markup=cast(Markup, markup) if markup else None)
    answers = await service.translate(texts, asked, caller)
    return {
        "translations": [
            {
                "detected_source_language": answer.route.source.upper(),
                "text": answer.text,
                "billed_characters": len(text),
            }
            for text, answer in zip(texts, answers, strict=True)
        ]
    }


async def usage(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /v2/usage`: the characters since the start; there is no limit but that of a minute."""
    return {"character_count": service.metrics.num_characters, "character_limit": _NO_LIMIT}


async def languages(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /v2/languages`."""
    kind = text_field(fields, "type", "source")
    if kind not in ("source", "target"):
        raise ApiError(400, "type must be source or target")
    served = service.served
    reached = {target for source in served.sources for target in served.targets(source) if target != source}
    codes = served.sources if kind == "source" else sorted(reached)
    return [{"language": code.upper(), "name": name_of(code), "supports_formality": False} for code in codes]


async def upload(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `POST /v2/document`: take in a document."""
    data, name = await file_field(fields)
    document = service.documents.begin(
        data, text_field(fields, "filename", "") or name, await _asked(service, fields, caller), caller
    )
    return {"document_id": document.name, "document_key": document.key}


async def document_status(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `POST /v2/document/{document_id}`: how far a document is."""
    document = _document(service, fields)
    await asyncio.wait({document.task}, timeout=_PATIENCE)
    answer: dict[str, Any] = {"document_id": document.name, "status": document.state}
    if document.state == "done":
        answer["billed_characters"] = document.num_characters
    elif document.error is not None:
        answer["error_message"] = document.error
    return answer


async def download(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `POST /v2/document/{document_id}/result`: the translated document."""
    document = _document(service, fields)
    return file_answer(document.result(), document.ending)


def _document(service: Service, fields: Fields) -> Document:
    return service.documents.find(fields["document_id"], text_field(fields, "document_key"))


async def _asked(service: Service, fields: Fields, caller: Caller) -> Asked:
    """Return the languages and the glossary of a request."""
    if text_field(fields, "formality", "default").lower() not in ("default", "prefer_more", "prefer_less"):
        raise ApiError(400, "the formality cannot be chosen")
    source, target = text_field(fields, "source_lang", "") or AUTO, text_field(fields, "target_lang")
    names = fields.get("glossary_ids") or fields.get("glossary_id") or []
    names = names.split(",") if isinstance(names, str) else names
    if not names:
        return Asked(target, source)
    if (
        not isinstance(names, list)
        or len(names) > _MAX_GLOSSARIES
        or not all(isinstance(one, str) for one in names)
    ):
        raise ApiError(400, f"glossary_ids must be a list of at most {_MAX_GLOSSARIES} names")
    if source == AUTO:
        raise ApiError(400, "with a glossary the source_lang must be given")
    pair = base(source), base(target)
    return Asked(
        target,
        source,
        glossary=await asyncio.to_thread(service.glossaries.built, caller.key or "", names, pair),
    )
