"""The trace as people look at it: by words or by pieces, in the terminal, as SVG, PNG, HTML, CSV."""

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
from pydantic import ValidationError

from regard.alignment.links import to_words
from regard.alignment.reading import Reading
from regard.contract import Floats
from regard.design import Kind
from regard.draw.heatmap import HeatMap, heat_maps_svg
from regard.draw.labels import printable
from regard.draw.notebook import mime_bundle
from regard.draw.plots import heat_maps_png
from regard.draw.terminal import USUAL_WIDTH, Colour, heat_map_lines
from regard.errors import ConfigError, OutputError, TraceError
from regard.files import writing
from regard.text.words import PieceWords
from regard.trace.checks import check
from regard.trace.document import FORMAT, Document
from regard.trace.mechanics import cards_json
from regard.viewer.page import page
from regard.vocabulary import BOS, RESERVED

_MAX_BYTES = 100_000_000  # of a trace file
By = Literal["words", "pieces"]
Measure = Literal["weights", "scores", "erasure"]
Form = Literal["json", "html", "svg", "png", "csv"]


@dataclass(frozen=True, slots=True)
class Which:
    """Which attention to look at: a kind, one of its layers and heads, or (None) the mean of all."""

    kind: Kind = "cross"
    layer: int | None = None
    head: int | None = None


