"""One self-contained HTML file: the traces, the scripts that show them, and nothing that could call out."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from graphlib import TopologicalSorter
from importlib.resources import files
from typing import Any, Literal

from regard.draw.labels import escaped
from regard.flags import FLAGS
from regard.report.html import frame

_POLICY = (
    "default-src 'none'; script-src 'self' {hashes}; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
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
    image = base64.b64encode(picture.encode()).decode()
    modules = json.dumps({"imports": _modules()})
    # Scripts stand in the file itself, the import map and the start inline, the modules as data: URLs: a page
    # opened as file:// may not import its neighbours.
    body = f"""<body>
<div id="app"></div>
<figure id="picture"><img alt="{escaped(title)}" src="data:image/svg+xml;base64,{image}">
<noscript><figcaption>{_NO_SCRIPTS}</figcaption></noscript></figure>
<script type="application/json" id="strings">{_inert(json.dumps(strings, ensure_ascii=False))}</script>
<script type="application/json" id="traces">{_inert(f"[{traces}]")}</script>
<script type="importmap">{modules}</script>
<script type="module">{_START}</script>
</body>"""
    return frame(title, f"<style>\n{_read('style.css')}</style>", body, scripts=[modules, _START])


def served_page(lessons: str | None = None) -> tuple[str, str]:
    """Return the page that a server sends, and its content security policy: it may ask that server only.

    `lessons` is JSON in the form of `static/lessons.json`, which is used without it.
    """
    modules = json.dumps({"imports": {f"#app/{name}": f"/static/app/{name}.js" for name in _names()}})
    strings = {language: _strings(language) for language in _LANGUAGES}
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in (modules, _START)
    )
    preloads = "".join(f'<link rel="modulepreload" href="/static/app/{name}.js">' for name in _names())
    html = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>regard</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/static/style.css">
<script type="importmap">{modules}</script>
{preloads}
</head>
<body>
<div id="app"></div>
<noscript>{_NO_SCRIPTS}</noscript>
<script type="application/json" id="strings">{_inert(json.dumps(strings, ensure_ascii=False))}</script>
<script type="application/json" id="lessons">{_inert(lessons or _read("lessons.json"))}</script>
<script type="module">{_START}</script>
</body>
</html>
"""
    return html, _POLICY.format(hashes=hashes)


def live_page(models: Sequence[tuple[dict[str, Any], bytes]], lessons: str | None = None) -> str:
    """Return a page that translates by itself, with an engine in it; of each model its facts and its file."""
    strings = {language: _strings(language) for language in _LANGUAGES}
    modules = json.dumps({"imports": _modules() | _modules("engine")})
    facts = json.dumps([one for one, _ in models], ensure_ascii=False)
    weights = "\n".join(
        f'<script type="text/plain" id="model-{place}">{base64.b64encode(data).decode()}</script>'
        for place, (_, data) in enumerate(models)
    )
    body = f"""<body>
<div id="app"></div>
<noscript>{_NO_SCRIPTS}</noscript>
<script type="application/json" id="strings">{_inert(json.dumps(strings, ensure_ascii=False))}</script>
<script type="application/json" id="lessons">{_inert(lessons or _read("lessons.json"))}</script>
<script type="application/json" id="models">{_inert(facts)}</script>
<script type="application/json" id="engine">{_inert(json.dumps(_engine()))}</script>
{weights}
<script type="importmap">{modules}</script>
<script type="module">{_START}</script>
</body>"""
    style = f'<link rel="icon" href="data:,">\n<style>\n{_read("style.css")}</style>'
    return frame("regard", style, body, scripts=[modules, _START], has_worker=True)


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
