"""From a text to its trace.

The trace follows the translation: each part that `translate` searched is searched once more, alone, and then
read with a recorder on. A given translation, and one with interventions, is the model's own, without guard.
"""

import hashlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np

import regard
from regard.contract import Engine, Features, Floats, Source
from regard.design import Design, design
from regard.engines import NUMPY
from regard.errors import ConfigError, SourceError
from regard.loaded import Loaded
from regard.modelfile import ModelFile
from regard.options.parse import parse
from regard.probes import Tampered
from regard.search.searcher import Query, Search, StepSearcher, is_greedy
from regard.search.task import Hypothesis
from regard.search.tree import Tree
from regard.text.segment import Ids
from regard.text.words import Span
from regard.trace import document
from regard.trace.compose import (
    Answer,
    beam_section,
    metrics_section,
    nearest_pieces,
    pieces_of,
    rounded,
    safe,
    source_section,
    target_section,
)
from regard.trace.document import Attention, Intervention, LookSo, MaskOff, trace_id
from regard.trace.effects import erasure, only_looks
from regard.trace.interventions import check, probe_maker
from regard.trace.recorded import Recorded, read_again
from regard.trace.views import Trace
from regard.translate.outcome import describe, is_foreign, read_pieces, verdict_on
from regard.translate.plan import whole_stretches
from regard.translate.request import Request, SearchArguments
from regard.translate.result import Part, Searched, Translation
from regard.translate.translator import IN_THIS_THREAD, Translator
from regard.vocabulary import FIRST_BYTE, NUM_RESERVED

MAX_PIECES = 200
"""A text, or a given translation, of more is refused: nobody could see anything in its picture."""
MAX_PIECES_WITH_STATES = 60
"""Of more only the attention is kept."""

_NUM_DROPPED = 5  # of the beam, in each step


class TraceArguments(SearchArguments, total=False):
    """What can be asked of a trace, beside the options of the search.

    `force` is a given translation, `prefix` what the translation begins with. `raw` shows the plain search of
    the whole text, without guard and splitting. `effects` adds what each source word does, `gates` the gates
    of the cells, `record` further names or patterns of docs/models.md.
    """

    force: str | None
    prefix: str | None
    raw: bool
    interventions: Sequence[Intervention]
    effects: bool
    gates: bool
    record: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Look:
    """How to look at a translation."""

    interventions: tuple[Intervention, ...] = ()
    effects: bool = False
    record: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Stage:
    """What one trace shows: a source as the model read it, and what it said, or was given to say.

    `answer` is the text of the translation after all edits; None if it is what was said.
    """

    asked: document.Asked
    text: str
    searched: Searched
    source_spans: Sequence[Span]
    given: Ids | None = None
    answer: Answer | None = None
    whole: document.Whole | None = None


