"""Which engine computes: NumPy, or CTranslate2 where it is installed and works on this machine."""

import hashlib
import importlib.metadata
import os
import platform
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from regard.errors import ConfigError, OutputError, how_to_install
from regard.files import writing

Engine = Literal["auto", "numpy", "ctranslate2"]
Precision = Literal["float32", "int8"]

MIN_VERSION = (4, 8, 1)  # earlier ones can be made to write beyond their memory when they load a model

_TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Compute:
    """Which engine to use, and in which precision; `num_threads` None is one for each processor.

    `auto` takes CTranslate2 for what it can do, if it is there. Asked for by name, an engine that cannot be
    used is an error.
    """

    engine: Engine = "auto"
    precision: Precision = "float32"
    num_threads: int | None = None

    def __post_init__(self) -> None:
        """Raise an error for an engine or a precision that does not exist, or that do not go together."""
        for name, value, known in (
            ("engine", self.engine, get_args(Engine)),
            ("precision", self.precision, get_args(Precision)),
        ):
            if value not in known:
                raise ConfigError(f"{name} = {value!r} is not valid; use {', '.join(known)}")
        if self.engine == "numpy" and self.precision != "float32":
            raise ConfigError(f"precision {self.precision} needs the engine ctranslate2; leave out one")

    @property
    def is_named(self) -> bool:
        """Whether the user asked for CTranslate2, by its name or by a precision that only it has."""
        return self.engine == "ctranslate2" or self.precision != "float32"

    def check(self) -> None:
        """Raise an error if CTranslate2 was asked for and does not work on this machine."""
        if self.is_named and (broken := fault(self.precision)) is not None:
            raise ConfigError(f"the engine ctranslate2 cannot be used: {broken}")


NUMPY = Compute("numpy")
"""For what is measured or shown step by step."""


@dataclass(frozen=True, slots=True)
class Used:
    """The engine that is used, in which precision, and why it is that one."""

    engine: Literal["numpy", "ctranslate2"] = "numpy"
    precision: Precision = "float32"
    why: str = ""

    def __str__(self) -> str:
        name = "NumPy" if self.engine == "numpy" else f"CTranslate2 {version()}"
        return f"{name}, {self.precision}" + (f" ({self.why})" if self.why else "")


def version() -> str | None:
    """Return the version of CTranslate2, None if it is not installed."""
    try:
        return importlib.metadata.version("ctranslate2")
    except importlib.metadata.PackageNotFoundError:
        return None


def not_installed() -> str:
    """Say that CTranslate2 is not there, and how to get it."""
    return f"CTranslate2 is not installed; {how_to_install('fast')}"


@cache
def fault(precision: Precision) -> str | None:
    """Return what is wrong with the CTranslate2 that is installed, None if it works on this machine.

    It is tried in another process: on some virtual machines a library chooses instructions that the machine
    announces and does not have, and the process dies. That it works is noted in the cache folder, so that
    later processes need not try again; a note that is wrong can only bring back that death.
    """
    found = version()
    if found is None:
        return not_installed()
    numbers = tuple(int(part) for part in found.split(".")[:3] if part.isdigit())
    if numbers < MIN_VERSION:
        wanted = ".".join(map(str, MIN_VERSION))
        return f"CTranslate2 {found} is older than {wanted}; update it with: pip install -U ctranslate2"
    note = _cache_folder() / f"ctranslate2-{_machine(found, precision)}"
    if note.is_file():
        return None
    failure = _tried(precision)
    if failure is None:
        try:
            note.parent.mkdir(parents=True, exist_ok=True)
            with writing(note) as (stream,):
                stream.write(b"works\n")
        except (OSError, OutputError):  # then the next process tries again
            return None
    return failure


def _tried(precision: Precision) -> str | None:
    """Return how CTranslate2 fails in another process, None if it does not."""
    command = [sys.executable, "-P", "-m", "regard.fast.probe", precision]
    folders = os.pathsep.join(path for path in sys.path if path)
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            env={**os.environ, "PYTHONPATH": folders},
        )
    except (subprocess.TimeoutExpired, OSError) as error:
        return f"CTranslate2 {version()} does not answer ({error})"
    if done.returncode == 0:
        return None
    if done.returncode < 0:
        return f"CTranslate2 {version()} dies with {_signal(-done.returncode)} on this machine"
    last = (done.stderr.strip().splitlines() or ["no message"])[-1][:120]
    return f"CTranslate2 {version()} fails on this machine ({last})"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _cache_folder() -> Path:
    """Return where this user's caches are."""
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # no home
        home = Path(os.devnull)
    return home / "regard"


def _machine(found: str, precision: Precision) -> str:
    """Return a name that another version, precision, Python or processor does not have."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    processor = [
        next((line for line in lines if line.startswith(key)), "") for key in ("model name", "flags")
    ]
    told = (found, precision, sys.version, platform.machine(), platform.processor(), *processor)
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:32]
