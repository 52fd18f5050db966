"""What translating in shards costs, and whether anything is lost when processes and nodes are killed.

    python benchmarks/shards.py in.fr
    python benchmarks/shards.py in.fr --shards 50 --kills 10
    python benchmarks/shards.py in.fr --shards 30 --ray
    python benchmarks/shards.py in.fr --shards 500 --project 10000000

Without a flag the same lines are translated with `regard translate` plainly and in shards, in turns, and times are given
as ratios: of the clock, and of processor seconds, which other work on the machine disturbs less. Every result is
compared with that of the plain translation, byte for byte.

`--kills N` kills the run in shards N times, at random moments, and looks whether finished shards are written again.
`--ray` needs the extra `[ray]`: three nodes of one core on this machine, one of which is killed half-way.
`--project N` measures the bookkeeping of N lines (cutting, reading, storing, joining) with all N, and copies instead of
translations; it measures translating with `--lines` lines, and says how long N would take. All in processor seconds.
"""

import argparse
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import ClassVar

from regard.options.search import BeamOptions

REGARD = [sys.executable, "-m", "regard", "translate"]


def call(*words: object) -> tuple[float, float]:
    """Run `regard translate`; the seconds it took, on the clock and of processors."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([*REGARD, *map(str, words)], check=True, stderr=subprocess.DEVNULL)
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def overhead(model: str, text: Path, plain: Path, folder: Path, options: argparse.Namespace) -> None:
    times: dict[str, list[tuple[float, float]]] = {"plain": [], "shards": []}
    for number in range(options.rounds):
        out = folder / f"shards{number}"
        flags = ("--beam", options.beam)
        times["plain"].append(call(model, "--file", text, "--out", plain, *flags))
        times["shards"].append(call(model, text, "--shards", options.shards, "--out", out, *flags))
        check(out, plain)
        print(
            number, {name: [round(one, 2) for one in found[-1]] for name, found in times.items()}, flush=True
        )
    for place, what in enumerate(("clock", "processors")):
        ratios = [a[place] / b[place] for a, b in zip(times["plain"], times["shards"], strict=True)]
        low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
        print(f"speed in shards, plain = 1, by the {what}: {middle:.2f} ({low:.2f} to {high:.2f})")


def kills(model: str, text: Path, plain: Path, folder: Path, options: argparse.Namespace) -> None:
    out = folder / "shards"
    words = [*REGARD, model, text, "--shards", options.shards, "--out", out, "--beam", options.beam]
    call(model, "--file", text, "--out", plain, "--beam", options.beam)
    kept: dict[str, tuple[int, int]] = {}
    chance = random.Random(options.seed)
    for number in range(options.kills):
        process = subprocess.Popen([*map(str, words)], start_new_session=True, stderr=subprocess.DEVNULL)
        enough = len(kept) + chance.randrange(options.shards // options.kills)
        while len(finished(out)) < enough and process.poll() is None:
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 1))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        now = finished(out)
        assert kept.items() <= now.items(), "a finished shard was written again"
        print(f"kill {number + 1}: {len(now)} of {options.shards} shards are done", flush=True)
        kept = now
    call(*words[len(REGARD) :])
    assert kept.items() <= finished(out).items(), "a finished shard was written again"
    check(out, plain)
    print(f"killed {options.kills} times: the same bytes, and no finished shard was written again")


def on_three_nodes(model: str, text: Path, plain: Path, folder: Path, options: argparse.Namespace) -> None:
    import ray
    from ray.cluster_utils import Cluster

    from regard.engines import Compute
    from regard.shards.cut import Source, Task
    from regard.shards.on_ray import on_ray
    from regard.shards.run import Run, run_shards
    from regard.shards.work import Done, Translating, Work

    call(model, "--file", text, "--out", plain, "--beam", options.beam)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    others = [cluster.add_node(num_cpus=1) for _ in range(2)]
    ray.init(address=cluster.address, log_to_driver=False)
    counted: Counter[int] = Counter()

    def watched(work: Work, tasks: Iterator[Task], num_tasks: int) -> Iterator[Done]:
        for done in on_ray(work, tasks, num_tasks):
            counted[done.number] += 1
            yield done
            if counted.total() == options.shards // 2:
                cluster.remove_node(others[0], allow_graceful=False)
                print(f"killed a node after {counted.total()} of {options.shards} shards", flush=True)

    work = Translating.of(
        [Path(model)], Compute(), {"search": BeamOptions(beam_size=options.beam)}, None, as_json=False
    )
    started = time.perf_counter()
    run_shards(Run(Source(text), folder / "out", options.shards), work, watched, nothing, nothing)
    check(folder / "out", plain)
    assert counted == dict.fromkeys(range(1, options.shards + 1), 1)
    print(f"every shard once and the same bytes, in {time.perf_counter() - started:.0f} s")
    ray.shutdown()
    cluster.shutdown()


def project(model: str, text: Path, plain: Path, folder: Path, options: argparse.Namespace) -> None:
    from regard.shards.cut import Source, Task
    from regard.shards.folder import ShardFolder
    from regard.shards.run import Run, run_shards
    from regard.shards.work import Done
    from regard.translate.lines import Report

    class Copying:
        stage = "copying"
        identity: ClassVar[dict[str, str]] = {}

        def worker(self, *_: object) -> Callable[[Task], Done]:
            return lambda task: Done(task.number, task.text, Report(num_lines=task.first_line))

    _, seconds = call(model, "--file", text, "--out", plain, "--beam", options.beam)
    lines, large, joined = (
        text.read_bytes().splitlines(keepends=True),
        folder / "large.txt",
        folder / "joined.txt",
    )
    with large.open("wb") as file:
        file.writelines(islice(cycle(lines), options.project))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work, began = Copying(), time.process_time()
    run = Run(Source(large), folder / "out", options.shards)
    run_shards(run, work, lambda work, tasks, _: map(work.worker(), tasks), nothing, nothing)
    ended = time.process_time()
    with joined.open("wb") as out:
        ShardFolder.read(folder / "out").join(out, nothing)
    joining = time.process_time() - ended
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert joined.stat().st_size == large.stat().st_size
    whole = seconds / len(lines) * options.project
    print(
        f"{options.project:,} lines in {options.shards:,} shards, in processor seconds: cut, read and stored in "
        f"{ended - began:.1f}, joined in {joining:.1f}; translating would take {whole:,.0f} ({len(lines):,} lines took "
        f"{seconds:.1f}), so bookkeeping is {(ended - began + joining) / whole:.2%} of it; {memory / 1024:.0f} MiB more memory"
    )


def nothing(*_: object) -> None:
    """Say nothing."""


def check(folder: Path, plain: Path) -> None:
    joined = plain.with_suffix(".joined")
    call("--join", folder, "--out", joined)
    assert joined.read_bytes() == plain.read_bytes(), "other bytes than a plain translation"


def finished(folder: Path) -> dict[str, tuple[int, int]]:
    files = {path.name: path.stat() for path in folder.glob("*.txt")}
    return {name: (one.st_ino, one.st_mtime_ns) for name, one in files.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument("--model", default="fr-en")
    parser.add_argument("--lines", type=int, default=5000)
    parser.add_argument("--shards", type=int, default=10)
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--project", type=int, metavar="LINES")
    options = parser.parse_args()
    measure: Callable[[str, Path, Path, Path, argparse.Namespace], None] = overhead
    if options.kills or options.ray:
        measure = kills if options.kills else on_three_nodes
    if options.project:
        measure = project
    with tempfile.TemporaryDirectory() as name, options.text.open("rb") as lines:
        text = Path(name) / "in.txt"
        text.write_bytes(b"".join(islice(lines, options.lines)))
        measure(options.model, text, Path(name) / "plain.txt", Path(name), options)


if __name__ == "__main__":
    main()
