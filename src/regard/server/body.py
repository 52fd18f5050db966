"""What a request says: its query and its body, in any of the usual forms, within limits."""

import json
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from regard.server.errors import ApiError

_MAX_FIELDS = 1000

Fields = dict[str, Any]


async def read_fields(request: Request, max_body: int) -> Fields:
    """Return the fields of a request: those of the query, and over them those of the body.

    A body is JSON, or a form in either encoding; one that begins with a brace is JSON whatever is said of
    it. A field that comes several times is a list.
    """
    body = await _read(request, max_body)
    fields = _gathered(_pairs(str(request.url.query)))
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return fields | await _multipart(request, body)
    if kind == "application/json" or body.lstrip()[:1] == b"{":
        return fields | (_object(body) if body.strip() else {})
    if not body or kind in ("", "application/x-www-form-urlencoded"):
        return fields | _gathered(_pairs(_decoded(body)))
    raise ApiError(415, f"a body of type {kind!r:.80} cannot be read; send JSON or a form")


async def read_object(request: Request, max_body: int) -> Fields:
    """Return the JSON object of a request."""
    return _object(await _read(request, max_body))


async def _read(request: Request, max_body: int) -> bytes:
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > max_body:
            raise ApiError(413, f"the request has more than {max_body:,} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def _decoded(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise ApiError(400, "the request is not UTF-8") from None


def _object(body: bytes) -> Fields:
    try:
        value = json.loads(_decoded(body), parse_constant=_refuse)
    except RecursionError:
        raise ApiError(400, "the JSON is nested too deeply") from None
    except ValueError as error:
        raise ApiError(400, f"the body is not JSON ({str(error)[:100]})") from None
    if not isinstance(value, dict):
        raise ApiError(400, "the body must be a JSON object")
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _pairs(text: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict")
    except UnicodeDecodeError:
        raise ApiError(400, "the request is not UTF-8") from None
    except ValueError:
        raise ApiError(400, f"the request has more than {_MAX_FIELDS} fields") from None


def _gathered(pairs: list[tuple[str, str]]) -> Fields:
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return {name: some[0] if len(some) == 1 else some for name, some in values.items()}


async def _multipart(request: Request, body: bytes) -> Fields:
    async def stream() -> AsyncGenerator[bytes, None]:
        yield body

    parser = MultiPartParser(
        request.headers, stream(), max_files=1, max_fields=_MAX_FIELDS, max_part_size=len(body) + 1
    )
    parser.spool_max_size = len(body) + 1  # files stay in memory
    try:
        form = await parser.parse()
    except (MultiPartException, UnicodeDecodeError, KeyError, ValueError) as error:
        raise ApiError(400, f"the form cannot be read ({str(error)[:100]})") from None
    texts = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    files = {name: value for name, value in form.multi_items() if isinstance(value, UploadFile)}
    return _gathered(texts) | files
