"""PO files of gettext, read entry by entry.

polib is not used: it takes text that is the name of a file for that file, breaks lines at U+2028 as well,
needs quadratic time for a long entry, and holds the whole file.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from regard.corpus.input_file import MAX_LINE_BYTES, Format, InputFile, Pair, quoted
from regard.corpus.language_codes import Languages, choose, is_language, matches, normalised
from regard.errors import CorpusError
from regard.files import without_compression

_LINE = re.compile(
    r"(?:(?P<keyword>msgctxt|msgid|msgid_plural|msgstr(?:\[\d{1,2}\])?)[ \t]*)?"
    r'"(?P<text>[^"\\]*(?:\\.[^"\\]*)*)"'
)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", '"': '"'}
_UTF8_NAMES = ("utf-8", "utf8", "us-ascii", "ascii", "charset")  # the last stands in unfilled templates


@dataclass(slots=True)
class PoEntry:
    """One message: its fields by keyword, as yet in pieces, and the first and last line of each."""

    line: int = 0  # that of its first keyword
    fields: dict[str, list[str]] = field(default_factory=dict)
    lines: dict[str, tuple[int, int]] = field(default_factory=dict)
    num_chars: int = 0
    is_fuzzy: bool = False
    is_obsolete: bool = False

    def text(self, keyword: str) -> str:
        """Return a field with its escapes undone, empty if it is not there."""
        text = "".join(self.fields.get(keyword, ()))
        return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[0]), text)

    def has_translation(self) -> bool:
        """Return whether a msgstr has been read: whatever comes next begins another entry."""
        return "msgstr" in self.fields or "msgstr[0]" in self.fields

    def has_room_for(self, keyword: str) -> bool:
        """Return whether a keyword may stand here: once, and after those that it belongs to."""
        match keyword:
            case "msgctxt" | "msgid":
                has_place = True
            case "msgid_plural":
                has_place = "msgid" in self.fields
            case "msgstr":
                has_place = "msgid" in self.fields and "msgid_plural" not in self.fields
            case _:
                has_place = "msgid_plural" in self.fields
        return has_place and keyword not in self.fields

    def is_header(self) -> bool:
        """Return whether this is the entry with an empty msgid that describes the file."""
        return not self.fields["msgid"] and "msgctxt" not in self.fields


def po(path: Path, wanted: Languages) -> Format:
    """Return how to read a PO file: msgid is the source, taken to be English if nothing else is said."""
    with InputFile(path) as file:
        first = next(po_entries(file.lines(), file.error), None)
    header = po_header(first.text("msgstr")) if first is not None and first.is_header() else {}
    found = re.search(r"charset=([\w-]+)", header.get("content-type", ""))
    if found and found[1].lower() not in _UTF8_NAMES:
        raise CorpusError(f"{path}: is in {found[1]}; convert it with: msgconv -t UTF-8 OLD.po > NEW.po")
    named = header.get("language", "").partition("@")[0]
    if not named:
        named = without_compression(path).stem.rpartition(".")[2]  # as in fr.po and guide.fr.po
        named = named if is_language(named) else ""
    if named:
        asked = [code for code in (wanted.source, wanted.target) if code and not matches(code, named)]
        available = (asked[0] if asked else "en", normalised(named))
        source, target = choose(path, available, wanted)
        languages = Languages(wanted.source or available[source], wanted.target or available[target])
        is_reversed = source == 1
    else:
        languages = Languages(wanted.source or "en", wanted.target)
        is_reversed = False

    def pairs(files: Sequence[InputFile], skipped: Counter[str]) -> Iterator[Pair]:
        (file,) = files
        for place, entry in enumerate(po_entries(file.lines(), file.error)):
            if entry.is_header():
                if place > 0:
                    skipped["empty msgid"] += 1
            elif entry.is_obsolete or entry.is_fuzzy:
                skipped["obsolete" if entry.is_obsolete else "fuzzy"] += 1
            else:
                for message, translation in _sides(entry, skipped):
                    sides = (translation, message) if is_reversed else (message, translation)
                    yield Pair(entry.line, *sides)

    return Format(languages, pairs)


def _sides(entry: PoEntry, skipped: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield message and translation; of a plural entry the singular and, if it has two forms, the plural."""
    if "msgid_plural" not in entry.fields:
        sides = [("msgid", "msgstr")]
    else:
        sides = [("msgid", "msgstr[0]")]
        if "msgstr[1]" in entry.fields:
            sides.append(("msgid_plural", "msgstr[1]"))
        num_further = sum(keyword.startswith("msgstr[") for keyword in entry.fields) - len(sides)
        if num_further > 0:
            skipped["further plural form"] += num_further
    for message, translation in sides:
        if text := entry.text(translation):
            yield entry.text(message), text
        else:
            skipped["untranslated"] += 1


def po_header(text: str) -> dict[str, str]:
    """Return the fields of the header by their names in lower case."""
    fields = (line.partition(":") for line in text.split("\n"))
    return {name.strip().lower(): value.strip() for name, _, value in fields}


def po_entries(lines: Iterable[str], error: Callable[[int, str], CorpusError]) -> Iterator[PoEntry]:
    """Yield the entries, header included; raise an error, made by `error`, where the syntax is not PO's."""
    entry = PoEntry()
    keyword = ""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        is_obsolete = text.startswith("#~")
        if is_obsolete:
            text = text.removeprefix("#~").lstrip()
        if not text or text.startswith("|"):  # `#~|` gives what an obsolete message once said
            continue
        found = None if text.startswith("#") else _LINE.fullmatch(text)
        begins = text.startswith("#") or (found is not None and found["keyword"] in ("msgctxt", "msgid"))
        if begins and entry.has_translation():
            yield entry
            entry, keyword = PoEntry(), ""
        if text.startswith("#"):
            if text.startswith("#,") and "fuzzy" in text.removeprefix("#,").replace(" ", "").split(","):
                entry.is_fuzzy = True
            continue
        if found is None:
            raise error(number, f"not a line of PO: {quoted([text])}; correct it or check it with msgfmt")
        if found["keyword"]:
            keyword = found["keyword"]
            if not entry.has_room_for(keyword):
                raise error(number, f"{keyword} out of place; each msgid needs one msgstr")
            entry.line = entry.line or number
            entry.is_obsolete = is_obsolete
            entry.fields[keyword] = []
            entry.lines[keyword] = (number, number)
        elif not keyword:
            raise error(number, "text without msgid or msgstr before it; add the keyword")
        entry.lines[keyword] = (entry.lines[keyword][0], number)
        if found["text"]:
            entry.fields[keyword].append(found["text"])
            entry.num_chars += len(found["text"])
            if entry.num_chars > MAX_LINE_BYTES:
                raise error(number, f"an entry of more than {MAX_LINE_BYTES:,} characters; remove it")
    if entry.has_translation():
        yield entry
    elif entry.fields:
        raise error(entry.line, "the last entry has no msgstr; the file may have been cut off")
