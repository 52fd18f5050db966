"""The sentences of a text, and where to cut a sentence that is too long for the model.

Clause ends are the best places to cut, then the spaces between words. Whether a full stop ends a sentence is
decided by what stands around it, for any language at once. A wrong guess never costs a character.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise

import regex

from regard.text.scripts import EAST_ASIAN
from regard.text.words import Span

_CLOSING = r"""["'”’“‘»›«‹)\]}」』）】》〉]"""  # German closes with “ ‘ « ‹
_CLOSING_WIDE = r"""["'”’)\]」』）】》〉]"""  # Chinese opens with “ ‘
_WHOLE = r"(?![\p{GCB=Extend}\p{GCB=SpacingMark}\p{GCB=ZWJ}])"  # no mark follows that belongs to the sign

# Each pattern starts where its run of signs starts and never gives a sign back: thousands of dots take
# one step each. What the sentence goes on with (`next`) helps to judge a full stop.
_STOP = regex.compile(
    rf"""
      (?<![。！？｡]) [。！？｡]++ (?! {_CLOSING_WIDE}++ (?:と|って) ) {_CLOSING_WIDE}*+ {_WHOLE}  # 。」と
    | (?<={EAST_ASIAN}) (?: [!?]++ | \.(?!\.) ) (?={EAST_ASIAN})  # 你好吗?我很好
    | (?<![.!?…؟۔।]) (?P<signs> [.!?…؟۔।]++ )
      (?P<closing> (?: {_CLOSING} | \s [»›] (?=\s|\Z) )*+ ) (?= \s++ (?P<next> \S ) | \s*+ \Z )
    """,
    regex.VERBOSE | regex.VERSION1,
)
_CLAUSE = regex.compile(
    rf"""
      (?<![、，；：]) [、，；：]++ {_CLOSING_WIDE}*+ {_WHOLE} | (?<![—…]) (?: —— | …… ) {_WHOLE}
    | (?<![,;:،؛]) [,;:،؛]++ {_CLOSING}*+ (?=\s)
    | (?<=\w\s?) [—–]++ (?=\s)  # not the dash that opens a line of dialogue
    """,
    regex.VERBOSE | regex.VERSION1,
)
_CLUSTER = regex.compile(r"\X")
# Of `re`, not `regex`: what it holds for white space is what `str.isspace` does.
_WORD = re.compile(r"\S+")

# Full stops that do not end a sentence though a capital follows. One letter is an initial or "z. B.";
# letters with stops between them are "e.g", "J.-C"; one or two digits are a German ordinal ("am 3. Mai")
# or the number of a list. "etc." and "usw." are left out: before a capital they do end a sentence.
_ABBREVIATION = regex.compile(
    r"""
      [\p{Lu}\p{Ll}] | (?: \p{L}{1,2} \. -? )+ \p{L}{1,2} | \p{Nd}{1,2}
    | Mr | Mrs | Ms | Dr | Drs | Prof | St | Ste | Mt | MM | Mme | Mlle | Mgr | Hr | Fr | Hrn
    | Col | Gen | Lt | Sgt | Capt | Cmdr | Adm | Sen | Rep | Gov | Rev | Hon | Pres
    | vs | cf | Cf | ca | approx | env | av | apr | ex | bzw | vgl | Vgl | ggf | evtl | inkl | exkl | sog
    | Mio | Mrd | Tel | Str | Dipl | Ing | geb | gest
    """,
    regex.VERBOSE | regex.VERSION1,
)
_BEFORE_A_NUMBER = regex.compile("(?i)nos?|nrn?|vol|figs?|pp|arts?|chap|ch|kap|sec|abs|abb|bd|tab|eq")
_LAST_WORD = regex.compile(r"""[^\s"'’“„«(\[]*\Z""")
_MAX_ABBREVIATION = 16

# The first guess at how many characters fit. A text no longer than this takes one look.
_WINDOW = 256


def sentences(text: str) -> list[Span]:
    """Return the sentences of the text in order; between them there is at most white space."""
    spans, start = [], _skip_white(text, 0)
    for end in _boundaries(text)[0]:
        spans.append((start, end))
        start = _skip_white(text, end)
    return spans


def split(text: str, fits: Callable[[str], bool]) -> list[Span]:
    """Return spans that each fit and together hold all of the text but white space.

    Each takes in as much as fits of what follows, up to the end of a sentence; if not one sentence fits,
    up to the end of a clause; then of a word; and a word that does not fit is cut between characters as
    a reader sees them. One such character that does not fit even alone is a span all the same.

    `fits` should hold for the shorter of two texts if it holds for the longer: then few calls are needed.
    Where it does not, spans may come out shorter, but they fit.
    """
    boundaries = _boundaries(text)
    length = len(text.rstrip())
    spans: list[Span] = []
    start, width = _skip_white(text, 0), _WINDOW
    while start < length:
        # No look at the text goes far beyond what fits, or a long text without stops would be looked
        # at from every cut to its end.
        limit = min(start + width, length)
        if fits(text[start:limit]):
            if limit == length:
                spans.append((start, length))
                break
            width *= 2
            continue
        end = _best_end(text, start, limit, boundaries, fits)
        spans.append((start, end))
        width = max(_WINDOW, 2 * (end - start))
        start = _skip_white(text, end)
    return spans


def _best_end(
    text: str, start: int, limit: int, boundaries: Sequence[Sequence[int]], fits: Callable[[str], bool]
) -> int:
    """Return where the span from this start ends, given that it does not reach the limit."""
    for ends in boundaries:
        end = _furthest(text, start, ends[bisect_right(ends, start) : bisect_right(ends, limit)], fits)
        if end is not None:
            return end
    words = boundaries[-1]
    word_end = words[bisect_right(words, start)]
    clusters = [start + match.end() for match in _CLUSTER.finditer(text[start : min(limit, word_end)])]
    if len(clusters) == 1:  # of which the limit may have hidden a part
        return start + int(_CLUSTER.match(text[start:word_end]).end())
    # The last one may be cut by the limit; and if it is not, the word ends with it and does not fit.
    return _furthest(text, start, clusters[:-1], fits) or clusters[0]


def _furthest(text: str, start: int, ends: Sequence[int], fits: Callable[[str], bool]) -> int | None:
    """Return the last of the ends up to which the text was seen to fit; None if not even the first does."""
    best = None
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        if fits(text[start : ends[middle]]):
            best, low = ends[middle], middle + 1
        else:
            high = middle
    return best


def _boundaries(text: str) -> list[list[int]]:
    """Return, best kind first, where the sentences, clauses and words of the text end."""
    words = [match.span() for match in _WORD.finditer(text)]
    stops = [end for _, end in words[-1:]]
    clauses = [int(match.end()) for match in _CLAUSE.finditer(text)]
    for match in _STOP.finditer(text):
        if not _is_abbreviation(text, match):
            (clauses if _goes_on(match) else stops).append(match.end())
    for (_, end), (start, _) in pairwise(words):
        num_breaks = text.count("\n", end, start)
        if num_breaks:  # a blank line ends a sentence: headings have no full stop
            (clauses if num_breaks == 1 else stops).append(end)
    return [sorted(set(stops)), sorted(set(clauses)), [end for _, end in words]]


def _is_abbreviation(text: str, stop: regex.Match[str]) -> bool:
    """Tell whether the full stop belongs to the word before it."""
    if stop["signs"] != "." or stop["closing"] or stop["next"] is None:
        return False
    before = text[max(0, stop.start() - _MAX_ABBREVIATION) : stop.start()]
    word = _LAST_WORD.search(before).group()
    known = _ABBREVIATION.fullmatch(word) is not None
    return known or (stop["next"].isdecimal() and _BEFORE_A_NUMBER.fullmatch(word) is not None)


def _goes_on(stop: regex.Match[str]) -> bool:
    """Tell whether the sentence goes on after its signs: "Well... yes", "Why?" he asked."""
    if stop["next"] is None or not stop["next"].islower():
        return False
    # Who writes without capitals still means ! and ? to end something.
    return stop["signs"][-1] not in "!?" or stop["closing"] != ""


def _skip_white(text: str, place: int) -> int:
    """Return the place of the next character that is not white space, or the end."""
    word = _WORD.search(text, place)
    return word.start() if word else len(text)
