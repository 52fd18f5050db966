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
_DASH = re.compile(r"[ \t]*[-–—]")
_NAME = r"[A-Z][A-Z0-9 .'’-]*:[ \t]+"  # of a speaker, in capitals
_SOUND = re.compile(r"\s*(?:\[[^\[\]\n]*\]|\([^()\n]*\))\s*\Z")  # [door closes]
# What stays before and behind the words: models leave it out, or make words of it.
_LEAD = re.compile(rf"\s*(?:[-–—]\s*)?(?:{_NAME})?(?:[♪♫]+\s*)?(?=\S)")
_TAIL = re.compile(r"\s*[♪♫]+\s*\Z|\s*\Z")


def subtitles(text: str, wanted: Wanted) -> Work:
    """Translate subtitles cue by cue."""
    return (yield from replaced(text, list(_segments(text))))


def _segments(text: str) -> Iterator[Segment]:
    lines = Lines(text)
    for found in _CUE.finditer(text):
        start, end = found.span("text")
        placed = _PLACED.match(text, start)
        start = placed.end() if placed else start
        for part in _parts(text[start:end]):
            lead, tail = _LEAD.match(part), _TAIL.search(part)
            first, last = lead.end() if lead else 0, tail.start() if tail else len(part)
            if _SOUND.match(part[first:last]):
                first, last = first + 1, last - 1
            inner = part[first:last]
            if has_words(re.sub(r"<[^<>]*>", "", inner)):
                num_lines, ending = inner.count("\n") + 1, "\r\n" if "\r\n" in part else "\n"
                write = partial(_in_lines, num_lines=num_lines, ending=ending)
                begin = start + first
                yield Segment(
                    " ".join(inner.split()), begin, begin + len(inner), lines.at(begin), "html", write
                )
            start += len(part)


def _parts(cue: str) -> list[str]:
    """Return the texts of a cue: what each speaker says, and each sound. Other lines are one text."""
    lines = cue.splitlines(keepends=True)
    is_dialogue = sum(_DASH.match(line) is not None for line in lines) > 1
    parts: list[str] = []
    for line in lines:
        begins = (is_dialogue and _DASH.match(line)) or re.match(_NAME, line) or _SOUND.match(line)
        if parts and not begins and not _SOUND.match(parts[-1]):
            parts[-1] += line
        else:
            parts.append(line)
    return parts


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
