"""The application: every path, what it needs, and what goes around all of them."""

import json
import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import regard
from regard.server.apis import deepl, glossaries, libretranslate, openai, own, readers
from regard.server.docs import docs_page, style_hash
from regard.server.errors import ApiError
from regard.server.reply import GONE, Shape, Work, as_json, endpoint, plain_error, refusal
from regard.server.service import Service
from regard.viewer.page import served_page, static_files

_log = logging.getLogger("regard.server")

_LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]", "testserver")
_PLAIN = ("/", "/docs", "/livez", "/readyz", "/metrics", "/openapi.json")


@dataclass(frozen=True, slots=True)
class Path:
    """A path of the server: what it does, and how its documentation describes it."""

    method: str
    path: str
    work: Work
    summary: str
    example: Any = None
    body: type[BaseModel] | None = None
    shape: Shape = plain_error
    is_open: bool = False
    tag: str = "regard"
    status: int = 200
    file: dict[str, str] | None = None
    """The fields beside the file of a form, with examples."""
    query: tuple[str, ...] = ()
    """Parameters that must be in the query."""


_TEXT = {"q": "Je suis étudiant.", "source": "fr", "target": "en"}
_OTHER = "other APIs"
_V2, _V3 = "/v2/glossaries/{glossary_id}", "/v3/glossaries/{glossary_id}"
PATHS = (
    Path("POST", "/api/v1/translate", own.translate, "Translate texts, with alignment, confidence and flags",
         {"text": "Je suis étudiant.", "source": "fr", "target": "en"}, own.TranslateFields),
    Path("POST", "/api/v1/stream", own.stream, "Translate a text; the words come as server-sent events",
         {"text": "Je suis étudiant.", "source": "fr", "target": "en"}, own.StreamFields),
    Path("POST", "/api/v1/trace", own.trace, "Show every step of a translation, and change it",
         {"text": "Je suis étudiant.", "model": "fr-en"}, own.TraceFields),
    Path("POST", "/api/v1/detect", own.detect, "Tell which language a text is in",
         {"text": "Je suis étudiant."}, own.DetectFields),
    Path("GET", "/api/v1/models", own.models, "The models", is_open=True),
    Path("GET", "/api/v1/models/{name}", own.model, "A model: credits, limits, test scores", is_open=True),
    Path("GET", "/api/v1/languages", own.languages, "The languages, and by which models", is_open=True),
    Path("POST", "/translate", libretranslate.translate, "LibreTranslate: translate", _TEXT, tag=_OTHER),
    Path("POST", "/detect", libretranslate.detect, "LibreTranslate: detect", {"q": "Bonjour"}, tag=_OTHER),
    Path("GET", "/languages", libretranslate.languages, "LibreTranslate: languages", is_open=True,
         tag=_OTHER),
    Path("GET", "/frontend/settings", libretranslate.settings, "LibreTranslate: settings", is_open=True,
         tag=_OTHER),
    Path("GET", "/health", libretranslate.health, "LibreTranslate: health", is_open=True, tag=_OTHER),
    Path("POST", "/suggest", libretranslate.suggest, "LibreTranslate: suggest a better translation",
         {**_TEXT, "s": "I am a student."}, tag=_OTHER),
    Path("POST", "/translate_file", libretranslate.translate_file, "LibreTranslate: translate a document",
         tag=_OTHER, file={"source": "fr", "target": "en"}),
    Path("GET", "/download_file/{name}", libretranslate.download_file,
         "LibreTranslate: a translated document", is_open=True, tag=_OTHER),
    Path("POST", "/v2/translate", deepl.translate, "DeepL: translate",
         {"text": ["Je suis étudiant."], "target_lang": "EN"}, shape=deepl.shape, tag=_OTHER),
    Path("GET", "/v2/usage", deepl.usage, "DeepL: usage", shape=deepl.shape, tag=_OTHER),
    Path("POST", "/v2/usage", deepl.usage, "DeepL: usage", shape=deepl.shape, tag=_OTHER),
    Path("GET", "/v2/languages", deepl.languages, "DeepL: languages", shape=deepl.shape, tag=_OTHER),
    Path("POST", "/v2/languages", deepl.languages, "DeepL: languages", shape=deepl.shape, tag=_OTHER),
    Path("POST", "/v2/document", deepl.upload, "DeepL: send a document", shape=deepl.shape, tag=_OTHER,
         file={"source_lang": "FR", "target_lang": "EN"}),
    Path("POST", "/v2/document/{document_id}", deepl.document_status, "DeepL: how far a document is",
         {"document_key": "..."}, shape=deepl.shape, tag=_OTHER),
    Path("POST", "/v2/document/{document_id}/result", deepl.download, "DeepL: a translated document",
         {"document_key": "..."}, shape=deepl.shape, tag=_OTHER),
    Path("GET", "/v2/glossary-language-pairs", glossaries.pairs, "DeepL: languages of glossaries",
         shape=deepl.shape, tag=_OTHER),
    Path("POST", "/v2/glossaries", glossaries.create, "DeepL: keep a glossary",
         {"name": "school", "source_lang": "FR", "target_lang": "EN", "entries": "étudiant\tpupil",
          "entries_format": "tsv"}, glossaries.GlossaryFields, shape=deepl.shape, tag=_OTHER, status=201),
    Path("GET", "/v2/glossaries", glossaries.all_of, "DeepL: all glossaries", shape=deepl.shape, tag=_OTHER),
    Path("GET", _V2, glossaries.one, "DeepL: a glossary", shape=deepl.shape, tag=_OTHER),
    Path("GET", f"{_V2}/entries", glossaries.entries, "DeepL: the entries of a glossary", shape=deepl.shape,
         tag=_OTHER),
    Path("DELETE", _V2, glossaries.delete, "DeepL: delete a glossary", shape=deepl.shape, tag=_OTHER),
    Path("POST", "/v3/glossaries", glossaries.create_several, "DeepL: keep a glossary of several languages",
         {"name": "school", "dictionaries": [{"source_lang": "FR", "target_lang": "EN",
          "entries": "étudiant\tpupil"}]}, glossaries.GlossariesFields, shape=deepl.shape, tag=_OTHER,
         status=201),
    Path("GET", "/v3/glossaries", glossaries.all_several, "DeepL: all glossaries", shape=deepl.shape,
         tag=_OTHER),
    Path("GET", _V3, glossaries.one_several, "DeepL: a glossary", shape=deepl.shape, tag=_OTHER),
    Path("PATCH", _V3, glossaries.change, "DeepL: rename a glossary, add entries", {"name": "lycée"},
         glossaries.ChangeFields, shape=deepl.shape, tag=_OTHER),
    Path("DELETE", _V3, glossaries.delete, "DeepL: delete a glossary", shape=deepl.shape, tag=_OTHER),
    Path("GET", f"{_V3}/entries", glossaries.entries_of_pair, "DeepL: the entries of two languages",
         shape=deepl.shape, tag=_OTHER, query=("source_lang", "target_lang")),
    Path("PUT", f"{_V3}/dictionaries", glossaries.replace_entries, "DeepL: other entries for two languages",
         {"source_lang": "FR", "target_lang": "EN", "entries": "étudiant\tpupil"},
         glossaries.DictionaryFields, shape=deepl.shape, tag=_OTHER),
    Path("DELETE", f"{_V3}/dictionaries", glossaries.delete_entries,
         "DeepL: delete the entries of two languages", shape=deepl.shape, tag=_OTHER,
         query=("source_lang", "target_lang")),
    Path("POST", "/immersive", readers.immersive, "Immersive Translate",
         {"source_lang": "fr", "target_lang": "en", "text_list": ["Bonjour !"]}, tag=_OTHER),
    Path("POST", "/kiss", readers.kiss, "KISS Translator", {"text": "Bonjour !", "from": "fr", "to": "en"},
         tag=_OTHER),
    Path("POST", "/v1/chat/completions", openai.complete, "OpenAI: the last message, translated",
         {"model": "fr-en", "messages": [{"role": "user", "content": "Bonjour !"}]}, shape=openai.shape,
         tag=_OTHER),
    Path("GET", "/v1/models", openai.models, "OpenAI: models", shape=openai.shape, tag=_OTHER),
)  # fmt: skip


