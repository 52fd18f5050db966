"""The documentation page of the API, made from its OpenAPI document: plain HTML that works offline."""

import base64
import hashlib
import json
from html import escape
from typing import Any

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
body { color: #222 }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc }
h3 code { background: none; padding: 0 }
code, pre { font-family: ui-monospace, monospace; font-size: 14px }
pre { background: #f4f4f4; padding: .75rem; overflow-x: auto; white-space: pre-wrap }
td, th { text-align: left; padding: .2rem 1rem .2rem 0; vertical-align: top }
@media (prefers-color-scheme: dark) {
  body { background: #181818; color: #ddd }
  pre { background: #262626 }
  a { color: #8bf }
}
"""


def style_hash() -> str:
    """Return the hash of the style for the content security policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}"


def docs_page(document: dict[str, Any]) -> str:
    """Return the page."""
    by_tag: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            by_tag.setdefault(about["tags"][0], []).append(_path(method.upper(), path, about))
    parts = [f"<h2>{escape(tag)}</h2>{''.join(some)}" for tag, some in by_tag.items()]
    return (
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>regard: API</title><style>{_STYLE}</style>"
        f"<h1>regard {escape(document['info']['version'])}</h1>"
        f"<p>{escape(document['info']['description'])}</p>"
        '<p>The same for programs: <a href="/openapi.json">/openapi.json</a>. For those who run the server: '
        '<a href="/livez">/livez</a>, <a href="/readyz">/readyz</a>, <a href="/metrics">/metrics</a>.</p>'
        f"{''.join(parts)}</html>"
    )


def _path(method: str, path: str, about: dict[str, Any]) -> str:
    shown = f"<h3><code>{method} {escape(path)}</code></h3><p>{escape(about['summary'])}.</p>"
    content = about.get("requestBody", {}).get("content", {})
    body = content.get("application/json", {})
    form = content.get("multipart/form-data", {}).get("schema", {}).get("properties", {})
    if "example" in body:
        example = json.dumps(body["example"], ensure_ascii=False)
        command = f"curl -H 'content-type: application/json' localhost:5000{path} -d '{example}'"
        shown += f"<pre>{escape(command)}</pre>"
    elif "file" in form:
        fields = [f"-F {name}={field['examples'][0]}" for name, field in form.items() if "examples" in field]
        command = " ".join([f"curl localhost:5000{path} -F file=@letter.docx", *fields])
        shown += f"<pre>{escape(command)}</pre>"
    elif method == "GET" and "{" not in path:
        shown += f"<pre>{escape(f'curl localhost:5000{path}')}</pre>"
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code><td>{escape(_kind(field))}"
        f"<td>{escape(field.get('description', ''))}"
        for name, field in body.get("schema", {}).get("properties", {}).items()
    )
    return shown + (f"<table>{rows}</table>" if rows else "")


def _kind(field: dict[str, Any]) -> str:
    if "anyOf" in field:
        return " or ".join(_kind(one) for one in field["anyOf"] if one.get("type") != "null")
    if field.get("type") == "array":
        return f"list of {_kind(field.get('items', {}))}"
    return str(field.get("type", "value"))
