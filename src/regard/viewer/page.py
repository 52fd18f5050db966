"""The page in its four forms: a file with traces, a file with models, what a server sends, a static site."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from graphlib import TopologicalSorter
from importlib.resources import files
from typing import Any, Literal
from urllib.parse import quote

import regard
from regard.draw.labels import escaped
from regard.flags import FLAGS
from regard.report.html import frame

_POLICY = (
    "default-src 'none'; script-src 'self' {hashes}; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'"
)
_NO_FRAMES = "; frame-ancestors 'none'"  # which holds in a header only
WORKER = "regard-worker.js"  # of a static site; a folder that has it is one of ours
# In the form that Netlify, Cloudflare Pages and others read.
_HEADERS = """/*
  Content-Security-Policy: {policy}
  X-Content-Type-Options: nosniff
  Referrer-Policy: no-referrer
/models/*
  Cache-Control: public, max-age=31536000, immutable
"""
_ABOUT = json.dumps({"version": regard.__version__})
LiveModel = tuple[dict[str, Any], bytes]
"""What a page is told of a model (`regard.trace.live.facts`), and the model's file."""
_KINDS = {".js": "text/javascript", ".css": "text/css", ".json": "application/json"}
_LANGUAGES: tuple[Literal["en", "ko"], ...] = ("en", "ko")
_NO_SCRIPTS = "This page shows more where scripts may run. 스크립트를 켜면 더 볼 수 있습니다."
_START = """
import { start } from "#app/main";
start();
"""
_IMPORT = re.compile(r"^import .*$", re.MULTILINE)
_IMPORTED = re.compile(r'from "#engine/(\w+)"')
_EXPORT = re.compile(r"^export ", re.MULTILINE)
# What could end a script element or, in old parsers of JavaScript, a line.
_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


def page(documents: Sequence[str], cards: Sequence[list[dict[str, Any]]], picture: str, title: str) -> str:
    """Return the page that shows traces (as JSON) beside each other, each with the cards of its mechanics.

    `picture` is an SVG document: it is what is seen before scripts run, where none may, and on paper.
    """
    if len(documents) != len(cards):
        raise ValueError(f"{len(documents)} traces and cards of {len(cards)}")
    traces = ",".join(
        f'{{"trace":{document},"cards":{json.dumps(of_one, ensure_ascii=False)}}}'
        for document, of_one in zip(documents, cards, strict=True)
    )
    strings = {language: _strings(language) for language in _LANGUAGES}
    modules = json.dumps({"imports": _modules()})
    # Scripts stand in the file itself, the import map and the start inline, the modules as data: URLs: a page
    # opened as file:// may not import its neighbours.
    body = f"""<body>
<div id="app"></div>
{_shown_before(title, picture)}
<script type="application/json" id="strings">{_inert(json.dumps(strings, ensure_ascii=False))}</script>
<script type="application/json" id="about">{_ABOUT}</script>
<script type="application/json" id="traces">{_inert(f"[{traces}]")}</script>
<script type="importmap">{modules}</script>
<script type="module">{_START}</script>
</body>"""
    return frame(title, f"<style>\n{_read('style.css')}</style>", body, scripts=[modules, _START])


def served_page(lessons: str | None = None) -> tuple[str, str]:
    """Return the page that a server sends, and its content security policy: it may ask that server only.

    `lessons` is JSON in the form of `static/lessons.json`, which is used without it.
    """
    html, policy = _linked("/static/", ["app"], _data(lessons))
    return html, policy + _NO_FRAMES


def live_page(
    models: Sequence[LiveModel], lessons: str | None = None, asked: str = "", picture: str | None = None
) -> str:
    """Return a page that translates by itself: the models and an engine stand in it.

    `asked` is what the page shows first, in the form of its address. `picture` is as in `page`.
    """
    modules = json.dumps({"imports": _modules() | _modules("engine")})
    weights = "\n".join(
        f'<script type="text/plain" id="model-{place}">{base64.b64encode(data).decode()}</script>'
        for place, (_, data) in enumerate(models)
    )
    # The engine stands here as text, for a worker, where no import map holds.
    data = _data(lessons, models=[facts for facts, _ in models], engine=_engine(), asked=asked)
    body = f"""<body>
<div id="app"></div>
{_shown_before("regard", picture)}
{data}
{weights}
<script type="importmap">{modules}</script>
<script type="module">{_START}</script>
</body>"""
    style = f'<link rel="icon" href="data:,">\n<style>\n{_read("style.css")}</style>'
    return frame("regard", style, body, scripts=[modules, _START], has_worker=True)


def site(models: Sequence[LiveModel], lessons: str | None = None) -> dict[str, bytes]:
    """Return the files of a static site, for any web host and any folder of it, by their paths.

    Models are files of their own, fetched when they are first asked; a changed model has another name, so
    that hosts may let browsers keep them.
    """
    names = [
        f"models/{facts['name']}.{hashlib.sha256(data).hexdigest()[:12]}.regard" for facts, data in models
    ]
    listed = [facts | {"url": quote(name)} for (facts, _), name in zip(models, names, strict=True)]
    html, policy = _linked("./", ["app", "engine"], _data(lessons, models=listed), in_meta=True)
    scripts = [f"{folder}/{name}.js" for folder in ("app", "engine") for name in _names(folder)]
    return {
        "index.html": html.encode(),
        WORKER: _engine().encode(),
        "_headers": _HEADERS.format(policy=policy + _NO_FRAMES).encode(),
        **{path: _read(path).encode() for path in ("style.css", *scripts)},
        **{name: data for name, (_, data) in zip(names, models, strict=True)},
    }


def _linked(base: str, folders: Sequence[str], data: str, *, in_meta: bool = False) -> tuple[str, str]:
    """Return a page whose scripts and styles are files under `base`, and its policy."""
    paths = {
        f"#{folder}/{name}": f"{base}{folder}/{name}.js" for folder in folders for name in _names(folder)
    }
    modules = json.dumps({"imports": paths})
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in (modules, _START)
    )
    policy = _POLICY.format(hashes=hashes)
    meta = f'\n<meta http-equiv="Content-Security-Policy" content="{policy}">' if in_meta else ""
    needed = [path for name, path in paths.items() if name.startswith("#app/")]
    preloads = "".join(f'<link rel="modulepreload" href="{path}">' for path in needed)
    html = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">{meta}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="regard">
<title>regard</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{base}style.css">
<script type="importmap">{modules}</script>
{preloads}
</head>
<body>
<div id="app"></div>
{_shown_before("regard", None)}
{data}
<script type="module">{_START}</script>
</body>
</html>
"""
    return html, policy


def _shown_before(title: str, picture: str | None) -> str:
    """Return what is seen before scripts run, where none may, and on paper."""
    if picture is None:
        return f"<noscript>{_NO_SCRIPTS}</noscript>"
    image = base64.b64encode(picture.encode()).decode()
    return f"""<figure id="picture"><img alt="{escaped(title)}" src="data:image/svg+xml;base64,{image}">
<noscript><figcaption>{_NO_SCRIPTS}</figcaption></noscript></figure>"""


def _data(lessons: str | None, **more: Any) -> str:
    """Return what a page that can be asked is told, as inert script elements: texts, lessons, and more."""
    told = {
        "about": _ABOUT,
        "strings": json.dumps({language: _strings(language) for language in _LANGUAGES}, ensure_ascii=False),
        "lessons": lessons or _read("lessons.json"),
        **{name: json.dumps(value, ensure_ascii=False) for name, value in more.items()},
    }
    return "\n".join(
        f'<script type="application/json" id="{name}">{_inert(text)}</script>' for name, text in told.items()
    )


def _engine() -> str:
    """Return the modules of the engine as one script for a worker, where no import map holds."""
    sources = {name: _read(f"engine/{name}.js") for name in _names("engine")}
    needs = {name: set(_IMPORTED.findall(source)) for name, source in sources.items()}
    joined = "\n".join(sources[name] for name in TopologicalSorter(needs).static_order())
    return f"(() => {{\n{_EXPORT.sub('', _IMPORT.sub('', joined))}\nlisten(self);\n}})();"


def static_files() -> dict[str, tuple[bytes, str]]:
    """Return what the served page asks for: the contents and media type of each path."""
    paths = ["style.css", *(f"app/{name}.js" for name in _names())]
    return {path: (_read(path).encode(), _KINDS[f".{path.rpartition('.')[2]}"]) for path in paths}


def _strings(language: Literal["en", "ko"]) -> dict[str, str]:
    """Return the texts of the interface in a language, the meanings of flags among them."""
    strings: dict[str, str] = json.loads(_read(f"i18n/{language}.json"))
    flags = {
        f"{flag.kind}.{key}": flag.short if language == "en" else flag.korean for key, flag in FLAGS.items()
    }
    return strings | flags


def _modules(folder: str = "app") -> dict[str, str]:
    """Return each of our modules by the name under which the others import it."""
    names = _names(folder)
    packed = {name: base64.b64encode(_read(f"{folder}/{name}.js").encode()).decode() for name in names}
    return {f"#{folder}/{name}": f"data:text/javascript;base64,{data}" for name, data in packed.items()}


def _names(of: str = "app") -> list[str]:
    """Return the names of our modules in a folder."""
    folder = files("regard.viewer") / "static" / of
    return sorted(one.name.removesuffix(".js") for one in folder.iterdir() if one.name.endswith(".js"))


def _read(name: str) -> str:
    return (files("regard.viewer") / "static" / name).read_text(encoding="utf-8")


def _inert(text: str) -> str:
    """Return JSON that can stand in a script element, whatever its strings say."""
    return text.translate(_ESCAPES)
