"""Tags put into a translation: each where the words it covered went, by the word alignment.

A pair of tags covers the stretch of target words with the most attention on its source words, less the
attention on others. An empty tag stands at the gap that parts best what came from before and from behind it.
Tags within a pair stay within it and two pairs never cross, so the nesting is that of the source.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from regard.contract import Floats
from regard.text.markup import Marked, Tag
from regard.text.words import Span
from regard.translate.result import Translation

# What attention on other words counts against a stretch; benchmarks/markup.py measures it.
_AGAINST = 0.6
_LEAST = -0.4  # what a word must be worth to be in a pair alone
_NEAR = 2.0  # what the two words beside an empty tag count, next to one of all others


@dataclass(slots=True, eq=False)
class _Placed:
    """A tag and where it goes, in characters of the translation."""

    tag: Tag
    start: int
    end: int
    order: int
    children: list["_Placed"] = field(default_factory=list)


def with_tags(marked: Marked, translation: Translation) -> Translation:
    """Return the translation with the tags of its source, each once, flagged if one has no partner."""
    placer = _Placer(marked, translation)
    whole = (0, len(translation.text))
    placed = placer.place(marked.tags, whole)
    text = marked.before + _Writer(translation.text).write(placed, whole) + marked.after
    flags = (*translation.flags, "tags") if marked.is_broken else translation.flags
    return replace(translation, marked=text, flags=flags)


class _Placer:
    def __init__(self, marked: Marked, translation: Translation) -> None:
        self.source, self.text = marked.text, translation.text
        self.translation = translation
        self.source_words, self.words = translation.source_words, translation.words

    def place(self, tags: Sequence[Tag], room: Span) -> list[_Placed]:
        """Return where the tags go within the room; the surest pairs choose first."""
        found: dict[int, _Placed] = {}
        free = [room]
        ranked = sorted(
            ((self._stretch(tag, [room]), number) for number, tag in enumerate(tags) if tag.end > tag.start),
            key=lambda one: (-one[0][0], one[1]),
        )
        for _, number in ranked:
            tag = tags[number]
            _, (start, end) = self._stretch(tag, free)
            if start == end:
                start = end = self._gap((tag.start + tag.end) // 2, free)
            found[number] = _Placed(tag, start, end, number)
            free = _without(free, (start, end))
        for number, tag in enumerate(tags):
            if number not in found:
                place = self._gap(tag.start, free)
                found[number] = _Placed(tag, place, place, number)
        for one in found.values():
            one.children = self.place(one.tag.children, (one.start, one.end))
        return sorted(found.values(), key=lambda one: (one.start, one.end, one.order))

    def _stretch(self, tag: Tag, free: Sequence[Span]) -> tuple[float, Span]:
        """Return the best stretch of the free characters for a tag that covers words, and how good it is."""
        nowhere = (-1.0, (free[0][0], free[0][0]))
        if tag.kept:
            place = self.text.find(tag.kept)
            while place >= 0 and not _inside((place, place + len(tag.kept)), free):
                place = self.text.find(tag.kept, place + 1)
            return nowhere if place < 0 else (np.inf, (place, place + len(tag.kept)))
        if (sentences := self._sentences(tag)) is not None and _inside(sentences, free):
            return np.inf, sentences
        covered = self._covered(tag)
        if not covered.any():
            return nowhere
        gain_T = self._gain(covered)
        best = nowhere
        for room in free:
            inside = [n for n, word in enumerate(self.words) if room[0] <= word[0] and word[1] <= room[1]]
            if inside:
                score, first, last = _best_run(gain_T[inside[0] : inside[-1] + 1])
                if score > max(best[0], 0.0):
                    span = (self.words[inside[0] + first][0], self.words[inside[0] + last][1])
                    best = (score, self._within_words(tag, span))
        return self._likeliest(gain_T, free) if best is nowhere else best

    def _likeliest(self, gain_T: Floats, free: Sequence[Span]) -> tuple[float, Span]:
        """Return the word that looked most at what a tag covers: a pair around nothing would be lost."""
        some = [
            (float(gain), word) for gain, word in zip(gain_T, self.words, strict=True) if _inside(word, free)
        ]
        return max([one for one in some if one[0] > _LEAST], default=(-1.0, (free[0][0], free[0][0])))

    def _sentences(self, tag: Tag) -> Span | None:
        """Return the characters of the sentences that a tag covers, None if it covers a part of one."""
        parts = self.translation.parts
        inner = self.source[tag.start : tag.end]
        start, end = tag.start + len(inner) - len(inner.lstrip()), tag.start + len(inner.rstrip())
        covered = [part for part in parts if start <= part.source_span[0] and part.source_span[1] <= end]
        touched = [part for part in parts if part.source_span[0] < end and start < part.source_span[1]]
        if not covered or len(covered) < len(touched):
            return None
        return min(part.span[0] for part in covered), max(part.span[1] for part in covered)

    def _covered(self, tag: Tag) -> Floats:
        """Return 1 for each source word of which a tag covers half or more, or the most where it is none."""
        shared = np.zeros(len(self.source_words), np.float32)
        for number, (start, end) in enumerate(self.source_words):
            shared[number] = max(0, min(end, tag.end) - max(start, tag.start)) / (end - start)
        if not shared.any():
            return shared
        return (shared >= min(0.5, float(shared.max()))).astype(np.float32)

    def _gain(self, covered: Floats) -> Floats:
        """Return for each target word what including it is worth."""
        gain_T = np.zeros(len(self.words), np.float32)
        if not self.translation.blocks:  # a model without attention: the same relative position
            places = (np.arange(len(gain_T)) + 0.5) / max(1, len(gain_T))
            seen = np.flatnonzero(covered)
            first, last = seen[0] / len(covered), (seen[-1] + 1) / len(covered)
            return np.where((first <= places) & (places <= last), 1.0, -1.0).astype(np.float32)
        for _, rows, columns, weights_TS in self.translation.blocks:
            inside_T = weights_TS @ covered[columns]
            gain_T[rows] += inside_T - _AGAINST * (weights_TS.sum(axis=1) - inside_T)
        return gain_T

    def _within_words(self, tag: Tag, span: Span) -> Span:
        """Return the span cut within its words where the tag cuts words that came through as they are."""
        start, end = span
        for first, last in self.source_words:
            if (
                first < tag.start < last
                and self.text[start : start + last - first] == self.source[first:last]
            ):
                start += tag.start - first
            if first < tag.end < last and self.text[end - (last - first) : end] == self.source[first:last]:
                end -= last - tag.end
        return (start, end) if start < end else span

    def _gap(self, place: int, free: Sequence[Span]) -> int:
        """Return the best place for a tag that stands at a place of the source."""
        gaps = [
            gap
            for gap in range(len(self.words) + 1)
            if any(start <= self._at(gap)[1] and self._at(gap)[0] <= end for start, end in free)
        ]
        if not gaps:
            return free[-1][1]
        if not self.source[:place].strip():
            gap = gaps[0]
        elif not self.source[place:].strip():
            gap = gaps[-1]
        else:
            worth = self._worth(place)
            gap = max(gaps, key=lambda n: (worth[n], n))
        before, behind = self._at(gap)
        # A tag tight behind a word stays there; the writer puts the white space right.
        for start, end in free:
            for candidate in (behind, before):
                if start <= candidate <= end:
                    return candidate
        return max(free[0][0], min(behind, free[0][1]))

    def _at(self, gap: int) -> Span:
        """Return the end of the word before a gap and the start of the one behind it."""
        before = self.words[gap - 1][1] if gap else 0
        return before, self.words[gap][0] if gap < len(self.words) else len(self.text)

    def _worth(self, place: int) -> Floats:
        """Return how good each gap is: words from before the place to its left, the others to its right."""
        worth = np.zeros(len(self.words) + 1, np.float32)
        starts = np.array([start for start, _ in self.source_words])
        first = int(np.searchsorted(starts, place))
        if not self.translation.blocks:
            share = first / max(1, len(starts))
            gaps = np.arange(len(worth)) / max(1, len(self.words))
            return (-np.abs(gaps - share)).astype(np.float32)
        left_T = np.zeros(len(self.words), np.float32)
        right_T = np.zeros(len(self.words), np.float32)
        for _, rows, columns, weights_TS in self.translation.blocks:
            weight_S = np.ones(len(starts), np.float32)
            weight_S[max(0, first - 1) : first + 1] += _NEAR
            before_S = (np.arange(len(starts)) < first) * weight_S
            left_T[rows] += weights_TS @ before_S[columns]
            right_T[rows] += weights_TS @ (weight_S - before_S)[columns]
        worth[1:] += np.cumsum(left_T)
        worth[:-1] += np.cumsum(right_T[::-1])[::-1]
        return worth


def _best_run(gain: Floats) -> tuple[float, int, int]:
    """Return the run with the greatest sum, the shortest of those: its sum, its first and its last place."""
    best, best_first, best_last = 0.0, 0, -1
    total, first = 0.0, 0
    for place, value in enumerate(gain.tolist()):
        if total <= 0:
            total, first = 0.0, place
        total += value
        if total > best + 1e-6:
            best, best_first, best_last = total, first, place
    return best, best_first, best_last


def _inside(span: Span, rooms: Sequence[Span]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in rooms)


def _without(rooms: Sequence[Span], taken: Span) -> list[Span]:
    """Return what is left of the rooms; a place between two is in both."""
    left = []
    for start, end in rooms:
        if taken[0] < end and start < taken[1] and taken[0] < taken[1]:
            left += [(start, taken[0]), (taken[1], end)]
        else:
            left.append((start, end))
    return left


class _Writer:
    """Writes the text with its tags, and puts the white space around tags as it was in the source."""

    def __init__(self, text: str) -> None:
        self.text = text

    def write(self, placed: Sequence[_Placed], room: Span) -> str:
        """Return the text of the room with the tags in it."""
        place, pieces = room[0], []
        for one in placed:
            tag, before = one.tag, self.text[place : one.start]
            is_alone = not tag.is_pair and not tag.kept
            is_tight = tag.is_block or (is_alone and not tag.spaced[0])
            kept = before.rstrip() if is_tight else before
            inner = tag.opening
            if tag.is_pair:
                inner += self.write(one.children, (one.start, one.end)) + tag.closing
            pieces += [_escaped(kept), inner]
            place = one.end
            behind = self.text[place : room[1]]
            if tag.is_block or (is_alone and not tag.spaced[1]):
                place = room[1] - len(behind.lstrip())
            elif is_alone and behind[:1].strip() and (kept != before or behind[0].isalnum()):
                pieces.append(" ")
        return "".join([*pieces, _escaped(self.text[place : room[1]])])


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)
