"""A ladder as one self-contained page in each language, as Markdown and as plain text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from regard.draw.charts import Series, categories, line_chart
from regard.draw.heatmap import heat_maps_svg
from regard.draw.labels import display_width, escaped, pad_left, pad_right, printable
from regard.draw.pages import report_fragment, report_page
from regard.draw.scene import svg
from regard.evaluation.tables import signature_lines
from regard.lineage.document import Climbed, Lineage, Step
from regard.lineage.wording import LANGUAGES, WORDS, is_shown, one_line, ranged, share, summary


@dataclass(frozen=True, slots=True)
class _Table:
    """Words in rows, an interval after a line break; the first `num_words` columns are not numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    num_words: int
    note: str


def file_name(language: str, ending: str) -> str:
    """Return what a file of the report in a language is called: `report.html`, `report.ko.html`."""
    return f"report.{ending}" if language == "en" else f"report.{language}.{ending}"


def page(lineage: Lineage, language: str) -> str:
    """Return the whole report in one language."""
    words = WORDS[language]
    others = " · ".join(
        f'<a href="{file_name(other, "html")}" hreflang="{other}" lang="{other}">'
        f"{WORDS[other]['language']}</a>"
        for other in LANGUAGES
        if other != language
    )
    parts = [
        f'<p class="note">regard lineage · {others}</p>',
        f"<h1>{escaped(words['title'])}</h1>",
        _findings(lineage, language),
    ]
    return report_page("\n".join(parts), words["title"], language)


def fragment(lineage: Lineage, language: str) -> str:
    """Return the same for a notebook."""
    return report_fragment(_findings(lineage, language))


def length_chart(lineage: Lineage, language: str) -> str:
    """Return the figure of Bahdanau et al. 2015: BLEU by length of the source, a line for each rung."""
    words = WORDS[language]
    systems = [lineage.evaluation.system(one.rung.name) for one in lineage.rungs]
    bins = systems[0].by_length
    series = []
    for climbed, system in zip(lineage.rungs, systems, strict=True):
        around = [one.interval for one in system.by_length]
        known = any(around)  # bins of single sentences have none
        series.append(
            Series(
                climbed.rung.title[language],
                np.arange(len(bins), dtype=float),
                np.array([one.bleu for one in system.by_length]),
                np.array([one.low if one else np.nan for one in around]) if known else None,
                np.array([one.high if one else np.nan for one in around]) if known else None,
                f"BLEU {system.scores['bleu'].value:.1f}",
            )
        )
    notes = [f"n = {one.num_sentences:,}" for one in bins]
    axis = categories(words["words"], [one.label for one in bins], notes, language)
    return svg(line_chart(series, words["lengths"], "BLEU", axis))


def markdown(lineage: Lineage, language: str) -> str:
    """Return the report as Markdown, with the figure of BLEU by length, which stands beside it."""
    words = WORDS[language]
    lines = [f"# {_marked(words['title'])}", "", f"## {words['summary']}", ""]
    for one in summary(lineage, language):
        lines += [_marked(one.text), ""]
        lines += [*(f"- {_marked(item)}" for item in one.items), ""] if one.items else []
    for place, (title, table) in enumerate(_tables(lineage, language)):
        lines += [f"## {_marked(title)}", "", *_markdown_rows(table), "", _marked(table.note), ""]
        if not place:
            lines += [f"![{_marked(words['lengths'])}]({file_name(language, 'svg')})", ""]
    lines += [f"## {_marked(words['sample'])}", "", f"> {_marked(lineage.sentence)}", ""]
    for climbed in lineage.rungs:
        said = _marked(climbed.sample.strip()) or f"*{words['nothing']}*"
        lines.append(f"- {_marked(climbed.rung.title[language])}: {said}")
    lines += ["", f"## {words['signatures']}", ""]
    lines += [*(f"- `{line}`" for line in signature_lines(lineage.evaluation)), ""]
    return "\n".join(lines)


