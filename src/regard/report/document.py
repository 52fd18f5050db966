"""A report as plain data, before it is a page, Markdown or plain text."""

from dataclasses import dataclass, field

from regard.draw.heatmap import HeatMap
from regard.draw.scene import Scene

LANGUAGES = ("en", "ko")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A text, and what it lists; `is_code` if the items are to be copied and not read."""

    text: str
    items: tuple[str, ...] = ()
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Cells in rows; an interval is the second line of a cell. The first `num_words` columns are words."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    num_words: int = 1


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart; Markdown shows it if it stands beside it as a file."""

    scene: Scene
    file: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A text of an example, whose it is, and a note. Words that `reference` does not have are marked."""

    name: str
    text: str
    note: str = ""
    reference: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A sentence with its translations, and where each word of them came from."""

    entries: tuple[Entry, ...]
    maps: tuple[HeatMap, ...] = ()
    is_open: bool = False


Block = Paragraph | Table | Figure | Example


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report under its own heading."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A whole report in one language; `others` are the files of the same report in other languages."""

    title: str
    sections: tuple[Section, ...]
    language: str = "en"
    others: dict[str, str] = field(default_factory=dict)


def one_line(cell: str) -> str:
    """Return a cell in one line: `34.2 (32.9 to 35.6)`."""
    value, _, around = cell.partition("\n")
    return f"{value} ({around})" if around else value
