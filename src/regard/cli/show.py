"""`regard show`: where a translation looked, as a picture."""

import argparse
import math
import shutil
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from regard.cli.settings import add_colour, add_search, feature_file, read_colour, read_search
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.contract import Features
    from regard.trace.document import Intervention
    from regard.trace.views import Trace, Which

NAME = "show"
HELP = "show where a model looks: heat map, page, the numbers of each step"
DESCRIPTION = (
    "Shows the translation that `regard translate` gives, and where each word came from: as a heat map in\n"
    "the terminal, or as a picture, a page or numbers in a file. A text of several sentences is shown part\n"
    "by part, several models side by side. Parts, steps, layers and heads count from 1."
)
EXAMPLES = """examples:
  regard show fr-en "je suis étudiant"
  regard show fr-en "je suis étudiant" --html look.html
  regard show fr-en-rnn "je suis étudiant" --html look.html --live
  regard show fr-en-rnn fr-en "je suis étudiant" --svg both.svg
  regard show fr-en "je suis étudiant" --force "I am a student"
  regard show fr-en "je suis étudiant" --step 2
  regard show fr-en "je suis étudiant" --attention cross.2.1 --pieces
  regard show fr-en "je suis étudiant" --change head=cross.2.1 --change positions=off
  regard show fr-en "je suis étudiant" --change look=2:0,0,1,0
  regard show captions.regard features.npz --item 3
  regard show look.json --svg look.svg
"""

_FORMS = ("svg", "png", "html", "json", "csv")
_CHANGES = "head=cross.2.1, look=STEP:WEIGHT,..., look=STEP@LAYER.HEAD:WEIGHT,..., mask=off, positions=off"
_WHICH = "cross.2.1 (layer 2, head 1), cross.2 (the mean of its heads), encoder.1.1, decoder"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "words", nargs="*", metavar="[MODEL ...] TEXT",
        help="models (files or names of bundled models; default: fr-en), then one text; or a file of --json",
    )  # fmt: skip
    for form, what in (
        ("svg", "a picture for papers and web pages"),
        ("png", "a picture in pixels (needs the extra [plot])"),
        ("html", "an interactive page, one file without network access"),
        ("json", "the whole trace"),
        ("csv", "the numbers of the heat map"),
    ):
        parser.add_argument(f"--{form}", metavar="FILE", help=f"write {what}; - is standard output")
    parser.add_argument(
        "--live", action="store_true", help="--html holds the models too, and translates by itself"
    )
    parser.add_argument("--item", type=int, metavar="N", help="which item of a file of features (default: 1)")
    parser.add_argument(
        "--force", metavar="TEXT", help="show this translation instead of the one the model finds"
    )
    parser.add_argument("--prefix", metavar="TEXT", help="the translation begins with this")
    parser.add_argument("--part", type=int, metavar="N", help="show one part of a text with several parts")
    parser.add_argument(
        "--raw", action="store_true", help="plain search of the whole text, without guard and splitting"
    )
    parser.add_argument("--step", type=int, metavar="N", help="show the numbers of one decoder step")
    parser.add_argument("--pieces", action="store_true", help="show subword pieces instead of words")
    parser.add_argument("--attention", metavar="WHICH", help=f"show another attention: {_WHICH}")
    parser.add_argument(
        "--scores", action="store_true", help="show scores before the softmax instead of weights"
    )
    parser.add_argument(
        "--effects",
        action="store_true",
        help="show how each word changes when a source word is left out (always in --html and --json)",
    )
    parser.add_argument(
        "--change", action="append", default=[], metavar="WHAT", help=f"change the model: {_CHANGES}"
    )
    parser.add_argument("--gates", action="store_true", help="show the gates of recurrent cells")
    add_search(parser)
    parser.add_argument("--width", type=int, metavar="N", help="width of the output in columns")
    add_colour(parser)


