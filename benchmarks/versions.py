"""Is one version of the code faster than another? The same work by both, in turn, in processor time.

    git worktree add ../before HEAD~5
    python benchmarks/versions.py ../before fr-en-luong fr-en --source tatoeba.fr --source europarl.fr

Each version is a process with the `src` of its checkout. In each round each translates the first `--lines` lines of
each source with each model, by the NumPy engine in one thread, greedily and with a beam of five; then `--alone`
of them one by one. Printed are the milliseconds of processor time a line now (median of rounds), and how many
times as fast that is (median of the ratios of each round, and their range). Texts that differ are counted. `--whole N` compares
`regard translate` on N lines instead, by the clock, on all processors and with the engine it chooses.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

BEAM_SIZES = (1, 5)
NUM_COLD = 3
COLD_TEXT = "Un homme fait du vélo."


def serve() -> None:
    """Do what the lines of standard input ask for; this is the process of one version."""
    from regard.engines import Compute
    from regard.loaded import Loaded
    from regard.translate.translator import IN_THIS_THREAD, Translator

    translators: dict[str, Translator] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        name, lines = asked["model"], asked["lines"]
        if name not in translators:
            translators[name] = Translator(Loaded.open(name, compute=Compute("numpy")), IN_THIS_THREAD)
        jobs = [[one] for one in lines] if asked["alone"] else [lines]
        started = time.process_time()
        said = [translators[name].translate(job, beam_size=asked["beam"]) for job in jobs]
        seconds = time.process_time() - started
        print(
            json.dumps({"seconds": seconds, "texts": [one.text for job in said for one in job]}), flush=True
        )


def start(checkout: Path) -> "subprocess.Popen[str]":
    """Return the process of a version."""
    environment = os.environ | {"PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--serve"]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )


def ask(process: "subprocess.Popen[str]", **asked: Any) -> dict[str, Any]:
    """Return the answer of a version."""
    assert process.stdin is not None and process.stdout is not None
    print(json.dumps(asked), file=process.stdin, flush=True)
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def compare(title: str, both: list["subprocess.Popen[str]"], rounds: int, **asked: Any) -> None:
    """Let both versions do the same, in turn, and print a line."""
    seconds: list[tuple[float, float]] = []
    for _ in range(rounds + 1):  # the first one opens the model
        before, now = (ask(process, **asked) for process in both)
        seconds.append((before["seconds"], now["seconds"]))
    ratios = sorted(before / now for before, now in seconds[1:])
    differ = sum(map(str.__ne__, before["texts"], now["texts"]))
    alone = 1000 * statistics.median(now for _, now in seconds[1:]) / len(asked["lines"])
    print(
        f"{title:42} {alone:7.2f} ms  {statistics.median(ratios):.2f} times as fast "
        f"({ratios[0]:.2f} to {ratios[-1]:.2f}), {differ} texts differ",
        flush=True,
    )


def cold(checkouts: list[Path], model: str, rounds: int) -> None:
    """Compare `regard translate MODEL TEXT` from the start of the process to its end, in processor time."""
    command = [sys.executable, "-m", "regard", "translate", model, COLD_TEXT, "--engine", "numpy"]
    seconds = []
    for _ in range(NUM_COLD * rounds):
        pair = []
        for checkout in checkouts:
            environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
            before = os.times()
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
            after = os.times()
            pair.append(
                after.children_user + after.children_system - before.children_user - before.children_system
            )
        seconds.append(pair)
    ratio = statistics.median(before / now for before, now in seconds)
    print(
        f"cold start, {model}: {statistics.median(now for _, now in seconds):.2f} s, {ratio:.2f} times as fast"
    )


def whole(checkouts: list[Path], model: str, source: Path, num_lines: int, rounds: int) -> None:
    """Compare `regard translate MODEL < LINES` with a beam of five, by the clock, on all processors."""
    text = "".join(f"{line}\n" for line in source.read_text("utf-8").splitlines()[:num_lines])
    seconds = []
    for _ in range(rounds):
        pair = []
        for checkout in checkouts:
            environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
            command = [sys.executable, "-m", "regard", "translate", model, "--set", "search.beam_size=5"]
            start = time.perf_counter()
            subprocess.run(
                command, input=text, env=environment, check=True, stdout=subprocess.DEVNULL, text=True
            )
            pair.append(time.perf_counter() - start)
        seconds.append(pair)
    ratios = sorted(before / now for before, now in seconds)
    print(
        f"{model}, {num_lines} lines of {source.name} by the command: "
        f"{num_lines / statistics.median(now for _, now in seconds):.0f} lines/s, "
        f"{statistics.median(ratios):.2f} times as fast ({ratios[0]:.2f} to {ratios[-1]:.2f})",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path, help="a checkout of the other version")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--source", type=Path, action="append", required=True)
    parser.add_argument("--lines", type=int, default=100)
    parser.add_argument("--alone", type=int, default=10, help="lines translated one by one")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true", help="time the command of one sentence too")
    parser.add_argument("--whole", type=int, metavar="N", help="only time the command, on N lines")
    arguments = parser.parse_args()
    checkouts = [arguments.before, Path(__file__).parents[1]]
    if arguments.whole:
        for model in arguments.models:
            for source in arguments.source:
                whole(checkouts, model, source, arguments.whole, arguments.rounds)
        return
    both = [start(checkout) for checkout in checkouts]
    for model in arguments.models:
        for source in arguments.source:
            lines = source.read_text("utf-8").splitlines()
            for beam in BEAM_SIZES:
                title, asked = f"{model}, {source.name}, beam {beam}", {"model": model, "beam": beam}
                some = lines[: arguments.lines]
                compare(title, both, arguments.rounds, lines=some, alone=False, **asked)
                some = lines[: arguments.alone]
                compare(f"{title}, one by one", both, arguments.rounds, lines=some, alone=True, **asked)
        if arguments.cold:
            cold(checkouts, model, arguments.rounds)
    for process in both:
        process.communicate()


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else main()
