"""A ladder as a report in English and Korean, and the folder that holds its models and its report."""

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from regard.draw.labels import texts
from regard.draw.scene import Scene, svg
from regard.errors import OutputError
from regard.evaluation.document import Difference, Estimate, System
from regard.evaluation.report import length_chart, p_value, ranged, signatures
from regard.evaluation.scores import Interval
from regard.files import writing
from regard.lineage.document import FORMAT, Climbed, Lineage, includes_zero
from regard.lineage.ladder import LADDER, Rung
from regard.report.document import (
    LANGUAGES,
    Entry,
    Example,
    Figure,
    Paragraph,
    Report,
    Section,
    Table,
    one_line,
)
from regard.report.folder import JSON, holds_report, json_text
from regard.report.html import fragment, page
from regard.report.markdown import markdown, plain

MODELS = "models"
_ENDINGS = ("html", "md", "svg")
_LOW_BLEU = 5.0  # below it translations share hardly more than single words with the references


def check_folder(folder: Path) -> None:
    """Raise an error if a folder holds anything but the models and the report of a ladder."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise OutputError(f"{folder}: is a file; name a folder for the report")
    known = {MODELS, JSON, *(file_name(*one) for one in product(LANGUAGES, _ENDINGS))}
    foreign = [one.name for one in folder.iterdir() if one.name not in known and not _is_hidden(one)]
    models = folder / MODELS
    if models.exists() and not foreign:
        names = {f"{rung.name}{ending}" for rung in LADDER for ending in (".regard", ".run")}
        inside = models.iterdir() if models.is_dir() else [models]
        foreign = [f"{MODELS}/{one.name}" for one in inside if one.name not in names and not _is_hidden(one)]
    if not foreign and not holds_report(folder, FORMAT):
        foreign = [one.name for one in folder.iterdir() if one.name in known - {MODELS}]
    if foreign:
        raise OutputError(
            f"{folder}: holds {min(foreign)!r}, which is not part of a lineage report; choose another "
            "folder, or move that file"
        )


def _is_hidden(path: Path) -> bool:
    """Return whether a file is hidden: one that a killed process was writing, or a file manager's own."""
    return path.name.startswith(".")


def file_name(language: str, ending: str) -> str:
    """Return what a file of the report in a language is called: `report.html`, `report.ko.html`."""
    return f"report.{ending}" if language == "en" else f"report.{language}.{ending}"


def write_report(lineage: Lineage, folder: Path) -> list[Path]:
    """Write the report, all of it or nothing, in place of an earlier one, and return its files."""
    check_folder(folder)
    written = {JSON: json_text(lineage.to_json())}  # first in its place: it marks the others as ours
    for language in LANGUAGES:
        report = report_of(lineage, language)
        written[file_name(language, "html")] = page(report)
        written[file_name(language, "md")] = markdown(report)
        written[file_name(language, "svg")] = svg(_Told(lineage, language).chart())
    paths = [folder / name for name in written]
    with writing(*paths) as streams:
        for stream, text in zip(streams, written.values(), strict=True):
            stream.write(text.encode("utf-8", "replace"))
    return paths


def plain_text(lineage: Lineage) -> str:
    """Return the summary and the table of all rungs for a terminal."""
    return plain(report_of(lineage, "en").sections[:2])


def notebook_html(lineage: Lineage) -> str:
    """Return the whole report for a notebook."""
    return fragment(report_of(lineage, "en"))


def report_of(lineage: Lineage, language: str) -> Report:
    """Return the report in one language."""
    told = _Told(lineage, language)
    sections = [
        Section(told.say("summary"), tuple(summary(lineage, language))),
        Section(told.say("rungs"), (told.rungs(), Figure(told.chart(), file_name(language, "svg")))),
        *([Section(told.say("steps"), (told.steps(),))] if lineage.steps else []),
        Section(told.say("sample"), (told.sample(),)),
        Section(told.say("signatures"), (signatures(lineage.evaluation),)),
    ]
    others = {other: file_name(other, "html") for other in LANGUAGES if other != language}
    return Report(told.say("title"), tuple(sections), language, others)


