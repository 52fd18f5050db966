"""Self-contained HTML: the frame of every page we write, and reports in it. No request, light or dark."""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path

from regard.draw.heatmap import heat_maps_svg
from regard.draw.labels import escaped, texts
from regard.draw.scene import svg
from regard.report.document import Entry, Example, Figure, Paragraph, Report, Table
from regard.text.words import words

_LONG_NAME, _LONG_WORDS = 30, 16  # characters


def frame(
    title: str,
    head: str,
    body: str,
    language: str = "en",
    scripts: Sequence[str] = (),
    *,
    has_worker: bool = False,
) -> str:
    """Return a page that can call no other site and run no script but those given, and what they import.

    `scripts` are the contents of the script elements in `body`; the policy names each by its hash, so a
    browser runs no other that stands in the page. Modules are imported as data: URLs. A worker, if there is
    one, is started from a blob: URL.
    """
    hashes = [f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in scripts]
    allowed = f"script-src {' '.join(hashes)} data:; " if scripts else ""
    allowed += "worker-src blob:; " if has_worker else ""
    policy = f"default-src 'none'; {allowed}style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    return f"""<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(policy + "form-action 'none'")}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="regard">
<title>{escaped(title)}</title>
{head}
</head>
{body}
</html>
"""


def page(report: Report) -> str:
    """Return a report as a whole page."""
    links = " · ".join(
        f'<a href="{file}" hreflang="{other}" lang="{other}">{texts("report", other)["language"]}</a>'
        for other, file in report.others.items()
    )
    parts = [f'<p class="note">{links}</p>'] if links else []
    parts += [f"<h1>{escaped(report.title)}</h1>", *_sections(report)]
    body = "\n".join(['<body class="regard-report">', "<main>", *parts, "</main>", "</body>"])
    return frame(report.title, f"<style>\n{_style()}</style>", body, report.language)


def fragment(report: Report) -> str:
    """Return a report as a part of a notebook."""
    body = "\n".join(_sections(report))
    return f'<div class="regard-report"><style>{_style()}</style>{body}</div>'


@cache
def _style() -> str:
    return Path(__file__).with_name("style.css").read_text(encoding="utf-8")


def _sections(report: Report) -> Iterator[str]:
    for section in report.sections:
        yield f"<h2>{escaped(section.title)}</h2>"
        for block in section.blocks:
            match block:
                case Paragraph():
                    yield _paragraph(block)
                case Table():
                    yield _table(block)
                case Figure():
                    yield svg(block.scene)
                case Example():
                    yield _example(block, report.language)


def _paragraph(block: Paragraph) -> str:
    tag = "code" if block.is_code else "span"
    items = "".join(f"<li><{tag}>{escaped(item)}</{tag}></li>" for item in block.items)
    text = f"<p>{escaped(block.text)}</p>" if block.text else ""
    return text + (f"<ul>{items}</ul>" if items else "")


def _table(table: Table) -> str:
    rows = [table.columns, *table.rows]
    is_long = [max(map(len, column)) > _LONG_WORDS for column in zip(*rows, strict=True)]
    kinds = [' class="words"' if long else ' class="word"' for long in is_long[: table.num_words]]
    kinds += [""] * (len(table.columns) - table.num_words)
    written = []
    for number, row in enumerate(rows):
        tag = "td" if number else "th"
        cells = zip(kinds, row, strict=True)
        written += [
            "<tr>",
            *(f"<{tag}{kind}>{_cell(cell, not kind)}</{tag}>" for kind, cell in cells),
            "</tr>\n",
        ]
    note = f'<p class="note">{escaped(table.note)}</p>' if table.note else ""
    return f'<div class="wide"><table>{"".join(written)}</table></div>{note}'


def _cell(cell: str, is_number: bool) -> str:
    value, _, around = cell.partition("\n")
    text = escaped(value)
    if is_number and len(value) > _LONG_NAME:
        text = f'<span class="name" title="{text}">{text}</span>'
    return f"{text}<small>{escaped(around)}</small>" if around else text


def _example(example: Example, language: str) -> str:
    said = texts("report", language)
    rows = []
    for entry in example.entries:
        text = _marked(entry) or f'<span class="note">{escaped(said["nothing"])}</span>'
        note = f'<div class="note">{escaped(entry.note)}</div>' if entry.note else ""
        rows.append(f'<dt>{escaped(entry.name)}</dt><dd dir="auto">{text}{note}</dd>')
    looks = ""
    if example.maps:
        looks = f"<details{' open' if example.is_open else ''}><summary>{escaped(said['looks'])}</summary>"
        looks += f'<div class="wide">{heat_maps_svg(example.maps, language)}</div></details>'
    return f'<div class="example"><dl>{"".join(rows)}</dl>{looks}</div>'


def _marked(entry: Entry) -> str:
    """Return the text with the words marked that the reference does not have, or not so often."""
    text, reference = entry.text.strip(), entry.reference
    if reference is None:
        return escaped(text)
    left = Counter(reference[start:end] for start, end in words(reference))
    parts, before = [], 0
    for start, end in words(text):
        word = text[start:end]
        parts.append(escaped(text[before:start]))
        parts.append(escaped(word) if left[word] > 0 else f'<span class="off">{escaped(word)}</span>')
        left[word] -= 1
        before = end
    return "".join([*parts, escaped(text[before:])])
