"""TMX and XLIFF, read as a stream: no tree is built, and no file makes the reader hold more than some MiB."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar
from xml.parsers import expat

from regard.corpus.input_file import MAX_LINE_BYTES, Format, InputFile, Pair
from regard.corpus.language_codes import Languages, choose, matches, normalised
from regard.errors import CorpusError

_MAX_DEPTH = 100
# All variants of one unit together: a unit holds tens of languages, not an endless list.
_MAX_UNIT_CHARS = 8 * MAX_LINE_BYTES
# So many units are looked at to learn which languages a file holds.
_NUM_SAMPLED_UNITS = 1000


@dataclass(frozen=True, slots=True)
class _Side:
    """One language's text in a unit. A language of None fits any; the empty string fits none."""

    language: str | None
    text: str


@dataclass(frozen=True, slots=True)
class _Unit:
    """The same sentence in several languages, and the line where the unit begins."""

    line: int
    sides: tuple[_Side, ...]


def refusing_parser(
    error: Callable[[int, str], CorpusError], encoding: str | None = None
) -> expat.XMLParserType:
    """Return a parser that refuses declarations and entities, with an error made by `error`."""
    parser = expat.ParserCreate(encoding)
    parser.buffer_text = True

    def refuse_declaration(name: str, *_: Any) -> None:
        # Entities can grow to gigabytes or read other files; default attributes are added to every tag.
        problem = f"declares {name[:40]!r}; remove the declarations within <!DOCTYPE ...>"
        raise error(parser.CurrentLineNumber, problem)

    def refuse_entity(name: str | None, *_: Any) -> int:
        problem = f"uses the entity {(name or '')[:40]!r}; write the character itself in its place"
        raise error(parser.CurrentLineNumber, problem)

    parser.EntityDeclHandler = refuse_declaration
    parser.AttlistDeclHandler = refuse_declaration
    parser.SkippedEntityHandler = refuse_entity
    parser.ExternalEntityRefHandler = refuse_entity
    return parser


