"""What a person would call a word, as spans of the string, and which pieces make up which words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import regex

Span = tuple[int, int]  # characters text[start:end]
Cut = Literal["spaces", "words"]
"""Which words to count: those between spaces, as in other tools' files, or as `words` cuts them."""

# One alternative per kind of word, tried in this order:
#   an address            https://a.b/c?d  me@example.org
#   a placeholder         %s  %(name)d  {name}
#   a number              1,992.50  12:30
#   an elided article     l'  d'  qu'  jusqu'  dell'  (French, Italian: the apostrophe ends the word)
#   an ideograph          each is a word of its own; there are no spaces to go by
#   letters               with marks, digits and inner apostrophes or hyphens: don't, peut-être, 한국어
#   anything else         one visible symbol, flags and joined emoji whole; runs of one sign ("...") whole
_WORD = regex.compile(
    r"""
      (?i: https?:// | www\. ) [^\s<>"«»]* [\p{L}\p{N}/]
    | (?<![\w.+-]) [\w.+-]{1,64}+ @ [\w-]{1,64}+ (?: \.[\w-]{1,64}+ ){1,8}+
    | (?i: %\(\w+\)[sdif] | %[sdif]\b ) | \{\w*\}
    | \p{N}+ (?: [.,:] \p{N}+ )+
    | (?i: [ldjnsctm] | (?<!\w) \p{L}{0,8} qu | [dnsc]?[aeou]ll | un ) ['’] (?=[\p{L}\p{N}])
    | \p{Han}
    | [\p{L}\p{M}\p{N}_--\p{Han}]+ (?: ['’\-\u2010\u2011] [\p{L}\p{M}\p{N}_--\p{Han}]+ )*
    | ( [^\s\p{L}\p{N}] ) \1+
    | (?=\S)\X
    """,
    regex.VERBOSE | regex.VERSION1,  # without IGNORECASE: it would take five times as long
)


def words(text: str) -> list[Span]:
    """Return the words of the text in order; between them there is nothing but white space."""
    return [match.span() for match in _WORD.finditer(text)]


@dataclass(frozen=True, slots=True)
class PieceWords:
    """Which words each piece touches and which pieces each word is made of."""

    words_of_piece: tuple[tuple[int, ...], ...]
    pieces_of_word: tuple[tuple[int, ...], ...]


def match_pieces(pieces: Sequence[Span], words: Sequence[Span]) -> PieceWords:
    """Match pieces and words that share a character. Both must be in order of the text.

    A piece of white space touches no word; a piece that runs over a boundary touches two.
    """
    words_of_piece: list[tuple[int, ...]] = []
    pieces_of_word: list[list[int]] = [[] for _ in words]
    first = 0
    for piece, (start, end) in enumerate(pieces):
        while first < len(words) and words[first][1] <= start:
            first += 1
        touched = []
        word = first
        while word < len(words) and words[word][0] < end:
            if start < end:
                touched.append(word)
                pieces_of_word[word].append(piece)
            word += 1
        words_of_piece.append(tuple(touched))
    return PieceWords(tuple(words_of_piece), tuple(map(tuple, pieces_of_word)))


def cut_words(text: str, cut: Cut) -> tuple[Span, ...]:
    """Return the words of a text."""
    if cut == "words":
        return tuple(words(text))
    spans, place = [], 0
    for word in text.split():
        start = text.index(word, place)
        place = start + len(word)
        spans.append((start, place))
    return tuple(spans)
