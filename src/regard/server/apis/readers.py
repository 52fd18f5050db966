"""What two browser extensions send: Immersive Translate and KISS Translator."""

from typing import Any

from regard.server.body import Fields
from regard.server.errors import ApiError
from regard.server.reply import text_field, texts_field
from regard.server.service import AUTO, Asked, Caller, Service


async def immersive(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer Immersive Translate: a list of texts."""
    asked = Asked(text_field(fields, "target_lang"), text_field(fields, "source_lang", AUTO) or AUTO)
    answers = await service.translate(texts_field(fields, "text_list"), asked, caller)
    return {"translations": [{"detected_source_lang": one.route.source, "text": one.text} for one in answers]}


async def kiss(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer KISS Translator: one text, or a list of them."""
    if ("text" in fields) == ("texts" in fields):
        raise ApiError(400, "send either text or texts")
    texts = texts_field(fields, "text" if "text" in fields else "texts")
    asked = Asked(text_field(fields, "to"), text_field(fields, "from", AUTO) or AUTO)
    answers = await service.translate(texts, asked, caller)
    result: dict[str, Any] = {
        "translations": [{"text": one.text, "src": one.route.source} for one in answers]
    }
    if "text" in fields and not isinstance(fields["text"], list):
        result |= {"text": answers[0].text, "from": answers[0].route.source, "to": asked.target}
    return result