class _UnitReader(ABC):
    """Units out of a stream of XML. A format says which elements are its units and sides.

    It stands on expat itself, because only there can declarations be refused before they are used,
    and depth, text and the size of a tag be bounded while they are read.
    """

    root: ClassVar[str]
    # Elements whose text is markup of the document translated and not part of the sentence.
    codes: ClassVar[frozenset[str]]

    def __init__(self, file: InputFile) -> None:
        self.file = file
        self.parser = refusing_parser(file.error)
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.path: list[str] = []  # names of the open elements, outermost first
        self._prefix = ""
        self._complete: list[_Unit] = []
        self._line = 0
        self._sides: list[_Side] = []
        self._num_unit_chars = 0
        self._language: str | None = None
        self._pieces: list[str] | None = None  # text of the side being read
        self._num_chars = 0
        self._num_open_codes = 0

    def units(self) -> Iterator[_Unit]:
        """Yield the units in order. What was read before an error comes out before the error does."""
        num_bytes = 0
        for block in chain(self.file.blocks(), [b""]):
            problem: CorpusError | None = None
            try:
                self.parser.Parse(block, not block)
            except expat.ExpatError as error:
                reason = expat.errors.messages[error.code]
                problem = self.file.error(error.lineno, f"not well-formed XML ({reason}); correct it there")
            except (LookupError, ValueError) as error:  # an encoding that expat cannot be taught
                if self.path:  # too late to be about the encoding, so it is a fault of ours
                    raise
                problem = self.file.error(
                    1, f"{error}; convert the file to UTF-8 and say so in its first line"
                )
            except CorpusError as error:
                problem = error
            complete, self._complete = self._complete, []
            yield from complete
            if problem is not None:
                raise problem
            # expat holds back a tag or comment until it ends; one without an end must not fill the memory.
            num_bytes += len(block)
            if num_bytes - self.parser.CurrentByteIndex > MAX_LINE_BYTES:
                raise self._error(f"a tag or comment of more than {MAX_LINE_BYTES:,} bytes; remove it")

    @abstractmethod
    def opened(self, name: str, attributes: dict[str, str]) -> None:
        """Take note of an element that begins; `self.path` ends with its parent."""

    @abstractmethod
    def closed(self, name: str) -> None:
        """Take note of an element that ends; `self.path` ends with its parent."""

    def begin_unit(self) -> None:
        """Begin a unit at the present line."""
        self._line = self.parser.CurrentLineNumber
        self._sides = []
        self._num_unit_chars = 0

    def end_unit(self) -> None:
        """Pass on what the unit has gathered."""
        self._complete.append(_Unit(self._line, tuple(self._sides)))

    def begin_side(self, language: str | None) -> None:
        """Begin to gather text in a language."""
        self._language = language
        self._pieces = []
        self._num_chars = self._num_open_codes = 0

    def end_side(self) -> None:
        """Add the text gathered to the unit."""
        self._sides.append(_Side(self._language, "".join(self._pieces or ())))
        # The hundred is for the side itself: a million empty ones are too many as well.
        self._num_unit_chars += self._num_chars + len(self._language or "") + 100
        if self._num_unit_chars > _MAX_UNIT_CHARS:
            raise self._error(f"a unit of more than {_MAX_UNIT_CHARS:,} characters; split or remove it")
        self._pieces = None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self.path:
            self._prefix = name[: name.find(":") + 1]
            if name.removeprefix(self._prefix) != self.root:
                raise self._error(f"begins with <{name[:40]}>, not <{self.root}>; correct the file's ending")
        elif len(self.path) == _MAX_DEPTH:
            raise self._error(f"elements nested more than {_MAX_DEPTH} deep; check that the file is intact")
        name = name.removeprefix(self._prefix)
        if self._pieces is None:
            self.opened(name, attributes)
        elif name in self.codes:
            self._num_open_codes += 1
        self.path.append(name)

    def _end(self, _: str) -> None:
        name = self.path.pop()
        if self._pieces is not None and name in self.codes:
            self._num_open_codes -= 1
        else:
            self.closed(name)

    def _characters(self, text: str) -> None:
        if self._pieces is None or self._num_open_codes:
            return
        self._pieces.append(text)
        self._num_chars += len(text)
        if self._num_chars > MAX_LINE_BYTES:
            raise self._error(f"a segment of more than {MAX_LINE_BYTES:,} characters; split or remove it")

    def _error(self, problem: str) -> CorpusError:
        return self.file.error(self.parser.CurrentLineNumber, problem)


class _TmxReader(_UnitReader):
    """TMX 1.1 to 1.4: `tu` holds a `tuv` for each language, and that its text in `seg`."""

    root = "tmx"
    codes = frozenset({"bpt", "ept", "it", "ph", "ut"})

    def __init__(self, file: InputFile) -> None:
        super().__init__(file)
        self.source_language: str | None = None
        self._variant_language = ""

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        """Begin at `tu` and `seg`; note the language of `tuv`, written `lang` before TMX 1.4."""
        if name == "seg" and self.path[-1] == "tuv":
            self.begin_side(self._variant_language)
        elif name == "tuv":
            self._variant_language = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif name == "tu":
            self.begin_unit()
        elif name == "header":
            self.source_language = attributes.get("srclang")

    def closed(self, name: str) -> None:
        """End at `seg` and `tu`."""
        if name == "seg" and self.path[-1] == "tuv":
            self.end_side()
        elif name == "tu":
            self.end_unit()


