"""An evaluation as one self-contained HTML page: no script, no request, light or dark as the system is."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from regard.draw.charts import Series, bar_chart, categories, line_chart
from regard.draw.heatmap import heat_maps_svg
from regard.draw.labels import escaped
from regard.draw.pages import report_fragment, report_page
from regard.draw.scene import svg
from regard.evaluation.document import Evaluation, System
from regard.evaluation.examples import choose
from regard.evaluation.scores import MEASURE_LABELS, Interval
from regard.evaluation.tables import Table, ranged, signature_lines, tables
from regard.text.words import words


def page(evaluation: Evaluation, title: str) -> str:
    """Return the whole report, with the sentences worth a look and where each model looked."""
    lines = "".join(f"<p>{escaped(line)}</p>" for line in summary(evaluation))
    parts = [f"<h1>{escaped(title)}</h1>", lines, _findings(evaluation), *_examples(evaluation)]
    return report_page("\n".join(parts), title)


def fragment(evaluation: Evaluation) -> str:
    """Return the tables and figures, for a notebook."""
    return report_fragment(_findings(evaluation))


def summary(evaluation: Evaluation) -> list[str]:
    """Return what was found, in plain words."""
    first, *others = evaluation.systems
    bleu = first.scores["bleu"]
    lines = [
        f"{first.name} reaches {ranged(bleu.value, bleu.interval)} BLEU on {len(evaluation.sources):,} "
        f"sentences, compared {evaluation.compared}."
    ]
    for system in others:
        (change,) = (
            one for one in evaluation.differences if one.system == system.name and one.measure == "bleu"
        )
        verdict = (
            "which is more than chance explains" if change.is_beyond_chance else "which chance may explain"
        )
        lines.append(
            f"{system.name} reaches {ranged(system.scores['bleu'].value, system.scores['bleu'].interval)}: "
            f"{abs(change.value):.1f} {'more' if change.value >= 0 else 'less'}, {verdict}."
        )
    return lines


def length_chart(evaluation: Evaluation) -> str:
    """Return the figure of Bahdanau et al. 2015: BLEU by length of the source, a line for each system."""
    bins = evaluation.systems[0].by_length
    series = [
        _series(system, [one.bleu for one in system.by_length], [one.interval for one in system.by_length])
        for system in evaluation.systems
    ]
    notes = [f"n = {one.num_sentences:,}" for one in bins]
    axis = categories("words in the source", [one.label for one in bins], notes)
    return svg(line_chart(series, "BLEU by length of the source", "BLEU", axis))


def frequency_chart(evaluation: Evaluation) -> str:
    """Return how well words are translated by how often they occur, a bar for each system."""
    bins = evaluation.systems[0].by_frequency
    series = [
        _series(system, [one.f for one in system.by_frequency], [one.interval for one in system.by_frequency])
        for system in evaluation.systems
    ]
    notes = [f"{one.num_reference_words:,} words" for one in bins]
    axis = categories(f"occurrences of a word in {evaluation.counted}", [one.label for one in bins], notes)
    return svg(bar_chart(series, "F-measure of words by how often they occur", "F-measure", axis))


def _series(system: System, values: Sequence[float], intervals: Sequence[Interval | None]) -> Series:
    known = any(intervals)
    return Series(
        system.name,
        np.arange(len(values), dtype=float),
        np.array(values, dtype=float),
        np.array([one.low if one else np.nan for one in intervals]) if known else None,
        np.array([one.high if one else np.nan for one in intervals]) if known else None,
        f"BLEU {system.scores['bleu'].value:.1f}",
    )


def _findings(evaluation: Evaluation) -> str:
    parts = []
    for table in tables(evaluation):
        parts.append(f"<h2>{escaped(table.title)}</h2>")
        if table.title.startswith("BLEU by length"):
            parts.append(length_chart(evaluation))
        if table.title.startswith("F-measure"):
            parts.append(frequency_chart(evaluation))
        parts.append(_table(table))
    parts.append("<h2>Signatures</h2><ul>")
    parts += [f"<li><code>{escaped(line)}</code></li>" for line in signature_lines(evaluation)]
    parts.append("</ul>")
    return "\n".join(parts)


def _table(table: Table) -> str:
    head = "".join(f"<th>{_cell(name)}</th>" for name in table.columns)
    rows = "\n".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    note = f'<p class="note">{escaped(table.note[:1].upper() + table.note[1:])}</p>' if table.note else ""
    return f'<div class="wide"><table><tr>{head}</tr>\n{rows}</table></div>{note}'


def _cell(text: str) -> str:
    return (
        f'<span class="name" title="{escaped(text)}">{escaped(text)}</span>'
        if len(text) > 30
        else escaped(text)
    )


def _examples(evaluation: Evaluation) -> Iterator[str]:
    """Yield the sentences in which systems part, then the worst and best of each."""
    examples = choose(evaluation)
    first = evaluation.systems[0]
    for apart in examples.apart:
        other = evaluation.system(apart.system)
        for rows, word in ((apart.better, "better"), (apart.worse, "worse")):
            if rows:
                yield f"<h2>Where {escaped(other.name)} is {word} than {escaped(first.name)}</h2>"
                yield from (
                    _example(evaluation, row, (first, other), is_open=place == 0)
                    for place, row in enumerate(rows)
                )
    for one in examples.extremes:
        system = evaluation.system(one.system)
        for rows, word in ((one.worst, "Worst"), (one.best, "Best")):
            if rows:
                yield f"<h2>{word} sentences of {escaped(system.name)}</h2>"
                yield from (_example(evaluation, row, (system,), pictured=not examples.apart) for row in rows)
    if examples.extremes:
        label = MEASURE_LABELS["chrf"]
        yield (
            f'<p class="note">Chosen by {label} of each sentence. A word with dots below it is not in the '
            "reference, or more often than there; it may be right all the same.</p>"
        )


def _example(
    evaluation: Evaluation,
    row: int,
    systems: Sequence[System],
    *,
    pictured: bool = True,
    is_open: bool = False,
) -> str:
    reference = evaluation.references[row]
    terms = [
        (f"line {row + 1:,}", f'<dd dir="auto">{escaped(evaluation.sources[row])}</dd>'),
        ("reference", f'<dd dir="auto">{escaped(reference)}</dd>'),
    ]
    for system in systems:
        flags = (
            f'<div class="note">flags: {escaped(", ".join(system.flags[row]))}</div>'
            if system.flags[row]
            else ""
        )
        text = _against(system.texts[row], reference) or '<span class="note">nothing</span>'
        terms.append((f"{system.name} ({system.chrf[row]:.0f})", f'<dd dir="auto">{text}{flags}</dd>'))
    rows = "\n".join(f"<dt>{escaped(name)}</dt>{said}" for name, said in terms)
    maps = [system.heat_maps[row] for system in systems if row in system.heat_maps] if pictured else []
    looks = (
        f"<details{' open' if is_open else ''}><summary>where each word came from</summary>"
        f'<div class="wide">{heat_maps_svg(maps)}</div></details>'
        if maps
        else ""
    )
    return f'<div class="example"><dl>{rows}</dl>{looks}</div>\n'


def _against(text: str, reference: str) -> str:
    """Return the text with the words marked that the reference does not have, or not so often."""
    left = Counter(reference[start:end] for start, end in words(reference))
    parts, before = [], 0
    for start, end in words(text):
        word = text[start:end]
        parts.append(escaped(text[before:start]))
        parts.append(escaped(word) if left[word] > 0 else f'<span class="off">{escaped(word)}</span>')
        left[word] -= 1
        before = end
    return "".join([*parts, escaped(text[before:])])
