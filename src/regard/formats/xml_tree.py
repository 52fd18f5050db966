"""XML as a tree of elements that know where they stand in the text, read without entities or surprises."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

import numpy as np

from regard.corpus.xml_formats import refusing_parser
from regard.errors import CorpusError, DocumentError

_MAX_DEPTH = 500
_TAG = re.compile(r"""<[^\s/>"']+(?:[^"'>]|"[^"]*"|'[^']*')*>""")


@dataclass(slots=True, eq=False)
class Element:
    """An element: `text[start:end]` is all of it, `text[inner:inner_end]` what is between its tags."""

    name: str
    attributes: dict[str, str]
    start: int
    inner: int
    line: int
    inner_end: int = 0
    end: int = 0
    children: list["Element"] = field(default_factory=list)

    def every(self, *names: str) -> Iterator["Element"]:
        """Yield the elements within that have one of these names, in their order."""
        waiting = list(reversed(self.children))
        while waiting:
            one = waiting.pop()
            if one.name in names:
                yield one
            waiting += reversed(one.children)

    def child(self, name: str) -> "Element | None":
        """Return the first child of a name."""
        return next((one for one in self.children if one.name == name), None)


def read_xml(text: str) -> Element:
    """Return the root element; raises DocumentError for what is not well-formed or could do harm."""
    data = text.encode("utf-8", "surrogatepass")
    # The number of the character that each byte belongs to.
    place = np.cumsum((np.frombuffer(data, np.uint8) & 0xC0) != 0x80) - 1
    root = Element("", {}, 0, 0, 1)
    path = [root]

    def error(line: int, problem: str) -> CorpusError:
        return CorpusError(f"line {line}: {problem}")

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(path) > _MAX_DEPTH:
            raise error(parser.CurrentLineNumber, f"elements nested more than {_MAX_DEPTH} deep")
        first = int(place[parser.CurrentByteIndex])
        tag = _TAG.match(text, first)
        assert tag is not None
        element = Element(name, attributes, first, tag.end(), parser.CurrentLineNumber)
        path[-1].children.append(element)
        path.append(element)

    def end(name: str) -> None:
        element = path.pop()
        if text[element.inner - 2] == "/":
            element.inner_end = element.end = element.inner
        else:
            element.inner_end = int(place[parser.CurrentByteIndex])
            element.end = text.index(">", element.inner_end) + 1

    parser = refusing_parser(error, "utf-8")
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(data, True)
    except expat.ExpatError as problem:
        reason = expat.errors.messages[problem.code]
        raise DocumentError(
            f"line {problem.lineno}: not well-formed XML ({reason}); correct it there"
        ) from None
    except CorpusError as problem:
        raise DocumentError(str(problem)) from None
    return root.children[0]
