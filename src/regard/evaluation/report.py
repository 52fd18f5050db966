"""An evaluation as a report: tables, charts, and the sentences worth a look. English only."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from regard.draw.charts import Series, bar_chart, categories, line_chart
from regard.draw.scene import Scene
from regard.errors import OutputError
from regard.evaluation.bench import MAX_IN_PAIRS
from regard.evaluation.document import ALPHA, FORMAT, Evaluation, System
from regard.evaluation.examples import choose
from regard.evaluation.scores import MEASURE_LABELS, Interval
from regard.files import writing_folder
from regard.report.document import Entry, Example, Figure, Paragraph, Report, Section, Table, one_line
from regard.report.folder import JSON, holds_report, json_text
from regard.report.html import fragment, page
from regard.report.markdown import markdown, plain

_PAGE, _MARKDOWN = "report.html", "report.md"


def check_folder(folder: Path, replace: bool) -> None:
    """Raise an error if there is something in the place of a report that may not be replaced."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    is_whole = folder.is_dir() and {one.name for one in folder.iterdir()} <= {_PAGE, _MARKDOWN, JSON}
    if folder.is_symlink() or not is_whole or not holds_report(folder, FORMAT):
        raise OutputError(
            f"{folder}: exists and is not a report of regard; choose another name, or remove it"
        )
    if not replace:
        raise OutputError(f"{folder}: contains a report; choose another name, or replace it with --force")


def write_report(evaluation: Evaluation, folder: Path, title: str, replace: bool = False) -> None:
    """Write the report as a page, Markdown and JSON; the folder appears whole or not at all."""
    check_folder(folder, replace)
    data, report = json_text(evaluation.to_json()), report_of(evaluation, title)
    with writing_folder(folder, JSON) as temporary:
        for name, text in ((_PAGE, page(report)), (_MARKDOWN, markdown(report)), (JSON, data)):
            (temporary / name).write_bytes(text.encode("utf-8", "replace"))


def report_of(evaluation: Evaluation, title: str) -> Report:
    """Return the whole report, with the sentences worth a look and where each model looked."""
    return Report(title, (*_findings(evaluation), *_sentences(evaluation)))


def plain_text(evaluation: Evaluation) -> str:
    """Return summary and tables for a terminal."""
    return plain(_findings(evaluation))


def notebook_html(evaluation: Evaluation) -> str:
    """Return summary, tables and figures for a notebook."""
    return fragment(Report("", tuple(_findings(evaluation))))


def _findings(evaluation: Evaluation) -> list[Section]:
    """Return every section there is something to say in, but for single sentences."""
    tables = {
        "Scores": _scores(evaluation),
        f"Differences from {evaluation.systems[0].name}": _differences(evaluation, of_first=True),
        "Differences between the others": _differences(evaluation, of_first=False),
        "BLEU by length of the source": _by_length(evaluation),
        "F-measure of words by frequency": _by_frequency(evaluation),
        "BLEU by flags of the translations": _by_flag(evaluation),
        "Likelihood and speed": _models(evaluation),
    }
    charts = {
        "BLEU by length of the source": length_chart({one.name: one for one in evaluation.systems}),
        "F-measure of words by frequency": _frequency_chart(evaluation),
    }
    sections = [Section("Summary", tuple(map(Paragraph, _summary(evaluation))))]
    for title, table in tables.items():
        figure = (Figure(charts[title]),) if title in charts else ()
        sections += [Section(title, (*figure, table))] if table.rows else []
    return [*sections, Section("Signatures", (signatures(evaluation),))]


def _summary(evaluation: Evaluation) -> list[str]:
    first, *others = evaluation.systems
    lines = [
        f"{first.name} reaches {_score(first)} BLEU on {len(evaluation.sources):,} sentences, compared "
        f"{evaluation.compared}."
    ]
    for system in others:
        change = evaluation.difference(system.name, first.name)
        verdict = "is more than chance explains" if change.is_beyond_chance else "chance may explain"
        amount = f"{abs(change.value):.1f} {'more' if change.value >= 0 else 'less'}"
        lines.append(f"{system.name} reaches {_score(system)}: {amount}, which {verdict}.")
    return [*lines, *_between_others(evaluation), *evaluation.warnings]


def _between_others(evaluation: Evaluation) -> list[str]:
    """Return a line on the BLEU of all systems but the first, if they were compared."""
    found = [
        one
        for one in evaluation.differences
        if one.measure == "bleu" and one.first != evaluation.systems[0].name
    ]
    said = [
        f"{one.system} {'above' if one.value >= 0 else 'below'} {one.first} by {abs(one.value):.1f}"
        for one in found
        if one.is_beyond_chance
    ]
    if said:
        return [f"Between the others, more than chance explains: {', '.join(said)}."]
    return ["Between the others, chance may explain every difference."] if found else []


