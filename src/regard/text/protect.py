"""What must come through a translation unharmed, and stand-ins that keep it safe on the way.

Addresses, placeholders, emoji and numbers mean the same in every language, but a model may spoil what it
never saw in training. `missing` tells what was spoilt; `stand_ins` and `substitute` let a model translate
a text in which something it does know stands in the place of each item.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, count
from typing import Literal

import regex

from regard.text.normalize import Normalized
from regard.text.scripts import EAST_ASIAN
from regard.text.words import Span

# Korean and Japanese join their particles to an address or a placeholder (%s님), so East Asian letters around
# such things are no part of them.
_LETTER = rf"[\p{{L}}\p{{M}}_--{EAST_ASIAN}]"
_SIGN = rf"[{_LETTER}\p{{N}}]"

# No alternative looks at more than a bounded stretch that another could look at again, and the last one
# takes in whole words, whose digits (GPT4, x1.5) are part of a name: any text takes linear time.
_ITEM = regex.compile(
    rf"""
      (?P<address>
          (?: (?i: https? | ftp ):// | (?i:www)\. )
          (?: [.,:;!?'*$|]*+ [{_SIGN}/~=&#%+@\-] | \( [{_SIGN}/.,%\-]*+ \) )++
        | (?<! [{_SIGN}.+\-] ) [{_SIGN}.%+\-]{{1,64}}+ @
          [{_SIGN}\-]{{1,63}}+ (?: \. [{_SIGN}\-]{{1,63}}+ ){{1,8}}+
      )
    | (?P<placeholder>
          %\(\w{{1,64}}+\) [#0+\-]? \d{{0,3}} (?:\.\d{{1,3}})? [diouxXeEfFgGcrsa]
        | %\d{{1,2}}\$ [#0+\-]? \d{{0,3}} (?:\.\d{{1,3}})? [diouxXeEfFgGcsS@]
        | (?<![\p{{N}}%]) % [#0+\-]? \d{{0,3}} (?:\.\d{{1,3}})? (?:hh?|ll?|z)? [diouxXfgcs@] (?!{_SIGN})
        | \{{\{{ \s? [\w.\-]{{1,64}}+ \s? \}}\}}
        | [$%#]? \{{ [\w.\[\]\-]{{1,64}}+ (?: [!:] [^\s{{}}]{{1,32}}+ )? \}} | \{{\}}
        | \$\( [A-Za-z_]\w{{0,63}}+ \)
      )
    | (?P<emoji>
          \p{{Regional_Indicator}}{{2}} | [0-9\#*]\ufe0f?\u20e3
        | (?= [\p{{Emoji_Presentation}}[\p{{Extended_Pictographic}}--[\0-\u25ff\u3000-\u32ff]]]
            | \p{{Extended_Pictographic}}\ufe0f ) \X
      )
    | (?P<number>
          \p{{Nd}}{{1,3}}+ (?: [\ \u00a0\u2009\u202f'’] \p{{Nd}}{{3}} (?!\p{{Nd}}) )++ (?: [.,]\p{{Nd}}++ )?+
        | [vV]? \p{{Nd}}++ (?: [.,:/\u066b\u066c\uff0c\uff0e\uff1a] \p{{Nd}}++ )*+
      )
    | {_LETTER}++ (?: \p{{Nd}}++ (?: [.,:/]\p{{Nd}}++ )*+ )?+
    """,
    regex.VERBOSE | regex.VERSION1,
)
_DIGITS = regex.compile(r"\p{Nd}+")

# 35억 is 3.5 billion and 12万 is 120,000: with these in either text the digits tell nothing.
_MYRIAD = regex.compile(
    r"""[\p{Nd}一二三四五六七八九十百千两兩数數几幾何]\s?[万萬亿億兆千百]
      | [\p{Nd}일이삼사오육칠팔구십백천수몇]\s?[만억조] | \p{Nd}\s?[천백]""",
    regex.VERBOSE,
)
_MAX_SPELT = 12


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a text that means the same in every language."""

    span: Span
    text: str
    kind: Literal["address", "placeholder", "emoji", "number"]


def items(text: str) -> list[Item]:
    """Return the items of the text in order; they do not overlap."""
    return [
        Item(match.span(), match.group(), match.lastgroup)
        for match in _ITEM.finditer(text)
        if match.lastgroup is not None
    ]


def missing(source: str, target: str) -> list[Item]:
    """Return the items of the source that the target does not hold as often as the source does.

    Numbers are equal if their digits are, in whatever script and however grouped: 1,992.50 is 1 992,50
    and 14:30 is 14 h 30. A whole number up to twelve may have become a word, unless the target has digits
    that no other number of the source accounts for.
    """
    held = Counter(item.text for item in items(target) if item.kind != "number")
    runs = [_ascii(run) for run in _DIGITS.findall(target)]
    counted_otherwise = _MYRIAD.search(target) is not None or _MYRIAD.search(source) is not None
    lost = []
    spelt: list[Item] = []
    num_digits = sum(map(len, runs))
    for item in items(source):
        key = item.text
        if item.kind == "number":
            key = _ascii("".join(_DIGITS.findall(item.text)))
            is_small = key.isascii() and len(key) <= 2 and int(key) <= _MAX_SPELT
            may_be_spelt = item.text.isdecimal() and is_small
            if counted_otherwise:
                continue
            if key not in held:
                held[key] = _count(key, runs)
            if may_be_spelt and held[key] == 0:
                spelt.append(item)
                continue
            num_digits -= len(key)
        if held[key] > 0:
            held[key] -= 1
        else:
            lost.append(item)
    if num_digits > 0:
        lost += spelt
    return sorted(lost, key=lambda item: item.span)


def substitute(normalized: Normalized, replacements: Sequence[tuple[Span, str]]) -> Normalized:
    """Return the text with its spans replaced, each character still knowing its place in the original.

    Each character of a replacement stands for all that it replaces.
    """
    texts: list[str] = []
    origin: list[Span] = []
    place = 0
    for (start, end), replacement in sorted(replacements):
        if not place <= start <= end <= len(normalized.text):
            raise ValueError(f"the span ({start}, {end}) overlaps another or lies outside the text")
        texts += normalized.text[place:start], replacement
        origin += normalized.origin[place:start]
        origin += [normalized.to_original((start, end))] * len(replacement)
        place = end
    texts.append(normalized.text[place:])
    origin += normalized.origin[place:]
    return Normalized("".join(texts), normalized.original, tuple(origin))


# No number is part of another, nor a name of a name: they can be told apart in a translation.
_SHORT_NUMBERS = ("25", "30", "48", "36", "52", "64", "45", "33", "65", "22", "54", "35", "46", "23", "66")
_LONG_NUMBERS = ("2017", "1998", "2006", "1985", "2011", "1970", "1997", "2018", "1989", "2007", "1971")
_NAMES = ("Tom", "Paris", "Anna", "London", "Peter", "Berlin", "Maria", "Madrid", "David", "Rome", "Sarah")
_LETTERS = ("X", "B", "C", "Z", "K", "F", "G", "H", "W", "Q", "V")
_ATTEMPTS: tuple[tuple[str, ...], ...] = (_LONG_NUMBERS, _NAMES, _LETTERS)

NUM_ATTEMPTS = len(_ATTEMPTS)


def stand_ins(items: Sequence[Item], text: str, attempt: int) -> list[str]:
    """Return for each item something that models copy: all different, and none occurs in the text.

    A number stands for a number. What stands for the other kinds, which some models copy and others do
    not, depends on the attempt, which counts from 0 to NUM_ATTEMPTS - 1.
    """
    pools = {pool: _endless(pool, attempt) for pool in (_SHORT_NUMBERS, *_ATTEMPTS)}
    taken: dict[str, None] = {}
    for item in items:
        pool = _ATTEMPTS[attempt]
        if item.kind == "number":
            pool = _SHORT_NUMBERS if len(item.text) <= 3 else _LONG_NUMBERS
        word = next(word for word in pools[pool] if word not in text and word not in taken)
        taken[word] = None
    return list(taken)


def _endless(pool: Sequence[str], attempt: int) -> Iterator[str]:
    """Yield the pool, from another place for each attempt, then its words with numbers behind them."""
    turn = 4 * attempt
    return chain(pool[turn:], pool[:turn], (f"{word}{number}" for number in count(2) for word in pool))


def _ascii(digits: str) -> str:
    """Return digits of any script as those of ASCII.

    `regex` may know digits that Python's own tables do not: they stay as they are.
    """
    return "".join(str(unicodedata.decimal(digit, digit)) for digit in digits)


def _count(key: str, runs: Sequence[str]) -> int:
    """Return how many times the key is spelt by one or more whole runs of digits that follow each other."""
    digits = "".join(runs)
    edges = {0, *accumulate(map(len, runs))}
    times, place = 0, digits.find(key)
    while place >= 0:
        whole = place in edges and place + len(key) in edges
        times += whole
        place = digits.find(key, place + (len(key) if whole else 1))
    return times