class Trace(Document):
    """One translation, from the text to every number that decided it, and pictures of it."""

    def check(self) -> None:
        """Raise an error if something does not hold that must hold in every trace."""
        check(self)

    @property
    def alignment_TS(self) -> Floats:
        """Where each piece came from, by the attention that aligns best: no columns without attention."""
        cross, reading = self.attention("cross"), self.model.reading
        if cross is None or reading is None:
            return np.empty((len(self.target.pieces), 0), np.float32)
        chosen = Reading(reading.layer, reading.head, reading.shifted)
        return chosen.align(chosen.look(cross.weights_LNTS.transpose(2, 0, 1, 3)))

    def heat_map(
        self,
        which: Which | None = None,
        by: By = "words",
        measure: Measure = "weights",
        title: str | None = None,
    ) -> HeatMap:
        """Return the picture of where each word came from, or of one attention, as numbers with names."""
        if measure not in get_args(Measure) or by not in get_args(By):
            raise ConfigError(f"{measure!r} by {by!r} is not valid; see docs/showing.md")
        if measure == "erasure":
            return self._erasure_map(by, title)
        values_TS, kind = self._values(which, measure), which.kind if which else "cross"
        if measure == "scores" or kind == "decoder":  # no word has one score, and a decoder reads pieces
            by = "pieces"
        rows, columns = self._labels(kind, by)
        if by == "words":
            source = self._pieces_of_units("source")
            target = self._pieces_of_units("source" if kind == "encoder" else "target")
            if values_TS.shape[1]:
                values_TS = to_words(values_TS, source, target).words_TS
            else:
                values_TS, columns = np.empty((len(rows), 0), np.float32), ()
        return HeatMap(
            title=self._title(which, measure) if title is None else title,
            rows=rows,
            columns=columns if values_TS.shape[1] else (),
            values_TS=values_TS.astype(float),
            probs_T=self._probs(by) if kind == "cross" else None,
            kind="scores" if measure == "scores" else "weights",
            caption=self._caption(aligned=which is None and measure == "weights"),
        )

    def _values(self, which: Which | None, measure: Measure) -> Floats:
        if which is None and measure == "weights":
            return self.alignment_TS
        reading = self.model.reading
        if which is None and reading is not None:
            which = Which("cross", reading.layer, reading.head)
        which = which or Which()
        attention = self.attention(which.kind)
        if attention is None:
            raise ConfigError(f"this model has no attention of kind {which.kind!r} to show")
        layers, heads = attention.log_weights.shape[:2]
        if which.layer not in (None, *range(layers)) or which.head not in (None, *range(heads)):
            raise ConfigError(
                f"there is no layer {(which.layer or 0) + 1}, head {(which.head or 0) + 1}: "
                f"this model has {layers} layers of {heads} heads there"
            )
        values = attention.weights_LNTS if measure == "weights" else attention.scores_LNTS
        if measure == "weights" and attention.causal:
            values = np.where(np.tri(values.shape[2], dtype=bool), values, np.float32(np.nan))
        values = values if which.layer is None else values[which.layer : which.layer + 1]
        values = values if which.head is None else values[:, which.head : which.head + 1]
        mean_TS: Floats = values.mean(axis=(0, 1))
        return mean_TS

    def _erasure_map(self, by: By, title: str | None) -> HeatMap:
        if self.effects is None:
            why = (
                "the text or its translation is too long for them"
                if self.request.effects
                else "none were asked for"
            )
            raise ConfigError(f"this trace has no effects: {why}")
        rows = self._unit_names("target", by)
        values = np.array(self.effects.erasure, np.float32).reshape(len(self.target.pieces), -1)
        if by == "words":
            values = np.stack([values[list(pieces)].sum(axis=0) for pieces, _ in self._units("target")])
        names = tuple(self.source.text[word.start : word.end] for word in self.source.words)
        return HeatMap(
            title="change of log-probability without each source word" if title is None else title,
            rows=rows,
            columns=names,
            values_TS=values.astype(float),
            kind="effects",
            caption=self._caption(),
        )

    def _units(self, side: Literal["source", "target"]) -> list[tuple[tuple[int, ...], str]]:
        """Return the words of a side: pieces and name. What is in no word, such as `</s>`, is one itself."""
        text = self.source if side == "source" else self.target
        units = [(tuple(word.pieces), text.text[word.start : word.end]) for word in text.words]
        covered = {piece for pieces, _ in units for piece in pieces}
        units += [((n,), piece.piece) for n, piece in enumerate(text.pieces) if n not in covered]
        return sorted(units, key=lambda unit: unit[0])

    def _pieces_of_units(self, side: Literal["source", "target"]) -> PieceWords:
        units = [pieces for pieces, _ in self._units(side)]
        of_piece: list[list[int]] = [[] for _ in (self.source if side == "source" else self.target).pieces]
        for number, pieces in enumerate(units):
            for piece in pieces:
                of_piece[piece].append(number)
        return PieceWords(tuple(map(tuple, of_piece)), tuple(units))

    def _unit_names(self, side: Literal["source", "target"], by: By) -> tuple[str, ...]:
        if by == "words":
            return tuple(name for _, name in self._units(side))
        return tuple(piece.piece for piece in (self.source if side == "source" else self.target).pieces)

    def _labels(self, kind: Kind, by: By) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of rows and columns. A decoder looks at what it has been fed, `<s>` first."""
        if kind == "decoder":
            fed = (RESERVED[BOS], *(piece.piece for piece in self.target.pieces[:-1]))
            return fed, fed
        return self._unit_names("source" if kind == "encoder" else "target", by), self._unit_names(
            "source", by
        )

    def _probs(self, by: By) -> tuple[float, ...]:
        log_probs = [piece.log_prob for piece in self.target.pieces]
        if by == "pieces":
            return tuple(math.exp(min(one, 0)) for one in log_probs)
        units = [pieces for pieces, _ in self._units("target")]
        return tuple(math.exp(min(sum(log_probs[piece] for piece in unit), 0)) for unit in units)

    def _title(self, which: Which | None, measure: Measure) -> str:
        """Return the model and, if not simply the alignment, which of its numbers these are."""
        scores = ", scores" if measure == "scores" else ""
        if which is None and measure == "weights":
            return self.model.label
        return f"{self.model.label}: {self._place(which)}{scores}"

    def _place(self, which: Which | None) -> str:
        """Return an attention in words; None is the one that aligns best."""
        reading = self.model.reading
        if which is None and reading is not None:
            which = Which("cross", reading.layer, reading.head)
        which = which or Which()
        layer = "all layers" if which.layer is None else f"layer {which.layer + 1}"
        head = "mean of heads" if which.head is None else f"head {which.head + 1}"
        kind = {"cross": "to the source", "encoder": "encoder", "decoder": "decoder"}[which.kind]
        return f"{kind}, {layer}, {head}" if "heads" in self.model.design.parts else kind

    def _caption(self, *, aligned: bool = False) -> str:
        """Return what a reader of the picture has to know: whose words these are, and whose looks."""
        notes = []
        reading = self.model.reading
        if aligned and reading is not None and "heads" in self.model.design.parts:
            notes.append(self._place(None))
        if aligned and reading is not None and reading.shifted:
            notes.append("each row is the look of the step that reads the word, one after it was said")
        if self.request.mode == "forced":
            notes.append("the translation was given")
        if self.request.prefix:
            notes.append(f"it had to begin with {self.request.prefix!r}")
        notes += [one.in_words for one in self.request.interventions]
        return "; ".join(notes)

    def to_svg(self, which: Which | None = None, by: By = "words", measure: Measure = "weights") -> str:
        """Return the heat map as an SVG document."""
        return heat_maps_svg([self.heat_map(which, by, measure)])

    def to_html(self) -> str:
        """Return a page that holds everything: one file, no network."""
        return _page([self])

    def to_csv(self, which: Which | None = None, by: By = "words", measure: Measure = "weights") -> str:
        """Return the heat map's numbers as CSV: a row for each target word, a column for each source word."""
        drawn = self.heat_map(which, by, measure)
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["", *drawn.columns])
        for name, row in zip(drawn.rows, drawn.values_TS, strict=True):
            writer.writerow([name, *("" if np.isnan(value) else f"{value:.4f}" for value in row)])
        return stream.getvalue()

    def save(
        self,
        path: str | Path,
        which: Which | None = None,
        by: By = "words",
        measure: Measure = "weights",
    ) -> None:
        """Write the trace as what the name ends in: .json, .html, .svg, .png or .csv; whole or not at all."""
        form = Path(path).suffix.removeprefix(".").lower()
        if form not in get_args(Form):
            raise OutputError(f"{path}: end the name in one of {', '.join(get_args(Form))}")
        data = rendered([self], cast(Form, form), which, by, measure)
        with writing(Path(path)) as (stream,):
            stream.write(data)

    def lines(self, width: int = USUAL_WIDTH, colour: Colour = "none", **view: Any) -> list[str]:
        """Return the heat map in characters."""
        return heat_map_lines(self.heat_map(**view), width, colour)

    def __str__(self) -> str:
        return "\n".join([printable(f"{self.source.text} → {self.target.text}"), *self.lines()])

    def __repr__(self) -> str:
        return f"<Trace {self.source.text!r} → {self.target.text!r}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Be shown in a notebook: a picture, and the interactive page over it."""
        return mime_bundle(str(self), self.to_svg(), self.to_html())


