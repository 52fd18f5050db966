"""OpenAI's chat completions, for tools that speak nothing else: the model is a pair of languages."""

import json
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import StreamingResponse

from regard.server.body import Fields
from regard.server.errors import ApiError
from regard.server.reply import flag_field, text_field
from regard.server.service import Asked, Caller, Service

_TYPES = {
    400: "invalid_request_error",
    403: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def shape(error: ApiError) -> dict[str, Any]:
    """Return an error as OpenAI shows it."""
    return {
        "error": {
            "message": error.message,
            "type": _TYPES.get(error.status, "server_error"),
            "param": None,
            "code": None,
        }
    }


async def complete(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `POST /v1/chat/completions`: the last message of the user, translated."""
    model = text_field(fields, "model")
    text = _last_text(fields.get("messages"))
    (answer,) = await service.translate([text], Asked(model=model), caller)
    head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}
    if flag_field(fields, "stream"):
        return StreamingResponse(_chunks(head, answer.text), media_type="text/event-stream")
    num_read, num_said = len(text.split()), len(answer.text.split())
    return head | {
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": answer.text},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": num_read,
            "completion_tokens": num_said,
            "total_tokens": num_read + num_said,
        },
    }


async def models(service: Service, fields: Fields, caller: Caller) -> Any:
    """Answer `GET /v1/models`."""
    return {
        "object": "list",
        "data": [
            {"id": name, "object": "model", "created": 0, "owned_by": "regard"}
            for name in service.served.models
        ],
    }


def _last_text(messages: object) -> str:
    if not isinstance(messages, list) or not messages:
        raise ApiError(400, "the field messages must be a list of messages")
    for message in reversed(messages):
        if not isinstance(message, dict):
            raise ApiError(400, "a message must be an object with role and content")
        if message.get("role") != "user":
            continue
        content = message.get("content")
        if isinstance(content, str):
            return content
        if isinstance(content, list):
            parts = [one.get("text") if isinstance(one, dict) else None for one in content]
            if all(isinstance(part, str) for part in parts):
                return "\n".join(str(part) for part in parts)
        raise ApiError(400, "the content of a message must be a text")
    raise ApiError(400, "there is no message of the user to translate")


async def _chunks(head: dict[str, Any], text: str) -> AsyncIterator[str]:
    deltas: tuple[dict[str, str], ...] = ({"role": "assistant", "content": ""}, {"content": text}, {})
    for number, delta in enumerate(deltas):
        end = "stop" if number == len(deltas) - 1 else None
        choice = {"index": 0, "delta": delta, "finish_reason": end}
        yield f"data: {json.dumps(head | {'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"
    yield "data: [DONE]\n\n"
