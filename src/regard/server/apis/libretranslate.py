"""LibreTranslate's API, for all the clients that speak it."""

from typing import Any

from regard.corpus.suggestions import Suggestion
from regard.formats.document import ENDINGS
from regard.options.search import BeamOptions
from regard.server.body import Fields
from regard.server.errors import ApiError
from regard.server.languages import name_of
from regard.server.reply import file_answer, file_field, number_field, text_field, texts_field
from regard.server.service import AUTO, Answer, Asked, Caller, Service


async def translate(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `POST /translate`."""
    texts = texts_field(fields, "q")
    if (form := text_field(fields, "format", "text")) not in ("text", "html"):
        raise ApiError(400, f"the format {form[:20]!r} is not known; use text or html")
    num_others = number_field(fields, "alternatives", 0)
    if not 0 <= num_others <= service.options.max_alternatives:
        raise ApiError(400, f"alternatives must be from 0 to {service.options.max_alternatives}")
    if form == "html":  # tags are carried into one translation only
        num_others = 0
    usual = BeamOptions()
    search = usual.model_copy(update={"beam_size": max(usual.beam_size, num_others + 1)})
    asked = Asked(
        text_field(fields, "target"),
        text_field(fields, "source"),
        num_best=num_others + 1,
        search=search,
        markup="html" if form == "html" else None,
    )
    answers = await service.translate(texts, asked, caller)
    is_list = isinstance(fields["q"], list)
    result: dict[str, Any] = {"translatedText": _one_or_all([one.text for one in answers], is_list)}
    if asked.source.strip().lower() == AUTO:
        result["detectedLanguage"] = _one_or_all([_detected(one) for one in answers], is_list)
    if num_others:
        others = [one.alternatives[:num_others] for one in answers]
        result["alternatives"] = _one_or_all(others, is_list)
    return result


async def detect(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `POST /detect`."""
    found = service.detect(" ".join(texts_field(fields, "q")), caller)
    return [{"confidence": _percent(confidence), "language": code} for code, confidence in found]


async def languages(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /languages`."""
    served = service.served
    return [{"code": code, "name": name_of(code), "targets": served.targets(code)} for code in served.codes]


async def settings(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /frontend/settings`."""
    source = service.served.sources[0] if service.served.sources else ""
    target = next((code for code in service.served.targets(source) if code != source), source)
    return {
        "apiKeys": service.keys is not None,
        "keyRequired": service.keys is not None,
        "charLimit": service.options.max_characters,
        "frontendTimeout": 500,
        "language": {
            "source": {"code": AUTO, "name": "Auto Detect"},
            "target": {"code": target, "name": name_of(target)},
        },
        "suggestions": service.keeps_suggestions,
        "filesTranslation": True,
        "supportedFilesFormat": list(ENDINGS),
    }


async def health(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /health`."""
    return {"status": "ok"}


async def suggest(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `POST /suggest`."""
    source, target, text, better = (text_field(fields, name) for name in ("source", "target", "q", "s"))
    if source.strip().lower() == AUTO:
        raise ApiError(400, "a suggestion needs its source language")
    await service.suggest(Suggestion(source, target, text, better), caller)
    return {"success": True}


async def translate_file(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `POST /translate_file`."""
    data, name = await file_field(fields)
    asked = Asked(text_field(fields, "target"), text_field(fields, "source"))
    document = service.documents.begin(data, name, asked, caller)
    await service.documents.translated(document)
    return {"translatedFileUrl": f"{caller.url}download_file/{document.name}{document.ending}"}


async def download_file(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /download_file/{name}`."""
    document = service.documents.find(fields["name"].partition(".")[0])
    return file_answer(document.result(), document.ending)


def _one_or_all(values: list[Any], is_list: bool) -> Any:
    return values if is_list else values[0]


def _detected(answer: Answer) -> dict[str, Any]:
    return {"confidence": _percent(answer.confidence or 0.0), "language": answer.route.source}


def _percent(confidence: float) -> float:
    return round(100 * confidence, 1)
