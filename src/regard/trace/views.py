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
from regard.contract import Floats
from regard.design import Kind
from regard.draw.heatmap import HeatMap, heat_maps_png, heat_maps_svg
from regard.draw.labels import printable, spreadsheet_cell
from regard.draw.notebook import mime_bundle
from regard.draw.terminal import USUAL_WIDTH, Colour, heat_map_lines
from regard.errors import ConfigError, OutputError, TraceError
from regard.files import writing
from regard.text.words import PieceWords
from regard.trace.checks import check
from regard.trace.document import FORMAT, POSTERIOR, Document, Source, Target
from regard.trace.mechanics import cards_json
from regard.viewer.page import page

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
        posterior = self.states.get(POSTERIOR)
        looks_TS = cross.looks_TS(reading, None if posterior is None else posterior.unpack())
        return reading.chosen.align(looks_TS)

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
        rows, columns = _units(self.source if kind == "encoder" else self.target, by), _units(self.source, by)
        names = (self.fed, self.fed) if kind == "decoder" else (rows.names, columns.names)
        if not values_TS.shape[1]:
            values_TS, names = np.empty((len(rows.names), 0), np.float32), (rows.names, ())
        elif by == "words":
            values_TS = to_words(values_TS, columns.matched, rows.matched).words_TS
        return HeatMap(
            title=self._title(which, measure) if title is None else title,
            rows=names[0],
            columns=names[1],
            values_TS=values_TS.astype(float),
            probs_T=self._probs(rows) if kind == "cross" else None,
            kind="scores" if measure == "scores" else "weights",
            caption=self._caption(aligned=which is None and measure == "weights"),
        )

    def _chosen(self, which: Which | None) -> Which:
        """Return which attention is meant; None is the one that aligns best."""
        reading = self.model.reading
        if which is None and reading is not None:
            return Which("cross", reading.layer, reading.head)
        return which or Which()

    def _values(self, which: Which | None, measure: Measure) -> Floats:
        if which is None and measure == "weights":
            return self.alignment_TS
        which = self._chosen(which)
        self.model.design.check_head(which.kind, which.layer, which.head)
        attention = self.attention(which.kind)
        assert attention is not None
        values = attention.weights_LNTS if measure == "weights" else attention.scores_LNTS
        if measure == "weights" and attention.causal:
            values = np.where(np.tri(values.shape[2], dtype=bool), values, np.float32(np.nan))
        mean_TS: Floats = values[_one(which.layer), _one(which.head)].mean(axis=(0, 1))
        return mean_TS

    def _erasure_map(self, by: By, title: str | None) -> HeatMap:
        if self.effects is None:
            why = (
                "the text or its translation is too long for them"
                if self.request.effects
                else "none were asked for"
            )
            raise ConfigError(f"this trace has no effects: {why}")
        rows = _units(self.target, by)
        change_TX = np.array(self.effects.erasure, np.float32).reshape(len(self.target.pieces), -1)
        return HeatMap(
            title="change of log-probability without each source word" if title is None else title,
            rows=rows.names,
            columns=tuple(self.source.text[word.start : word.end] for word in self.source.words),
            values_TS=np.stack([change_TX[list(pieces)].sum(axis=0) for pieces in rows.pieces]).astype(float),
            kind="effects",
            caption=self._caption(),
        )

    def _probs(self, units: "_Units") -> tuple[float, ...]:
        log_probs = [piece.log_prob for piece in self.target.pieces]
        return tuple(math.exp(min(sum(log_probs[piece] for piece in unit), 0)) for unit in units.pieces)

    def _title(self, which: Which | None, measure: Measure) -> str:
        """Return the model and, if not simply the alignment, which of its numbers these are."""
        scores = ", scores" if measure == "scores" else ""
        if which is None and measure == "weights":
            return self.model.label
        return f"{self.model.label}: {self._place(which)}{scores}"

    def _place(self, which: Which | None) -> str:
        """Return an attention in words."""
        which = self._chosen(which)
        layer = "all layers" if which.layer is None else f"layer {which.layer + 1}"
        head = "mean of heads" if which.head is None else f"head {which.head + 1}"
        kind = "to the source" if which.kind == "cross" else which.kind
        return f"{kind}, {layer}, {head}" if "heads" in self.model.design.parts else kind

    def _caption(self, *, aligned: bool = False) -> str:
        """Return what a reader of the picture has to know: whose words these are, and whose looks."""
        notes = []
        reading = self.model.reading
        if aligned and reading is not None and "heads" in self.model.design.parts:
            notes.append(self._place(None))
        if aligned and reading is not None and reading.posterior:
            notes.append("each row is the attention for this word once the word is known")
        elif aligned and reading is not None and reading.shifted:
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
        writer.writerow(["", *map(spreadsheet_cell, drawn.columns)])
        for name, row in zip(drawn.rows, drawn.values_TS, strict=True):
            writer.writerow(
                [spreadsheet_cell(name), *("" if np.isnan(value) else f"{value:.4f}" for value in row)]
            )
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


@dataclass(frozen=True, slots=True)
class _Units:
    """The rows or columns of a picture: the name of each and its pieces."""

    names: tuple[str, ...]
    pieces: tuple[tuple[int, ...], ...]

    @property
    def matched(self) -> PieceWords:
        """Which units each piece is in."""
        units: list[list[int]] = [[] for _ in range(1 + max(map(max, self.pieces)))]
        for unit, pieces in enumerate(self.pieces):
            for piece in pieces:
                units[piece].append(unit)
        return PieceWords(tuple(map(tuple, units)), self.pieces)


def _units(side: Source | Target, by: By) -> _Units:
    """Return the words of a side, or its pieces; what is in no word, such as `</s>`, is a word itself."""
    words = side.words if by == "words" else []
    units = [(tuple(word.pieces), side.text[word.start : word.end]) for word in words]
    covered = {piece for pieces, _ in units for piece in pieces}
    units += [((place,), piece.piece) for place, piece in enumerate(side.pieces) if place not in covered]
    units.sort(key=lambda unit: unit[0])
    return _Units(tuple(name for _, name in units), tuple(pieces for pieces, _ in units))


def _one(place: int | None) -> slice:
    """Return the slice of one place along an axis, or of all."""
    return slice(None) if place is None else slice(place, place + 1)


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