class _XliffReader(_UnitReader):
    """XLIFF 1.2 (`trans-unit`) and 2 (`segment`), both with `source` and perhaps `target` directly within.

    `source` and `target` elsewhere, as in `alt-trans` or in matches, are somebody's proposals.
    """

    root = "xliff"
    codes = frozenset({"bpt", "ept", "it", "ph"})
    _units = frozenset({"trans-unit", "segment"})

    def __init__(self, file: InputFile) -> None:
        super().__init__(file)
        self._declared: dict[str, str | None] = {"source": None, "target": None}

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        """Begin at units and their sides; note the languages that the file declares."""
        if name in self._units:
            self.begin_unit()
        elif name in self._declared and self.path[-1] in self._units:
            self.begin_side(attributes.get("xml:lang") or self._declared[name])
        elif name == "xliff":
            self._declared = {"source": attributes.get("srcLang"), "target": attributes.get("trgLang")}
        elif name == "file" and "source-language" in attributes:
            self._declared = {
                "source": attributes["source-language"],
                "target": attributes.get("target-language"),
            }

    def closed(self, name: str) -> None:
        """End at units and their sides."""
        if name in self._units:
            if len(self._sides) == 1:  # no target yet; which language it will be in is known all the same
                self._sides.append(_Side(self._declared["target"], ""))
            self.end_unit()
        elif name in self._declared and self.path[-1] in self._units:
            self.end_side()


def tmx(path: Path, wanted: Languages) -> Format:
    """Return how to read a TMX file; the header's language is the source, if nothing else is asked for."""
    with InputFile(path) as file:
        reader = _TmxReader(file)
        seen = _languages(islice(reader.units(), _NUM_SAMPLED_UNITS))
        declared = reader.source_language
    if wanted.source is None and declared and any(code and matches(code, declared) for code in seen):
        is_target = wanted.target is not None and matches(declared, wanted.target)
        wanted = Languages(None if is_target else _primary(declared), wanted.target)
    return _format(path, _TmxReader, seen, wanted)


def xliff(path: Path, wanted: Languages) -> Format:
    """Return how to read an XLIFF file, from its source language to its target language or the other way."""
    with InputFile(path) as file:
        seen = _languages(islice(_XliffReader(file).units(), _NUM_SAMPLED_UNITS))
    return _format(path, _XliffReader, seen, wanted)


def _format(path: Path, reader: type[_UnitReader], seen: list[str | None], wanted: Languages) -> Format:
    languages = _chosen(path, seen, wanted)
    # A language not known fits any side, so the one that is known has its pick before it.
    is_target_first = languages.source is None and languages.target is not None

    def pairs(files: Sequence[InputFile], skipped: Counter[str]) -> Iterator[Pair]:
        (file,) = files
        for unit in reader(file).units():
            sides = [side for side in unit.sides if side.text]
            if is_target_first:
                target, source = _take(sides, languages.target), _take(sides, languages.source)
            else:
                source, target = _take(sides, languages.source), _take(sides, languages.target)
            if source is None:
                skipped["no text in the source language"] += 1
            elif target is None:
                skipped["no text in the target language"] += 1
            else:
                if sides:
                    skipped["further variant in a unit"] += len(sides)
                yield Pair(unit.line, source.text, target.text)

    return Format(languages, pairs)


def _take(sides: list[_Side], language: str | None) -> _Side | None:
    """Return the first side in a language, taken out of the list."""
    for place, side in enumerate(sides):
        if language is None or side.language is None or matches(side.language, language):
            return sides.pop(place)
    return None


def _languages(units: Iterator[_Unit]) -> list[str | None]:
    """Return the languages of all sides, each once and in the order of the file."""
    return list(dict.fromkeys(side.language for unit in units for side in unit.sides))


def _chosen(path: Path, seen: list[str | None], wanted: Languages) -> Languages:
    """Return the languages to read; regions are told apart only where they were asked for."""
    if wanted.source is not None and wanted.target is not None:
        return wanted
    if None in seen:  # XLIFF need not say what its target language is
        known = next(filter(None, seen), None)
        if known is None or wanted.source is not None or (wanted.target and matches(known, wanted.target)):
            return wanted
        return Languages(_primary(known), wanted.target)
    codes = [code for code in seen if code]
    asked = [code for code in (wanted.source, wanted.target) if code and any(matches(code, c) for c in codes)]
    others = [_primary(code) for code in codes if not any(matches(code, a) for a in asked)]
    available = list(dict.fromkeys(asked + others))
    source, target = choose(path, available, wanted)
    return Languages(wanted.source or available[source], wanted.target or available[target])


def _primary(code: str) -> str:
    return normalised(code).partition("-")[0]
