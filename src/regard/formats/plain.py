"""Plain text: paragraphs that were wrapped by hand are translated whole and wrapped again."""

import re
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

from regard.formats.segments import Lines, Segment, Wanted, Work, has_words, replaced

_PARAGRAPH = re.compile(r"(?:[^\n]*\S[^\n]*(?:\n|\Z))+")
_BEGIN = re.compile(r"\s*(?:[-*•·–]\s|\d{1,3}[.)]\s|[>#|])")
_MIN_WIDTH = 40
_GAP = re.compile(r"(?<=\S)(?: {3,}| *\t\s*)(?=\S)")
_OPTION = r"--?+\w[\w-]*+(?:(?:[ =]|\[=?)[A-Z_]++\]?)?+"  # of a command
_OPTIONS = re.compile(rf"{_OPTION}(?:(?:, *| +|/|\|){_OPTION})*+")


def plain_document(text: str, wanted: Wanted) -> Work:
    """Translate plain text."""
    return (yield from replaced(text, list(plain_segments(text))))


def plain_segments(text: str) -> Iterator[Segment]:
    """Yield what is translated of a plain text: paragraphs, lines, and columns of lines."""
    lines = Lines(text)
    for found in _PARAGRAPH.finditer(text):
        place = found.start()
        for group in _groups(found[0].splitlines(keepends=True)):
            written = "".join(group)
            for start, end in pairwise((0, *_columns(group), len(written))):
                inner = written[start:end].strip()
                lead = end - len(written[start:end].lstrip())
                if not has_words(inner) or _OPTIONS.fullmatch(inner):
                    continue
                write: Callable[[str], str] = str
                if "\n" in inner:
                    indent = group[1][: len(group[1]) - len(group[1].lstrip())]
                    ending = "\r\n" if "\r\n" in written else "\n"
                    width = max(map(_width, group))
                    write = partial(_wrapped, width=width, indent=indent, ending=ending, lead=lead)
                first = place + lead
                yield Segment(
                    " ".join(inner.split()), first, first + len(inner), lines.at(first), write=write
                )
            place += len(written)


def _columns(group: list[str]) -> list[int]:
    """Return where the columns of a text begin but the first: those of a line, or the one that is wrapped."""
    starts = [gap.end() for gap in _GAP.finditer(group[0])]
    if len(group) == 1:
        return starts
    return [start for start in starts if start == len(group[1]) - len(group[1].lstrip())]


def _groups(lines: list[str]) -> Iterator[list[str]]:
    """Yield the lines that make one text: those of a wrapped paragraph together, others alone."""
    group: list[str] = []
    width = max(map(_width, lines))
    for line in lines:
        if group and not (_is_wrapped(group, line, width) and not _BEGIN.match(line)):
            yield group
            group = []
        group.append(line)
    yield group


def _is_wrapped(group: list[str], line: str, width: int) -> bool:
    """Tell whether a line goes on with the one before: its first word had no more room there."""
    word = line.split(maxsplit=1)[0]
    before = _width(group[-1])
    return before >= _MIN_WIDTH and before + 1 + len(word) > width


def _width(line: str) -> int:
    return len(line.rstrip())


def _wrapped(text: str, width: int, indent: str, ending: str, lead: int) -> str:
    first = " " * lead
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return ending.join(lines)[lead:]