def build_app(service: Service) -> ASGIApp:
    """Return the application of a service."""
    app = FastAPI(
        title="regard",
        version=regard.__version__,
        description="Neural machine translation that shows where it looks.",
        docs_url=None,
        redoc_url=None,
    )
    for one in PATHS:
        app.add_api_route(
            one.path,
            endpoint(service, one.work, one.shape, is_open=one.is_open, status=one.status),
            methods=[one.method],
            name=f"{one.method} {one.path}",
            operation_id=re.sub(r"\W+", "_", f"{one.method}{one.path}"),
            summary=one.summary,
            tags=[one.tag],
            response_class=Response,
            openapi_extra=_described(one),
            responses={status: {"description": text} for status, text in _STATUSES.items()},
        )
    _add_plain(app, service)
    app.add_exception_handler(404, _not_found)
    app.add_exception_handler(405, _wrong_method)
    wrapped: ASGIApp = app
    if service.options.origins:
        wrapped = CORSMiddleware(
            wrapped,
            allow_origins=service.options.origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["authorization", "content-type", "x-api-key"],
        )
    return _Around(wrapped, app, service)


_STATUSES: dict[int | str, str] = {
    400: "What was sent is wrong; the answer says what.",
    403: "The API key is wrong, or this is not allowed.",
    413: "The body is too large.",
    429: "Too many characters a minute.",
    501: "Not supported yet.",
    503: "Too busy, or not done in time; try again.",
}


