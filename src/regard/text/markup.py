"""Texts with inline tags: the plain text that a model reads, and the tags as a tree over its characters.

Tags are read by a tokenizer and paired by a stack. A tag without its partner is kept like an empty one, so
any text can be read; `Marked.is_broken` tells of it.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from regard.text.words import Span

Markup = Literal["xml", "html"]
"""How tags are read: HTML knows void elements, blocks, elements such as <code>, and named entities."""

_ATTRIBUTE = r"""(?:[\s/]++(?:[^\s"'<>/=]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'=<>`]++))?+)?+)"""
_TOKEN = re.compile(
    rf"""
      (?P<other> <!--.*?(?:-->|\Z) | <!\[CDATA\[.*?(?:\]\]>|\Z) | <\?[A-Za-z].*?(?:\?>|\Z)
        | <![A-Za-z][^<>]*+> )
    | </(?P<closed>[A-Za-z_][^\s<>/]*+)\s*+>
    | <(?P<opened>[A-Za-z_][^\s<>/"'=]*+)(?P<rest>{_ATTRIBUTE}*+)>
    | &(?P<entity>\#[0-9]{{1,7}}|\#[xX][0-9A-Fa-f]{{1,6}}|[A-Za-z][0-9A-Za-z._\-]{{0,40}});
    """,
    re.VERBOSE | re.DOTALL,
)
_PARTNER = re.compile(r"""\s(?:rid|i)\s*=\s*["']([^"']*)["']""")
_NOT_TRANSLATED = re.compile(r"""\stranslate\s*=\s*["']?no\b""")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


VOID = _names("area base br col embed hr img input link meta param source track wbr")
"""Elements of HTML that have no end."""
BLOCKS = _names(
    "address article aside blockquote body br button caption center dd details dialog dir div dl dt fieldset"
    " figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li main menu"
    " nav ol optgroup option p pre search section select summary table tbody td template tfoot th thead title"
    " tr ul"
)
"""Elements of HTML that end the sentence before them."""
RAW = _names("script style textarea svg math noscript iframe object audio video canvas")
"""Elements of HTML whose content is not translated, and no part of a sentence."""
CODE = _names("code kbd samp var tt")
"""Elements of HTML whose content is not translated, and a part of the sentence."""
# Native codes of TMX and XLIFF 1.2: their content belongs to the tag.
_NATIVE = _names("ph bpt ept it ut")
_BEGINS, _ENDS = {"bx": "ex", "sc": "ec"}, ("ex", "ec")
_XML_ENTITIES = frozenset(("amp", "lt", "gt", "quot", "apos"))
_MAX_KEPT = 80
_MAX_DEPTH = 100


@dataclass(slots=True, eq=False)
class Tag:
    """A tag, or a pair of tags, over `text[start:end]` of the plain text.

    `opening` is all of an empty tag, which has no `closing`. `spaced` tells whether white space stands before
    and behind it. A block ends the sentence before it. `kept` is what stands for it in the plain text, where
    its content is a part of the sentence that must not change.
    """

    opening: str
    start: int
    closing: str = ""
    end: int = 0
    spaced: tuple[bool, bool] = (True, True)
    is_block: bool = False
    kept: str = ""
    children: list["Tag"] = field(default_factory=list)

    @property
    def is_pair(self) -> bool:
        """Whether it has an opening and a closing tag."""
        return bool(self.closing)


@dataclass(frozen=True, slots=True)
class Marked:
    """A plain text and its tags in the order of the source, with the white space around all of it."""

    text: str
    tags: tuple[Tag, ...]
    before: str = ""
    after: str = ""
    is_broken: bool = False


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a text with tags: text, a tag that opens or closes, or something to be kept whole."""

    kind: Literal["text", "open", "close", "empty", "kept"]
    written: str
    name: str = ""
    value: str = ""  # of a text, what it says; of what is kept, its content
    span: Span = (0, 0)


def tokens(text: str, markup: Markup) -> Iterator[Token]:
    """Yield the tokens of a text; together they are the text as it is written."""
    place = 0
    while (found := _TOKEN.search(text, place)) is not None:
        if (start := found.start()) > place:
            yield Token("text", text[place:start], value=text[place:start], span=(place, start))
        token = _token(text, found, markup)
        place = token.span[1]
        yield token
    if place < len(text):
        yield Token("text", text[place:], value=text[place:], span=(place, len(text)))


def _token(text: str, found: re.Match[str], markup: Markup) -> Token:
    written, span = found[0], found.span()
    if (entity := found["entity"]) is not None:
        if entity[0] == "#" or markup == "html" or entity in _XML_ENTITIES:
            value = html.unescape(written)
            if value.isspace() or (value != written and value.isprintable()):
                return Token("text", written, value=value, span=span)
        return Token("empty", written, span=span)
    if found["other"] is not None:
        return Token("empty", written, span=span)
    fold = str.lower if markup == "html" else str
    if found["closed"] is not None:
        return Token("close", written, fold(found["closed"]), span=span)
    name, rest = fold(found["opened"]), found["rest"]
    if rest.endswith("/") or (markup == "html" and name in VOID):
        return _milestone(written, name, rest, span)
    is_raw = name in RAW if markup == "html" else name in _NATIVE
    is_kept = _NOT_TRANSLATED.search(rest) is not None or (markup == "html" and name in CODE)
    if is_raw or is_kept:
        last = _end_of(text, name, span[1], markup)
        if last is not None:
            content = text[span[1] : last.start()]
            whole = Token("empty", text[span[0] : last.end()], name, span=(span[0], last.end()))
            said = html.unescape(content)
            fits = 0 < len(said.strip()) <= _MAX_KEPT and not set("`\n<>\0") & set(content)
            if is_kept and fits:
                return Token("kept", whole.written, name, said, whole.span)
            return whole
    return Token("open", written, name, span=span)


def _milestone(written: str, name: str, rest: str, span: Span) -> Token:
    """Return an empty tag; one that stands for an opening or a closing tag says so."""
    partner = _PARTNER.search(rest)
    if partner is not None and name in _BEGINS:
        return Token("open", written, f"{_BEGINS[name]} {partner[1]}", span=span)
    if partner is not None and name in _ENDS:
        return Token("close", written, f"{name} {partner[1]}", span=span)
    return Token("empty", written, name, span=span)


def _end_of(text: str, name: str, place: int, markup: Markup) -> re.Match[str] | None:
    """Return the closing tag of an element that is not read, None if there is none."""
    flags = re.IGNORECASE if markup == "html" else 0
    depth = 1
    for found in re.compile(rf"<(/?){re.escape(name)}(?=[\s/>])[^>]*>", flags).finditer(text, place):
        depth += -1 if found[1] else (0 if found[0].endswith("/>") else 1)
        if not depth:
            return found
        if depth > _MAX_DEPTH:  # or a text of opening tags would take quadratic time
            return None
    return None


def read(text: str, markup: Markup) -> Marked:
    """Return the plain text and the tags of a text."""
    inner = text.strip()
    lead = len(text) - len(text.lstrip())
    found = list(tokens(inner, markup))
    pairs, is_broken = _pairs(found)
    reader = _Reader(markup)
    for number, token in enumerate(found):
        reader.take(token, pairs.get(number))
    plain, tags = reader.plain(), tuple(reader.roots)
    return Marked(plain, tags, text[:lead], text[lead + len(inner) :], is_broken)


def _pairs(found: list[Token]) -> tuple[dict[int, int], bool]:
    """Return which tokens open and close one element, and whether a tag is left without its partner."""
    pairs: dict[int, int] = {}
    open_tags: list[int] = []
    is_broken = False
    for number, token in enumerate(found):
        if token.kind == "text" and "<" in token.value and token.written == token.value:
            is_broken = True
        if token.kind == "empty" and token.written[:1] == "<" and token.written[-1] != ">":
            is_broken = True  # a comment without an end
        if token.kind == "open":
            open_tags.append(number)
        elif token.kind == "close":
            depths = [n for n, other in enumerate(open_tags) if found[other].name == token.name]
            if not depths:
                is_broken = True
                continue
            is_broken = is_broken or depths[-1] != len(open_tags) - 1
            if depths[-1] < _MAX_DEPTH:
                pairs[open_tags[depths[-1]]] = number
                pairs[number] = open_tags[depths[-1]]
            del open_tags[depths[-1] :]
    return pairs, is_broken or bool(open_tags)


class _Reader:
    """Builds the plain text and the tree of tags, token by token."""

    def __init__(self, markup: Markup) -> None:
        self.markup = markup
        self.roots: list[Tag] = []
        self._texts: list[str] = []
        self._size = 0
        self._open: list[Tag] = []
        self._tight: list[Tag] = []  # tags behind which no white space has been seen yet
        self._after_block: Tag | None = None

    def plain(self) -> str:
        """Return the plain text."""
        for tag in self._tight:
            tag.spaced = (tag.spaced[0], True)
        return "".join(self._texts)

    def take(self, token: Token, partner: int | None) -> None:
        """Take in a token; `partner` is the number of the token that it makes a pair with."""
        if token.kind == "text":
            self._text(token)
            return
        is_block = self.markup == "html" and token.name in BLOCKS
        if is_block:
            self._break()
        if token.kind == "kept":
            self._kept(token)
        elif token.kind == "open" and partner is not None:
            tag = self._add(Tag(token.written, self._size, is_block=is_block))
            self._open.append(tag)
        elif token.kind == "close" and partner is not None:
            tag = self._open.pop()
            tag.closing, tag.end = token.written, self._size
            self._after_block = tag if is_block else None
        else:
            tag = self._add(Tag(token.written, self._size, end=self._size, is_block=is_block))
            tag.spaced = (self._is_spaced(), False)
            self._tight.append(tag)
            self._after_block = tag if is_block else None
        if is_block and token.kind == "open":
            self._after_block = self._open[-1] if partner is not None else self._after_block

    def _add(self, tag: Tag) -> Tag:
        (self._open[-1].children if self._open else self.roots).append(tag)
        return tag

    def _is_spaced(self) -> bool:
        return not self._texts or self._texts[-1][-1:].isspace()

    def _break(self) -> None:
        """End the sentence: a blank line does that in any language."""
        if self._size and not self._texts[-1].endswith("\n\n"):
            self._append("\n\n")

    def _append(self, text: str) -> None:
        if text:
            self._texts.append(text)
            self._size += len(text)

    def _text(self, token: Token) -> None:
        value = token.value
        block = self._after_block
        if block is not None and token.written.isspace():  # between two blocks it means nothing
            if block.closing:
                block.closing += token.written
            else:
                block.opening += token.written
            return
        self._after_block = None
        if value[:1].isspace():
            for tag in self._tight:
                tag.spaced = (tag.spaced[0], True)
        elif self._tight and not self._is_spaced() and self._parts(value[0]):
            self._append(" ")
            for tag in self._tight:  # they stood tight between two words, and shall again
                tag.start = tag.end = self._size
        self._tight = []
        self._append(re.sub(r"\n\s*\n", "\n", value))

    def _parts(self, following: str) -> bool:
        """Tell whether the tag before stands between two words: (11)<x/>The, and not in one: e<x/>mail."""
        before = self._texts[-1][-1]
        return not (before.isalnum() and (following.islower() or following.isdecimal()))

    def _kept(self, token: Token) -> None:
        self._after_block = None
        written = f"`{token.value}`"
        tag = self._add(Tag(token.written, self._size, end=self._size + len(written), kept=written))
        self._tight = []
        self._append(written)
        tag.spaced = (False, False)
