"""Mark-up of any kind as numbered tags, so that it is carried into a translation as tags are."""

import html
from collections.abc import Callable

from regard.text.markup import tokens


class Inline:
    """Builds a text with numbered tags, and writes its translation with what the tags stand for."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.written: dict[str, tuple[str, str]] = {}
        self.has_words = False

    @property
    def xml(self) -> str:
        """The text with its tags."""
        return "".join(self._pieces)

    def text(self, text: str) -> None:
        """Add words."""
        self._pieces.append(html.escape(text, quote=False))
        self.has_words = self.has_words or any(map(str.isalpha, text))

    def open(self, written: str, closing: str) -> str:
        """Begin a pair of tags; return the name that ends it."""
        name = self._name(written, closing)
        self._pieces.append(f"<{name}>")
        return name

    def close(self, name: str) -> None:
        """End a pair of tags."""
        self._pieces.append(f"</{name}>")

    def empty(self, written: str) -> None:
        """Add something without words."""
        self._pieces.append(f"<{self._name(written, '')}/>")

    def kept(self, written: str, said: str) -> None:
        """Add words that stay as they are, such as code."""
        name = self._name(written, "")
        self._pieces.append(f'<{name} translate="no">{html.escape(said, quote=False)}</{name}>')

    def _name(self, written: str, closing: str) -> str:
        name = f"t{len(self.written)}"
        self.written[name] = (written, closing)
        return name

    def write(self, marked: str, escape: Callable[[str], str] = str) -> str:
        """Return a translation with the mark-up in the place of the tags."""
        pieces = []
        for token in tokens(marked, "xml"):
            if token.kind == "text":
                pieces.append(escape(token.value))
            elif token.kind == "close":
                pieces.append(self.written[token.name][1])
            else:
                pieces.append(self.written[token.name][0])
        return "".join(pieces)
