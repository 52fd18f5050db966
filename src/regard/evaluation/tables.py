"""An evaluation as tables: once as rows of words, then as plain text or Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.draw.labels import display_width, pad_left, pad_right, printable
from regard.evaluation.document import ALPHA, Evaluation, System
from regard.evaluation.examples import Examples, choose
from regard.evaluation.scores import MEASURE_LABELS, Interval


@dataclass(frozen=True, slots=True)
class Table:
    """Words in rows; the first column is of names, the others of numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def tables(evaluation: Evaluation) -> list[Table]:
    """Return every table there is something to say in."""
    made = [
        _scores(evaluation),
        _differences(evaluation),
        _by_length(evaluation),
        _by_frequency(evaluation),
        _by_flag(evaluation),
        _models(evaluation),
    ]
    return [one for one in made if one.rows]


def ranged(value: float, around: Interval | None) -> str:
    """Return a score with its interval: `34.2 (32.9 to 35.6)`."""
    return f"{value:.1f}" if around is None else f"{value:.1f} ({around.low:.1f} to {around.high:.1f})"


def _scores(evaluation: Evaluation) -> Table:
    columns = [f"{label} {'↓' if key == 'ter' else '↑'}" for key, label in MEASURE_LABELS.items()]
    rows = [
        (system.name, *(ranged(one.value, one.interval) for one in system.scores.values()))
        for system in evaluation.systems
    ]
    return Table(
        "Scores",
        ("system", *columns),
        tuple(rows),
        f"{evaluation.compared}; {len(evaluation.sources):,} sentences; in brackets 95 % intervals by "
        f"bootstrap, {evaluation.num_resamples:,} resamples. TER counts edits: less is better."
        + ("" if evaluation.guard else " Models bare: nothing is tried again, no long source is split."),
    )


def _differences(evaluation: Evaluation) -> Table:
    rows = [
        (
            one.system,
            MEASURE_LABELS[one.measure],
            f"{one.value:+.1f} ({one.interval.low:+.1f} to {one.interval.high:+.1f})",
            _p(one.p_randomisation),
            _p(one.p_bootstrap),
            "yes" if one.is_beyond_chance else "no",
        )
        for one in evaluation.differences
    ]
    return Table(
        f"Differences from {evaluation.systems[0].name}",
        ("system", "measure", "difference", "p, randomisation", "p, bootstrap", "beyond chance"),
        tuple(rows),
        f"paired, two-sided; approximate randomisation with {evaluation.num_trials:,} trials and paired "
        f"bootstrap with {evaluation.num_resamples:,} resamples. Beyond chance: both p below {ALPHA:g}, not "
        "corrected for several comparisons.",
    )


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _by_length(evaluation: Evaluation) -> Table:
    first = evaluation.systems[0]
    rows = [
        (
            bin.label,
            f"{bin.num_sentences:,}",
            *(
                ranged(system.by_length[place].bleu, system.by_length[place].interval)
                for system in evaluation.systems
            ),
        )
        for place, bin in enumerate(first.by_length)
    ]
    return Table(
        "BLEU by length of the source",
        ("words", "sentences", *(system.name for system in evaluation.systems)),
        tuple(rows),
    )


def _by_frequency(evaluation: Evaluation) -> Table:
    rows = [
        (
            bin.label,
            f"{bin.num_reference_words:,}",
            *(
                ranged(system.by_frequency[place].f, system.by_frequency[place].interval)
                for system in evaluation.systems
            ),
        )
        for place, bin in enumerate(evaluation.systems[0].by_frequency)
    ]
    return Table(
        "F-measure of words by frequency",
        ("occurrences", "words in references", *(system.name for system in evaluation.systems)),
        tuple(rows),
        f"occurrences are counted in {evaluation.counted}.",
    )


def _by_flag(evaluation: Evaluation) -> Table:
    rows = [
        (system.name, one.flag, f"{one.num_sentences:,}", ranged(one.bleu, one.interval))
        for system in evaluation.systems
        for one in system.by_flag
    ]
    return Table(
        "BLEU by flags of the translations",
        ("system", "flag", "sentences", "BLEU"),
        tuple(rows),
        "a translation may have several flags; any: all that have one. docs/translating.md explains them.",
    )


