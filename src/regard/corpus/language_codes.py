"""Language codes: telling one from other words, comparing two, and choosing those to read from a file."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from regard.errors import ConfigError, CorpusError
from regard.files import without_compression

# ISO 639-1. A list and not a pattern: `corpus.md` and `train.v2` are no languages.
_TWO_LETTERS = """
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de
    dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id
    ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu
    lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu
    rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to
    tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""
# Of the thousands with three letters only these are guessed, for `txt`, `tok` and `src` look just the same.
_THREE_LETTERS = "ast ceb ckb fil gsw haw hsb kab nds szl yue"
_KNOWN = frozenset(_TWO_LETTERS.split() + _THREE_LETTERS.split())
_CODE = re.compile(r"([a-z]{2,3})(-[a-z0-9]{2,8})*")
_WITH_SCRIPT = re.compile(r"[a-z]{3}-[a-z]{4}")  # `eng_Latn`, as FLORES writes


class HasLanguages(Protocol):
    """A corpus, a model, a test set: whatever knows its two languages, or one, or none."""

    @property
    def source_language(self) -> str | None:
        """The code of the source language."""

    @property
    def target_language(self) -> str | None:
        """The code of the target language."""


@dataclass(frozen=True, slots=True)
class Languages:
    """The language of each side as a lower-case code, or None where nothing tells."""

    source: str | None
    target: str | None

    @classmethod
    def of(cls, known: HasLanguages) -> "Languages":
        """Return the languages of a corpus, a model or a test set."""
        return cls(known.source_language, known.target_language)

    def __str__(self) -> str:
        return f"{self.source or '?'} to {self.target or '?'}"

    def swapped(self) -> "Languages":
        """Return the other direction."""
        return Languages(self.target, self.source)


def normalised(code: str) -> str:
    """Return a code in the one form used throughout: `pt_BR` gives `pt-br`."""
    return code.strip().lower().replace("_", "-")


def is_language(word: str) -> bool:
    """Return whether a word is a language code, perhaps with a script or region: `fr`, `pt-BR`, `zh_Hans`."""
    code = normalised(word)
    found = _CODE.fullmatch(code)
    if found is None:
        return False
    return found[1] in _KNOWN or _WITH_SCRIPT.fullmatch(code) is not None


def matches(code: str, other: str) -> bool:
    """Return whether one code is the same as the other or a closer description: `fr` and `fr-CA` match."""
    code, other = normalised(code) + "-", normalised(other) + "-"
    return code.startswith(other) or other.startswith(code)


def one_language(source: str | None, target: str | None) -> bool:
    """Return whether both sides are known to be in one language, of whatever region: `en-GB` and `en`."""
    return source is not None and target is not None and _primary(source) == _primary(target)


def _primary(code: str) -> str:
    return normalised(code).split("-")[0]


def check_languages(what: str, languages: Languages, other: str, others: Languages, mend: str) -> None:
    """Raise an error, made of these words, if two directions differ; what nothing tells fits anything."""
    for one, its in ((languages.source, others.source), (languages.target, others.target)):
        if one is not None and its is not None and not matches(one, its):
            raise ConfigError(f"{what} {languages} and {other} {others}; {mend}")


def language_of_ending(path: Path) -> str | None:
    """Return the language named by the last ending before that of compression: `fr` for `train.fr.gz`."""
    ending = without_compression(path).suffix.removeprefix(".")
    return normalised(ending) if is_language(ending) else None


def languages_in_name(path: Path) -> tuple[str, str] | None:
    """Return the two languages in a name such as `manual.en-fr.tsv`, in the order of the name."""
    for part in reversed(path.name.split(".")):
        match part.split("-"):
            case [first, second] if is_language(first) and is_language(second):
                return normalised(first), normalised(second)
    return None


def choose(path: Path, available: Sequence[str], wanted: Languages) -> tuple[int, int]:
    """Return the places in `available` of the source and the target language.

    What is not asked for is taken in the order of the file, as long as there is only one way to do so.
    """
    source = None if wanted.source is None else _find(path, available, wanted.source, None)
    target = None if wanted.target is None else _find(path, available, wanted.target, source)
    others = [place for place in range(len(available)) if place not in (source, target)]
    num_missing = [source, target].count(None)
    if num_missing and len(others) != num_missing:
        raise CorpusError(
            f"{path}: holds {', '.join(available[:20]) or 'no language'}, not just two languages; "
            "name the source language and the target language to read (--source, --target)"
        )
    return (others.pop(0) if source is None else source), (others.pop(0) if target is None else target)


def _find(path: Path, available: Sequence[str], code: str, taken: int | None) -> int:
    places = [place for place, found in enumerate(available) if matches(found, code) and place != taken]
    if not places:
        raise CorpusError(
            f"{path}: holds {', '.join(available[:20]) or 'no language'}, not {code!r}; "
            "name languages that are in the file"
        )
    # The very code before a looser match: of `en` and `en-gb`, asked for `en-gb`, the second.
    return next((place for place in places if normalised(available[place]) == normalised(code)), places[0])
