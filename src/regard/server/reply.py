"""From requests to answers: one shape for all endpoints, whatever API they speak."""

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import UploadFile
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from regard.server.body import Fields, read_fields
from regard.server.errors import ApiError
from regard.server.limits import client_of
from regard.server.service import Caller, Service

_log = logging.getLogger("regard.server")

GONE = 499
"""The status of a request whose client has gone; nobody sees it but the log."""

Work = Callable[[Service, Fields, Caller], Awaitable[Any]]
Shape = Callable[[ApiError], dict[str, Any]]
KeyOf = Callable[[Request, Fields], str | None]
Endpoint = Callable[[Request], Awaitable[Response]]


def as_json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return JSON in UTF-8."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return Response(body, status, headers, "application/json")


def file_answer(data: bytes, ending: str) -> Response:
    """Return a document to be saved; no browser shows it as a page of this server."""
    headers = {"content-disposition": f'attachment; filename="translation{ending}"'}
    return Response(data, headers=headers, media_type="application/octet-stream")


def plain_error(error: ApiError) -> dict[str, Any]:
    """Return an error as LibreTranslate and our own API show it."""
    return {"error": error.message}


def bearer_key(request: Request, fields: Fields) -> str | None:
    """Return the API key of a request: a field, or a header in any of the usual forms."""
    for name in ("api_key", "apiKey", "key"):
        if isinstance(key := fields.get(name), str) and key:
            return key
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    if kind.lower() in ("bearer", "deepl-auth-key") and value.strip():
        return value.strip()
    return request.headers.get("x-api-key")


def endpoint(
    service: Service, work: Work, shape: Shape = plain_error, *, is_open: bool = False, status: int = 200
) -> Endpoint:
    """Return the handler of a path: it reads the fields, checks the key, works, and answers.

    If the client goes away the work is cancelled. An `is_open` path needs no key.
    """

    async def handle(request: Request) -> Response:
        try:
            fields = await read_fields(request, service.options.max_body) | request.path_params
            caller = caller_of(service, request, fields, is_open=is_open)
            result = await _while_connected(request, work(service, fields, caller))
        except ApiError as error:
            return refusal(error, shape)
        except ClientDisconnect:
            return Response(status_code=GONE)
        return result if isinstance(result, Response) else as_json(result, status)

    return handle


def refusal(error: ApiError, shape: Shape = plain_error) -> Response:
    """Return the answer of an error."""
    headers = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
    return as_json(shape(error), error.status, headers)


def caller_of(service: Service, request: Request, fields: Fields, *, is_open: bool = False) -> Caller:
    """Return who asks, or raise that a key is missing or wrong."""
    address, url = client_of(request.client.host if request.client else None), str(request.base_url)
    if service.keys is None or is_open:
        return Caller(address, url=url)
    key = bearer_key(request, fields)
    if not key:
        raise ApiError(400, "this server needs an API key; send it as api_key")
    name = service.keys.name_of(key)
    if name is None:
        raise ApiError(403, "the API key is wrong")
    return Caller(f"key {name}", name, url)


async def _while_connected(request: Request, work: Awaitable[Any]) -> Any:
    """Return the result of the work; if the client goes away first, cancel it."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        for one in (task, gone):
            one.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def text_field(fields: Fields, name: str, default: str | None = None) -> str:
    """Return a field that is one text."""
    value = fields.get(name, default)
    if value is None:
        raise ApiError(400, f"the field {name} is missing")
    if not isinstance(value, str):
        raise ApiError(400, f"the field {name} must be a text")
    return value


def texts_field(fields: Fields, name: str) -> list[str]:
    """Return a field that is a text or a list of texts."""
    value = fields.get(name)
    if value is None:
        raise ApiError(400, f"the field {name} is missing")
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise ApiError(400, f"the field {name} must be a text or a list of texts")
    return texts


async def file_field(fields: Fields) -> tuple[bytes, str]:
    """Return a file that was sent, and its name."""
    file = fields.get("file")
    if not isinstance(file, UploadFile):
        raise ApiError(400, "send the document as the field file of a form (curl -F file=@letter.docx)")
    with file.file:
        return await file.read(), file.filename or ""


def number_field(fields: Fields, name: str, default: int) -> int:
    """Return a field that is a whole number, also where it comes as text."""
    value = fields.get(name, default)
    if isinstance(value, str) and value.strip().isascii() and len(value) <= 12:
        with contextlib.suppress(ValueError):
            value = int(value) if value.strip() else default
    if isinstance(value, bool) or not isinstance(value, int):
        raise ApiError(400, f"the field {name} must be a whole number")
    return value


def flag_field(fields: Fields, name: str) -> bool:
    """Return a field that is true or false."""
    value = fields.get(name, False)
    if isinstance(value, str):
        value = value.lower() in ("true", "1", "yes", "on")
    if not isinstance(value, bool):
        raise ApiError(400, f"the field {name} must be true or false")
    return value


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def valid(kind: Any, fields: Fields) -> Any:
    """Return the fields as such a model, without the API key."""
    fields = {name: value for name, value in fields.items() if name not in ("api_key", "apiKey", "key")}
    try:
        return _adapter(kind).validate_python(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:100]
        raise ApiError(400, f"{where or 'the body'}: {first['msg'][:200]}") from None
    except RecursionError:
        raise ApiError(400, "the JSON is nested too deeply") from None
