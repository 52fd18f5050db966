"""What can be wrong with a sentence pair, seen on its own: one rule for each, with a reason in words."""

import contextlib
import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any

from regard.text.normalize import normalize
from regard.text.scripts import is_hangul_syllable

# Each rule: its name and what it finds, in the order in which they are blamed for a pair.
# The last five look at the whole corpus; see `inspect`.
RULES = {
    "utf8": "bytes that are not UTF-8",
    "control": "a control character or line break inside the text",
    "empty": "one side is empty",
    "copy": "source and target are the same text, of two words or more",
    "mojibake": "text decoded with the wrong character set",
    "markup": "tags or placeholders differ between the sides",
    "numbers": "numbers differ between the sides",
    "language": "one side is in another language",
    "length": "one side is much too long for the other",
    "duplicate": "the same pair occurs earlier",
    "shift": "in a block in which one side has slipped by some lines",
    "overlap": "one side is also in the test set",
    "mismatch": "the words of the two sides rarely translate each other in other pairs",
}

COMPARING = ("copy", "markup", "numbers", "length")
"""The rules that expect the target to say what the source says, in another language."""

# Half a character: how the reader keeps bytes that are not UTF-8 (DC80 to DCFF), and what JSON may escape.
_INVALID = re.compile("[\ud800-\udfff]")
# A tab or a line feed inside a segment of a TMX or PO file is text, and becomes a space like any other.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]|\r(?!\n)")
_CONTROL_NAMES = {"\x00": "NUL", "\r": "CR"}

_MARKUP = re.compile(
    r"</?[a-zA-Z][\w:-]*(?:\s[^<>]*)?/?>|%\(\w+\)[sdif]|%\d+\$[sd]|%[sdif](?![a-zA-Z])|\$?\{\w*\}|&(?:[a-zA-Z]+|#\d+);"
)
_TAG = re.compile(r"</?[a-zA-Z][\w:-]*")

_WORDS = re.compile(r"[^\W\d_][\w'’.@/:-]*")

_THOUSANDS = re.compile(
    r"(?<![0-9])[0-9]{1,3}(?:([.,'’\u00a0\u202f\u066c ])[0-9]{3})(?:\1[0-9]{3}){0,4}(?![0-9])"
)
_DIGITS = re.compile(r"[0-9]+")
_MAX_COMPARED = 2500  # pairs of numbers in one pair of sentences

# UTF-8 read as Latin-1 or Windows-1252: a lead byte as Ã, Â, â ... followed by continuation bytes.
_WINDOWS = "€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_PUNCTUATION = "‚„…‹›‘’“”•–—«»\xa0°·´"
_MISREAD_UTF8 = re.compile(f"[\xc2-\xf4][\x80-\xbf{_WINDOWS}]+")
# A Korean text read as Latin-1: long runs of accented letters and signs.
_MISREAD_KOREAN = re.compile("[\xa1-\xfe]{4,}")

_LANGUAGE_CHARACTERS = 120  # of a side are looked at; more cost time and change nothing
_MIN_LETTERS = 12  # shorter texts tell too little
_SURE = 0.9


def check_pair(source: str, target: str, *, compare: bool = True) -> dict[str, str]:
    """Return what is wrong with a pair, by rule: the reason in words. A sound pair gives nothing.

    Without `compare` the rules of COMPARING are left out.
    """
    found: dict[str, str] = {}
    for side, text in (("source", source), ("target", target)):
        if text.isascii() and text.isprintable():
            continue  # nearly all English: nothing below can apply
        if bad := _INVALID.search(text):
            found.setdefault("utf8", f"{side} has {_name_invalid(bad[0])} at character {bad.start() + 1}")
        if bad := _CONTROL.search(text):
            name = _CONTROL_NAMES.get(bad[0], f"U+{ord(bad[0]):04X}")
            found.setdefault("control", f"{side} has {name} at character {bad.start() + 1}")
        if sign := _misread(text):
            found.setdefault("mojibake", f"{side} has {sign[:20]!r}")
    clean_source, clean_target = normalize(source), normalize(target)
    if not clean_source or not clean_target:
        sides = (
            "both sides are"
            if clean_source == clean_target
            else "source is"
            if not clean_source
            else "target is"
        )
        return found | {"empty": f"{sides} empty"}
    if not compare:
        return found
    # A name, a number or an address is often right as it stands.
    if clean_source == clean_target and sum(map(str.isalpha, _WORDS.sub("a", clean_source))) > 1:
        found["copy"] = "source and target are the same"
    if reason := _markup_differs(source, target):
        found["markup"] = reason
    if reason := _numbers_differ(source, target):
        found["numbers"] = reason
    return found


def _name_invalid(half: str) -> str:
    code = ord(half)
    return (
        f"the byte 0x{code - 0xDC00:02X}" if 0xDC80 <= code <= 0xDCFF else f"the lone surrogate U+{code:04X}"
    )


