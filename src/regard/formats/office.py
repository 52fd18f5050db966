"""DOCX, ODT and others of their kind: archives of XML in which paragraphs are translated."""

import html
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from regard.formats.inline import Inline
from regard.formats.segments import Segment, Wanted, Work, replaced
from regard.formats.xml_tree import Element, read_xml
from regard.text.markup import tokens

_PARAGRAPHS = {"w": ("w:p",), "a": ("a:p",), "text": ("text:p", "text:h")}
# Elements with words in them that a reader sees; all others are kept whole.
_AROUND = frozenset(
    (
        "w:hyperlink",
        "w:ins",
        "w:moveTo",
        "w:smartTag",
        "w:customXml",
        "w:fldSimple",
        "w:sdt",
        "w:sdtContent",
        "text:span",
        "text:a",
        "text:meta",
        "text:meta-field",
        "text:ruby",
        "text:ruby-base",
    )
)
_LEFT_OUT = frozenset(("w:proofErr", "w:lastRenderedPageBreak", "text:soft-page-break"))
_RUN_PROPERTIES = frozenset(("w:rPr", "a:rPr"))
_LANGUAGE = re.compile(r"<w:(?:lang|noProof)\b[^<>]*/>")
_EMPTY = re.compile(r"<(\w+:rPr)\s*(?:/>|></\1>)")
# Names of styles and of fonts in which people write code.
_CODE_STYLE = re.compile(
    r"preformatted|source(?:_20_| )?(?:text|code)|verbatim|teletype|user(?:_20_| )?entry|\bcode|code\b", re.I
)
_CODE_FONT = re.compile(r"courier|consolas|menlo|monaco|monospace|\bmono\b|source code", re.I)
_NAMED = re.compile(
    r'<w:[rp]Style w:val="([^"]*)"|<(?:w:rFonts|a:latin)\b[^<>]*?(?:w:ascii|typeface)="([^"]*)"'
)
_PARAGRAPH_PROPERTIES = frozenset(("w:pPr", "a:pPr", "a:endParaRPr"))


def paragraphs(text: str, wanted: Wanted, kind: str) -> Work:
    """Translate the paragraphs of a part; those within others (notes, text boxes) before them."""
    depth = max((depth for depth, _ in _found(read_xml(text), _PARAGRAPHS[kind])), default=-1)
    for level in range(depth, -1, -1):
        root = read_xml(text)
        code = _code_styles(root) if kind == "text" else frozenset()
        segments = []
        for number, (other, paragraph) in enumerate(_found(root, _PARAGRAPHS[kind]), 1):
            if other == level:
                one = _of_spans(text, paragraph, code) if kind == "text" else _of_runs(text, paragraph, kind)
                segments += [] if one is None else [replace(one, line=number)]
        text = yield from replaced(text, segments)
    return text


def _found(root: Element, names: tuple[str, ...]) -> Iterator[tuple[int, Element]]:
    """Yield the paragraphs, each with the number of paragraphs around it."""
    waiting = [(0, root)]
    while waiting:
        depth, element = waiting.pop()
        is_one = element.name in names
        if is_one:
            yield depth, element
        waiting += [(depth + is_one, child) for child in reversed(element.children)]


def _code_styles(root: Element) -> frozenset[str]:
    """Return the automatic styles of OpenDocument in which code is written."""
    found, waiting = set(), [root]
    while waiting:
        element = waiting.pop()
        waiting += element.children
        if element.name == "style:style":
            fonts = [one.attributes.get("style:font-name", "") for one in element.children]
            is_code = _CODE_STYLE.search(element.attributes.get("style:parent-style-name", "")) is not None
            is_text = element.attributes.get("style:family") == "text"
            if is_code or (is_text and any(map(_CODE_FONT.search, fonts))):
                found.add(element.attributes.get("style:name", ""))
    return frozenset(found)


def _of_spans(text: str, paragraph: Element, code: frozenset[str]) -> Segment | None:
    """Return a paragraph of OpenDocument, whose inline elements are tags already."""

    def is_code(element: Element) -> bool:
        style = element.attributes.get("text:style-name", "")
        return style in code or _CODE_STYLE.search(style) is not None

    if is_code(paragraph):
        return None

    def walk(element: Element, inline: Inline, keeps_code: bool) -> None:
        place = element.inner
        for child in element.children:
            inline.text(html.unescape(text[place : child.start]))
            place = child.end
            written = text[child.start : child.end]
            if keeps_code and child.name == "text:span" and is_code(child):
                inline.kept(written, html.unescape(re.sub(r"<[^<>]*>", "", written)))
            elif child.name in _AROUND and child.inner < child.inner_end:
                name = inline.open(text[child.start : child.inner], text[child.inner_end : child.end])
                walk(child, inline, keeps_code)
                inline.close(name)
            elif child.name not in _LEFT_OUT:
                inline.empty(written)
        inline.text(html.unescape(text[place : element.inner_end]))

    for keeps_code in (True, False):  # a paragraph in such a font and nothing else is text
        inline = Inline()
        walk(paragraph, inline, keeps_code)
        if inline.has_words:
            break
    else:
        return None
    write = partial(inline.write, escape=_spaced)
    return Segment(inline.xml, paragraph.inner, paragraph.inner_end, 0, "xml", write)


def _spaced(text: str) -> str:
    return html.escape(text, quote=False)


@dataclass(frozen=True, slots=True)
class _Words:
    text: str
    style: str


@dataclass(frozen=True, slots=True)
class _Other:
    written: str
    field: str = ""  # whether a field begins, is parted from its result, or ends here


@dataclass(frozen=True, slots=True)
class _Around:
    opening: str
    closing: str
    children: "list[_Node]"


