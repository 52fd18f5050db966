"""Texts that stand beside numbers: safe to show, measured, cut to fit; and numbers made readable."""

import json
import math
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from regard.text.scripts import character_width

_JOINERS = "\u200c\u200d"  # invisible, but they change how their neighbours look


def printable(text: str) -> str:
    """Return the text without anything that steers a terminal or is not allowed in XML.

    Control characters become their pictures (`␛` for escape); invisible marks, such as those that turn the
    direction of writing, go; halves of surrogate pairs and what Unicode does not assign become `�`.
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_printable, text))


def _printable(character: str) -> str:
    match unicodedata.category(character):
        case "Cc":
            code = ord(character)
            return chr(0x2400 + code) if code < 32 else "␡" if code == 127 else "�"
        case "Cf":
            return character if character in _JOINERS else ""
        case "Cs" | "Cn" | "Zl" | "Zp":
            return "�"
    return character


def escaped(text: str) -> str:
    """Return the text as it may stand in XML and HTML, between tags or as the value of an attribute."""
    return escape(printable(text))


def spreadsheet_cell(text: str) -> str:
    """Return the text as it may stand in CSV: what a spreadsheet would take for a formula gets a quote first.

    A number stays a number, with its sign.
    """
    try:
        float(text)
    except ValueError:
        return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
    return text


def display_width(text: str) -> int:
    """Return how many columns of a terminal the text takes: wide East Asian characters two, marks none."""
    return len(text) if text.isascii() else sum(map(character_width, text))


def cut(text: str, width: int) -> str:
    """Return the text, or as much of it as fits into this many columns with `…` at its end."""
    if display_width(text) <= width:
        return text
    if width < 1:
        return ""
    end, used = 0, 0
    for character in text:
        used += character_width(character)
        if used > width - 1:
            break
        end += 1
    return text[:end] + "…"


def pad_left(text: str, width: int) -> str:
    """Return the text moved to the right end of this many columns."""
    return " " * (width - display_width(text)) + text


def pad_right(text: str, width: int) -> str:
    """Return the text followed by blanks up to this many columns."""
    return text + " " * (width - display_width(text))


def duration(seconds: float) -> str:
    """Return a time as a person says it: `45 s`, `12 min`, `1 h 5 min`, `2 d 3 h`."""
    if not math.isfinite(seconds):
        return "?"
    if seconds < 60:
        return f"{int(seconds)} s"
    minutes = int(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min"
    return f"{hours // 24:,} d {hours % 24} h"


def perplexity(nll: float) -> str:
    """Return the perplexity that belongs to a negative log-likelihood in nats: `6.9`, `120`, `3e+09`."""
    value = math.exp(min(nll, 700.0))  # beyond it there is no float
    if value < 99.95:
        return f"{value:.1f}"
    return f"{value:,.0f}" if value < 1e6 else f"{value:.0e}"


def percent(prob: float) -> str:
    """Return a probability as `83 %`, and nothing for one that is not known."""
    return f"{100 * prob:.0f} %" if math.isfinite(prob) else ""


def number_label(value: float) -> str:
    """Return a number as it is written at an axis: `12,000`, `0.25`, `1e+09`."""
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e9 else f"{value:.6g}"


def wrapped(
    parts: Iterable[str],
    width: float,
    gap: str = " ",
    indent: str = "",
    measure: Callable[[str], float] = display_width,
) -> list[str]:
    """Return words, or other parts, in lines as wide as this at most; lines after the first are indented.

    A part that is too wide for a line by itself is cut. Widths are columns, or whatever `measure` returns.
    """
    lines: list[str] = []
    for part in parts:
        if lines and measure(f"{lines[-1]}{gap}{part}") <= width:
            lines[-1] += f"{gap}{part}"
        else:
            lines.append(cut(f"{indent}{part}" if lines else part, int(width)))
    return lines


def folded(line: str, width: int) -> list[str]:
    """Return the line, broken between words where it is too wide; what follows is set in."""
    start = line[: len(line) - len(line.lstrip(" "))]
    first, *others = line.strip(" ").split(" ")
    return wrapped([start + first, *others], width, indent="  ")


@cache
def texts(room: str, language: str) -> dict[str, Any]:
    """Return the texts of a room of the package in a language, from `texts.en.json` or `texts.ko.json`."""
    file = Path(__file__).parents[1] / room / f"texts.{language}.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found