def _misread(text: str) -> str | None:
    """Return a piece of the text that is plainly another text read with the wrong character set."""
    if text.isascii():
        return None
    if "\ufffd" in text:
        return "\ufffd"
    suspects = [match[0] for match in _MISREAD_UTF8.finditer(text) if _is_misread(match[0])]
    # `CAFÉ”` and `Ü–` happen to be valid too: a capital and the punctuation after it prove nothing alone.
    plain = [
        sign for sign in suspects if not (len(sign) == 2 and sign[0] not in "ÃÂ" and sign[1] in _PUNCTUATION)
    ]
    if plain:
        return plain[0]
    for match in _MISREAD_KOREAN.finditer(text):
        try:
            if all(map(is_hangul_syllable, match[0].encode("latin-1").decode("euc_kr"))):
                return match[0]
        except UnicodeError:
            continue
    return None


def _is_misread(sign: str) -> bool:
    for charset in ("cp1252", "latin-1"):
        with contextlib.suppress(UnicodeError):
            sign.encode(charset).decode("utf-8")
            return True
    return False


def _markup_differs(source: str, target: str) -> str | None:
    ours, theirs = _markup(source), _markup(target)
    if ours == theirs:
        return None
    [(side, sign), *_] = [("source", s) for s in ours - theirs] + [("target", s) for s in theirs - ours]
    return f"only the {side} has {sign}"


def _markup(text: str) -> Counter[str]:
    if not ("<" in text or "%" in text or "{" in text or "&" in text):
        return Counter()
    return Counter(f"{tag[0]}>" if (tag := _TAG.match(sign)) else sign for sign in _MARKUP.findall(text))


def _numbers_differ(source: str, target: str) -> str | None:
    """Return two numbers that do not fit; one missing on a side is no fault, it may be written in words."""
    ours, theirs = _numbers(source), _numbers(target)
    only_ours, only_theirs = ours - theirs, theirs - ours
    if len(only_ours) * len(only_theirs) > _MAX_COMPARED:
        return None  # a table of numbers, not a sentence
    strange = {number for number in only_ours if not any(_same_number(number, other) for other in theirs)}
    alien = {number for number in only_theirs if not any(_same_number(number, other) for other in ours)}
    return f"{min(strange):.20} in the source, {min(alien):.20} in the target" if strange and alien else None


def _numbers(text: str) -> set[str]:
    """Return the groups of digits in a text: thousands joined, dates, times and decimals taken apart.

    Digits of every script are written in ASCII.
    """
    if not any(map(str.isdecimal, text)):
        return set()
    if not text.isascii():
        text = "".join(str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in text)
    return set(_DIGITS.findall(_THOUSANDS.sub(lambda number: "".join(_DIGITS.findall(number[0])), text)))


def _same_number(number: str, other: str) -> bool:
    """Tell whether two numbers may be the same: 07 and 7, 3.50 and 3.5, 5 pm and 17 h, the 70s and 1970."""
    if number.strip("0") == other.strip("0"):
        return True
    small, large = sorted((number, other), key=len)
    if len(small) == 2 and len(large) == 4 and large.endswith(small):
        return True
    return len(large) <= 2 and abs(int(small) - int(large)) == 12


@functools.cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    # Left out: "no language at all", and Nigerian Pidgin, for which it takes plain English.
    identifier.set_languages(set(identifier.labels) - {"zxx", "pcm"})
    return identifier


def known_language(language: str | None) -> bool:
    """Tell whether the language can be recognised."""
    return language is not None and language.split("-")[0] in _identifier().labels


def guess_language(texts: Sequence[str]) -> str | None:
    """Return the language most of the texts are in, if most agree."""
    votes = Counter(_identifier().classify(text[:_LANGUAGE_CHARACTERS])[0] for text in texts)
    [(language, count)] = votes.most_common(1) or [("", 0)]
    return str(language) if count > 0.7 * len(texts) else None


def sure_language(text: str, min_prob: float) -> str | None:
    """Return the language of a text if it is recognised with at least this probability."""
    language, prob = _identifier().classify(text[:_LANGUAGE_CHARACTERS])
    return str(language) if prob >= min_prob else None


class LanguageCheck:
    """Recognises texts that are not in the language they should be in."""

    def __init__(self, language: str, texts: Sequence[str]) -> None:
        self._language = language.split("-")[0]
        # Recognising costs a hundred times more than looking a few words up, so a text with
        # enough of the language's everyday words is let through. They are taken from texts of the
        # corpus that are recognised, so that a corpus in two languages does not teach us both.
        counts: Counter[str] = Counter()
        for text in texts:
            if _identifier().classify(text[:_LANGUAGE_CHARACTERS])[0] == self._language:
                counts.update(set(text.lower().split()))
        self._everyday = frozenset(word for word, _ in counts.most_common(200))

    def __call__(self, text: str) -> str | None:
        """Return the language a text is surely in, if it is not the right one."""
        text = text[:_LANGUAGE_CHARACTERS]
        words = text.lower().split()
        num_everyday = sum(word in self._everyday for word in words)
        if num_everyday >= 2 and num_everyday >= 0.4 * len(words):
            return None
        letters = sum(map(str.isalpha, text))
        # Too short to tell, or a formula, a table, a line of code.
        if (text.isascii() and letters < _MIN_LETTERS) or letters < 0.6 * (len(text) - text.count(" ")):
            return None
        found, probability = _identifier().classify(text)
        return None if found == self._language or probability < _SURE else str(found)
