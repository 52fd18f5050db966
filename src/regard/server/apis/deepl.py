"""DeepL's API, version 2, as far as its official client uses it for texts."""

from typing import Any, cast

from regard.server.body import Fields
from regard.server.errors import ApiError
from regard.server.languages import base, name_of
from regard.server.reply import text_field, texts_field
from regard.server.service import AUTO, Asked, Caller, Service
from regard.text.markup import Markup

_NO_LIMIT = 1_000_000_000_000


def shape(error: ApiError) -> dict[str, Any]:
    """Return an error as DeepL shows it."""
    return {"message": error.message}


async def translate(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `POST /v2/translate`."""
    texts = texts_field(fields, "text")
    markup = text_field(fields, "tag_handling", "")
    if markup not in ("", "xml", "html"):
        raise ApiError(400, "tag_handling must be xml or html")
    if fields.get("glossary_id"):
        raise ApiError(501, "glossaries are not supported yet")
    if base(text_field(fields, "formality", "default")) not in ("default", "prefer_more", "prefer_less"):
        raise ApiError(400, "the formality cannot be chosen")
    asked = Asked(
        text_field(fields, "target_lang"),
        text_field(fields, "source_lang", "") or AUTO,
        markup=cast(Markup, markup) if markup else None,
    )
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


async def glossary_pairs(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /v2/glossary-language-pairs`: none yet."""
    return {"supported_languages": []}
