"""Lines of plain text against the same lines as a document of each format, in interleaved rounds.

    python benchmarks/documents.py en-fr test.en [--lines 300] [--rounds 3]

Each line is a paragraph, a message or a unit. A ratio above 1 means that the document took less time than its lines.
"""

import argparse
import html
import io
import json
import statistics
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import regard
from regard.translate.documents import translate_document
from regard.translate.request import Request

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def docx(lines: Sequence[str]) -> bytes:
    paragraphs = "".join(f"<w:p><w:r><w:t>{html.escape(line)}</w:t></w:r></w:p>" for line in lines)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{WORD}">{paragraphs}</w:document>')
    return stream.getvalue()


def of_units(begin: str, unit: str, end: str) -> Callable[[Sequence[str]], bytes]:
    return lambda lines: (begin + "".join(unit.format(html.escape(line)) for line in lines) + end).encode()


def po(lines: Sequence[str]) -> bytes:
    return "".join(f'msgid {json.dumps(line, ensure_ascii=False)}\nmsgstr ""\n\n' for line in lines).encode()


FORMATS: dict[str, Callable[[Sequence[str]], bytes]] = {
    ".txt": lambda lines: "\n\n".join(lines).encode(),
    ".md": lambda lines: "\n\n".join(lines).encode(),
    ".html": of_units("<html>", "<p>{}</p>\n", "</html>"),
    ".po": po,
    ".xlf": of_units(
        '<xliff version="1.2"><file><body>',
        "<trans-unit><source>{}</source></trans-unit>",
        "</body></file></xliff>",
    ),
    ".docx": docx,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("source", type=Path)
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    lines = list(dict.fromkeys(arguments.source.read_text("utf-8").splitlines()))[: arguments.lines]
    translator = regard.load(arguments.model)

    def plain() -> None:
        list(translator.stream(lines))

    def of(ending: str) -> None:
        done = translate_document(translator, FORMATS[ending](lines), ending, Request(""))
        assert len(done.segments) == len(lines), (ending, len(done.segments))

    seconds: dict[str, list[float]] = {name: [] for name in ("lines", *FORMATS)}
    for _ in range(arguments.rounds):
        for name, found in seconds.items():
            start = time.perf_counter()
            plain() if name == "lines" else of(name)
            found.append(time.perf_counter() - start)
    for name in FORMATS:
        ratios = [a / b for a, b in zip(seconds["lines"], seconds[name], strict=True)]
        print(
            f"{name:6} {statistics.median(ratios):.2f} of the speed of plain lines ({min(ratios):.2f}-{max(ratios):.2f})"
        )


if __name__ == "__main__":
    main()