def plain_text(lineage: Lineage) -> str:
    """Return the summary and the table of all rungs for a terminal."""
    lines = []
    for one in summary(lineage, "en"):
        lines += [one.text, *(f"  {item}" for item in one.items)]
    (title, table), *_ = _tables(lineage, "en")
    rows = [[printable(one_line(cell)) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    lines += ["", title]
    for row in rows:
        cells = zip(row, widths, strict=True)
        padded = [
            pad_left(cell, size) if place else pad_right(cell, size)
            for place, (cell, size) in enumerate(cells)
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _findings(lineage: Lineage, language: str) -> str:
    words = WORDS[language]
    parts = []
    for one in summary(lineage, language):
        parts.append(f"<p>{escaped(one.text)}</p>")
        if one.items:
            parts.append(f"<ul>{''.join(f'<li>{escaped(item)}</li>' for item in one.items)}</ul>")
    for place, (title, table) in enumerate(_tables(lineage, language)):
        parts += [f"<h2>{escaped(title)}</h2>", _html_table(table)]
        if not place:
            parts.append(length_chart(lineage, language))
    parts += _sample(lineage, language)
    signatures = "".join(
        f"<li><code>{escaped(line)}</code></li>" for line in signature_lines(lineage.evaluation)
    )
    parts.append(f"<h2>{escaped(words['signatures'])}</h2><ul>{signatures}</ul>")
    return "\n".join(parts)


def _tables(lineage: Lineage, language: str) -> Iterator[tuple[str, _Table]]:
    words, evaluation = WORDS[language], lineage.evaluation
    counts = {"resamples": evaluation.num_resamples, "trials": evaluation.num_trials}
    head = [
        "rung",
        "weights",
        "updates",
        "seconds",
        "BLEU",
        "chrF2",
        "short",
        "long",
        "kept",
        "aer",
        "entropy",
        "speed",
    ]
    if lineage.num_gold is None:
        head.remove("aer")
    rows = [_row(lineage, one, language) for one in lineage.rungs]
    columns = tuple(words.get(name, name) for name in head)
    yield words["rungs"], _Table(columns, tuple(rows), 1, words["note_rungs"].format(**counts))
    if lineage.steps:
        columns = tuple(words[name] for name in ("rung", "base", "idea", "gain", "p", "gain_long", "verdict"))
        rows = [_step(one, language) for one in lineage.steps]
        yield words["steps"], _Table(columns, tuple(rows), 3, words["note_steps"].format(**counts))


def _row(lineage: Lineage, one: Climbed, language: str) -> tuple[str, ...]:
    words, system = WORDS[language], lineage.evaluation.system(one.rung.name)
    absent = words["unknown"] if one.rung.has_attention else words["none"]
    scores = [system.scores["bleu"], system.scores["chrf"], one.short, one.long]
    aer = absent if one.aer is None else ranged(one.aer.value, one.aer.interval, language, ".3f")
    return (
        one.rung.title[language],
        f"{one.num_parameters:,}",
        f"{one.num_updates:,}",
        f"{one.seconds:,.0f}",
        *(
            words["unknown"] if each is None else ranged(each.value, each.interval, language)
            for each in scores
        ),
        words["unknown"] if one.kept is None else share(one.kept, language),
        *([] if lineage.num_gold is None else [aer]),
        absent if one.entropy is None else f"{one.entropy:.2f}",
        "-" if system.speed is None else f"{system.speed.sentences_per_second:.1f}",
    )


def _step(one: Step, language: str) -> tuple[str, ...]:
    words = WORDS[language]
    p = max(one.bleu.p_bootstrap, one.bleu.p_randomisation)
    long = one.long
    return (
        one.rung.title[language],
        one.base.title[language],
        one.rung.idea[language],
        ranged(one.bleu.value, one.bleu.interval, language, "+.2f"),
        "< 0.001" if p < 0.001 else f"{p:.3f}",
        words["unknown"] if long is None else ranged(long.value, long.interval, language, "+.2f"),
        words["shown"] if is_shown(one.bleu) else words["unshown"],
    )


def _html_table(table: _Table) -> str:
    def cells(row: Sequence[str], tag: str) -> str:
        made = []
        for place, cell in enumerate(row):
            value, _, around = cell.partition("\n")
            kind = ' class="words"' if place < table.num_words else ""
            below = f"<small>{escaped(around)}</small>" if around else ""
            made.append(f"<{tag}{kind}>{escaped(value)}{below}</{tag}>")
        return f"<tr>{''.join(made)}</tr>"

    rows = "\n".join(cells(row, "td") for row in table.rows)
    head = f'<div class="wide"><table>{cells(table.columns, "th")}\n{rows}</table></div>'
    return f'{head}<p class="note">{escaped(table.note)}</p>'


def _sample(lineage: Lineage, language: str) -> Iterator[str]:
    words = WORDS[language]
    yield f"<h2>{escaped(words['sample'])}</h2>"
    yield f'<blockquote dir="auto">{escaped(lineage.sentence)}</blockquote>'
    rows = []
    for one in lineage.rungs:
        said = escaped(one.sample.strip()) or f'<span class="note">{escaped(words["nothing"])}</span>'
        if not one.rung.has_attention:
            said += f' <span class="note">({escaped(words["no_attention"])})</span>'
        rows.append(f'<dt>{escaped(one.rung.title[language])}</dt><dd dir="auto">{said}</dd>')
    yield f"<dl>{''.join(rows)}</dl>"
    maps = [replace(one.heat_map, title=one.rung.title[language]) for one in lineage.rungs if one.heat_map]
    if maps:
        yield f'<div class="wide">{heat_maps_svg(maps, language)}</div>'


def _markdown_rows(table: _Table) -> list[str]:
    def row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(_marked(one_line(cell)) for cell in cells)} |"

    num_numbers = len(table.columns) - table.num_words
    return [row(table.columns), f"|{'---|' * table.num_words}{'---:|' * num_numbers}", *map(row, table.rows)]


def _marked(text: str) -> str:
    """Return the text as Markdown shows it and nothing else."""
    return "".join(f"\\{one}" if one in "\\`*_{}[]<>#|~!&$@" else one for one in printable(text))
