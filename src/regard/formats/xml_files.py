"""XLIFF, TMX, the strings of Android, .NET resources and Qt: translations beside or in place of sources."""

import html
import re
from collections.abc import Iterator

from regard.corpus.language_codes import matches
from regard.errors import DocumentError
from regard.formats.segments import HAS_TRANSLATION, Edit, Segment, Wanted, Work, has_words, replaced
from regard.formats.xml_notes import indent, noted_behind_target, noted_in_memory, noted_in_unit
from regard.formats.xml_tree import Element, read_xml

_DONE = frozenset(("translated", "final", "signed-off", "reviewed", "needs-review-translation"))
_TAGS = re.compile(r"<[^<>]*>")


def xliff(text: str, wanted: Wanted) -> Work:
    """Fill the targets of XLIFF 1.2 and 2; those that have a translation stay."""
    root = read_xml(text)
    if root.name.rpartition(":")[2] != "xliff":
        raise DocumentError(f"begins with <{root.name[:40]}>, not <xliff>; correct the file's ending")
    prefix = root.name[: root.name.find(":") + 1]
    edits = list(_declared(root, prefix, wanted))
    segments = []
    for unit in root.every(f"{prefix}trans-unit", f"{prefix}unit"):
        if unit.attributes.get("translate") == "no":
            continue
        parts = [one for one in unit.children if one.name == f"{prefix}segment"] or [unit]
        found = {}
        for number, part in enumerate(parts, 1):
            segment = _to_translate(text, part, prefix, wanted)
            if segment is not None:
                name = f"segment {part.attributes.get('id', number)}: " if len(parts) > 1 else ""
                found[name] = segment
        if not found:
            continue
        if parts == [unit]:
            noted, old = noted_behind_target(text, unit, found[""], prefix)
            segments.append(noted)
        else:
            all_noted, old = noted_in_unit(text, unit, found, prefix)
            segments += all_noted
        edits += old
    return (yield from replaced(text, segments, edits))


def _to_translate(text: str, unit: Element, prefix: str, wanted: Wanted) -> Segment | None:
    """Return what to translate in a `<trans-unit>` of XLIFF 1.2 or a `<segment>` of XLIFF 2."""
    source, target = unit.child(f"{prefix}source"), unit.child(f"{prefix}target")
    if source is None:
        return None
    is_done = unit.attributes.get("approved") == "yes" or unit.attributes.get("state") in _DONE
    if target is not None and not wanted.again:
        said = _TAGS.sub("", text[target.inner : target.inner_end]).strip()
        is_done = is_done or target.attributes.get("state") in _DONE
        if said and (is_done or target.attributes.get("state") not in ("new", "needs-translation")):
            wanted.skipped[HAS_TRANSLATION] += 1
            return None
    parted = unit.child(f"{prefix}seg-source") or source
    inner = text[parted.inner : parted.inner_end]
    if not has_words(html.unescape(_TAGS.sub("", inner))):
        return None
    return _beside(text, inner, parted, target, f"{prefix}target")


def _beside(text: str, inner: str, after: Element, target: Element | None, name: str) -> Segment:
    """Return the segment whose translation fills an element, or a new one behind another."""
    if target is not None:
        opening = text[target.start : target.inner]
        opening = re.sub(r"""\sstate\s*=\s*("[^"]*"|'[^']*')""", "", opening)
        opening = re.sub(r"\s*/?>$", ">", opening)
        closing = f"</{target.name}>"
        return Segment(
            inner, target.start, target.end, target.line, "xml", lambda said: opening + said + closing
        )
    return _new(inner, after, f"{indent(text, after)}<{name}>", f"</{name}>")


def _new(inner: str, after: Element, opening: str, closing: str) -> Segment:
    return Segment(inner, after.end, after.end, after.line, "xml", lambda said: opening + said + closing)


def _declared(root: Element, prefix: str, wanted: Wanted) -> Iterator[Edit]:
    """Yield the changes that name the target language where it is not named yet."""
    places = [(root, "trgLang", "srcLang")] if "srcLang" in root.attributes else []
    places += [(one, "target-language", "source-language") for one in root.every(f"{prefix}file")]
    for element, name, source in places:
        if source in element.attributes and name not in element.attributes:
            place = element.start + 1 + len(element.name)
            yield Edit(place, place, f' {name}="{wanted.target}"')


def tmx(text: str, wanted: Wanted) -> Work:
    """Give each unit of TMX that lacks it a variant in the target language."""
    root = read_xml(text)
    segments, edits = [], []
    for unit in root.every("tu"):
        variants = {_language(one): one for one in unit.children if one.name == "tuv"}
        source = next((one for code, one in variants.items() if matches(code, wanted.source)), None)
        target = next((one for code, one in variants.items() if matches(code, wanted.target)), None)
        seg = source.child("seg") if source is not None else None
        if source is None or seg is None:
            wanted.skipped[f"without text in {wanted.source}"] += 1
            continue
        if target is not None and not wanted.again:
            wanted.skipped[HAS_TRANSLATION] += 1
            continue
        inner = text[seg.inner : seg.inner_end]
        if not has_words(html.unescape(_TAGS.sub("", inner))):
            continue
        old = target.child("seg") if target is not None else None
        if old is not None:
            segment = _beside(text, inner, seg, old, "seg")
        else:
            opening = f'{indent(text, source)}<tuv xml:lang="{wanted.target}"><seg>'
            segment = _new(inner, source, opening, "</seg></tuv>")
        noted, removed = noted_in_memory(text, unit, segment, wanted.target)
        segments.append(noted)
        edits += removed
    return (yield from replaced(text, segments, edits))


def _language(variant: Element) -> str:
    return variant.attributes.get("xml:lang") or variant.attributes.get("lang") or ""


def android_or_resx(text: str, wanted: Wanted) -> Work:
    """Translate the strings of Android's `strings.xml` or of a `.resx`, in place."""
    root = read_xml(text)
    if root.name == "resources":
        found = [
            one
            for one in root.every("string", "item")
            if one.attributes.get("translatable") != "false"
            and not text[one.inner : one.inner_end].startswith("@")
        ]
    elif root.name == "root":
        found = [
            value
            for data in root.every("data")
            if "type" not in data.attributes and "mimetype" not in data.attributes
            if (value := data.child("value")) is not None
        ]
    else:
        raise DocumentError(f"begins with <{root.name[:40]}>; of XML files, Android's and .resx are known")
    segments = []
    for one in found:
        inner = text[one.inner : one.inner_end]
        if has_words(html.unescape(_TAGS.sub("", inner))):
            is_android = root.name == "resources"
            said = re.sub(r"\\(['\"])", r"\1", inner) if is_android else inner
            write = _for_android if is_android else str
            segments.append(Segment(said, one.inner, one.inner_end, one.line, "xml", write))
    return (yield from replaced(text, segments))


def _for_android(text: str) -> str:
    """Escape the quotation marks outside tags."""
    parts = re.split(r"(<[^<>]*>)", text)
    return "".join(part if part[:1] == "<" else re.sub("(?<!\\\\)(['\"])", r"\\\1", part) for part in parts)
