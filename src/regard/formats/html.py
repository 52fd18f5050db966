"""HTML and XHTML: blocks are translated whole, with their inline tags; scripts, styles and code stay."""

import html
import re
from collections.abc import Iterator

from regard.formats.segments import Edit, Lines, Segment, Wanted, Work, has_words, replaced
from regard.text.markup import BLOCKS, RAW, Token, tokens

_ATTRIBUTE = re.compile(r"""\s(?P<name>[A-Za-z:_-]+)\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)')""")
_TRANSLATED = frozenset(("alt", "title", "placeholder", "aria-label", "summary", "label"))
_META = frozenset(
    ("description", "keywords", "og:title", "og:description", "twitter:title", "twitter:description")
)
_ORNAMENTS = frozenset("|•·¶§↑↓→←↩▲▼×")
_ENDS = frozenset(".!?:;,»”)")
_HEADING_NUMBER = re.compile(r"(?:[\dA-Z]{1,3}\.)+\d{0,3}[.)]?|\d{1,3}\)")
_VERBATIM = frozenset(("pre", "listing", "xmp"))


def html_document(text: str, wanted: Wanted) -> Work:
    """Translate HTML: first the attributes that people read, then the blocks."""
    text = yield from replaced(text, list(_attributes(text)), list(_languages(text, wanted)))
    return (yield from replaced(text, list(blocks(text))))


def _attributes(text: str) -> Iterator[Segment]:
    lines = Lines(text)
    for token in tokens(text, "html"):
        if token.kind not in ("open", "empty") or token.name in RAW or not token.name:
            continue
        found = list(_ATTRIBUTE.finditer(token.written))
        values = {one["name"].lower(): one["double"] or one["single"] or "" for one in found}
        names = set(_TRANSLATED)
        if token.name == "meta" and values.get("name", values.get("property", "")).lower() in _META:
            names.add("content")
        if token.name == "input" and values.get("type", "").lower() in ("submit", "button", "reset"):
            names.add("value")
        for one in found:
            group = "double" if one["double"] is not None else "single"
            if one["name"].lower() in names and has_words(one[group]):
                start, end = (token.span[0] + place for place in one.span(group))
                yield Segment(html.unescape(one[group]), start, end, lines.at(start), write=_quoted)


def _quoted(text: str) -> str:
    return html.escape(text, quote=True)


def _languages(text: str, wanted: Wanted) -> Iterator[Edit]:
    """Yield the changes that make the root element say the language of the translation."""
    for token in tokens(text, "html"):
        if token.kind == "open" and token.name == "html":
            for one in _ATTRIBUTE.finditer(token.written):
                if one["name"].lower() in ("lang", "xml:lang"):
                    group = "double" if one["double"] is not None else "single"
                    start, end = (token.span[0] + place for place in one.span(group))
                    yield Edit(start, end, wanted.target)
        if token.kind == "open":
            return


def blocks(text: str, offset: int = 0, first_line: int = 1) -> Iterator[Segment]:
    """Yield the stretches of HTML between the tags of blocks."""
    lines = Lines(text)
    run: list[Token] = []
    verbatim = ""
    for token in tokens(text, "html"):
        if verbatim:
            verbatim = "" if token.kind == "close" and token.name == verbatim else verbatim
            continue
        is_block = token.name in BLOCKS or token.name in RAW
        if token.kind != "text" and is_block:
            yield from _segment(run, text, lines, offset, first_line)
            run = []
            if token.kind == "open" and token.name in _VERBATIM:
                verbatim = token.name
        else:
            run.append(token)
    yield from _segment(run, text, lines, offset, first_line)


def _segment(run: list[Token], text: str, lines: Lines, offset: int, first_line: int) -> Iterator[Segment]:
    """Yield the run without what stands around its words."""
    run = _trimmed(run)
    if any(token.kind == "text" and has_words(token.value) for token in run):
        start, end = run[0].span[0], run[-1].span[1]
        line = lines.at(start) + first_line - 1
        yield Segment(text[start:end], start + offset, end + offset, line, "html")


def _trimmed(run: list[Token]) -> list[Token]:
    """Return the tokens from the first to the last that is text or a whole element with text.

    Elements of signs (¶), the number of a heading and that of a footnote behind a sentence stay outside.
    """
    partner = _partners(run)
    first, last = 0, len(run)

    def is_outside(number: int) -> bool:
        token = run[number]
        if token.kind == "text":
            return not set(token.value.strip()) - _ORNAMENTS
        return token.kind == "empty" or (token.kind in ("open", "close") and number not in partner)

    def said(start: int, end: int) -> str:
        return "".join(token.value for token in run[start:end]).strip()

    while first < last:
        other, begin = partner.get(first, -1), partner.get(last - 1, last)
        if is_outside(first):
            first += 1
        elif is_outside(last - 1):
            last -= 1
        elif other == last - 1:  # a pair around everything
            first, last = first + 1, last - 1
        elif first < other and _HEADING_NUMBER.fullmatch(said(first, other)):
            first = other + 1
        elif first < begin < last and _stands_apart(said(begin, last), said(first, begin)):
            last = begin
        else:
            break
    return run[first:last]


def _stands_apart(text: str, before: str) -> bool:
    """Tell whether an element at the end is no part of the sentence before it."""
    is_number = not has_words(text) and before[-1:] in _ENDS
    return is_number or not any(map(str.isalnum, text))


def _partners(run: list[Token]) -> dict[int, int]:
    partner: dict[int, int] = {}
    open_tags: list[int] = []
    for number, token in enumerate(run):
        if token.kind == "open":
            open_tags.append(number)
        elif token.kind == "close" and any(run[one].name == token.name for one in open_tags):
            while run[other := open_tags.pop()].name != token.name:
                pass
            partner[other], partner[number] = number, other
    return partner
