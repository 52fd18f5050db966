"""The one table of scripts: which have no spaces between words, which languages use them, how wide they are.

A script that is not in the table puts spaces between its words and takes one column a letter. Nothing is said
here of direction: pages leave it to the browser (`dir="auto"`), and a terminal decides for itself.
"""

import unicodedata
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Script:
    """A script that does not simply put spaces between short words.

    `languages` are those that put no space between sentences either; `is_east_asian` scripts are shown two
    columns wide, and particles follow a Latin word without a space (`GitHubから`, `%s님`).
    """

    name: str  # as Unicode has it: \p{Han}
    ranges: str  # of its letters, for `re`, which knows no scripts
    languages: tuple[str, ...] = ()
    has_spaces: bool = False
    is_east_asian: bool = False


SCRIPTS = (
    Script("Thai", "\u0e00-\u0e7f", ("th",)),
    Script("Lao", "\u0e80-\u0eff", ("lo",)),
    Script("Tibetan", "\u0f00-\u0fff"),  # no spaces between words, but after sentences
    Script("Myanmar", "\u1000-\u109f", ("my",)),
    Script("Khmer", "\u1780-\u17ff", ("km",)),
    Script("Hiragana", "\u3040-\u309f", ("ja",), is_east_asian=True),
    Script("Katakana", "\u30a0-\u30ff\uff66-\uff9f", ("ja",), is_east_asian=True),
    Script("Han", "\u3400-\u9fff\U00020000-\U0003ffff", ("zh", "ja"), is_east_asian=True),
    Script("Hangul", "\u1100-\u11ff\uac00-\ud7af", has_spaces=True, is_east_asian=True),
)
_BY_NAME = {script.name: script for script in SCRIPTS}
_UNSPACED = [script for script in SCRIPTS if not script.has_spaces]
_UNSPACED_LANGUAGES = {language for script in SCRIPTS for language in script.languages}

HAN_LANGUAGES = _BY_NAME["Han"].languages

UNSPACED_RANGES = "".join(script.ranges for script in _UNSPACED)
"""Letters of scripts without spaces, to stand in a character class of `re`."""

HANGUL_RANGES = _BY_NAME["Hangul"].ranges
"""Letters of Korean, the same way: there are spaces between words, but a word is a stem with its endings."""

# \u30fc, which makes a vowel long in both kana, belongs to no script of Unicode.
UNSPACED = "[" + "".join(rf"\p{{{script.name}}}" for script in _UNSPACED) + "\u30fc]"
"""Letters of scripts without spaces as a character class of `regex`, by Unicode's division into scripts."""

EAST_ASIAN = "[" + "".join(rf"\p{{{script.name}}}" for script in SCRIPTS if script.is_east_asian) + "]"
"""Letters of Chinese, Japanese and Korean as a character class of `regex`."""


def is_unspaced(language: str | None) -> bool:
    """Return whether the language has no spaces between sentences: `zh`, `zh-Hans`, `zho_Hans`, `th`."""
    return (language or "")[:2].lower() in _UNSPACED_LANGUAGES


def is_hangul_syllable(character: str) -> bool:
    """Return whether the character is a Korean syllable in one piece."""
    return "가" <= character <= "힣"


def character_width(character: str) -> int:
    """Return how many columns of a terminal the character takes: East Asian ones two, marks none."""
    # The vowels and finals of Hangul written letter by letter are drawn into the syllable before them.
    if unicodedata.category(character) in ("Mn", "Me", "Cf") or "\u1160" <= character <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
