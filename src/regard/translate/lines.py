"""Lines in, as many lines out: reading them, writing their translations, and a report of both."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import IO, Any

from regard.errors import CorpusError
from regard.files import READ_ERRORS
from regard.flags import FLAGS
from regard.translate.result import Translation

_MAX_BYTES = 200_000  # of a line
_SHOWN_LINES = 5
_BREAKS = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
# Controls that a terminal obeys, and those that turn the direction of the text around them.
_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def _say_nothing(number: int, reason: str) -> None:
    """Leave it to the report."""


@dataclass
class Places:
    """How many lines there are of a kind, and the numbers of the first few."""

    num_lines: int = 0
    first: list[int] = field(default_factory=list)

    def add(self, num_lines: int, numbers: list[int]) -> None:
        """Count further lines, which stand after those that are known."""
        self.num_lines += num_lines
        self.first = (self.first + numbers)[:_SHOWN_LINES]


@dataclass
class Report:
    """What is to be said at the end; `on_failure` is told at once of a line that cannot be translated."""

    on_failure: Callable[[int, str], None] = _say_nothing
    errors: dict[int, str] = field(default_factory=dict)
    flagged: dict[str, Places] = field(default_factory=dict)
    num_lines: int = 0
    terms: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    similar: list[str] = field(default_factory=list)

    def fail(self, number: int, reason: str) -> None:
        """Take down that a line cannot be translated."""
        self.errors[number] = reason
        self.on_failure(number, reason)

    def add(self, number: int, translation: Translation) -> None:
        """Take down what looks wrong with a translation."""
        self.num_lines = number
        for flag in translation.flags:
            self.flagged.setdefault(flag, Places()).add(1, [number])
        for term in translation.terms:
            self.terms[term.status] += 1
            if term.status in ("unused", "impossible", "forbidden") and len(self.missed) < _SHOWN_LINES:
                self.missed.append(f"line {number:,}: {term.source} → {term.target} ({term.status})")
        self.similar += similar(translation, f"line {number:,}")[: _SHOWN_LINES - len(self.similar)]

    def add_report(self, later: "Report") -> None:
        """Take down what was found in lines that stand after these."""
        self.errors |= later.errors
        self.num_lines = max(self.num_lines, later.num_lines)
        for flag, places in later.flagged.items():
            self.flagged.setdefault(flag, Places()).add(places.num_lines, places.first)
        self.terms += later.terms
        self.missed = (self.missed + later.missed)[:_SHOWN_LINES]
        self.similar = (self.similar + later.similar)[:_SHOWN_LINES]

    def summary(self) -> Iterator[str]:
        """Yield what looks wrong, and where."""
        if self.terms:
            counts = ", ".join(f"{count:,} {status}" for status, count in self.terms.items())
            yield f"terms of the glossary: {counts}"
            yield from self.missed
        yield from self.similar
        for flag, places in self.flagged.items():
            shown = ", ".join(f"{number:,}" for number in places.first)
            more = ", ..." if places.num_lines > _SHOWN_LINES else ""
            several = FLAGS[flag].several
            yield f"{places.num_lines:,} of {self.num_lines:,} {several} (line {shown}{more})"

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "num_lines": self.num_lines,
            "errors": [[number, reason] for number, reason in self.errors.items()],
            "flagged": {flag: asdict(places) for flag, places in self.flagged.items()},
            "terms": dict(self.terms),
            "missed": self.missed,
            "similar": self.similar,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Report":
        """Return the report of `to_json`."""
        return cls(
            errors=dict(values["errors"]),
            flagged={flag: Places(**places) for flag, places in values["flagged"].items()},
            num_lines=values["num_lines"],
            terms=Counter(values["terms"]),
            missed=values["missed"],
            similar=values["similar"],
        )


def similar(translation: Translation, place: str) -> list[str]:
    """Return a line for each unit of the memory that is similar to the source at this place."""
    return [
        f"{place}: {one.score:.0%} like {one.source!r} → {one.target!r}"
        for one in translation.memory
        if one.score < 1
    ]


class Lines:
    """The lines to translate; one that cannot be read is reported, and blank."""

    def __init__(self, stream: IO[bytes], name: str, report: Report, first_number: int = 1) -> None:
        self._stream = stream
        self._name = name
        self._report = report
        self._first_number = first_number

    def __iter__(self) -> Iterator[str]:
        try:
            yield from self._texts()
        except READ_ERRORS as error:
            raise CorpusError(f"{self._name}: cannot be read to its end ({error}); copy it again") from error

    def _texts(self) -> Iterator[str]:
        for number, line in enumerate(_bounded(self._stream), self._first_number):
            reason, text = "", ""
            if len(line) > _MAX_BYTES:
                reason = f"has more than {_MAX_BYTES:,} bytes; break it into lines"
            elif b"\0" in line:
                reason = "has NUL characters; convert the file to UTF-8, if it is UTF-16"
            else:
                try:
                    text = line.decode("utf-8")
                except UnicodeDecodeError as error:
                    reason = (
                        f"byte {error.start + 1} ({line[error.start]:#04x}) is not UTF-8; convert the file"
                    )
            if reason:
                self._report.fail(number, reason)
            yield text.removeprefix("\ufeff") if number == 1 else text


def _bounded(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield lines without their ends; of one that is too long as much as shows that."""
    most = _MAX_BYTES + 2  # room for an end of line
    while line := stream.readline(most):
        if line.endswith(b"\n") or len(line) < most:
            yield line.removesuffix(b"\n").removesuffix(b"\r")
            continue
        while (rest := stream.readline(most)) and not rest.endswith(b"\n"):
            pass
        yield line


def line_of(number: int, translation: Translation, report: Report, *, as_json: bool) -> bytes:
    """Return what is written for a line: the text and its alternatives, or all that is known, as JSON."""
    line = _json(number, translation, report) if as_json else _plain(translation)
    return line.encode("utf-8", "replace") + b"\n"


def _plain(translation: Translation) -> str:
    """Return the text, and its alternatives in further columns; a line stays a line."""
    best = translation.text if translation.marked is None else translation.marked
    texts = [best, *(one.text for one in translation.alternatives)]
    return "\t".join(texts if all(map(str.isprintable, texts)) else [_BREAKS.sub(" ", one) for one in texts])


def _json(number: int, translation: Translation, report: Report) -> str:
    values: dict[str, Any] = {"line": number}
    if number in report.errors:
        values["error"] = report.errors[number]
    line = json.dumps(values | translation.to_json(), ensure_ascii=False, allow_nan=False)
    return line if line.isprintable() else _UNSEEN.sub(lambda one: f"\\u{ord(one[0]):04x}", line)