@dataclass(frozen=True)
class Tracer:
    """A model that shows everything it does."""

    loaded: Loaded

    @classmethod
    def open(cls, path: str | Path) -> "Tracer":
        """Return the tracer of a model file."""
        return cls(Loaded.open(path, compute=NUMPY))

    @classmethod
    def of(cls, model: ModelFile, name: str) -> "Tracer":
        """Return the tracer of a model under a name."""
        return cls(Loaded.of(model, name=name, compute=NUMPY))

    @cached_property
    def model(self) -> ModelFile:
        """The model file."""
        if self.loaded.file is None:
            raise ConfigError("several models together have no one attention to show; show one at a time")
        return self.loaded.file

    @cached_property
    def _engine(self) -> Engine[Any]:
        return self.loaded.searcher.steps.engine

    @cached_property
    def design(self) -> Design:
        """The facts of the model's family."""
        return design(self.model.options)

    @cached_property
    def about(self) -> document.Model:
        """What the trace says of the model, the attention to read among it."""
        model, reading = self.model, self.loaded.reading
        digest = hashlib.sha256(model.tokenizers.sha256.encode())
        for name, weight in sorted(model.weights.items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(weight).data)
        layers, _ = self.design.size("cross")
        return document.Model(
            label=safe(self.loaded.name),
            kind=model.options.kind,
            source_language=model.source_language,
            target_language=model.target_language,
            num_parameters=sum(weight.size for weight in model.weights.values()),
            sha256=digest.hexdigest(),
            options=model.options.model_dump(),
            reading=document.Reads(
                layer=range(layers)[max(reading.layer, -layers)],
                head=reading.head,
                shifted=reading.shifted,
                posterior=reading.posterior,
            )
            if layers
            else None,
        )

    def trace(self, text: str | Features, **asked: Unpack[TraceArguments]) -> Trace:
        """Return the trace of translating a text; of a text in several parts, of the first."""
        return self.traces(text, **asked)[0]

    def traces(self, text: str | Features, **asked: Unpack[TraceArguments]) -> list[Trace]:
        """Return a trace for each part that `translate` searches; nearly always one.

        A translation that is given, `raw` or with interventions has one part: nothing is split or tried
        again.
        """
        left = dict(asked)
        force, prefix = cast(str | None, left.pop("force", None)), cast(str | None, left.pop("prefix", None))
        interventions = tuple(cast(Sequence[Intervention], left.pop("interventions", ())))
        record, raw = cast(Sequence[str], left.pop("record", ())), left.pop("raw", False)
        effects, gates = bool(left.pop("effects", False)), left.pop("gates", False)
        if isinstance(record, str):
            raise TypeError("record takes a list of names; put the one name into brackets")
        look = _Look(interventions, effects, (*record, *(self.design.gates if gates else ())))
        request = Request.of(text, prefix=prefix, search=parse("search", left))
        if force is not None and (prefix is not None or left):
            raise ConfigError("a given translation is not searched; leave the prefix and the search out")
        if force is not None or interventions or raw:
            return [self._trace(self._plain(request, force, look), look)]
        (translation,) = Translator(self.loaded, IN_THIS_THREAD).translate([request])
        return [self._trace(stage, look) for stage in self._stages(translation, request, look)]

    def _plain(self, request: Request, force: str | None, look: _Look) -> _Stage:
        """Return what the model itself does with the whole text."""
        tokenizers = self.model.tokenizers
        (stretch,) = whole_stretches(self.loaded, [request.features or request.text])
        source, ids = stretch.source, stretch.ids
        if not len(ids):
            raise SourceError("the text is blank; give a sentence to look at")
        self._check_length("the text", ids)
        given = None if force is None else self._target_ids("the given translation", force)
        if given is not None and not len(given):
            raise SourceError("the given translation is blank; leave it out to have the text translated")
        prefix = None if request.prefix is None else self._target_ids("the prefix", request.prefix)
        spans = [span for *_, span in read_pieces(tokenizers, source, ids)]
        asked = self._asked(request, request.search, look, None)
        if force is not None:
            forced = safe(tokenizers.clean_target(force))
            asked = asked.model_copy(update={"mode": "forced", "search": {}, "forced": forced})
        start = None if prefix is None or not len(prefix) else prefix.astype(np.int64)
        searched = Searched(source, ids, (), request.search, start)
        return _Stage(asked, request.text, searched, spans, given)

    def _stages(self, translation: Translation, request: Request, look: _Look) -> list[_Stage]:
        """Return each part of a translation that was searched."""
        found = [(part, part.searched) for part in translation.parts if part.searched is not None]
        if not found:
            raise SourceError(
                "nothing of the text is translated: it is blank or kept as it is; --raw shows a plain search"
            )
        return [
            self._stage(translation, request, look, part, searched, place, len(found))
            for place, (part, searched) in enumerate(found)
        ]

    def _stage(
        self,
        translation: Translation,
        request: Request,
        look: _Look,
        part: Part,
        searched: Searched,
        place: int,
        num_parts: int,
    ) -> _Stage:
        text, source_spans, flags = translation.source, part.source_spans, list(translation.flags)
        if len(translation.parts) > 1:
            first, last = part.source_span
            text, source_spans = text[first:last], tuple((a - first, b - first) for a, b in source_spans)
            flags = self._flags(searched, translation.text[slice(*part.span)], part)
        self._check_length("the text" if num_parts == 1 else f"part {place + 1}", searched.source_ids)
        spans = [(start - part.span[0], end - part.span[0]) for start, end in part.spans]
        num_forced = 0 if searched.prefix is None else min(len(searched.prefix), len(part.pieces))
        return _Stage(
            self._asked(request, searched.search, look, place),
            text,
            searched,
            source_spans,
            answer=Answer(translation.text[slice(*part.span)], spans, num_forced, flags),
            whole=document.Whole(
                source=safe(translation.source),
                text=safe(translation.text),
                flags=list(translation.flags),
                num_parts=num_parts,
            ),
        )

    def _target_ids(self, what: str, text: str) -> Ids:
        tokenizers = self.model.tokenizers
        (ids,) = tokenizers.target.encode_batch([tokenizers.clean_target(text)])
        self._check_length(what, ids)
        return ids

    def _check_length(self, what: str, ids: Source) -> None:
        most = min(MAX_PIECES, self._engine.max_tokens or MAX_PIECES)
        if len(ids) + 1 > most:
            raise SourceError(
                f"{what} has {len(ids) + 1:,} pieces and a picture shows no more than {most}; "
                "give one sentence, or use `regard translate`"
            )

    def _asked(self, request: Request, search: Search, look: _Look, part: int | None) -> document.Asked:
        """Return the request as the trace keeps it."""
        clean = self.model.tokenizers.clean_target
        return document.Asked(
            text=safe(request.text),
            mode="greedy" if is_greedy(search) else search.kind,
            search=search.model_dump(),
            prefix=None if request.prefix is None else safe(clean(request.prefix)),
            interventions=list(look.interventions),
            effects=look.effects,
            record=list(look.record),
            part=part,
            features=None if request.features is None else request.features.key,
        )

    def _trace(self, stage: _Stage, look: _Look) -> Trace:
        """Return the trace of a stage."""
        ids, tokenizers = stage.searched.source_ids, self.model.tokenizers
        read = [(piece, id) for piece, id, _ in read_pieces(tokenizers, stage.searched.source, ids)]
        check(look.interventions, self.design, [safe(piece) for piece, _ in read])
        engine = self._engine
        if look.interventions:
            engine = Tampered(engine, probe_maker(look.interventions, self.design, whole=False))
        started = time.perf_counter()
        said, tree = self._said(stage, StepSearcher(engine, self.loaded.reading, tokenizers.target))
        _check_steps(look.interventions, len(said.log_probs))
        searched = time.perf_counter()
        detailed = max(len(ids), len(said.ids)) < MAX_PIECES_WITH_STATES
        seen = read_again(
            self._engine,
            ids,
            said,
            probe_maker(look.interventions, self.design, whole=True)(),
            (*self.states, *look.record) if detailed else self._posterior,
        )
        if detailed:
            _check_names(look.record, seen)
        said = replace(
            said,
            log_prob=math.fsum(seen.log_prob_T),
            log_probs=tuple(seen.log_prob_T.tolist()),
            attention_TS=self.loaded.reading.look(seen.cross_TLNS, seen.origin_TS),
        )
        recorded = time.perf_counter()
        size = stage.asked.search.get("beam_size", 1)
        trace = Trace(
            id=trace_id(self.about, stage.asked),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            generator=f"regard {regard.__version__}",
            model=self.about,
            request=stage.asked,
            whole=stage.whole,
            source=source_section(
                stage.text, read, stage.source_spans, len(ids), self._nearest(read) if detailed else None
            ),
            target=target_section(tokenizers.target, self._answer(stage, said), said, seen),
            attentions=self._attentions(seen, look.interventions),
            states=seen.states(),
            beam=None if tree is None else beam_section(tokenizers.target, tree, said, size),
            effects=None,
            metrics=metrics_section(said),
            timing=document.Timing(
                search=_ms(searched - started), record=_ms(recorded - searched), effects=None
            ),
            warnings=self._warnings(stage, said, detailed=detailed),
        )
        if look.effects and detailed:
            whole = self._engine
            if look.interventions:
                whole = Tampered(whole, probe_maker(look.interventions, self.design, whole=True))
            trace = self._with_effects(trace, engine, whole, ids, said, seen.cross_TLNS)
        trace.check()
        return trace

    def _said(self, stage: _Stage, searcher: StepSearcher) -> tuple[Hypothesis, Tree | None]:
        """Return what is said, and what a beam search tried on the way there."""
        searched = stage.searched
        if stage.given is not None:
            (said,) = searcher.force([searched.source_ids], [stage.given])
            return said, None
        tree = Tree(_NUM_DROPPED) if stage.asked.mode == "beam" else None
        query = Query(searched.source_ids, searched.prefix)
        (found,) = searcher.search([query], searched.search, tree=tree)
        said = found.hypotheses[0]
        if stage.answer is None or said.ids == searched.ids:
            return said, tree
        # Another engine has found what this one does not: it is shown as it is, without a beam.
        complete = len(stage.answer.spans) > len(searched.ids)
        steps = tuple(0.0 for _ in stage.answer.spans)
        return Hypothesis(searched.ids, 0.0, said.score, steps, said.attention_TS, complete), None

    def _answer(self, stage: _Stage, said: Hypothesis) -> Answer:
        """Return the text of the translation, and what is to be known of it."""
        if stage.answer is not None:
            return stage.answer
        searched = stage.searched
        described = describe(self.loaded, searched.source, searched.source_ids, said)
        assert described is not None
        text, part = described
        num_forced = len(said.log_probs) if stage.given is not None else 0
        if searched.prefix is not None:
            num_forced = min(len(searched.prefix), len(said.log_probs))
        flags = self._flags(replace(searched, ids=said.ids), text, part)
        return Answer(text, part.spans, num_forced, flags)

    def _nearest(self, read: Sequence[tuple[str, int]]) -> list[list[str]] | None:
        """Return the pieces most like those that were read; None for a model that reads feature vectors."""
        table_VE = self.model.weights.get("source.weight")
        if table_VE is None:
            return None
        return nearest_pieces(self.model.tokenizers.source, table_VE, [id for _, id in read])

    @property
    def states(self) -> tuple[str, ...]:
        """The names of the states that are always kept."""
        kept = self.design.states_kept(self.about.reading.layer if self.about.reading else 0)
        return (*kept, *self._posterior)

    @property
    def _posterior(self) -> tuple[str, ...]:
        """The state that the alignment is read from, if it is the posterior attention."""
        return (document.POSTERIOR,) if self.loaded.reading.posterior else ()

    def _attentions(self, seen: Recorded, interventions: Sequence[Intervention]) -> list[Attention]:
        """Return every kind of attention the model has."""
        lifted = any(isinstance(one, MaskOff) for one in interventions)
        return [
            seen.attention(
                kind,
                names,
                causal=kind == "decoder" and not lifted,
                normalised=self.design.rows_sum_to_one,
            )
            for kind, names in self.design.attentions.items()
        ]

    def _flags(self, searched: Searched, text: str, part: Part) -> list[str]:
        """Return what looks wrong with a translation."""
        source, ids = searched.source.text, searched.source_ids
        return list(verdict_on(self.loaded, source, ids, searched.ids, text, part).flags)

    def _warnings(self, stage: _Stage, said: Hypothesis, *, detailed: bool) -> list[str]:
        warnings, searched, split_above = [], stage.searched, self.model.split_above
        if is_foreign(self.loaded, searched.source.text, searched.source_ids):
            warnings.append("the text is unlike what the model has learnt: another language or script?")
        unknown = [FIRST_BYTE <= id < NUM_RESERVED for id in said.ids]
        if stage.given is not None and sum(unknown) > max(3, len(unknown) // 3):
            warnings.append("the translation is unlike what the model has learnt to say")
        if stage.whole is None and split_above is not None and len(searched.source_ids) > split_above:
            warnings.append(
                f"`translate` would split this text: the model has learnt from texts of up to "
                f"{split_above} pieces"
            )
        if not detailed:
            warnings.append(
                f"above {MAX_PIECES_WITH_STATES} pieces only the attention is kept: no states, no effects"
            )
        if not said.complete:
            warnings.append("the translation did not come to an end and was cut")
        return warnings

    def _with_effects(
        self,
        trace: Trace,
        engine: Engine[Any],
        whole: Engine[Any],
        ids: Source,
        said: Hypothesis,
        cross_TLNS: Floats,
    ) -> Trace:
        """Return the trace with the effects of its source words; one engine steps, one reads the whole."""
        started = time.perf_counter()
        by_word = [word.pieces for word in trace.source.words]
        effects = document.Effects(
            erasure=rounded(erasure(whole, ids, said, by_word)),
            only_id=None,
            only_piece=None,
            only_log_prob=None,
        )
        if cross_TLNS.shape[1] and by_word:
            only = only_looks(engine, ids, said, by_word, cross_TLNS)
            chosen = only.ids_TX.tolist()
            effects = document.Effects(
                erasure=effects.erasure,
                only_id=chosen,
                only_piece=[pieces_of(self.model.tokenizers.target, row) for row in chosen],
                only_log_prob=rounded(only.log_prob_TX),
            )
        assert trace.timing is not None
        timing = trace.timing.model_copy(update={"effects": _ms(time.perf_counter() - started)})
        return trace.model_copy(update={"effects": effects, "timing": timing})


def _check_steps(interventions: Sequence[Intervention], num_steps: int) -> None:
    for one in interventions:
        if isinstance(one, LookSo) and one.step >= num_steps:
            raise ConfigError(f"there is no step {one.step + 1}: the translation has {num_steps} steps")


def _check_names(record: Sequence[str], seen: Recorded) -> None:
    for pattern in record:
        if not any(fnmatchcase(name, pattern) for name in seen.kept):
            raise ConfigError(f"this model computes nothing named {pattern!r}; see docs/models.md")


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)
