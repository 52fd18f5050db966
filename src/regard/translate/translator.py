"""Text in, translations out: the one road that users, servers and validation take.

A text is cleaned, cut if it is too long for the model, and searched in a batch with others of its length.
What hung on a hair is searched again alone, so that the batch makes no difference. What looks wrong is tried
again in other ways. At last the segments of each text are joined.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.alignment.reading import USUAL_READING, Reading
from regard.contract import Engine
from regard.errors import ConfigError, ModelFileError, SourceError
from regard.modelfile import ModelFile, load_model
from regard.options.parse import parse
from regard.options.search import BeamOptions, SampleOptions
from regard.runtime.build import build_engine
from regard.search.ensemble import Ensemble
from regard.search.task import DOUBT, Found
from regard.text.normalize import Normalized, trace_normalize
from regard.text.protect import missing
from regard.text.segment import Ids
from regard.text.split import split
from regard.text.tokenizer import TokenizerPair
from regard.text.words import Span, match_pieces, words
from regard.translate.decode import Decoder, Search, mended
from regard.translate.executor import map_batches
from regard.translate.guard import Said, hardly_seen, judge
from regard.translate.result import Alternative, Part, Translation
from regard.translate.retry import Attempt, Copied, attempts, in_capitals, put_back
from regard.vocabulary import UNK

# Source tokens of all rows decoded together; a sentence has as many rows as the beam is wide.
_BATCH_TOKENS = 4096
# Of all rows of all batches: so many take longer than starting processes.
_MUCH_TOKENS = 10_000
# Texts read before the first is translated: enough for batches of like lengths, few enough for any memory.
_CHUNK_TEXTS = 2000
_CHUNK_CHARACTERS = 400_000
_UNSPACED = {"zh", "ja", "th", "lo", "km", "my"}  # languages written without spaces between sentences
_FORCE_TOKENS = 1024  # of all rows forced together: the scores of all words for each are kept at once


class Translator:
    """A model, of whatever kind and engine, with its tokenizers."""

    def __init__(
        self,
        engine: Engine[Any],
        tokenizers: TokenizerPair,
        reading: Reading | None = None,
        split_above: int | None = None,
        target_language: str | None = None,
        num_workers: int | None = None,
    ) -> None:
        """Make a translator that splits sources of more than `split_above` tokens.

        Several workers translate several batches at once; None: as many as there are processors.
        """
        self.engine = engine
        self.tokenizers = tokenizers
        self.decoder = Decoder(engine, tokenizers, reading or USUAL_READING)
        self.joint = "" if (target_language or "")[:2].lower() in _UNSPACED else " "
        self.num_workers = num_workers
        readable = None if engine.max_tokens is None else engine.max_tokens - 1
        self.max_source = min((one for one in (split_above, readable) if one is not None), default=None)

    @classmethod
    def of(cls, *models: ModelFile) -> "Translator":
        """Return the translator of a model, or of several together, computing in NumPy."""
        first = models[0]
        if any(model.tokenizers.sha256 != first.tokenizers.sha256 for model in models):
            raise ModelFileError(
                "models of different vocabularies cannot translate together; train them on the same files, "
                "with other seeds"
            )
        engines = [build_engine(model.options, model.weights) for model in models]
        engine = engines[0] if len(engines) == 1 else Ensemble(engines)
        return cls(engine, first.tokenizers, first.reading, first.split_above, first.target_language)

    @classmethod
    def open(cls, *paths: Path) -> "Translator":
        """Return the translator of a model file, or of several together."""
        return cls.of(*map(load_model, paths))

    def translate(
        self,
        texts: Sequence[str],
        *,
        num_best: int = 1,
        prefixes: Sequence[str] | None = None,
        guard: bool = True,
        on_progress: Callable[[int], None] | None = None,
        **search: Any,
    ) -> list[Translation]:
        """Return one translation for each text, in their order; that of a blank text is blank.

        What a text becomes does not depend on the others. `search` takes the options of that section, such
        as `beam_size=1` or `kind="sample", temperature=0.7`. `num_best` asks for alternatives, `prefixes` for
        translations that begin so. The guard tries again what looks wrong; without it all is left as it is.
        `on_progress` is told how many texts are done.
        """
        if isinstance(texts, str) or isinstance(prefixes, str):
            raise TypeError("translate() takes a list of texts; put the one text into brackets")
        if prefixes is not None and len(prefixes) != len(texts):
            raise ConfigError(f"{len(texts)} texts and {len(prefixes)} prefixes; give one for each text")
        options = parse("search", search)
        if num_best < 1 or (isinstance(options, BeamOptions) and num_best > options.beam_size):
            raise ConfigError(f"num_best = {num_best} is not valid; ask for 1 up to the size of the beam")
        job = _Job(self, options, num_best, on_progress or (lambda num_done: None))
        return job.run(texts, prefixes, guard and not isinstance(options, SampleOptions))

    def stream(self, texts: Iterable[str], **how: Any) -> Iterator[Translation]:
        """Yield one translation for each text, in their order, however many there are; see `translate`.

        It takes no prefixes and no `on_progress`.
        """
        if isinstance(texts, str):
            raise TypeError("stream() takes many texts; put the one text into brackets")
        if refused := {"prefixes", "on_progress"} & how.keys():
            raise TypeError(f"stream() takes no {' and no '.join(sorted(refused))}")
        left = iter(texts)
        while chunk := _chunk(left):
            yield from self.translate(chunk, **how)

    def force(
        self, sources: Sequence[str], targets: Sequence[str], *, numbers: Sequence[int] | None = None
    ) -> list[Translation]:
        """Return given translations as if the model had said them, with how likely and from where each is.

        `numbers` are those of the pairs in the message of an error; without it they are counted from 1.
        """
        if isinstance(sources, str) or isinstance(targets, str):
            raise TypeError("force() takes two lists of texts; put single texts into brackets")
        if len(sources) != len(targets):
            raise SourceError(f"{len(sources)} sources and {len(targets)} translations; give one for each")
        read = [trace_normalize(text, fold_quotes=True) for text in sources]
        source_ids = self.tokenizers.source.encode_batch([one.text for one in read])
        target_ids = self.tokenizers.target.encode_batch(list(map(self.tokenizers.clean_target, targets)))
        lengths = [
            max(len(source), len(target)) for source, target in zip(source_ids, target_ids, strict=True)
        ]
        counted = range(1, len(sources) + 1) if numbers is None else numbers
        for number, source, length in zip(counted, source_ids, lengths, strict=True):
            if not len(source):
                raise SourceError(f"source {number} is blank; leave such pairs out")
            if self.engine.max_tokens is not None and length >= self.engine.max_tokens:
                raise SourceError(
                    f"pair {number} has {length + 1:,} tokens and this model reads no more than "
                    f"{self.engine.max_tokens:,}; shorten it"
                )
        forced: dict[int, Translation] = {}
        for places in _batches(lengths, _FORCE_TOKENS):
            said = self.decoder.force([source_ids[n] for n in places], [target_ids[n] for n in places])
            for number, one in zip(places, said, strict=True):
                text, part = self.decoder.describe(read[number], source_ids[number], one, [])
                forced[number] = Translation(sources[number], text, one.score, one.log_prob, (part,))
        return [forced[number] for number in range(len(read))]


@dataclass(frozen=True, slots=True)
class _Segment:
    """A text, or as much of one as the model can read; its characters know their places in the text."""

    number: int  # of the text
    source: Normalized


@dataclass(frozen=True, slots=True)
class _Request:
    """A stretch of source to be searched, for an attempt at a segment."""

    source: Normalized
    way: Attempt
    start: NDArray[np.int64] | None  # what the translation must begin with


@dataclass(frozen=True, slots=True)
class _Outcome:
    """A stretch or a whole segment, translated in one of the ways there are."""

    text: str
    parts: tuple[Part, ...]
    score: float
    log_prob: float
    alternatives: tuple[Alternative, ...] = ()
    wrong: tuple[str, ...] = ()  # what looks wrong with it
    grave: bool = False  # whether another way is worth its time
    notes: tuple[str, ...] = ()  # how it came about

    @property
    def rank(self) -> tuple[bool, int, float]:
        """The higher the better: nothing lost, fewer things wrong, then the score."""
        return "lost" not in self.wrong, -len(self.wrong), self.score


class _Job:
    """One call of `translate`."""

    def __init__(
        self, translator: Translator, search: Search, num_best: int, on_progress: Callable[[int], None]
    ) -> None:
        self.translator = translator
        self.decoder = translator.decoder
        self.tokenizers = translator.tokenizers
        self.options = search
        self.num_best = num_best
        self.on_progress = on_progress

    def run(self, texts: Sequence[str], prefixes: Sequence[str] | None, try_again: bool) -> list[Translation]:
        """Return a translation of each text."""
        segments = list(self._segments(texts))
        left = Counter(segment.number for segment in segments)

        def count(places: Iterable[int]) -> None:
            left.subtract(segments[place].number for place in places)
            self.on_progress(len(texts) - sum(map(bool, left.values())))

        count([])

        starts = None if prefixes is None else self._starts(segments, prefixes)
        first = [
            _Request(segment.source, Attempt((segment.source,)), None if starts is None else starts[place])
            for place, segment in enumerate(segments)
        ]
        outcomes = [outcome for outcome in self._ask(first, count) if outcome]
        if try_again and prefixes is None:
            self._try_again(segments, outcomes)
        by_text: list[list[_Outcome]] = [[] for _ in texts]
        for segment, outcome in zip(segments, outcomes, strict=True):
            by_text[segment.number].append(outcome)
        return [self._translation(text, found) for text, found in zip(texts, by_text, strict=True)]

    def _segments(self, texts: Sequence[str]) -> Iterator[_Segment]:
        """Yield each text that is not blank, cut if it is too long."""
        read = [trace_normalize(text, fold_quotes=True) for text in texts]
        encode = self.tokenizers.source.encode_batch
        longest = self.translator.max_source or math.inf
        for number, (one, ids) in enumerate(zip(read, encode([one.text for one in read]), strict=True)):
            if len(ids) > longest:
                for start, end in split(one.text, lambda text: len(encode([text])[0]) <= longest):
                    yield _Segment(
                        number, Normalized(one.text[start:end], one.original, one.origin[start:end])
                    )
            elif len(ids):
                yield _Segment(number, one)

    def _starts(self, segments: Sequence[_Segment], prefixes: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return what the translation of each segment begins with: a text's prefix begins its first."""
        ids = self.tokenizers.target.encode_batch(list(map(self.tokenizers.clean_target, prefixes)))
        first = {segment.number: place for place, segment in reversed(list(enumerate(segments)))}
        return [
            ids[segment.number].astype(np.int64) if first[segment.number] == place else np.empty(0, np.int64)
            for place, segment in enumerate(segments)
        ]

    def _try_again(self, segments: Sequence[_Segment], outcomes: list[_Outcome]) -> None:
        """Put better outcomes in the place of those that look wrong, where another way gives one."""
        for place, outcome in enumerate(outcomes):
            if outcome.wrong == ("lost",):
                outcomes[place] = _with_items_back(segments[place].source, outcome)
        ways = [
            (place, way)
            for place, segment in enumerate(segments)
            if outcomes[place].grave or in_capitals(segment.source.text)
            for way in attempts(segment.source, outcomes[place].wrong)
        ]
        answers = iter(
            self._ask(
                [
                    _Request(stretch, way, None)
                    for _, way in ways
                    for stretch in way.stretches
                    if isinstance(stretch, Normalized)
                ]
            )
        )
        settled = set()
        for place, way in ways:
            found = [
                _copied(stretch) if isinstance(stretch, Copied) else next(answers)
                for stretch in way.stretches
            ]
            tried = _side_by_side(way, found)
            if tried is None or tried.text == outcomes[place].text or place in settled:
                continue
            if tried.rank > outcomes[place].rank:
                outcomes[place] = tried
            if not tried.grave:  # the mildest way that helps is the one to take
                settled.add(place)

    def _ask(
        self, requests: Sequence[_Request], count: Callable[[Iterable[int]], None] = lambda places: None
    ) -> list[_Outcome | None]:
        """Return what is found for each request, None where the translation could not be mended."""
        ids = self.tokenizers.source.encode_batch([request.source.text for request in requests])
        answers: dict[int, _Outcome | None] = {}
        by_search: dict[Search, list[int]] = {}
        for number, request in enumerate(requests):
            by_search.setdefault(self._options(request.way), []).append(number)
        jobs: list[tuple[Search, list[int]]] = []
        num_tokens = 0
        for options, chosen in by_search.items():
            num_rows, lengths = _num_rows(options, self.num_best), [len(ids[n]) for n in chosen]
            num_tokens += num_rows * sum(lengths)
            jobs += [
                (options, [chosen[n] for n in batch])
                for batch in _batches(lengths, _BATCH_TOKENS // num_rows)
            ]
        work = functools.partial(self._search, requests, ids)
        is_much = num_tokens > _MUCH_TOKENS
        for (_, batch), said in map_batches(work, jobs, self.translator.num_workers, is_much):
            answers.update(zip(batch, said, strict=True))
            count(batch)
        return [answers[number] for number in range(len(requests))]

    def _options(self, way: Attempt) -> Search:
        """Return how to search; a stricter search than the user's is as wide as the user's."""
        if way.search is None:
            return self.options
        width = self.options.beam_size if isinstance(self.options, BeamOptions) else 1
        return way.search.model_copy(update={"beam_size": max(way.search.beam_size, width)})

    def _search(
        self, requests: Sequence[_Request], ids: Sequence[Ids], job: tuple[Search, Sequence[int]]
    ) -> list[_Outcome | None]:
        """Return what is found for the requests of a batch."""
        options, batch = job
        starts = [start for n in batch if (start := requests[n].start) is not None] or None
        together = self.decoder.search([ids[n] for n in batch], options, self.num_best, starts)
        outcomes = []
        for n, found in zip(batch, together, strict=True):
            # One that hung on a hair, or is a near case for the guard, is what it is alone.
            for alone in (False, True):
                if alone:
                    start = requests[n].start
                    starts = None if start is None else [start]
                    (found,) = self.decoder.search([ids[n]], options, self.num_best, starts)
                outcome, near = self._outcome(requests[n], ids[n], found)
                if len(batch) == 1 or not (near or found.margin < DOUBT):
                    break
            outcomes.append(outcome)
        return outcomes

    def _outcome(self, request: _Request, ids: Ids, found: Found) -> tuple[_Outcome | None, bool]:
        """Return the outcome of a search, and whether it might be another with other last digits."""
        best, way = found.hypotheses[0], request.way
        edits = way.mend(self.tokenizers.target.decode(best.ids))
        if edits is None:
            return None, False
        text, part = self.decoder.describe(request.source, ids, best, edits)
        said = Said(
            way.judged or request.source.text,
            text,
            ids.tolist(),
            self.tokenizers.source.information_V[ids],
            best.ids,
            part.attention_TS,
            best.complete,
        )
        verdict = judge(said)
        notes = [] if way.flag is None else [way.flag]
        if UNK in best.ids:
            notes.append("unknown")
        if self.decoder.is_foreign(request.source.text, ids):
            notes.append("foreign")
        others: dict[str, Alternative] = {}
        for other in found.hypotheses[1 : self.num_best]:
            if (edits := way.mend(self.tokenizers.target.decode(other.ids))) is not None:
                other_text, _ = self.decoder.describe(request.source, ids, other, edits)
                if other_text != text:
                    others.setdefault(other_text, Alternative(other_text, other.score, other.log_prob))
        outcome = _Outcome(
            text,
            (part,),
            best.score,
            best.log_prob,
            tuple(others.values()),
            verdict.flags,
            verdict.grave,
            tuple(notes),
        )
        # Where an item or an unknown word is put is read off the attention, whose digits are a batch's own.
        return outcome, verdict.near or "lost" in verdict.flags or UNK in best.ids

    def _translation(self, text: str, segments: Sequence[_Outcome]) -> Translation:
        """Return the translation of a text from those of its segments."""
        if not segments:
            return Translation(text, "", 0.0, 0.0, ())
        whole = segments[0] if len(segments) == 1 else _joined(segments, self.translator.joint)
        flags = dict.fromkeys((*whole.wrong, *whole.notes))
        uncovered = _uncovered(text, whole.parts) if "uncovered" in flags else ()
        if not uncovered:  # nothing but signs and parts of words
            flags.pop("uncovered", None)
        return Translation(
            text,
            whole.text,
            whole.score,
            whole.log_prob,
            whole.parts,
            whole.alternatives,
            tuple(flags),
            uncovered,
        )


def _with_items_back(source: Normalized, outcome: _Outcome) -> _Outcome:
    """Return an outcome with the items it has lost put where they belong, if its attention tells where."""
    (part,) = outcome.parts
    edits = put_back(source, outcome.text, part)
    if edits is None:
        return outcome
    text, spans = mended(outcome.text, edits, part.spans)
    if missing(source.text, text):
        return outcome
    return replace(
        outcome,
        text=text,
        parts=(replace(part, spans=tuple(spans)),),
        alternatives=tuple(one for one in outcome.alternatives if not missing(source.text, one.text)),
        wrong=(),
        grave=False,
        notes=(*outcome.notes, "kept"),
    )


def _joined(outcomes: Sequence[_Outcome], joint: str) -> _Outcome:
    """Return the outcomes of a text's segments as one."""
    whole = _put_together(outcomes, [joint] * (len(outcomes) - 1))
    return replace(whole, notes=("split", *whole.notes))


def _side_by_side(way: Attempt, found: Sequence[_Outcome | None]) -> _Outcome | None:
    """Return the outcomes of an attempt's stretches as one, with the spaces that stand between these."""
    known = [one for one in found if one is not None]
    if len(known) < len(found) or not known:
        return None
    if len(known) == 1:
        return known[0]
    # What stood without a space in the source must not grow together with an item: 1990 and 5.
    joints = [
        " " if not joint and missing(_copied_text(pair), before.text + after.text) else joint
        for joint, pair, (before, after) in zip(
            way.joints, pairwise(way.stretches), pairwise(known), strict=True
        )
    ]
    return _put_together(known, joints)


def _copied_text(stretches: Iterable[Normalized | Copied]) -> str:
    return " ".join(stretch.source.text for stretch in stretches if isinstance(stretch, Copied))


def _put_together(outcomes: Sequence[_Outcome], joints: Sequence[str]) -> _Outcome:
    """Return the outcomes one after the other, with something between each two."""
    text, parts = "", []
    for outcome, joint in zip(outcomes, ["", *joints], strict=True):
        text += joint
        for part in outcome.parts:
            spans = tuple((start + len(text), end + len(text)) for start, end in part.spans)
            parts.append(replace(part, spans=spans))
        text += outcome.text
    return _Outcome(
        text,
        tuple(parts),
        sum(outcome.score for outcome in outcomes) / len(outcomes),
        sum(outcome.log_prob for outcome in outcomes),
        (),
        tuple(dict.fromkeys(flag for outcome in outcomes for flag in outcome.wrong)),
        any(outcome.grave for outcome in outcomes),
        tuple(dict.fromkeys(note for outcome in outcomes for note in outcome.notes)),
    )


def _copied(item: Copied) -> _Outcome:
    """Return something that is its own translation."""
    source = item.source
    span = (source.origin[0][0], source.origin[-1][1])
    part = Part(
        (source.text,),
        (span,),
        (source.text,),
        ((0, len(source.text)),),
        (0.0,),
        np.ones((1, 1), np.float32),
        True,
    )
    return _Outcome(source.text, (part,), 0.0, 0.0)


def _uncovered(text: str, parts: Sequence[Part]) -> tuple[Span, ...]:
    """Return the source words of which every piece was hardly looked at; signs are no words here."""
    found = []
    source_words = words(text)
    for part in parts:
        unseen = set(hardly_seen(part.attention_TS))
        touched = match_pieces(part.source_spans, source_words).pieces_of_word
        found += [
            word
            for word, pieces in zip(source_words, touched, strict=True)
            if pieces and unseen.issuperset(pieces) and any(map(str.isalnum, text[slice(*word)]))
        ]
    return tuple(found)


def _num_rows(options: Search, num_best: int) -> int:
    """Return how many hypotheses of a sentence are searched at once."""
    if isinstance(options, BeamOptions):
        return options.beam_size
    return num_best if isinstance(options, SampleOptions) else options.num_samples


def _batches(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Yield the numbers of the texts that are searched together, longest first."""
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__)[::-1]:
        if batch and (len(batch) + 1) * (lengths[batch[0]] + 1) > max_tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def _chunk(texts: Iterator[str]) -> list[str]:
    """Return the next texts: so many, or so many that they have together so many characters."""
    chunk: list[str] = []
    num_characters = 0
    for text in texts:
        chunk.append(text)
        num_characters += len(text)
        if len(chunk) == _CHUNK_TEXTS or num_characters >= _CHUNK_CHARACTERS:
            break
    return chunk
