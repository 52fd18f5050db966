"""From a model and a text to the trace.

A search finds the translation, or it is given; then the engine reads it once more, with a recorder on.
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
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import regard
from regard.alignment.reading import USUAL_READING, Reading
from regard.contract import Engine, Floats
from regard.design import Design, design
from regard.errors import ConfigError, SourceError
from regard.modelfile import ModelFile, load_model
from regard.options.parse import parse
from regard.options.search import BeamOptions
from regard.probes import Tampered
from regard.runtime.build import build_engine
from regard.search.scores import best_ids, log_normaliser
from regard.search.task import Hypothesis
from regard.search.tree import Tree
from regard.text.normalize import Normalized, trace_normalize
from regard.text.segment import Ids
from regard.text.words import Span, match_pieces, words
from regard.trace import document
from regard.trace.document import Attention, Intervention, LookSo, MaskOff, surfaces, trace_id
from regard.trace.effects import erasure, only_looks
from regard.trace.interventions import check, probe_maker
from regard.trace.recorded import LEAST_LOG_PROB, Recorded, read_again
from regard.trace.views import Trace
from regard.translate.decode import Decoder, Search
from regard.translate.guard import Said as Judged
from regard.translate.guard import judge
from regard.translate.result import Part
from regard.vocabulary import EOS, FIRST_BYTE, NUM_RESERVED

MAX_PIECES = 200
"""A text, or a given translation, of more is refused: nobody could see anything in its picture."""
MAX_PIECES_WITH_STATES = 60
"""Of more only the attention is kept."""

_NUM_CANDIDATES = 10
_NUM_DROPPED = 5  # of the beam, in each step


@dataclass(frozen=True, slots=True)
class _Answer:
    """What was said, as text, and the places of its pieces."""

    text: str
    part: Part


@dataclass(frozen=True)
class Tracer:
    """A model that shows everything it does."""

    model: ModelFile
    label: str

    @classmethod
    def open(cls, path: str | Path) -> "Tracer":
        """Return the tracer of a model file."""
        return cls(load_model(Path(path)), Path(path).name)

    @cached_property
    def _engine(self) -> Engine[Any]:
        return build_engine(self.model.options, self.model.weights)

    @cached_property
    def design(self) -> Design:
        """The facts of the model's family."""
        return design(self.model.options)

    @cached_property
    def about(self) -> document.Model:
        """What the trace says of the model, the attention to read among it."""
        model = self.model
        digest = hashlib.sha256(model.tokenizers.sha256.encode())
        for name, weight in sorted(model.weights.items()):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(weight).data)
        layers, _ = self.design.size("cross")
        reading = model.reading or USUAL_READING
        return document.Model(
            label=_safe(self.label),
            kind=model.options.kind,
            source_language=model.source_language,
            target_language=model.target_language,
            num_parameters=sum(weight.size for weight in model.weights.values()),
            sha256=digest.hexdigest(),
            options=model.options.model_dump(),
            reading=document.Reads(
                layer=range(layers)[max(reading.layer, -layers)], head=reading.head, shifted=reading.shifted
            )
            if layers
            else None,
        )

    def trace(
        self,
        text: str,
        *,
        force: str | None = None,
        prefix: str | None = None,
        interventions: Sequence[Intervention] = (),
        effects: bool = False,
        gates: bool = False,
        record: Sequence[str] = (),
        **search: Any,
    ) -> Trace:
        """Return the trace of translating a text, or of a translation that is given in `force`.

        `search` takes the options of that section, `prefix` what the translation is to begin with. `effects`
        adds what each source word does, `gates` the gates of the cells, `record` further names or patterns
        of docs/models.md. The translation is the model's own: nothing is tried again, as `translate` may.
        """
        if isinstance(record, str):
            raise TypeError("record takes a list of names; put the one name into brackets")
        source, ids = self._read(text)
        check(interventions, self.design, self._pieces("source", (*ids.tolist(), EOS)))
        if gates:
            record = (*record, *self.design.gates)
        asked = self._asked(text, force, prefix, interventions, effects, record, search)
        engine = self._engine
        if interventions:
            engine = Tampered(engine, probe_maker(interventions, self.design, whole=False))
        decoder = Decoder(engine, self.model.tokenizers, self._reading)
        started = time.perf_counter()
        found = _found(decoder, ids, asked)
        said = found.said
        _check_steps(interventions, len(said.log_probs))
        searched = time.perf_counter()
        detailed = max(len(ids), len(said.ids)) < MAX_PIECES_WITH_STATES
        seen = read_again(
            self._engine,
            ids,
            said,
            probe_maker(interventions, self.design, whole=True)(),
            (*self._states, *record) if detailed else (),
        )
        if detailed:
            _check_names(record, seen)
        said = replace(
            said,
            log_prob=math.fsum(seen.log_prob_T),
            log_probs=tuple(seen.log_prob_T.tolist()),
            attention_TS=self._reading.look(seen.cross_TLNS),
        )
        recorded = time.perf_counter()
        answer = _Answer(*decoder.describe(source, ids, said, []))
        trace = Trace(
            id=trace_id(self.about, asked),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            generator=f"regard {regard.__version__}",
            model=self.about,
            request=asked,
            source=self._source(text, ids, answer.part),
            target=self._target(answer, said, seen, found.forced, self._flags(source, ids, said, answer)),
            attentions=self._attentions(seen, interventions),
            states=seen.states(),
            beam=None if found.tree is None else self._beam(found.tree, said, asked.search["beam_size"]),
            effects=None,
            metrics=_metrics(said),
            timing=document.Timing(
                search=_ms(searched - started), record=_ms(recorded - searched), effects=None
            ),
            warnings=self._warnings(
                decoder, source, ids, said, detailed=detailed, forced=asked.forced is not None
            ),
        )
        if effects and detailed:
            whole = self._engine
            if interventions:
                whole = Tampered(whole, probe_maker(interventions, self.design, whole=True))
            trace = self._with_effects(trace, engine, whole, ids, said, seen.cross_TLNS)
        trace.check()
        return trace

    def _pieces(self, side: Literal["source", "target"], ids: Sequence[int]) -> list[str]:
        tokenizer = self.model.tokenizers.source if side == "source" else self.model.tokenizers.target
        return [_safe(tokenizer.pieces[id]) for id in ids]

    @property
    def _reading(self) -> Reading:
        return self.model.reading or USUAL_READING

    @property
    def _states(self) -> tuple[str, ...]:
        """The names of the states that are always kept."""
        return self.design.states_kept(self.about.reading.layer if self.about.reading else 0)

    def _read(self, text: str) -> tuple[Normalized, Ids]:
        """Return the source and its ids."""
        source = trace_normalize(text, fold_quotes=True)
        ids = self.model.tokenizers.source.encode_batch([source.text])[0]
        if not len(ids):
            raise SourceError("the text is blank; give a sentence to look at")
        self._check_length("the text", ids)
        return source, ids

    def _check_length(self, what: str, ids: Ids) -> None:
        most = min(MAX_PIECES, self._engine.max_tokens or MAX_PIECES)
        if len(ids) + 1 > most:
            raise SourceError(
                f"{what} has {len(ids) + 1:,} pieces and a picture shows no more than {most}; "
                "give one sentence, or use `regard translate`"
            )

    def _asked(
        self,
        text: str,
        force: str | None,
        prefix: str | None,
        interventions: Sequence[Intervention],
        effects: bool,
        record: Sequence[str],
        search: dict[str, Any],
    ) -> document.Asked:
        """Return the request, checked."""
        encode, clean = self.model.tokenizers.target.encode_batch, self.model.tokenizers.clean_target
        if force is not None:
            if prefix is not None or search:
                raise ConfigError("a given translation is not searched; leave the prefix and the search out")
            given = encode([clean(force)])[0]
            if not len(given):
                raise SourceError("the given translation is blank; leave it out to have the text translated")
            self._check_length("the given translation", given)
        if prefix is not None:
            self._check_length("the prefix", encode([clean(prefix)])[0])
        options = parse("search", search)
        mode: Literal["greedy", "beam", "sample", "risk", "forced"] = options.kind
        if isinstance(options, BeamOptions) and options.beam_size == 1 and not options.coverage_penalty:
            mode = "greedy"
        return document.Asked(
            text=_safe(text),
            mode="forced" if force is not None else mode,
            search={} if force is not None else options.model_dump(),
            prefix=None if prefix is None else _safe(clean(prefix)),
            forced=None if force is None else _safe(clean(force)),
            interventions=list(interventions),
            effects=effects,
            record=list(record),
        )

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

    def _flags(self, source: Normalized, ids: Ids, said: Hypothesis, answer: _Answer) -> list[str]:
        """Return what looks wrong with the translation."""
        judged = Judged(
            source.text,
            answer.text,
            ids.tolist(),
            self.model.tokenizers.source.information_V[ids],
            said.ids,
            answer.part.attention_TS,
            said.complete,
        )
        return list(judge(judged).flags)

    def _warnings(
        self,
        decoder: Decoder,
        source: Normalized,
        ids: Ids,
        said: Hypothesis,
        *,
        detailed: bool,
        forced: bool,
    ) -> list[str]:
        warnings = []
        if decoder.is_foreign(source.text, ids):
            warnings.append("the text is unlike what the model has learnt: another language or script?")
        unknown = [FIRST_BYTE <= id < NUM_RESERVED for id in said.ids]
        if forced and sum(unknown) > max(3, len(unknown) // 3):
            warnings.append("the translation is unlike what the model has learnt to say")
        if self.model.split_above is not None and len(ids) > self.model.split_above:
            warnings.append(
                f"`translate` would split this text: the model has learnt from texts of up to "
                f"{self.model.split_above} pieces"
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
        ids: Ids,
        said: Hypothesis,
        cross_TLNS: Floats,
    ) -> Trace:
        """Return the trace with the effects of its source words; one engine steps, one reads the whole."""
        started = time.perf_counter()
        by_word = [word.pieces for word in trace.source.words]
        effects = document.Effects(
            erasure=_rounded(erasure(whole, ids, said, by_word)),
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
                only_piece=[self._pieces("target", row) for row in chosen],
                only_log_prob=_rounded(only.log_prob_TX),
            )
        assert trace.timing is not None
        timing = trace.timing.model_copy(update={"effects": _ms(time.perf_counter() - started)})
        return trace.model_copy(update={"effects": effects, "timing": timing})

    def _source(self, text: str, ids: Ids, part: Part) -> document.Source:
        text, spans, all_ids = _safe(text), part.source_spans, (*ids.tolist(), EOS)
        pieces = zip(self._pieces("source", all_ids), all_ids, surfaces(text, spans), spans, strict=True)
        return document.Source(
            text=text,
            pieces=[
                document.Piece(piece=piece, id=id, surface=surface, start=start, end=end)
                for piece, id, surface, (start, end) in pieces
            ],
            words=_words(text, spans, len(ids)),
        )

    def _target(
        self, answer: _Answer, said: Hypothesis, seen: Recorded, forced: Sequence[bool], flags: list[str]
    ) -> document.Target:
        text, spans = _safe(answer.text), answer.part.spans
        log_prob_TV = seen.logits_TV - log_normaliser(seen.logits_TV)[:, None]
        best_TK = best_ids(seen.logits_TV, _NUM_CANDIDATES)
        entropy_T = -(np.exp(log_prob_TV) * log_prob_TV).sum(axis=1)
        ids = (*said.ids, EOS) if said.complete else said.ids
        chosen_T1 = log_prob_TV[np.arange(len(ids)), ids][:, None]
        rank_T = 1 + (log_prob_TV > chosen_T1).sum(axis=1)
        added, names = surfaces(text, spans), self._pieces("target", ids)
        pieces = []
        for step, id in enumerate(ids):
            best = best_TK[step].tolist()
            candidates = document.Candidates(
                ids=best,
                pieces=self._pieces("target", best),
                log_probs=[_short(log_prob_TV[step, one]) for one in best],
            )
            pieces.append(
                document.Said(
                    piece=names[step],
                    id=id,
                    surface=added[step],
                    start=spans[step][0],
                    end=spans[step][1],
                    log_prob=_short(said.log_probs[step]),
                    entropy=_short(entropy_T[step]),
                    rank=int(rank_T[step]),
                    forced=forced[step],
                    candidates=candidates,
                )
            )
        return document.Target(
            text=text,
            pieces=pieces,
            words=_words(text, spans, len(said.ids)),
            complete=said.complete,
            log_prob=said.log_prob,
            score=said.score,
            flags=flags,
        )

    def _beam(self, tree: Tree, said: Hypothesis, beam_size: int) -> document.Beam:
        names = self._pieces("target", [node.id for node in tree.nodes])
        return document.Beam(
            size=beam_size,
            nodes=[
                document.Beamed(
                    parent=node.parent,
                    step=node.step,
                    id=node.id,
                    piece=name,
                    log_prob=_short(node.log_prob),
                    score=_short(node.score),
                    fate=node.fate,
                )
                for node, name in zip(tree.nodes, names, strict=True)
            ],
            best=tree.path(said.ids, said.complete),
        )


def _check_steps(interventions: Sequence[Intervention], num_steps: int) -> None:
    for one in interventions:
        if isinstance(one, LookSo) and one.step >= num_steps:
            raise ConfigError(f"there is no step {one.step + 1}: the translation has {num_steps} steps")


def _check_names(record: Sequence[str], seen: Recorded) -> None:
    for pattern in record:
        if not any(fnmatchcase(name, pattern) for name in seen.kept):
            raise ConfigError(f"this model computes nothing named {pattern!r}; see docs/models.md")


@dataclass(frozen=True, slots=True)
class _Found:
    """The translation, which of its pieces were given, and the tree of its search."""

    said: Hypothesis
    forced: list[bool]
    tree: Tree | None


def _found(decoder: Decoder, ids: Ids, asked: document.Asked) -> _Found:
    target = decoder.tokenizers.target
    if asked.forced is not None:
        given = target.encode_batch([asked.forced])[0]
        (said,) = decoder.force([ids], [given])
        return _Found(said, [True] * len(said.log_probs), None)
    start = np.empty(0, np.int64)
    if asked.prefix:
        start = target.encode_batch([asked.prefix])[0].astype(np.int64)
    options: Search = parse("search", asked.search)
    tree = Tree(_NUM_DROPPED) if asked.mode == "beam" else None
    (found,) = decoder.search([ids], options, 1, [start] if len(start) else None, tree)
    said = found.hypotheses[0]
    return _Found(said, [step < len(start) for step in range(len(said.log_probs))], tree)


def _words(text: str, spans: Sequence[Span], num_pieces: int) -> list[document.Word]:
    """Return the words with their pieces, `</s>` aside; a mere space belongs to the word after it."""
    found = words(text)
    touched = match_pieces(spans, found)
    pieces_of_word = [list(pieces) for pieces in touched.pieces_of_word]
    for piece, word in enumerate(touched.words_of_piece[:num_pieces]):
        if not word:
            after = next((n for n, (start, _) in enumerate(found) if start >= spans[piece][0]), -1)
            if found:
                pieces_of_word[after] = sorted({*pieces_of_word[after], piece})
    return [
        document.Word(start=start, end=end, pieces=pieces)
        for (start, end), pieces in zip(found, pieces_of_word, strict=True)
        if pieces
    ]


def _metrics(said: Hypothesis) -> document.Metrics:
    how_perplexed = document.perplexity(said.log_prob, len(said.log_probs))
    looks_TS = said.attention_TS.astype(float)
    if not looks_TS.shape[1]:
        return document.Metrics(
            perplexity=how_perplexed,
            coverage=None,
            coverage_penalty=None,
            coverage_deviation=None,
            entropy_out=None,
            entropy_in=None,
        )
    coverage_S = looks_TS.sum(axis=0)
    shares_TS = looks_TS / np.maximum(coverage_S, 1e-12)
    return document.Metrics(
        perplexity=how_perplexed,
        coverage=[_short(one) for one in coverage_S],
        coverage_penalty=float(np.log(np.clip(coverage_S, 1e-4, 1)).sum()),
        coverage_deviation=float(-np.log1p((1 - coverage_S) ** 2).mean()),
        entropy_out=float(_entropies(looks_TS).mean()),
        entropy_in=float(_entropies(shares_TS.T).mean()),
    )


def _entropies(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    entropies: NDArray[np.float64] = -(shares * np.log(np.where(shares > 0, shares, 1))).sum(axis=1)
    return entropies


def _safe(text: str) -> str:
    """Return the text with � for halves of surrogate pairs, which JSON cannot say; places stay."""
    return text if text.isascii() else "".join("�" if "\ud800" <= c <= "\udfff" else c for c in text)


def _short(number: Any) -> float:
    """Return a number to six significant digits; what is impossible as a very small log-probability."""
    return float(f"{max(float(number), LEAST_LOG_PROB):.6g}")


def _rounded(values_TX: Floats) -> list[list[float]]:
    return [[round(float(value), 4) for value in row] for row in values_TX]


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)
