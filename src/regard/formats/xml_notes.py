"""Notes on translations in XLIFF and TMX: where they go, and which earlier notes they replace."""

import html
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from regard.formats.segments import Edit, Segment
from regard.formats.xml_tree import Element

_OURS = "regard"
_BEHIND_NOTES = ("originalData", "segment", "ignorable")  # the children of a unit of XLIFF 2, in its order


def noted_behind_target(
    text: str, unit: Element, segment: Segment, prefix: str
) -> tuple[Segment, list[Edit]]:
    """Return a segment of XLIFF 1.2 with the place of its note, and what removes an earlier one."""
    source = unit.child(f"{prefix}source")
    assert source is not None
    opening = f'{indent(text, source)}<{prefix}note from="{_OURS}" annotates="target">'
    annotate = partial(_note, segment.end, opening, f"</{prefix}note>")
    old = (one for one in unit.children if one.name == f"{prefix}note")
    removed = [_removed(text, one) for one in old if one.attributes.get("from") == _OURS]
    return replace(segment, annotate=annotate), removed


def noted_in_unit(
    text: str, unit: Element, segments: Mapping[str, Segment], prefix: str
) -> tuple[list[Segment], list[Edit]]:
    """Return segments of a unit of XLIFF 2 with the places of their notes, and what removes earlier ones.

    A note belongs to the unit; it begins with the name of its segment, the key of `segments`.
    """
    notes = unit.child(f"{prefix}notes")
    all_notes = notes.children if notes is not None else []
    old = [
        one
        for one in all_notes
        if one.attributes.get("category") == _OURS and any(_is_about(text, one, name) for name in segments)
    ]
    opening = f'<{prefix}note category="{_OURS}" appliesTo="target">'
    if notes is not None and len(old) < len(all_notes):
        last = all_notes[-1]
        place, before, first, end = last.end, indent(text, last), "", ""
        removed = [_removed(text, one) for one in old]
    else:
        behind = next(one for one in unit.children if one.name.removeprefix(prefix) in _BEHIND_NOTES)
        outer = indent(text, behind)
        place, before = behind.start - len(outer), f"{outer} " if outer else ""
        first, end = f"{outer}<{prefix}notes>", f"{outer}</{prefix}notes>"
        removed = [_removed(text, notes)] if notes is not None else []
    found = []
    for number, (name, segment) in enumerate(segments.items(), 1):
        head = (first if number == 1 else "") + before + opening + html.escape(name, quote=False)
        tail = f"</{prefix}note>" + (end if number == len(segments) else "")
        found.append(replace(segment, annotate=partial(_note, place, head, tail)))
    return found, removed


def noted_in_memory(text: str, unit: Element, segment: Segment, language: str) -> tuple[Segment, list[Edit]]:
    """Return a segment of TMX with the place of its note, and the changes that remove an earlier one.

    A note belongs to the unit, which may have many languages; so it begins with the language.
    """
    name = f"{_OURS}: {language}: "
    opening = f"{indent(text, unit.children[0])}<note>{name}"
    annotate = partial(_note, unit.inner, opening, "</note>")
    old = (one for one in unit.children if one.name == "note" and _is_about(text, one, name))
    return replace(segment, annotate=annotate), [_removed(text, one) for one in old]


def indent(text: str, element: Element) -> str:
    """Return the line break and the white space before an element, if it begins a line."""
    start = text.rfind("\n", 0, element.start)
    before = text[start : element.start] if start >= 0 else ""
    return before if before.isspace() else ""


def _note(place: int, opening: str, closing: str, note: str) -> list[Edit]:
    return [Edit(place, place, opening + html.escape(note, quote=False) + closing)]


def _is_about(text: str, note: Element, name: str) -> bool:
    return html.unescape(text[note.inner : note.inner_end]).startswith(f"{name}quality ")


def _removed(text: str, element: Element) -> Edit:
    return Edit(element.start - len(indent(text, element)), element.end, "")
