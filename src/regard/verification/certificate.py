"""`Certificate`: which promises hold for a model on a machine, as text and as JSON."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

FORMAT = "regard-certificate/1"

Status = Literal["pass", "fail", "not tried"]


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise, whether it holds, and by what that was found out."""

    name: str
    status: Status
    detail: str


@dataclass(frozen=True, slots=True)
class Subject:
    """What was verified: the file by its hash, and the model in it, empty where the file cannot be read."""

    name: str
    sha256: str
    num_bytes: int
    languages: str = ""
    design: str = ""


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured with the engine that is used for this model on this machine."""

    engine: str
    load_seconds: float
    sentences_per_second: float
    peak_bytes: int | None
    """The most memory that the process has had until then; None where the system does not tell."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What `regard verify` found."""

    subject: Subject
    regard: str
    date: str
    machine: dict[str, str]
    sentences: str
    promises: tuple[Promise, ...]
    figures: Figures | None

    @property
    def holds(self) -> bool:
        """Whether no promise is broken."""
        return all(one.status != "fail" for one in self.promises)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {"format": FORMAT, "holds": self.holds, **asdict(self)}

    def __str__(self) -> str:
        subject = self.subject
        about = [f"{subject.num_bytes / 1e6:.1f} MB", subject.languages, subject.design]
        lines = [
            f"{subject.name}: {', '.join(filter(None, about))}",
            f"sha256 {subject.sha256}",
            f"regard {self.regard}, {', '.join(self.machine.values())}, {self.date}",
        ]
        if self.sentences:
            lines.append(self.sentences)
        lines += ["", *(f"{one.status:10}{one.name:12}{one.detail}" for one in self.promises)]
        if (figures := self.figures) is not None:
            peak = "unknown" if figures.peak_bytes is None else f"{figures.peak_bytes / 1e6:.0f} MB"
            lines += [
                f"{'measured':10}{'speed':12}loads in {figures.load_seconds:.2f} s, translates "
                f"{figures.sentences_per_second:.1f} sentences/s on {figures.engine}",
                f"{'measured':10}{'memory':12}{peak} at most, Python included",
            ]
        count = {
            status: sum(one.status == status for one in self.promises)
            for status in ("pass", "fail", "not tried")
        }
        return "\n".join([*lines, "", ", ".join(f"{number} {status}" for status, number in count.items())])