def _described(one: Path) -> dict[str, Any]:
    """Return what the OpenAPI document says of parameters and of a body."""
    places = [(name, "path") for name in re.findall(r"{(\w+)}", one.path)] + [
        (name, "query") for name in one.query
    ]
    about: dict[str, Any] = {
        "parameters": [
            {"name": name, "in": place, "required": True, "schema": {"type": "string"}}
            for name, place in places
        ]
    }
    if one.method in ("GET", "DELETE"):
        return about
    schema: dict[str, Any] = {"type": "object"}
    if one.file is not None:
        texts = {name: {"type": "string", "examples": [value]} for name, value in one.file.items()}
        schema["properties"] = {"file": {"type": "string", "format": "binary"}, **texts}
        return about | {
            "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}
        }
    if one.body is not None:
        schema = one.body.model_json_schema(ref_template="#/components/schemas/{model}")
        schema = _inlined(schema, schema.pop("$defs", {}))
    content: dict[str, Any] = {"schema": schema}
    if one.example is not None:
        content["example"] = one.example
    kinds = ["application/json"]
    if one.body is None:
        kinds += ["application/x-www-form-urlencoded", "multipart/form-data"]
    return about | {
        "requestBody": {"required": one.example is not None, "content": dict.fromkeys(kinds, content)}
    }


def _inlined(schema: Any, known: dict[str, Any]) -> Any:
    """Return a schema with what it refers to in its place."""
    if isinstance(schema, list):
        return [_inlined(one, known) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(reference := schema.get("$ref"), str):
        return _inlined(known[reference.rpartition("/")[2]], known)
    return {name: _inlined(value, known) for name, value in schema.items() if name != "discriminator"}


def _add_plain(app: FastAPI, service: Service) -> None:
    """Add the paths for those who run the server, and the pages."""

    async def live(request: Request) -> Response:
        return as_json({"status": "ok"})

    async def ready(request: Request) -> Response:
        why = service.why_not_ready()
        return as_json({"status": "ok"} if why is None else {"error": why}, 200 if why is None else 503)

    async def metrics(request: Request) -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    async def docs(request: Request) -> Response:
        return HTMLResponse(docs_page(app.openapi()))

    html, policy = served_page(service.options.lessons)
    static = static_files()

    async def root(request: Request) -> Response:
        return HTMLResponse(html, headers={"content-security-policy": policy})

    async def part(request: Request) -> Response:
        data, kind = static.get(request.path_params["path"], (None, ""))
        if data is None:
            return refusal(ApiError(404, "there is nothing here; /docs says what there is"))
        return Response(data, media_type=kind)

    plain: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "/livez": live, "/readyz": ready, "/metrics": metrics, "/docs": docs, "/": root,
        "/static/{path:path}": part,
    }  # fmt: skip
    for path, handler in plain.items():
        app.add_route(path, handler, methods=["GET"], include_in_schema=False)


async def _not_found(request: Request, error: Exception) -> Response:
    return refusal(ApiError(404, "there is nothing here; /docs says what there is"))


async def _wrong_method(request: Request, error: Exception) -> Response:
    return refusal(ApiError(405, "this path wants another method; /docs says which"))


class _Around:
    """Goes around every request: checks its host, counts and logs it, and adds security headers."""

    def __init__(self, inner: ASGIApp, app: FastAPI, service: Service) -> None:
        self._inner, self._service = inner, service
        self._headers = [
            (b"x-content-type-options", b"nosniff"),
            (b"x-frame-options", b"DENY"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-resource-policy", b"cross-origin" if service.options.origins else b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cache-control", b"no-store"),
            (
                b"content-security-policy",
                f"default-src 'none'; style-src '{style_hash()}'; "
                "frame-ancestors 'none'; base-uri 'none'".encode(),
            ),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        if len(scope["path"]) > 1 and scope["path"].endswith("/"):
            scope = {**scope, "path": scope["path"].rstrip("/") or "/"}  # some clients write one at the end
        begun, status = time.monotonic(), GONE

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {name for name, _ in message["headers"]}
                added = (header for header in self._headers if header[0] not in own)
                message["headers"] = [*message["headers"], *added]
            await send(message)

        try:
            if not self._is_wanted(scope):
                await refusal(ApiError(403, "this name of the server is not known"))(scope, receive, watched)
            else:
                await self._inner(scope, receive, watched)
        except Exception:
            _log.exception("a request failed")
            if status == GONE:
                await refusal(ApiError(500, "a fault of the server; its log says more"))(
                    scope, receive, watched
                )
        finally:
            self._count(scope, status, time.monotonic() - begun)

    def _is_wanted(self, scope: Scope) -> bool:
        """Tell whether a local server is called by a local name; a web page may have given it another."""
        if not self._service.options.is_local:
            return True
        host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        return name.lower() in _LOCAL_HOSTS

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        path = scope["path"] if scope["path"] in _PLAIN else getattr(scope.get("route"), "path", "other")
        self._service.metrics.count_request(path, status, seconds)
        _log.info(
            json.dumps(
                {"method": scope["method"], "path": path, "status": status, "ms": round(1000 * seconds)}
            )
        )
