"""Reports as Markdown and, for a terminal, as plain text."""

from collections.abc import Iterator, Sequence

from regard.draw.labels import display_width, pad_left, pad_right, printable, texts
from regard.report.document import Block, Example, Figure, Paragraph, Report, Section, Table, one_line


def markdown(report: Report) -> str:
    """Return a report as Markdown: tables, examples as lists, charts if they are files beside it."""
    lines = [f"# {_marked(report.title)}", ""]
    for section in report.sections:
        lines += [f"## {_marked(section.title)}", ""]
        for block in section.blocks:
            lines += _block(block, report.language)
        lines += [""] if lines[-1] else []
    return "\n".join(lines)


def _block(block: Block, language: str) -> Iterator[str]:
    match block:
        case Paragraph():
            yield from [_marked(block.text), ""] if block.text else []
            yield from (f"- `{item}`" if block.is_code else f"- {_marked(item)}" for item in block.items)
            yield from [""] if block.items else []
        case Table():
            yield from [*_rows(block), ""]
            yield from [_marked(block.note), ""] if block.note else []
        case Figure():
            yield from [f"![{_marked(block.scene.title)}]({block.file})", ""] if block.file else []
        case Example():
            for number, entry in enumerate(block.entries):
                text = _marked(entry.text.strip()) or f"*{texts('report', language)['nothing']}*"
                note = f" ({_marked(entry.note)})" if entry.note else ""
                yield f"{'  ' if number else ''}- {_marked(entry.name)}: {text}{note}"


def _rows(table: Table) -> Iterator[str]:
    ruler = f"|{'---|' * table.num_words}{'---:|' * (len(table.columns) - table.num_words)}"
    for number, row in enumerate((table.columns, *table.rows)):
        yield f"| {' | '.join(_marked(one_line(cell)) for cell in row)} |"
        if not number:
            yield ruler


def plain(sections: Sequence[Section]) -> str:
    """Return paragraphs and tables for a terminal."""
    parts = []
    for section in sections:
        lines = [section.title]
        for block in section.blocks:
            if isinstance(block, Paragraph):
                lines += [block.text] if block.text else []
                lines += [item if block.is_code else f"  {item}" for item in block.items]
            elif isinstance(block, Table):
                lines += aligned([block.columns, *block.rows], range(block.num_words))
                lines += [f"({block.note})"] if block.note else []
        parts.append("\n".join(map(printable, lines)))
    return "\n\n".join(parts)


def aligned(rows: Sequence[Sequence[str]], words: Sequence[int] = (0,)) -> list[str]:
    """Return rows of cells as lines in columns; those with words begin in one column, numbers end in one."""
    rows = [[printable(one_line(cell)) for cell in row] for row in rows]
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            (pad_right if place in words else pad_left)(cell, width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _marked(text: str) -> str:
    """Return the text as Markdown shows it and nothing else: no markup, no HTML, one line."""
    return "".join(f"\\{one}" if one in "\\`*_{}[]<>#|~!&$@" else one for one in printable(text))