def summary(lineage: Lineage, language: str) -> list[Paragraph]:
    """Return what was found, in plain words."""
    told = _Told(lineage, language)
    gains = [told.gains()] if lineage.steps else []
    return [told.budget(), told.best(), told.kept(), *gains, told.alignment(), told.caution()]


@dataclass(frozen=True, slots=True)
class _Told:
    """A ladder in one language: the tables, and which texts fit the numbers."""

    lineage: Lineage
    language: str

    def say(self, key: str, **values: object) -> str:
        text: str = texts("report", self.language)["lineage"][key]
        return text.format(**values)

    def name(self, rung: Rung) -> str:
        return rung.title[self.language]

    def ranged(self, one: Estimate | Difference | None, form: str = ".1f", unit: str = "") -> str:
        return "-" if one is None else ranged(one.value, one.interval, form, unit, self.say("to"))

    def share(self, kept: Estimate | None) -> str:
        if kept is None:
            return "-"
        around = kept.interval and Interval(100 * kept.interval.low, 100 * kept.interval.high)
        return self.ranged(Estimate(100 * kept.value, around), ".0f", self.say("percent"))

    def time(self, seconds: float) -> str:
        for unit, size in (("hours", 3600), ("minutes", 60)):
            if seconds >= 2 * size:
                return self.say(f"in {unit}", number=f"{seconds / size:.1f}".removesuffix(".0"))
        return self.say("in seconds", number=f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}")

    def chart(self) -> Scene:
        systems = {self.name(one.rung): self._system(one) for one in self.lineage.rungs}
        return length_chart(systems, self.say("lengths"), self.say("words"), self.language)

    def rungs(self) -> Table:
        gold = [] if self.lineage.num_gold is None else ["aer"]
        columns = ["rung", "weights", "updates", "seconds", "BLEU", "chrF2", "short", "long", "kept"]
        rows = []
        for one in self.lineage.rungs:
            system = self._system(one)
            absent = "-" if one.rung.has_attention else self.say("none")
            aer = self.ranged(one.aer, ".3f") if one.aer else absent
            row = [
                self.name(one.rung),
                f"{one.num_parameters:,}",
                f"{one.num_updates:,}",
                f"{one.seconds:,.0f}",
                *map(self.ranged, (system.scores["bleu"], system.scores["chrf"], one.short, one.long)),
                self.share(one.kept),
                *(aer for _ in gold),
                absent if one.entropy is None else f"{one.entropy:.2f}",
                "-" if system.speed is None else f"{system.speed.sentences_per_second:.1f}",
            ]
            rows.append(tuple(row))
        note = self.say("note rungs", resamples=self.lineage.evaluation.num_resamples)
        return Table(self._head(*columns, *gold, "entropy", "speed"), tuple(rows), note)

    def steps(self) -> Table:
        rows = [
            (
                self.name(one.rung),
                self.name(one.base),
                one.rung.idea[self.language],
                self.ranged(one.bleu, "+.2f"),
                p_value(max(one.bleu.p_bootstrap, one.bleu.p_randomisation)),
                self.ranged(one.long, "+.2f"),
                self.say("shown" if _verdict(one.bleu) in ("better", "worse") else "unshown"),
            )
            for one in self.lineage.steps
        ]
        evaluation = self.lineage.evaluation
        note = self.say("note steps", resamples=evaluation.num_resamples, trials=evaluation.num_trials)
        columns = self._head("rung", "base", "idea", "BLEU", "p", "long", "verdict")
        return Table(columns, tuple(rows), note, num_words=3)

    def _head(self, *columns: str) -> tuple[str, ...]:
        return tuple(one if one in ("BLEU", "chrF2", "p") else self.say(one) for one in columns)

    def sample(self) -> Example:
        entries, maps = [Entry(self.say("source"), self.lineage.sentence)], []
        for one in self.lineage.rungs:
            note = "" if one.rung.has_attention else self.say("no attention")
            entries.append(Entry(self.name(one.rung), one.sample, note))
            maps += [replace(one.heat_map, title=self.name(one.rung))] if one.heat_map else []
        return Example(tuple(entries), tuple(maps), is_open=True)

    def budget(self) -> Paragraph:
        """Return what each rung was given, and what differed all the same."""
        budget, climbed = self.lineage.budget, self.lineage.rungs
        share = "steps" if budget.seconds_each is None else "time"
        said = self.say(
            f"one in {share}" if len(climbed) == 1 else f"many in {share}",
            designs=len(climbed),
            pairs=budget.num_pairs,
            time=self.time(budget.seconds_each or 0.0),
            steps=budget.steps_each,
        )
        if early := ", ".join(self.name(one.rung) for one in climbed if one.ended_early):
            said += " " + self.say("early", rungs=early)
        if len(climbed) == 1:
            return Paragraph(said)
        most, least = (choose(climbed, key=lambda one: one.num_updates) for choose in (max, min))
        unequal = self.say(
            f"equal {share}",
            most=most.num_updates,
            most_rung=self.name(most.rung),
            least=least.num_updates,
            least_rung=self.name(least.rung),
            fastest=self.time(min(one.seconds for one in climbed)),
            slowest=self.time(max(one.seconds for one in climbed)),
        )
        return Paragraph(f"{said} {unequal}")

    def best(self) -> Paragraph:
        """Return the highest BLEU, and whether it is so low that little was learnt."""
        one = max(self.lineage.rungs, key=lambda one: self._system(one).scores["bleu"].value)
        bleu = self._system(one).scores["bleu"]
        counts = {"sentences": len(self.lineage.evaluation.sources), "score": one_line(self.ranged(bleu))}
        said = self.say("best", **counts, rung=self.name(one.rung))
        return Paragraph(f"{said} {self.say('low')}" if bleu.value < _LOW_BLEU else said)

    def kept(self) -> Paragraph:
        """Return how much of its BLEU each rung keeps on long sentences, and whether attention tells."""
        counts = {"short": self.lineage.num_short, "long": self.lineage.num_long}
        if not all(counts.values()):
            return Paragraph(self.say("no lengths", **counts))
        known = [one for one in self.lineage.rungs if one.kept is not None]
        if not known:
            return Paragraph(self.say("nothing kept"))
        items = [f"{self.name(one.rung)}: {one_line(self.share(one.kept))}" for one in known]
        around = [(one.rung.has_attention, one.kept.interval) for one in known if one.kept]
        lows = [one.low for has_attention, one in around if has_attention and one]
        highs = [one.high for has_attention, one in around if not has_attention and one]
        if lows and highs and len(lows) + len(highs) == len(self.lineage.rungs):
            items.append(self.say("attention keeps" if min(lows) > max(highs) else "attention may keep"))
        return Paragraph(self.say("left", **counts), tuple(items))

    def gains(self) -> Paragraph:
        """Return what each rung bought over the one it builds on."""
        items = []
        for one in self.lineage.steps:
            names = {"rung": self.name(one.rung), "base": self.name(one.base)}
            gain, verdict = one_line(self.ranged(one.bleu, "+.2f")), self.say(_verdict(one.bleu))
            items.append(self.say("step", **names, gain=gain, verdict=verdict))
        return Paragraph(self.say("bought"), tuple(items))

    def alignment(self) -> Paragraph:
        """Return the lowest alignment error rate."""
        if self.lineage.num_gold is None:
            return Paragraph(self.say("no gold"))
        known = [(one.aer, one) for one in self.lineage.rungs if one.aer is not None]
        if not known:
            return Paragraph(self.say("no alignments"))
        aer, one = min(known, key=lambda pair: pair[0].value)
        score, name = one_line(self.ranged(aer, ".3f")), self.name(one.rung)
        return Paragraph(self.say("lowest aer", pairs=self.lineage.num_gold, score=score, rung=name))

    def caution(self) -> Paragraph:
        """Return what the numbers do not show."""
        said = self.say("once", seed=self.lineage.budget.seed)
        return Paragraph(f"{said} {self.say('held out')}" if self.lineage.is_held_out else said)

    def _system(self, one: Climbed) -> System:
        return self.lineage.evaluation.system(one.rung.name)


def _verdict(change: Difference) -> str:
    """Return what a difference shows, by both tests and the interval, as the key of a text."""
    if includes_zero(change.interval):
        return "includes zero"
    if not change.is_beyond_chance:
        return "chance"
    return "better" if change.value > 0 else "worse"