def _models(evaluation: Evaluation) -> Table:
    rows = [_model(system) for system in evaluation.systems if system.speed]
    left_out = [
        f"{system.name}: {system.likelihood.num_left_out:,} references too long for it"
        for system in evaluation.systems
        if system.likelihood and system.likelihood.num_left_out
    ]
    unknown = [
        f"{system.name}: {system.likelihood.num_unknown:,} words it cannot say, so that its bits are too few"
        for system in evaluation.systems
        if system.likelihood and system.likelihood.num_unknown
    ]
    note = "perplexity is that of the references, for each piece: only models of one vocabulary can be "
    note += "compared by it, all by bits for each character. Words are those of the sources."
    return Table(
        "Likelihood and speed",
        ("model", "weights", "perplexity", "bits per character", "seconds", "sentences/s", "words/s"),
        tuple(rows),
        "; ".join([note, *left_out, *unknown]),
    )


def _model(system: System) -> tuple[str, ...]:
    likelihood, speed = system.likelihood, system.speed
    assert speed is not None
    return (
        system.name,
        "?" if system.num_parameters is None else f"{system.num_parameters:,}",
        "-" if likelihood is None else f"{likelihood.perplexity:.4g}",
        "-" if likelihood is None else f"{likelihood.bits:.3f}",
        f"{speed.seconds:.1f}",
        f"{speed.sentences_per_second:.1f}",
        f"{speed.words_per_second:.0f}",
    )


def signature_lines(evaluation: Evaluation) -> list[str]:
    """Return how each measure was computed, one in each line."""
    return [f"{MEASURE_LABELS[name]} {text}" for name, text in evaluation.signatures.items()]


def plain_text(evaluation: Evaluation) -> str:
    """Return all tables for a terminal."""
    parts = [
        "\n".join([one.title, *_aligned(one), *([f"({printable(one.note)})"] if one.note else [])])
        for one in tables(evaluation)
    ]
    return "\n\n".join([*parts, "\n".join(signature_lines(evaluation))])


def _aligned(table: Table) -> list[str]:
    rows = [[printable(cell) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            pad_left(cell, width) if place else pad_right(cell, width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def markdown(evaluation: Evaluation, title: str) -> str:
    """Return the report as Markdown: tables, and sentences as lists."""
    lines = [f"# {_marked(title)}", ""]
    for table in tables(evaluation):
        lines += [f"## {_marked(table.title)}", "", *_markdown_rows(table), ""]
        lines += [_marked(table.note[:1].upper() + table.note[1:]), ""] if table.note else []
    lines += ["## Signatures", "", *(f"- `{line}`" for line in signature_lines(evaluation)), ""]
    lines += _sentences(evaluation, choose(evaluation))
    return "\n".join(lines)


def _markdown_rows(table: Table) -> list[str]:
    def row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(map(_marked, cells))} |"

    ruler = f"|{'---|' + '---:|' * (len(table.columns) - 1)}"
    return [row(table.columns), ruler, *map(row, table.rows)]


def _sentences(evaluation: Evaluation, examples: Examples) -> list[str]:
    lines = []
    for apart in examples.apart:
        first = evaluation.systems[0].name
        for rows, word in ((apart.better, "better"), (apart.worse, "worse")):
            if rows:
                lines += [f"## Where {_marked(apart.system)} is {word} than {_marked(first)}", ""]
                lines += _listed(evaluation, rows, (evaluation.systems[0], evaluation.system(apart.system)))
    for one in examples.extremes:
        for rows, word in ((one.worst, "Worst"), (one.best, "Best")):
            if rows:
                lines += [f"## {word} sentences of {_marked(one.system)}", ""]
                lines += _listed(evaluation, rows, (evaluation.system(one.system),))
    return lines


def _listed(evaluation: Evaluation, rows: Sequence[int], systems: Sequence[System]) -> list[str]:
    lines = []
    for row in rows:
        lines += [
            f"- line {row + 1:,}: {_marked(evaluation.sources[row])}",
            f"  - reference: {_marked(evaluation.references[row])}",
            *(
                f"  - {_marked(system.name)} (chrF {system.chrf[row]:.0f}): {_marked(system.texts[row])}"
                for system in systems
            ),
        ]
    return [*lines, ""]


def _marked(text: str) -> str:
    """Return the text as Markdown shows it and nothing else: no markup, no HTML, one line."""
    return "".join(f"\\{one}" if one in "\\`*_{}[]<>#|~!&$@" else one for one in printable(text))