def run(options: argparse.Namespace) -> None:
    """Make the traces and show them."""
    from regard.draw.terminal import shades_legend, side_by_side
    from regard.files import writing
    from regard.trace.mechanics import step_lines
    from regard.trace.views import rendered

    asked = {form: str(path) for form in _FORMS if (path := getattr(options, form)) is not None}
    for path in asked.values():
        if list(asked.values()).count(path) > 1:
            place = "standard output" if path == "-" else path
            raise ConfigError(f"two outputs go to {place}; name a different file for each")
    _check_together(options, asked)
    which, by = _which(options.attention), "pieces" if options.pieces else "words"
    measure = "scores" if options.scores else "weights"
    traces = _traces(options, effects=options.effects or "html" in asked or "json" in asked, which=which)
    if asked:
        live = _live_page(options, traces[0]) if options.live else b""
        if options.effects and asked.keys() - {"html", "json"}:
            measure = "erasure"
        made = {
            form: live if live and form == "html" else rendered(traces, form, which, by, measure)  # type: ignore[arg-type]
            for form in asked
        }
        files = {form: Path(path) for form, path in asked.items() if path != "-"}
        if files:
            with writing(*files.values()) as streams:
                for form, stream in zip(files, streams, strict=True):
                    stream.write(made[form])
        for form, path in files.items():
            print(f"wrote {path} ({len(made[form]) / 1000:,.0f} kB)", file=sys.stderr)
        for form in asked.keys() - files.keys():
            sys.stdout.flush()
            sys.stdout.buffer.write(made[form])
        return
    width = shutil.get_terminal_size((100, 40)).columns if options.width is None else options.width
    if width < 20:
        raise ConfigError(f"{width} columns are too narrow; use --width 20 or more")
    colour = read_colour(options.colour)
    headings = [_heading(trace, width) for trace in traces]
    if options.step is not None:
        if which and which.kind != "cross":
            raise ConfigError(
                f"--step shows the attention to the source, but --attention is {options.attention}; use cross"
            )
        layer, head = (which.layer, which.head) if which else (None, None)
        steps = [step_lines(trace, options.step - 1, width, layer, head) for trace in traces]
        for heading, lines in zip(headings, steps, strict=True):
            print("\n".join([*heading, *lines, ""]))
        return
    views = [{"which": which, "by": by, "measure": measure}]
    if options.effects:
        views.append({"by": by, "measure": "erasure"})
    blocks = [[trace.lines(width, colour, **view) for view in views] for trace in traces]
    if any(trace.whole is not None and trace.whole.num_parts > 1 for trace in traces):
        for heading, maps in zip(headings, blocks, strict=True):
            print("\n".join([*heading, "", *side_by_side(maps, width), ""]))
        print("\n".join(shades_legend(width)))
        return
    for heading in headings:
        print("\n".join([*heading, ""]))
    every = [lines for maps in blocks for lines in maps]
    print("\n".join([*side_by_side(every, width), "", *shades_legend(width)]))


def _check_together(options: argparse.Namespace, asked: dict[str, str]) -> None:
    """Raise an error for flags that do not go together, rather than drop one of them."""
    if options.step is not None and (asked or options.scores or options.effects):
        raise ConfigError(
            "--step prints all numbers of a step in the terminal; remove --scores, --effects and output files"
        )
    if options.live and "html" not in asked:
        raise ConfigError("--live makes a page; name its file, as in --html look.html --live")
    if options.live and options.part is not None:
        raise ConfigError("a live page shows the plain search of the whole text; remove --part")
    if options.live and _are_traces(options.words):
        raise ConfigError("--live needs a text to translate; a trace file has no model in it")
    if "html" in asked and (options.attention or options.scores):
        raise ConfigError("a page contains every attention; remove --attention and --scores")
    if options.effects and (options.scores or options.attention) and asked:
        raise ConfigError("a file shows one measure; remove --effects, or --attention and --scores")


def _traces(options: argparse.Namespace, *, effects: bool, which: "Which | None") -> "list[Trace]":
    """Return the traces that are asked for: read from a file, or made."""
    from regard.trace.make import Tracer
    from regard.trace.views import load_trace

    words: list[str] = options.words
    if _are_traces(words):
        asked = (options.force, options.prefix, options.change, options.beam, options.set, options.gates)
        if any(asked) or options.part or options.raw or options.item:
            raise ConfigError(
                "a trace file cannot be translated again; use only flags that change how it is shown"
            )
        return [load_trace(Path(word)) for word in words]
    models, text = _models_and_text(words)
    source = _source(text, options.item)
    request = read_search(options.beam, options.set)
    request |= {"force": options.force, "prefix": options.prefix, "gates": options.gates, "raw": options.raw}
    request["interventions"] = list(map(_change, options.change))

    def made(tracer: Tracer) -> "list[Trace]":
        layer = which.layer if which and which.kind == "cross" else None
        num_layers, _ = tracer.design.size("cross")
        shown = [layer] if layer is not None and options.step is not None and layer < num_layers else []
        record = tracer.design.states_inside(shown)
        return _chosen(tracer.traces(source, effects=effects, record=record, **request), options)

    return [trace for path in models for trace in made(Tracer.open(path))]


def _live_page(options: argparse.Namespace, trace: "Trace") -> bytes:
    """Return the page that begins with what is asked for and goes on by itself."""
    from regard.starter import default_model
    from regard.trace.live import LivePage

    models, _ = _models_first(options.words)
    page = LivePage.of(*(models or [default_model()]), search=read_search(options.beam, options.set))
    shown = page.showing(
        trace.source.text if trace.whole is None else trace.whole.source,
        prefix=options.prefix,
        force=options.force,
        interventions=list(map(_change, options.change)),
        by="pieces" if options.pieces else "words",
    )
    return shown.to_html().encode()


def _are_traces(words: Sequence[str]) -> bool:
    return bool(words) and all(word.endswith(".json") and " " not in word for word in words)


def _chosen(parts: "list[Trace]", options: argparse.Namespace) -> "list[Trace]":
    """Return the parts of a text that are to be shown."""
    if options.part is not None:
        if not 1 <= options.part <= len(parts):
            raise ConfigError(f"there is no part {options.part}: the text was translated in {_parts(parts)}")
        return [parts[options.part - 1]]
    if len(parts) > 1 and (options.step or options.json or options.csv):
        raise ConfigError(f"the text was translated in {_parts(parts)}; choose one with --part")
    return parts