def _score(system: System) -> str:
    return one_line(ranged(system.scores["bleu"].value, system.scores["bleu"].interval))


def ranged(value: float, around: Interval | None, form: str = ".1f", unit: str = "", to: str = " to ") -> str:
    """Return a number and in a second line where it lies: `34.2`, `32.9 to 35.6`."""
    if around is None:
        return f"{value:{form}}{unit}"
    return f"{value:{form}}{unit}\n{around.low:{form}}{to}{around.high:{form}}{unit}"


def p_value(value: float) -> str:
    """Return a p as it is written: `0.031`, `< 0.001`."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def signatures(evaluation: Evaluation) -> Paragraph:
    """Return how each measure was computed."""
    lines = (f"{MEASURE_LABELS[name]} {text}" for name, text in evaluation.signatures.items())
    return Paragraph("", tuple(lines), is_code=True)


def _scores(evaluation: Evaluation) -> Table:
    columns = [f"{label} {'↓' if key == 'ter' else '↑'}" for key, label in MEASURE_LABELS.items()]
    rows = [
        (system.name, *(ranged(one.value, one.interval) for one in system.scores.values()))
        for system in evaluation.systems
    ]
    compared = evaluation.compared[:1].upper() + evaluation.compared[1:]
    return Table(
        ("system", *columns),
        tuple(rows),
        f"{compared}; {len(evaluation.sources):,} sentences; in brackets or below: 95 % intervals by "
        f"bootstrap, {evaluation.num_resamples:,} resamples. TER counts edits: lower is better."
        + ("" if evaluation.guard else " Models bare: nothing is tried again, no long source is split."),
    )


def _differences(evaluation: Evaluation, of_first: bool) -> Table:
    rows = [
        (
            one.system if of_first else f"{one.system} from {one.first}",
            MEASURE_LABELS[one.measure],
            ranged(one.value, one.interval, "+.1f"),
            p_value(one.p_randomisation),
            p_value(one.p_corrected),
            p_value(one.p_bootstrap),
            "yes" if one.is_beyond_chance else "no",
        )
        for one in evaluation.differences
        if (one.first == evaluation.systems[0].name) == of_first
    ]
    num_pairs = sum(one.measure == "bleu" for one in evaluation.differences)
    note = (
        f"Paired, two-sided; approximate randomisation with {evaluation.num_trials:,} trials, its p "
        f"corrected for {num_pairs} {'comparison' if num_pairs == 1 else 'comparisons'} by Holm's method; "
        f"paired bootstrap with {evaluation.num_resamples:,} resamples. Beyond chance: corrected p "
        f"and p of the bootstrap below {ALPHA:g}."
    )
    if len(evaluation.systems) > MAX_IN_PAIRS:
        note += f" The others are not compared with each other: there are more than {MAX_IN_PAIRS} systems."
    columns = ("p, randomisation", "p, corrected", "p, bootstrap", "beyond chance")
    return Table(("system", "measure", "difference", *columns), tuple(rows), note, num_words=2)


def _by_length(evaluation: Evaluation) -> Table:
    bins = zip(*(system.by_length for system in evaluation.systems), strict=True)
    rows = [
        (row[0].label, f"{row[0].num_sentences:,}", *(ranged(one.bleu, one.interval) for one in row))
        for row in bins
    ]
    return Table(("words", "sentences", *_names(evaluation)), tuple(rows))


def _by_frequency(evaluation: Evaluation) -> Table:
    bins = zip(*(system.by_frequency for system in evaluation.systems), strict=True)
    rows = [
        (row[0].label, f"{row[0].num_reference_words:,}", *(ranged(one.f, one.interval) for one in row))
        for row in bins
    ]
    return Table(
        ("occurrences", "words in references", *_names(evaluation)),
        tuple(rows),
        f"Occurrences are counted in {evaluation.counted}.",
    )


def _by_flag(evaluation: Evaluation) -> Table:
    rows = [
        (system.name, one.flag, f"{one.num_sentences:,}", ranged(one.bleu, one.interval))
        for system in evaluation.systems
        for one in system.by_flag
    ]
    return Table(
        ("system", "flag", "sentences", "BLEU"),
        tuple(rows),
        "A translation may have several flags; any: those with at least one (see docs/translating.md).",
        num_words=2,
    )


def _models(evaluation: Evaluation) -> Table:
    notes = [
        "Perplexity is per piece of the references and compares only models with the same vocabulary; "
        "bits per character compare all models. Words are counted in the sources."
    ]
    rows = []
    for system in evaluation.systems:
        likelihood, speed = system.likelihood, system.speed
        if likelihood and likelihood.num_left_out:
            notes.append(f"{system.name}: {likelihood.num_left_out:,} references too long for it")
        if likelihood and likelihood.num_unknown:
            unknown = f"{likelihood.num_unknown:,} unknown words in the references"
            notes.append(f"{system.name}: {unknown}, so its bits per character are too low")
        if speed:
            rows.append(
                (
                    system.name,
                    "?" if system.num_parameters is None else f"{system.num_parameters:,}",
                    "-" if likelihood is None else f"{likelihood.perplexity:.4g}",
                    "-" if likelihood is None else f"{likelihood.bits:.3f}",
                    f"{speed.seconds:.1f}",
                    f"{speed.sentences_per_second:.1f}",
                    f"{speed.words_per_second:.0f}",
                )
            )
    columns = ("model", "weights", "perplexity", "bits per character", "seconds", "sentences/s", "words/s")
    return Table(columns, tuple(rows), "; ".join(notes))


def _names(evaluation: Evaluation) -> list[str]:
    return [system.name for system in evaluation.systems]


def length_chart(
    systems: Mapping[str, System],
    title: str = "BLEU by length of the source",
    x_label: str = "words in the source",
    language: str = "en",
) -> Scene:
    """Return the figure of Bahdanau et al. 2015: BLEU by length of the source, a line for each system."""
    bins = next(iter(systems.values())).by_length
    notes = [f"n = {one.num_sentences:,}" for one in bins]
    axis = categories(x_label, [one.label for one in bins], notes, language)
    series = [
        _series(name, system, [(one.bleu, one.interval) for one in system.by_length])
        for name, system in systems.items()
    ]
    return line_chart(series, title, "BLEU", axis)


def _frequency_chart(evaluation: Evaluation) -> Scene:
    """Return how well words are translated by how often they occur, a bar for each system."""
    bins = evaluation.systems[0].by_frequency
    notes = [f"{one.num_reference_words:,} words" for one in bins]
    x_label = f"occurrences of a word in {evaluation.counted}"
    axis = categories(x_label, [one.label for one in bins], notes)
    series = [
        _series(one.name, one, [(bin.f, bin.interval) for bin in one.by_frequency])
        for one in evaluation.systems
    ]
    return bar_chart(series, "F-measure of words by how often they occur", "F-measure", axis)


def _series(name: str, system: System, values: Sequence[tuple[float, Interval | None]]) -> Series:
    places, y = np.arange(len(values), dtype=float), np.array([value for value, _ in values], dtype=float)
    low, high = (
        np.array([getattr(around, end) if around else np.nan for _, around in values])
        for end in ("low", "high")
    )
    return Series(name, places, y, low, high, f"BLEU {system.scores['bleu'].value:.1f}")


def _sentences(evaluation: Evaluation) -> list[Section]:
    """Return the sentences in which systems part, then the worst and best of each."""
    first = evaluation.systems[0]
    titles = {
        "better": "Where {0} is better than {1}",
        "worse": "Where {0} is worse than {1}",
        "worst": "Worst sentences of {0}",
        "best": "Best sentences of {0}",
    }
    sections = []
    for chosen in choose(evaluation):
        system, is_apart = evaluation.system(chosen.system), chosen.why in ("better", "worse")
        pair = (first, system) if is_apart else (system,)
        shown = [
            _example(evaluation, row, pair, is_apart or len(evaluation.systems) == 1, is_apart and not place)
            for place, row in enumerate(chosen.rows)
        ]
        title = titles[chosen.why].format(chosen.system, first.name)
        sections += [Section(title, tuple(shown))] if shown else []
    note = (
        f"Sentences are chosen by their {MEASURE_LABELS['chrf']}, which stands in brackets. On the page, a "
        "word with dots below it is not in the reference, or more often than there; it may still be right."
    )
    return [*sections, Section("How sentences were chosen", (Paragraph(note),))] if sections else []


def _example(
    evaluation: Evaluation, row: int, systems: Sequence[System], is_pictured: bool, is_open: bool
) -> Example:
    reference = evaluation.references[row]
    entries = [Entry(f"line {row + 1:,}", evaluation.sources[row]), Entry("reference", reference)]
    for system in systems:
        name = f"{system.name} (chrF {system.chrf[row]:.0f})"
        flags = f"flags: {', '.join(system.flags[row])}" if system.flags[row] else ""
        entries.append(Entry(name, system.texts[row], flags, reference))
    maps = [system.heat_maps[row] for system in systems if is_pictured and row in system.heat_maps]
    return Example(tuple(entries), tuple(maps), is_open)
