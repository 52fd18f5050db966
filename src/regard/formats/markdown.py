"""Markdown: headings, paragraphs, lists and tables; code, links' addresses and front matter stay."""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from regard.formats.html import blocks
from regard.formats.inline import Inline
from regard.formats.segments import Lines, Segment, Wanted, Work, has_words, replaced
from regard.text.markup import VOID

_FRONT = re.compile(r"\A(---|\+\+\+)[ \t]*\r?\n.*?\n\1[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_NOT_PROSE = re.compile(r":::|\{%|\{\{|\$\$|\[\^?[^\]]*\]:|!!!|import |export ")
_BEGIN = re.compile(r"#{1,6} |[-+*] |> ?|\d{1,9}[.)](?= )")
_SPECIAL = "\\`*_[]<"
_DESTINATION = r"""\((?:[^()\n"']|\([^()\n]*\)|"[^"\n]*"|'[^'\n]*')*\)"""
_TOKEN = re.compile(
    rf"""
      (?P<code>(?<!`)(?P<ticks>`+)(?!`)(?P<inside>.+?)(?<!`)(?P=ticks)(?!`))
    | \\(?P<escaped>[!-/:-@\[-`{{-~])
    | (?P<hard>(?:\ {{2,}}|\\)\n)
    | (?P<address><(?:[A-Za-z][A-Za-z0-9+.-]{{1,31}}:[^\s<>]*|[\w.+-]+@[\w.-]+)>)
    | (?P<tag></?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>]*)?/?>|<!--.*?-->)
    | (?P<image>!\[(?P<alt>[^\]\n]*)\](?:{_DESTINATION}|\[[^\]\n]*\]))
    | (?P<task>\A\[[ xX]\]\ )
    | (?P<note>\[\^[^\]\s]+\])
    | (?P<opened>\[)
    | (?P<closed>\](?:{_DESTINATION}|\[(?P<label>[^\]\n]*)\])?)
    | (?P<mark>(?P<sign>[*_])(?P=sign)*|~~)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Prose:
    """Where a heading, paragraph or cell stands, what it says, and what its further lines begin with."""

    start: int
    end: int
    content: str
    indent: str
    is_cell: bool


@dataclass(slots=True)
class _Piece:
    """A part of a paragraph as it is written, and the delimiter that may make it one of a pair."""

    kind: str
    written: str
    said: str = ""
    delimiter: str = ""
    can_open: bool = False
    can_close: bool = False
    partner: int | None = None


def markdown(text: str, wanted: Wanted) -> Work:
    """Translate Markdown: first the descriptions of images, then the prose."""
    prose, html_spans, _ = _read(text)
    lines = Lines(text)
    text = yield from replaced(text, [image for one in prose for image in _images(text, one, lines)])
    prose, html_spans, references = _read(text)
    lines = Lines(text)
    segments = [found for one in prose for found in _segment(one, references, lines.at(one.start))]
    for start, end in html_spans:
        segments += blocks(text[start:end], start, lines.at(start))
    return (yield from replaced(text, segments))


def _read(text: str) -> tuple[list[_Prose], list[tuple[int, int]], set[str]]:
    """Return the prose of a text, its blocks of HTML, and the labels of its links."""
    from markdown_it import MarkdownIt

    front = _FRONT.match(text)
    offset = front.end() if front else 0
    body = text[offset:]
    rows = re.findall(r"[^\n]*\n|[^\n]+\Z", body)
    starts = [offset]
    for row in rows:
        starts.append(starts[-1] + len(row))
    found: dict[str, Any] = {}
    prose: list[_Prose] = []
    html_spans: list[tuple[int, int]] = []
    before = ""
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(body, found):
        if token.type == "html_block" and token.map:
            html_spans.append((starts[token.map[0]], starts[token.map[1]]))
        if token.type == "inline" and token.map and token.content:
            one = _located(text, starts, token.map[0], token.content, prose, before in ("th_open", "td_open"))
            if one is not None and not _NOT_PROSE.match(token.content):
                prose.append(one)
        before = token.type
    return prose, html_spans, {label.casefold() for label in found.get("references", {})}


def _located(
    text: str, starts: list[int], row: int, content: str, prose: list[_Prose], is_cell: bool
) -> _Prose | None:
    """Return where a content stands in the text, None if it is written otherwise there."""
    places = []
    for number, line in enumerate(content.split("\n")):
        first = starts[row + number]
        if is_cell and prose:
            first = max(first, prose[-1].end)
        written = line.strip()
        if is_cell and written not in text[first : starts[row + number + 1]]:
            written = written.replace("|", "\\|")
        place = text.find(written, first, starts[row + number + 1])
        if place < 0:
            return None
        places.append((place, place + len(written)))
    indent = text[starts[row + 1] : places[1][0]] if len(places) > 1 else ""
    return _Prose(places[0][0], places[-1][1], content, indent, is_cell)


def _images(text: str, one: _Prose, lines: Lines) -> Iterator[Segment]:
    for found in _TOKEN.finditer(text, one.start, one.end):
        if found["alt"] and has_words(found["alt"]):
            start, end = found.span("alt")
            yield Segment(found["alt"], start, end, lines.at(start), write=_without_brackets)


def _without_brackets(text: str) -> str:
    return re.sub(r"[\[\]\n]", "", text)


def _segment(one: _Prose, references: set[str], line: int) -> Iterator[Segment]:
    pieces = _paired(list(_pieces(one.content)), references)
    inline, names = Inline(), {}
    raw = ""  # what stands in the source as text, with its special signs
    for number, piece in enumerate(pieces):
        if piece.partner is not None and piece.partner > number:
            names[piece.partner] = inline.open(piece.written, pieces[piece.partner].written)
        elif piece.partner is not None:
            inline.close(names[number])
        elif piece.kind == "kept":
            inline.kept(piece.written, piece.said)
        elif piece.kind == "empty":
            inline.empty(piece.written)
        elif piece.kind == "hard":
            inline.empty(piece.written + one.indent)
        else:
            inline.text(html.unescape(piece.said))
            raw += piece.said if piece.kind != "escaped" else ""
    if inline.has_words:
        write = partial(_written, inline=inline, raw=raw, is_cell=one.is_cell)
        yield Segment(inline.xml, one.start, one.end, line, "xml", write)


def _written(marked: str, inline: Inline, raw: str, is_cell: bool) -> str:
    special = [sign for sign in _SPECIAL if sign not in raw]

    def escape(text: str) -> str:
        text = text.replace("\n", " ")
        found = re.sub(
            r"(?<![^\W_])_|_(?![^\W_])|[\\`*\[\]<]",
            lambda one: f"\\{one[0]}" if one[0] in special else one[0],
            text,
        )
        return re.sub(r"(?<!\\)\|", r"\|", found) if is_cell else found

    said = inline.write(marked, escape)
    begin = _BEGIN.match(said)
    if begin and not _BEGIN.match(raw):  # it must not become a list, a heading or a quotation
        place = begin.end() - 1 if begin[0][0].isdigit() else 0
        said = f"{said[:place]}\\{said[place:]}"
    return said


def _pieces(content: str) -> Iterator[_Piece]:
    place = 0
    for found in _TOKEN.finditer(content):
        if found.start() > place:
            yield _Piece("text", content[place : found.start()], content[place : found.start()])
        place = found.end()
        yield from _piece(content, found)
    if place < len(content):
        yield _Piece("text", content[place:], content[place:])


def _piece(content: str, found: re.Match[str]) -> Iterator[_Piece]:
    written, kind = found[0], found.lastgroup
    if found["code"]:
        yield _Piece("kept", written, found["inside"].strip().replace("\n", " "))
    elif found["address"]:
        yield _Piece("kept", written, written[1:-1])
    elif found["escaped"]:
        yield _Piece("escaped", written, found["escaped"])
    elif found["hard"]:
        yield _Piece("hard", written)
    elif found["tag"]:
        name = re.match(r"</?([A-Za-z][A-Za-z0-9-]*)", written)
        is_alone = name is None or written.endswith("/>") or name[1].lower() in VOID
        delimiter = "" if is_alone or name is None else f"<{name[1].lower()}>"
        yield _Piece("empty", written, "", delimiter, written[1] != "/", written[1] == "/")
    elif found["opened"]:
        yield _Piece("bracket", written, written, "[", can_open=True)
    elif found["closed"]:
        yield _Piece("bracket", written, written, "[", can_close=True)
    elif found["mark"]:
        yield from _marks(content, found)
    else:  # an image, a note, a box to tick
        assert kind is not None
        yield _Piece("empty", written)


def _marks(content: str, found: re.Match[str]) -> Iterator[_Piece]:
    """Yield the marks of an emphasis; a run of three is two marks."""
    written = found[0]
    before, behind = (
        content[found.start() - 1 : found.start()] or " ",
        content[found.end() : found.end() + 1] or " ",
    )
    can_open, can_close = not behind.isspace(), not before.isspace()
    if written[0] == "_":
        can_open, can_close = can_open and not before.isalnum(), can_close and not behind.isalnum()
    if len(written) > 3 or written == "~~":
        delimiters = [written] if written == "~~" else [""]
    else:
        delimiters = [written] if len(written) < 3 else [written[:2], written[0]]
    if can_close and not can_open:
        delimiters.reverse()
    for delimiter in delimiters:
        yield _Piece("mark", delimiter or written, delimiter or written, delimiter, can_open, can_close)


def _paired(pieces: list[_Piece], references: set[str]) -> list[_Piece]:
    """Find the partners of brackets, tags and marks; what has none is text, or a tag alone."""
    open_pieces: list[int] = []
    for number, piece in enumerate(pieces):
        if piece.can_close and piece.delimiter:
            depths = [n for n, other in enumerate(open_pieces) if pieces[other].delimiter == piece.delimiter]
            if depths:
                other = open_pieces[depths[-1]]
                is_near = piece.delimiter != "[" or _is_link(pieces, other, number, references)
                del open_pieces[depths[-1] :]
                if is_near and other < number - 1:
                    pieces[other].partner, piece.partner = number, other
                continue
        if piece.can_open and piece.delimiter:
            open_pieces.append(number)
    return pieces


def _is_link(pieces: list[_Piece], first: int, last: int, references: set[str]) -> bool:
    """Tell whether brackets are a link; one that is its own label is written with that label."""
    closing = pieces[last]
    if closing.written not in ("]", "][]"):
        return True
    label = " ".join("".join(one.written for one in pieces[first + 1 : last]).split())
    if label.casefold() not in references and label.upper() not in references:
        return False
    closing.written = f"][{label}]"
    return True