def _parts(parts: "list[Trace]") -> str:
    return "one part" if len(parts) == 1 else f"{len(parts)} parts"


def _models_and_text(words: Sequence[str]) -> tuple[list[Path], str]:
    """Return which models translate what: the words that name models come first."""
    from regard.starter import default_model

    models, left = _models_first(words)
    if len(left) > 1:
        raise ConfigError(
            f"one text at a time can be shown, and there are {len(left)}; put the text into quotes"
        )
    if not models:
        models = [default_model()]
    if left:
        return models, left[0]
    try:
        line = sys.stdin.readline().rstrip("\r\n")
        line.encode()  # bytes that are not UTF-8 may come as halves of surrogate pairs
    except UnicodeError as error:
        raise ConfigError(f"the text on standard input is not UTF-8 ({error}); convert it") from None
    return models, line


def _models_first(words: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Return the words that name models, and the rest."""
    from regard.starter import names_model

    left = list(words)
    models: list[Path] = []
    while left and names_model(left[0], has_more=len(left) > 1) and feature_file(left[0]) is None:
        models.append(Path(left.pop(0)))
    return models, left


def _source(text: str, item: int | None) -> "str | Features":
    """Return what is to be shown: the text, or an item of the file of features that it names."""
    path = feature_file(text)
    if path is None:
        if item is not None:
            raise ConfigError(f"--item {item} chooses from a file of features, and {text!r:.40} is none")
        return text
    from regard.corpus.features import read_features

    wanted = 1 if item is None else item
    found = next(islice(read_features(path), wanted - 1, None), None) if wanted > 0 else None
    if found is None:
        raise ConfigError(f"{path} has no item {wanted}; items are counted from 1")
    return found


def _which(text: str | None, said: str | None = None) -> "Which | None":
    """Return the attention of a `--attention`, or of the flag that says so."""
    if text is None:
        return None
    from regard.design import Kind
    from regard.trace.views import Which

    kind, *places = text.split(".")
    if kind not in get_args(Kind) or len(places) > 2 or not all(_counts(place) for place in places):
        raise ConfigError(f"{said or f'--attention {text}'} is not valid; write {_WHICH}")
    numbers = [int(place) - 1 for place in places] + [None, None]
    return Which(kind, numbers[0], numbers[1])  # type: ignore[arg-type]


def _counts(text: str) -> bool:
    return text.isdecimal() and int(text) > 0


def _change(text: str) -> "Intervention":
    """Return what a `--change` asks for."""
    from regard.trace.document import HeadOff, LookSo, MaskOff, PositionsOff

    what, _, value = text.partition("=")
    wrong = ConfigError(f"--change {text} is not valid; write {_CHANGES}")
    if value == "off" and what in ("mask", "positions"):
        return MaskOff() if what == "mask" else PositionsOff()
    if what == "head":
        which = _which(value, f"--change {text}") if value.count(".") == 2 else None
        if which is None or which.layer is None or which.head is None:
            raise wrong
        return HeadOff(kind=which.kind, layer=which.layer, head=which.head)
    step, _, row = value.partition(":")
    step, _, place = step.partition("@")
    if what != "look" or not _counts(step):
        raise wrong
    which = _which(f"cross.{place}", f"--change {text}") if place else None
    try:
        weights = [float(weight) for weight in row.split(",")]
    except ValueError:
        raise wrong from None
    if not all(map(math.isfinite, weights)):
        raise ConfigError(f"--change {text} is not valid; every weight must be a number")
    return LookSo(
        step=int(step) - 1,
        weights=weights,
        layer=which.layer if which else None,
        head=which.head if which else None,
    )


def _heading(trace: "Trace", width: int) -> list[str]:
    """Return what was said, how sure the model was and what there is to know about it."""
    from regard.draw.labels import folded, printable

    model, target, whole = trace.model, trace.target, trace.whole
    languages = f"{model.source_language or '?'} → {model.target_language or '?'}"
    lines = [f"{model.label}: {languages}, {model.num_parameters:,} weights"]
    if whole is not None and whole.num_parts > 1:
        part = trace.request.part or 0
        lines = [*lines, f"  {whole.source}", f"→ {whole.text}", ""] if part == 0 else []
        lines.append(f"part {part + 1} of {whole.num_parts}:")
    lines += [
        f"  {trace.source.text}",
        f"→ {target.text}",
        f"  {trace.request.mode}, log-probability {target.log_prob:.2f}, "
        f"perplexity {trace.metrics.perplexity:.2f} a piece",
        *(f"  note: {warning}" for warning in trace.warnings),
        *(f"  changed: {one.in_words}" for one in trace.request.interventions),
    ]
    if flags := target.flags if whole is None else whole.flags:
        lines.append(f"  flags: {', '.join(flags)} (docs/translating.md)")
    return [part for line in lines for part in folded(printable(line), width)]
