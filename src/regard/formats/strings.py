"""Tables of strings of programs: JSON, Java properties and the `.strings` of iOS."""

import json
import re
from collections.abc import Callable, Iterable, Iterator

from regard.errors import DocumentError
from regard.formats.segments import Lines, Segment, Wanted, Work, has_words, replaced

_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
_COLON = re.compile(r"\s*:")
_PROPERTY = re.compile(
    r"""^[ \t\f]*(?![#!])(?P<key>(?:\\.|[^\s:=\\])+)[ \t\f]*(?:[:=][ \t\f]*)?
        (?P<value>(?:\\(?:\r\n|.|\n)|[^\\\r\n])*)$""",
    re.MULTILINE | re.VERBOSE,
)
_STRING = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)
      | "(?:[^"\\]|\\.)*+"\s*=\s*"(?P<value>(?:[^"\\]|\\.)*+)"\s*;""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPED = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{4}|\r\n[ \t]*|\n[ \t]*|.)", re.DOTALL)
_SIGNS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_LIKE_A_KEY = re.compile(r"\S*[_/.#:@]\S*|[a-z]+(?:[A-Z]\w*)+|[A-Z0-9_]{2,}")


def json_document(text: str, wanted: Wanted) -> Work:
    """Translate the values of JSON that have words; keys stay."""
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"is no JSON ({error!s:.80}); correct it") from None
    return (yield from replaced(text, list(_values(text))))


def _values(text: str) -> Iterator[Segment]:
    lines = Lines(text)
    for found in _JSON_STRING.finditer(text):
        value = json.loads(found[0])
        if not _COLON.match(text, found.end()) and has_words(value) and not _LIKE_A_KEY.fullmatch(value):
            start, end = found.span()
            yield Segment(value, start, end, lines.at(start), write=_as_json)


def _as_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def properties(text: str, wanted: Wanted) -> Work:
    """Translate the values of Java properties."""
    found = _PROPERTY.finditer(text)
    return (yield from replaced(text, list(_table(found, text, _as_property))))


def ios_strings(text: str, wanted: Wanted) -> Work:
    """Translate the values of a `.strings` file."""
    found = (one for one in _STRING.finditer(text) if one["comment"] is None)
    return (yield from replaced(text, list(_table(found, text, _as_string))))


def _table(found: Iterable[re.Match[str]], text: str, write: Callable[[str], str]) -> Iterator[Segment]:
    lines = Lines(text)
    for one in found:
        value = _ESCAPED.sub(_unescaped, one["value"])
        if has_words(value):
            start, end = one.span("value")
            yield Segment(value, start, end, lines.at(start), write=write)


def _unescaped(found: re.Match[str]) -> str:
    sign = found[1]
    if len(sign) == 5:
        return chr(int(sign[1:], 16))
    return "" if sign[0] in "\r\n" else _SIGNS.get(sign, sign)


def _as_property(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def _as_string(text: str) -> str:
    return _as_property(text).replace('"', '\\"')
