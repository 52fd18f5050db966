"""PO files: messages without a translation get one; the header and all else stays."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from regard.corpus.po_format import PoEntry, po_entries, po_header
from regard.errors import CorpusError, DocumentError
from regard.formats.plain import plain_segments
from regard.formats.segments import HAS_TRANSLATION, Edit, Segment, Wanted, Work, changed, replaced
from regard.text.protect import items

_FEW = "n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20)"
_PLURALS = {
    "nplurals=1; plural=0;": "id ja ko ms th vi zh",
    "nplurals=2; plural=(n > 1);": "fr br oc tr wa",
    "nplurals=2; plural=(n != 1);": (
        "af bg bn ca da de el en eo es et eu fi fo fy gl gu he hi hu is it kn ku lb ml mr nb ne nl nn no pa"
        " pt sq sv sw ta te ur zu"
    ),
    f"nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : {_FEW} ? 1 : 2);": "be bs hr ru sr uk",
    "nplurals=3; plural=(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2;": "cs sk",
    f"nplurals=3; plural=(n==1 ? 0 : {_FEW} ? 1 : 2);": "pl",
}
_WIDTH = 76
_NOTE = re.compile(r"#\s*regard: (?:msgstr\[\d+\]: )?quality \d")


def po(text: str, wanted: Wanted) -> Work:
    """Translate the messages of a PO file or of a template."""
    lines = re.findall(r"[^\n]*\n|[^\n]+\Z", text)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    try:
        entries = list(po_entries((line.rstrip("\r\n") for line in lines), _error))
    except CorpusError as error:
        raise DocumentError(str(error)) from None
    segments: list[Segment] = []
    edits: list[Edit] = []
    num_plurals = 2
    for number, entry in enumerate(entries):
        if entry.is_header():
            if number == 0:
                edits, num_plurals = _header(entry, text, starts, wanted)
        elif not entry.is_obsolete:
            comments = _comments(lines, entry.line)
            found = list(_segments(entry, text, starts, starts[comments.start], num_plurals, wanted))
            segments += found
            if found:  # what is translated again needs no note on what it was
                edits += [
                    Edit(starts[line], starts[line + 1], "") for line in comments if _NOTE.match(lines[line])
                ]
    return (yield from replaced(text, segments, edits))


def _error(line: int, problem: str) -> CorpusError:
    return CorpusError(f"line {line}: {problem}")


def _comments(lines: Sequence[str], first_keyword: int) -> range:
    """Return which lines are the comments of an entry, counted from 0; `first_keyword` counts from 1."""
    first = first_keyword - 1
    while first and lines[first - 1].startswith("#") and not lines[first - 1].startswith("#~"):
        first -= 1
    return range(first, first_keyword - 1)


def _segments(
    entry: PoEntry, text: str, starts: Sequence[int], top: int, num_plurals: int, wanted: Wanted
) -> Iterator[Segment]:
    """Yield the segments of each form; the last one has the place, and writes all of them.

    Notes are comments at `top`, where the entry begins with its comments.
    """
    is_plural = "msgid_plural" in entry.fields
    keywords = [word for word in entry.fields if word.startswith("msgstr")]
    if any(entry.text(word) for word in keywords) and not wanted.again:
        wanted.skipped[HAS_TRANSLATION] += 1
        return
    forms = ["msgid"] if num_plurals > 1 or not is_plural else []
    forms += ["msgid_plural"] * (num_plurals - len(forms)) if is_plural else []
    sources = [entry.text(form) for form in forms]
    parts = [list(plain_segments(source)) for source in sources]
    if not all(parts):
        return
    start, end = starts[entry.line - 1], starts[entry.lines[keywords[-1]][1]]
    before = text[start : starts[entry.lines[keywords[0]][0] - 1]]
    ending = "\r\n" if "\r\n" in before else "\n"
    writer = _Writer(before, sources, parts, is_plural, entry.is_fuzzy, ending)
    for number, form in enumerate(parts):
        about = f"# regard: msgstr[{number}]: " if is_plural else "# regard: "
        annotate = partial(_noted, top, about, ending)
        for part in form:
            place = (start, end) if part is parts[-1][-1] else (start, start)
            yield Segment(part.text, *place, entry.line, write=writer.add, annotate=annotate)


def _noted(top: int, about: str, ending: str, note: str) -> list[Edit]:
    return [Edit(top, top, about + note + ending)]


@dataclass
class _Writer:
    """Gathers the translations of an entry, and writes it with the last of them."""

    before: str  # the lines with msgctxt and msgid
    sources: list[str]
    parts: list[list[Segment]]  # of each source
    is_plural: bool
    was_fuzzy: bool
    ending: str
    written: list[str] = field(default_factory=list)  # of each part

    def add(self, said: str) -> str:
        """Take the translation of a part; return the whole entry with the last one."""
        parts = [one for form in self.parts for one in form]
        self.written.append(parts[len(self.written)].write(said.strip("\n")))
        if len(self.written) < len(parts):
            return ""
        left = iter(self.written)
        texts = [
            changed(source, [Edit(one.start, one.end, next(left)) for one in form])
            for source, form in zip(self.sources, self.parts, strict=True)
        ]
        pairs = zip(self.sources, texts, strict=True)
        is_fuzzy = any(_placeholders(source) != _placeholders(text) for source, text in pairs)
        mark = f"#, fuzzy{self.ending}" if is_fuzzy and not self.was_fuzzy else ""
        keywords = [f"msgstr[{form}]" if self.is_plural else "msgstr" for form in range(len(texts))]
        fields = [_field(*one, self.ending) for one in zip(keywords, texts, strict=True)]
        return mark + self.before + "".join(fields)


def _placeholders(text: str) -> tuple[Counter[str], list[str], int]:
    """Return the placeholders, those that must keep their order, and how many percent signs there are."""
    found = [item.text for item in items(text) if item.kind == "placeholder"]
    in_order = [one for one in found if one[0] == "%" and one[1] != "(" and "$" not in one]
    return Counter(found), in_order, text.count("%")


def _field(keyword: str, text: str, ending: str) -> str:
    """Return a field on one line, or on several as msgcat writes it."""
    lines = [_escaped(line) for line in text.splitlines(keepends=True)] or [""]
    if len(lines) == 1 and len(keyword) + len(lines[0]) + 3 <= _WIDTH:
        return f'{keyword} "{lines[0]}"{ending}'
    parts = [part for line in lines for part in _wrapped(line)]
    return f'{keyword} ""{ending}' + "".join(f'"{part}"{ending}' for part in parts)


def _wrapped(line: str) -> Iterator[str]:
    part = ""
    for word in re.findall(r"\S+\s*|\s+", line):
        if part and len(part) + len(word.rstrip()) > _WIDTH:
            yield part
            part = ""
        part += word
    yield part


def _escaped(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return escaped.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def _header(entry: PoEntry, text: str, starts: Sequence[int], wanted: Wanted) -> tuple[list[Edit], int]:
    """Return the changes that fill in what a template leaves open, and how many forms a plural has."""
    first, last = entry.lines["msgstr"]
    start, end = starts[first - 1], starts[last]
    rule = next((rule for rule, codes in _PLURALS.items() if wanted.target in codes.split()), None)
    filled = {
        r"(?<=charset=)CHARSET\b": "UTF-8",
        r'(?<="Language:) ?(?=\\n")': f" {wanted.target}",
    }
    edits = []
    header = po_header(entry.text("msgstr"))
    is_others = header.get("language", "").split("_")[0].lower() != wanted.target
    if rule is not None and is_others and "plural-forms" in header:
        filled[r"nplurals=[^;\"\\]*; *plural=[^;\"\\]*;?"] = rule
    elif rule is not None and "plural-forms" not in header:
        edits.append(Edit(end, end, f'"Plural-Forms: {rule}\\n"' + ("\r\n" if "\r\n" in text else "\n")))
    for pattern, value in filled.items():
        if found := re.compile(pattern).search(text, start, end):
            edits.append(Edit(*found.span(), value))
    said = re.search(r"nplurals=(\d)", header.get("plural-forms", ""))
    own = re.search(r"nplurals=(\d)", rule or "")
    counted = (own or said) if is_others else (said or own)
    return edits, max(1, int(counted[1])) if counted else 2
