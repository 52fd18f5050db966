"""What must come through a translation unharmed, and stand-ins that keep it safe on the way.

Addresses, placeholders, code, emoji, amounts of money, temperatures and numbers mean the same in every
language, but a model may spoil what it never saw in training. `missing` tells what was spoilt; `stand_ins`
and `substitute` let a model translate a text in which something it does know stands in the place of each
item.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, count, pairwise
from typing import Literal

import regex

from regard.text.normalize import Normalized
from regard.text.scripts import EAST_ASIAN
from regard.text.words import Span

# Korean and Japanese join their particles to an address or a placeholder (%s님), so East Asian letters around
# such things are no part of them.
_LETTER = rf"[\p{{L}}\p{{M}}_--{EAST_ASIAN}]"
_SIGN = rf"[{_LETTER}\p{{N}}]"

_NAME = rf"[A-Za-z_][0-9A-Za-z_]{{0,63}}+(?!{_LETTER})"
_FILE = rf"\.{{0,2}}[{_SIGN}\-]{{1,64}}+(?:\.[{_SIGN}\-]{{1,64}}+){{0,4}}+"
_ENDINGS = (
    "[ch]|bat|cfg|cpp|css|csv|dll|docx|exe|gif|gz|html?|ini|java|jpe?g|js|json|lua|md|mp3|odt|pdf|php|png|pptx?|py|rb|rs|sh"
    "|sql|svg|tar|toml|ts|tsv|txt|xlsx?|xml|ya?ml|zip"
)
_NUMBER = r"""
      (?: \p{Nd}{1,3}+ (?: [\ \u00a0\u2009\u202f'’] \p{Nd}{3} (?!\p{Nd}) )++ (?: [.,]\p{Nd}++ )?+
        | [vV]? \p{Nd}++ (?: [.,:/\u066b\u066c\uff0c\uff0e\uff1a] \p{Nd}++ )*+ )
"""

# Flags, width, precision and size in a placeholder of printf.
_LAYOUT = r"[#0+\-]? (?:\d{1,3}|\*)? (?:\.(?:\d{1,3}|\*)?)? (?:hh?|ll?|[zjt])?"
_SHOWN = rf"[\S--{EAST_ASIAN}]"
# A word with one of these is code: handler={run}, a[0], x==y, ->next.
_EXPRESSION = r"[\w)\]}][\[{=\\|^] | [=\\|^][\w\"'{(\[] | == | => | -> | [<>!]="

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
    | (?P<code>
          (?<! [^\s("'«`] ) (?= {_SHOWN}{{0,64}}? (?: {_EXPRESSION} ) )
          (?![("'«`]) {_SHOWN}{{1,80}}? (?: \( {_SHOWN}{{0,30}}? \) | "{_SHOWN}{{0,30}}?" )?
          (?= [)."'»,;:!?`]{{0,4}} (?: \s | \Z | [{EAST_ASIAN}] ) )
      )
    | (?P<placeholder>
          %\(\w{{1,64}}+\) {_LAYOUT} [diouxXeEfFgGcrsa]
        | %\d{{1,2}}\$ {_LAYOUT} [diouxXeEfFgGcsS@]
        | (?<![\p{{N}}%]) % {_LAYOUT} [diouxXfgcrs@] (?!{_SIGN}) (?:%%)?
        | \{{\{{ \s? [\w.\-]{{1,64}}+ \s? \}}\}}
        | [$%#]? \{{ [\w.\[\]\-]{{1,64}}+ (?: [!:] [^\s{{}}]{{1,32}}+ )? \}} | \{{\}}
        | \$\( [A-Za-z_]\w{{0,63}}+ \)
      )
    | (?P<code>
          (?: :[a-z]{{1,16}}+: ){{0,2}}+ (?: `` (?!`) [^`\n]{{1,80}}+ `` | ` (?!`) [^`\n]{{1,80}}+ ` )
        | </? [A-Za-z][\w:.\-]{{0,31}}+
          (?: \s [\w:\-]{{1,32}}+ = (?: "[^"<>]{{0,200}}+" | '[^'<>]{{0,200}}+' ) ){{0,8}}+ \s? /?>
        | (?<![\w\-]) --[a-z0-9]{{2,32}}+ (?: -[a-z0-9]{{1,32}}+ ){{0,8}}+ (?![\w\-])
        | \${_NAME}
        | (?<![\w.\\/]) (?: [A-Z]:\\ | ~/ | \.{{0,2}}/ (?= [\w.\-]{{1,64}}+/ ) )
          {_FILE} (?: [/\\]{_FILE} ){{0,16}}+ /?+
        | (?<![\w.]) (?= [\w.]{{0,64}}? (?: [A-Za-z0-9]_[A-Za-z0-9] | __[a-z] | [a-z]{{2}}[A-Z][a-z] ) )
          {_NAME} (?: \.{_NAME} ){{0,8}}+ (?: \(\) )?+
        | (?<![\w.]) {_NAME} (?: \.{_NAME} ){{0,8}}+ \(\)
        | (?<![\w.\-]) (?! [vV][0-9] ) (?= [A-Z]{{1,8}}+-?[0-9] | [A-Za-z]{{1,32}}+[0-9] | 0x[0-9] )
          [0-9A-Za-z]{{1,32}}+ (?: [.\-][0-9A-Za-z]{{1,32}}+ ){{0,4}}+ (?!{_LETTER})
        | (?<![\w.\-]) [{_SIGN}\-]{{0,64}}+ (?: \.[{_SIGN}\-]{{1,64}}+ ){{1,4}}+ (?<= \.(?:{_ENDINGS}) )
      )
    | (?P<emoji>
          \p{{Regional_Indicator}}{{2}} | [0-9\#*]\ufe0f?\u20e3
        | (?= [\p{{Emoji_Presentation}}[\p{{Extended_Pictographic}}--[\0-\u25ff\u3000-\u32ff]]]
            | \p{{Extended_Pictographic}}\ufe0f ) \X
      )
    | (?P<amount>
          \p{{Sc}} [\ \u00a0\u202f]? {_NUMBER}
        | {_NUMBER} [\ \u00a0\u202f]? (?: \p{{Sc}} | ° (?: \s? [CF] (?!{_SIGN}) )? )
      )
    | (?P<number> {_NUMBER} )
    | {_LETTER}++ (?: \p{{Nd}}++ (?: [.,:/]\p{{Nd}}++ )*+ )?+
    """,
    regex.VERBOSE | regex.VERSION1,
)
_DIGITS = regex.compile(r"\p{Nd}+")
# What every item has; most sentences have nothing of it.
_PERHAPS = regex.compile(r"[^\p{L}\p{M}\s.,;:!?'’\"«»()\-] | [a-z]{2}[A-Z] | -- | \(\) | \.\w", regex.VERBOSE)

# 35억 is 3.5 billion and 12万 is 120,000: with these in either text the digits tell nothing.
_MYRIAD = regex.compile(
    r"""[\p{Nd}一二三四五六七八九十百千两兩数數几幾何]\s?[万萬亿億兆千百]
      | [\p{Nd}일이삼사오육칠팔구십백천수몇]\s?[만억조] | \p{Nd}\s?[천백]""",
    regex.VERBOSE,
)
_MAX_SPELT = 12
_MARK = "|"  # between digits that must not stand together
_UNITS = {
    "€": ("euro", "유로"),
    "$": ("dollar", "달러"),
    "£": ("pound", "livre", "파운드"),
    "¥": ("yen", "엔"),
    "₩": ("won", "원"),
    "°": ("degree", "degré", "도"),
}


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a text that means the same in every language."""

    span: Span
    text: str
    kind: Literal["address", "placeholder", "code", "emoji", "amount", "number"]


def items(text: str) -> list[Item]:
    """Return the items of the text in order; they do not overlap."""
    if not _PERHAPS.search(text):
        return []
    return [
        Item(match.span(), match.group(), match.lastgroup)
        for match in _ITEM.finditer(text)
        if match.lastgroup is not None
    ]


def written(source: Normalized) -> str:
    """Return a text as its items are found in it: normalised, but with the backticks it was written with."""
    if "`" not in source.original:
        return source.text
    return "".join(
        "`" if source.original[start:end] == "`" else character
        for character, (start, end) in zip(source.text, source.origin, strict=True)
    )


def missing(source: str, target: str) -> list[Item]:
    """Return the items of the source that the target does not hold as often as the source does.

    Numbers are equal if their digits are, in whatever script and however grouped: 1,992.50 is 1 992,50
    and 14:30 is 14 h 30, but 125 is not 12.5. A whole number up to twelve may have become a word, unless the
    target has digits that no other number of the source accounts for. The unit of an amount may be a word.
    """
    held = Counter(item.text for item in items(target) if item.kind not in ("number", "amount"))
    runs = [_ascii(run) for run in _DIGITS.findall(target)]
    counted_otherwise = _MYRIAD.search(target) is not None or _MYRIAD.search(source) is not None
    lost = []
    spelt: list[Item] = []
    num_digits = sum(map(len, runs))
    for item in items(source):
        key = item.text
        if item.kind in ("number", "amount"):
            key = _digits(item.text)
            is_small = key.isascii() and len(key) <= 2 and int(key) <= _MAX_SPELT
            may_be_spelt = item.text.isdecimal() and is_small
            if counted_otherwise:
                continue
            if key not in held:
                held[key] = _count(key, runs)
            if may_be_spelt and held[key] == 0:
                spelt.append(item)
                continue
            num_digits -= len(key.replace(_MARK, ""))
        if held[key] > 0 and (item.kind != "amount" or _has_unit(target, item.text)):
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

    A number stands for a number and for an amount. What stands for the other kinds, which some models copy
    and others do not, depends on the attempt, which counts from 0 to NUM_ATTEMPTS - 1.
    """
    pools = {pool: _endless(pool, attempt) for pool in (_SHORT_NUMBERS, *_ATTEMPTS)}
    taken: dict[str, None] = {}
    for item in items:
        pool = _ATTEMPTS[attempt]
        if item.kind in ("number", "amount"):
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


def _has_unit(text: str, amount: str) -> bool:
    """Tell whether a text has the unit of an amount, a currency or degrees, as a sign or as a word."""
    sign = next(sign for sign in amount if sign == "°" or unicodedata.category(sign) == "Sc")
    return sign in text or any(word in text.lower() for word in _UNITS.get(sign, ()))


def _digits(number: str) -> str:
    """Return the digits of a number, with a mark where something must stand between two of them.

    A point, comma or space before three digits may separate thousands, and may be left out.
    """
    parts = list(_DIGITS.finditer(number))
    pieces = [_ascii(part[0]) for part in parts[:1]]
    for before, part in pairwise(parts):
        may_be_thousands = len(part[0]) == 3 and number[before.end()] not in ":/\uff1a"
        pieces.append(("" if may_be_thousands else _MARK) + _ascii(part[0]))
    return "".join(pieces)


def _count(key: str, runs: Sequence[str]) -> int:
    """Return how many times the key is spelt by one or more whole runs of digits that follow each other."""
    digits, parts = "".join(runs), key.split(_MARK)
    edges = {0, *accumulate(map(len, runs))}
    inner = [*accumulate(map(len, parts))]
    wanted = "".join(parts)
    times, place = 0, digits.find(wanted)
    while place >= 0:
        whole = place in edges and all(place + one in edges for one in inner)
        times += whole
        place = digits.find(wanted, place + (len(wanted) if whole else 1))
    return times