def rendered(
    traces: Sequence[Trace],
    form: Form,
    which: Which | None = None,
    by: By = "words",
    measure: Measure = "weights",
) -> bytes:
    """Return one or more traces as a file of some form; only pictures and pages hold several."""
    if form in ("json", "csv") and len(traces) > 1:
        raise ConfigError(
            f"a {form.upper()} file holds one translation; show one model and one part at a time"
        )
    match form:
        case "json":
            return traces[0].to_json().encode()
        case "csv":
            return traces[0].to_csv(which, by, measure).encode()
        case "html":
            return _page(traces, by).encode()
    maps = [trace.heat_map(which, by, measure) for trace in traces]
    return heat_maps_svg(maps).encode() if form == "svg" else heat_maps_png(maps)


def _page(traces: Sequence[Trace], by: By = "words") -> str:
    """Return one page that shows one or more traces beside each other."""
    picture = heat_maps_svg([trace.heat_map(by=by) for trace in traces])
    title = f"{traces[0].source.text} → {traces[0].target.text}"
    return page([trace.to_json() for trace in traces], list(map(cards_json, traces)), picture, title)


def load_trace(path: str | Path) -> Trace:
    """Read a trace, and check that all holds in it that must."""
    path = Path(path)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise TraceError(f"{path}: is larger than any trace; is it one?")
        about = json.loads(path.read_bytes())
    except OSError as error:
        raise TraceError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path}: is no JSON, or is damaged ({error}); copy it again") from None
    form = about.get("format") if isinstance(about, dict) else None
    if not isinstance(form, str) or not form.startswith(FORMAT.partition("/")[0]):
        raise TraceError(f"{path}: is not a trace of regard; `regard show ... --json FILE` writes one")
    if form != FORMAT:
        raise TraceError(
            f"{path}: has format {form!r} and this version of regard reads {FORMAT!r}; make it again"
        )
    try:
        trace = Trace.model_validate(about)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise TraceError(f"{path}: {where}: {first['msg']}; make the trace again") from None
    try:
        trace.check()
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None
    return trace
