"""Edits of a translation: what is to stand in the place of some of its characters."""

from collections.abc import Sequence

from regard.text.words import Span

Edits = list[tuple[Span, str]]
"""Characters of a text, and what is to stand in their place."""


def edited(text: str, edits: Edits, spans: Sequence[Span]) -> tuple[str, list[Span]]:
    """Return the text after the edits, and where what stood in each span stands now."""
    pieces: list[str] = []
    places: list[Span] = []  # where each character of the old text is in the new one
    size = place = 0
    for (start, end), new in sorted(edits):
        places += [(size + k, size + k + 1) for k in range(start - place)]
        size += start - place
        pieces += [text[place:start], new]
        places += [(size, size + len(new))] * (end - start)
        size, place = size + len(new), end
    places += [(size + k, size + k + 1) for k in range(len(text) - place)]
    pieces.append(text[place:])
    after = "".join(pieces)
    places.append((len(after), len(after)))
    return after, [
        (places[start][0], places[end - 1][1]) if start < end else (places[start][0],) * 2
        for start, end in spans
    ]
