"""SRT and WebVTT: the text of each cue; numbers, times, settings and notes stay."""

import re
from collections.abc import Iterator
from functools import partial

from regard.formats.segments import Lines, Segment, Wanted, Work, has_words, replaced

_CUE = re.compile(
    r"""^[ \t]*(?:\d+:)?\d+:\d\d[.,]\d{3}[ \t]+-->[^\n]*\n   # the times, with settings behind them
        (?P<text>(?:[^\n]*[^\s][^\n]*(?:\n|\Z))+)""",
    re.MULTILINE | re.VERBOSE,
)
_PLACED = re.compile(r"(?:\{\\[^{}\n]*\})+")  # {\an8}: where the cue is shown
_DASH = re.compile(r"^[ \t]*[-–—]", re.MULTILINE)
_SPEAKER = re.compile(r"\s*[-–—]\s*(?=\S)")  # stays: models leave it out


def subtitles(text: str, wanted: Wanted) -> Work:
    """Translate subtitles cue by cue."""
    return (yield from replaced(text, list(_segments(text))))


def _segments(text: str) -> Iterator[Segment]:
    lines = Lines(text)
    for found in _CUE.finditer(text):
        start, end = found.span("text")
        placed = _PLACED.match(text, start)
        start = placed.end() if placed else start
        written = text[start:end]
        # Two speakers have a line each; other lines are one text.
        parts = written.splitlines(keepends=True) if len(_DASH.findall(written)) > 1 else [written]
        for part in parts:
            dash = _SPEAKER.match(part)
            spoken = part[dash.end() :] if dash else part
            inner = spoken.strip()
            if has_words(re.sub(r"<[^<>]*>", "", inner)):
                first = start + len(part) - len(spoken.lstrip())
                write = partial(
                    _in_lines, num_lines=inner.count("\n") + 1, ending="\r\n" if "\r\n" in part else "\n"
                )
                yield Segment(
                    " ".join(inner.split()), first, first + len(inner), lines.at(first), "html", write
                )
            start += len(part)


def _in_lines(text: str, num_lines: int, ending: str) -> str:
    """Break a text into lines of like length, as many as the source has, and never within a tag."""
    words = re.findall(r"(?:<[^<>]*>|[^\s<]|<)+", text)
    lines: list[str] = []
    left = sum(map(len, words)) + len(words) - 1
    for number in range(num_lines, 1, -1):
        line = ""
        while words and (not line or len(line) + 1 + len(words[0]) / 2 <= left / number):
            line = f"{line} {words.pop(0)}".strip()
        lines.append(line)
        left -= len(line) + 1
    lines.append(" ".join(words))
    # Entities are none in subtitles, but for those that would be tags.
    return ending.join(filter(None, lines)).replace("&gt;", ">").replace("&amp;", "&")
