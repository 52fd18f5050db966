"""Looks the machine over: what is installed, what the processor can do, which precisions really work."""

import importlib.metadata
import importlib.util
import os
import platform
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import threadpoolctl  # type: ignore[import-untyped]

from regard import engines
from regard.errors import how_to_install
from regard.parallel import num_cores

_TIMEOUT_SECONDS = 60

# What the names in /proc/cpuinfo mean for us.
_INSTRUCTION_SETS = (
    "sse4_2",
    "avx",
    "avx2",
    "fma",
    "f16c",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "amx_tile",
    "amx_bf16",
    "amx_int8",
)

AVX512 = {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}  # what matrix libraries need of it
_KERNELS = "OPENBLAS_CORETYPE"
_WITHOUT_AVX512 = ("Haswell", "Zen")

# A small matrix product in each precision: enough for the library to choose its kernel.
_PROBES = {
    "float32": "a = torch.randn(128, 128); b = a @ a",
    "bfloat16": "a = torch.randn(128, 128).bfloat16(); b = a @ a",
    "float16": "a = torch.randn(128, 128).half(); b = a @ a",
    "int8": "a = torch.randint(-9, 9, (128, 128), dtype=torch.int8); b = torch._int_mm(a, a)",
}
_ACCELERATOR = (
    "torch.cuda.get_device_name() if torch.cuda.is_available() else "
    "'mps' if torch.backends.mps.is_available() else 'none, training runs on the processor'"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report: fine, not fine, or None for what is absent and optional."""

    what: str
    value: str
    fine: bool | None = True


def examine() -> list[Finding]:
    """Return all findings; with torch this takes some seconds, a process for each precision."""
    return [
        Finding("regard", importlib.metadata.version("regard") if _installed("regard") else "from source"),
        Finding(
            "Python",
            f"{platform.python_version()} on {platform.system()} {platform.machine()}",
            sys.version_info >= (3, 11),
        ),
        *(Finding(name, _version(name), _installed(name)) for name in ("numpy", "sentencepiece")),
        *(_optional(name, extra) for name, extra in (("torch", "train"), ("pyarrow", "parquet"))),
        Finding(
            "cores",
            str(num_cores()) if num_cores() == os.cpu_count() else f"{num_cores()} of {os.cpu_count()}",
        ),
        Finding("memory", _memory()),
        Finding("instruction sets", _instruction_sets()),
        _matrix_library(),
        *_fast_findings(),
        *_torch_findings(),
        _korean_font(),
        *(
            _writable(name, path)
            for name, path in (("this folder", Path.cwd()), ("temporary folder", Path(tempfile.gettempdir())))
        ),
    ]


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None and _version(package) != "not installed"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _optional(package: str, extra: str) -> Finding:
    version = _version(package)
    if version == "not installed":
        return Finding(package, f"not installed ({how_to_install(extra)})", fine=None)
    return Finding(package, version)


def _memory() -> str:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return "unknown"
    return f"{total / 2**30:.1f} GiB"


def processor_words() -> set[str]:
    """Return what Linux says of the processors, as words: `AuthenticAMD`, `avx2`; empty elsewhere."""
    try:
        return set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        return set()


def _instruction_sets() -> str:
    flags = processor_words()
    if not flags:
        return f"unknown on {platform.system()}"
    return (
        " ".join(name for name in _INSTRUCTION_SETS if name in flags)
        or f"none of {' '.join(_INSTRUCTION_SETS)}"
    )


def _matrix_library() -> Finding:
    """Tell what NumPy multiplies with, and whether OpenBLAS leaves AVX-512 unused."""
    import numpy  # noqa: F401  # its library is the one to look at

    found = [one for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"]
    if not found:
        return Finding("matrix library", "unknown", fine=None)
    name, kernels = found[0]["internal_api"], found[0].get("architecture", "an unknown processor")
    value = f"{name} {found[0]['version']}, made for {kernels}"
    if name != "openblas" or kernels not in _WITHOUT_AVX512 or not processor_words() >= AVX512:
        return Finding("matrix library", value)
    asked = os.environ.get(_KERNELS)
    why = (
        f"since {_KERNELS}={asked} is set; faster here: unset it"
        if asked
        else f"faster here: {_KERNELS}=SkylakeX"
    )
    return Finding("matrix library", f"{value}; {why}", fine=None)


def probe_precisions() -> dict[str, str]:
    """Return, for each precision, "works" or how a small product in it fails, tried in another process.

    On some virtual machines reduced precision chooses instructions that the machine announces and does
    not have: the process dies, and ours must not. What comes after a death is tried in a new process.
    """
    results: dict[str, str] = {}
    while untried := [precision for precision in _PROBES if precision not in results]:
        steps = (
            f"{_PROBES[name]}; assert torch.isfinite(b.float()).all(); print('{name}')" for name in untried
        )
        done = _run_torch("\n".join(steps))
        passed = done.stdout.split()
        results |= dict.fromkeys(passed, "works")
        if len(passed) < len(untried):
            results[untried[len(passed)]] = f"{_failure(done)}; not used"
    return results


def _run_torch(code: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-P", "-u", "-c", f"import torch\n{code}"]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired as late:
        printed = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
        return subprocess.CompletedProcess(command, 1, printed, f"no answer in {_TIMEOUT_SECONDS} s")


def _failure(done: "subprocess.CompletedProcess[str]") -> str:
    if done.returncode < 0:
        try:
            return f"dies with {signal.Signals(-done.returncode).name}"
        except ValueError:
            return f"dies with signal {-done.returncode}"
    return f"fails ({(done.stderr.strip().splitlines() or ['no message'])[-1][:100]})"


def _torch_findings() -> list[Finding]:
    if _version("torch") == "not installed":
        return []
    accelerator = _run_torch(f"print({_ACCELERATOR})")
    fine = accelerator.returncode == 0
    return [
        *(
            Finding(precision, result, precision != "float32" or result == "works")
            for precision, result in probe_precisions().items()
        ),
        Finding("accelerator", accelerator.stdout.strip() if fine else _failure(accelerator), fine),
    ]


def _fast_findings() -> list[Finding]:
    """Tell whether Transformers are translated by CTranslate2; without it NumPy does the same."""
    if engines.version() is None:
        return [Finding("fast engine", f"NumPy: {engines.not_installed()}", fine=None)]
    findings = []
    for precision in get_args(engines.Precision):
        fault = engines.fault(precision)
        value = f"CTranslate2 {engines.version()}" if fault is None else f"NumPy: {fault}"
        findings.append(Finding(f"engine, {precision}", value, None if fault else True))
    return findings


def _korean_font() -> Finding:
    """Tell whether pictures can show Korean; without a font every syllable is a box."""
    try:
        done = subprocess.run(
            ["fc-list", ":lang=ko", "family"], capture_output=True, timeout=_TIMEOUT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return Finding("Korean font", "unknown (no fontconfig)", fine=None)
    families = sorted(set(done.stdout.decode(errors="replace").splitlines()))
    if not families:
        return Finding("Korean font", "none; pictures with Korean text need one, such as Nanum", fine=None)
    return Finding("Korean font", families[0])


def _writable(name: str, path: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=path):
            return Finding(name, f"{path} can be written")
    except OSError as error:
        return Finding(name, f"{path} cannot be written ({error.strerror})", fine=False)