_Node = _Words | _Other | _Around


def _of_runs(text: str, paragraph: Element, prefix: str) -> Segment | None:
    """Return a paragraph of runs, each with a format of its own.

    The commonest format needs no tag; each stretch in another is a pair of tags.
    """
    content = [one for one in paragraph.children if one.name not in _PARAGRAPH_PROPERTIES]
    if not content or _is_code(text[paragraph.inner : content[0].start]):
        return None
    nodes = _with_fields(_nodes(text, content, prefix))
    sizes: Counter[str] = Counter()
    words = list(_all_words(nodes))
    for one in [one for one in words if not _is_code(one.style)] or words:
        sizes[one.style] += len(one.text)
    usual = max(sizes, key=lambda style: sizes[style], default="")
    inline, styles = Inline(), {}

    def add(nodes: list[_Node]) -> None:
        for style, group in groupby(nodes, lambda one: one.style if isinstance(one, _Words) else None):
            name = None
            if style is not None and style != usual and _is_code(style):
                said = "".join(one.text for one in group if isinstance(one, _Words))
                inline.kept(_written_run(said, style, prefix), said)
                continue
            if style not in (None, usual):
                name = inline.open("", "")
                styles[name] = style
            for one in group:
                if isinstance(one, _Words):
                    inline.text(one.text)
                elif isinstance(one, _Other):
                    inline.empty(one.written)
                else:
                    around = inline.open(one.opening, one.closing)
                    add(one.children)
                    inline.close(around)
            if name is not None:
                inline.close(name)

    add(nodes)
    if not inline.has_words:
        return None
    write = partial(_written_runs, inline=inline, styles=styles, usual=usual, prefix=prefix)
    return Segment(inline.xml, content[0].start, content[-1].end, 0, "xml", write)


def _nodes(text: str, elements: list[Element], prefix: str) -> list[_Node]:
    nodes: list[_Node] = []
    for element in elements:
        if element.name == f"{prefix}:r":
            nodes += _run(text, element, prefix)
        elif element.name in _AROUND:
            inside = [one for one in element.children if one.name in _AROUND or one.name == f"{prefix}:r"]
            if inside:
                # Properties before the content belong to the opening tag.
                opening, closing = text[element.start : inside[0].start], text[inside[-1].end : element.end]
                first, last = element.children.index(inside[0]), element.children.index(inside[-1])
                content = element.children[first : last + 1]
                nodes.append(_Around(opening, closing, _nodes(text, content, prefix)))
            else:
                nodes.append(_Other(text[element.start : element.end]))
        elif element.name not in _LEFT_OUT:
            nodes.append(_Other(text[element.start : element.end]))
    return nodes


def _run(text: str, run: Element, prefix: str) -> Iterator[_Node]:
    """Yield the texts of a run, and what else stands in it, each in a run of its own."""
    properties = "".join(text[one.start : one.end] for one in run.children if one.name in _RUN_PROPERTIES)
    style = _EMPTY.sub("", _LANGUAGE.sub("", properties))
    opening = text[run.start : run.inner] + properties
    for child in run.children:
        if child.name == f"{prefix}:t":
            yield _Words(html.unescape(text[child.inner : child.inner_end]), style)
        elif child.name not in _RUN_PROPERTIES and child.name not in _LEFT_OUT:
            written = opening + text[child.start : child.end] + f"</{run.name}>"
            yield _Other(written, child.attributes.get("w:fldCharType", ""))


def _with_fields(nodes: list[_Node]) -> list[_Node]:
    """Return the nodes with fields (a link, a page number) as pairs around what they show."""
    found: list[_Node] = []
    begins: list[int] = []
    for node in nodes:
        found.append(node)
        kind = node.field if isinstance(node, _Other) else ""
        if kind == "begin":
            begins.append(len(found) - 1)
        elif kind == "end" and begins:
            start = begins.pop()
            inside = found[start:]
            parts = [n for n, one in enumerate(inside) if isinstance(one, _Other) and one.field == "separate"]
            if parts and all(isinstance(one, _Other) for one in inside[: parts[0]]):
                opening = "".join(one.written for one in inside[: parts[0] + 1] if isinstance(one, _Other))
                assert isinstance(node, _Other)
                found[start:] = [_Around(opening, node.written, inside[parts[0] + 1 : -1])]
    return found


def _all_words(nodes: list[_Node]) -> Iterator[_Words]:
    for one in nodes:
        if isinstance(one, _Words):
            yield one
        elif isinstance(one, _Around):
            yield from _all_words(one.children)


def _is_code(properties: str) -> bool:
    """Tell whether a style or a font of a run, or the style of a paragraph, is one for code."""
    return any(
        _CODE_STYLE.search(style) or _CODE_FONT.search(font) for style, font in _NAMED.findall(properties)
    )


def _written_run(said: str, style: str, prefix: str) -> str:
    space = ' xml:space="preserve"' if prefix == "w" else ""
    return f"<{prefix}:r>{style}<{prefix}:t{space}>{html.escape(said, quote=False)}</{prefix}:t></{prefix}:r>"


def _written_runs(marked: str, inline: Inline, styles: dict[str, str], usual: str, prefix: str) -> str:
    """Return the runs of a translated paragraph."""
    pieces, style = [], [usual]
    for is_text, group in groupby(tokens(marked, "xml"), lambda one: one.kind == "text"):
        if is_text:
            pieces.append(_written_run("".join(token.value for token in group), style[-1], prefix))
            continue
        for token in group:
            if token.name not in styles:
                pieces.append(inline.written[token.name][token.kind == "close"])
            elif token.kind == "open":
                style.append(styles[token.name])
            else:
                style.pop()
    return "".join(pieces)
