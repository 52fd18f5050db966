"""A run in shards: what is missing is done, on the cores of this machine or elsewhere, and stored."""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Protocol

from regard.parallel import Pool, num_cores
from regard.progress import Progress
from regard.remote import Place
from regard.shards.cut import Source, Task
from regard.shards.folder import ShardFolder, locked, planning
from regard.shards.work import Done, Work
from regard.translate.lines import Report
from regard.translate.translator import FORKING, IN_THIS_THREAD


class Execute(Protocol):
    """Does the work of shards, and yields them in any order."""

    def __call__(self, work: Work, tasks: Iterator[Task], num_tasks: int, /) -> Iterator[Done]:
        """Do `num_tasks` shards."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """What is cut into how many shards, and the folder of the results; `only` names one shard."""

    source: Source
    folder: Place
    num_shards: int
    only: int | None = None


def run_shards(
    run: Run,
    work: Work,
    execute: Execute,
    on_progress: Progress,
    on_failure: Callable[[int, str], None],
) -> Report:
    """Do the shards that are not finished, and return the report of all."""
    with locked(run.folder, run.only) as lock:
        with planning(lock):
            folder = ShardFolder.begin(run.folder, run.source, run.num_shards, work.identity, on_progress)
        wanted = [shard for shard in folder.shards if run.only in (None, shard.number)]
        folder.remove_leftovers(wanted)
        finished = folder.finished()
        missing = [shard for shard in wanted if shard.number not in finished]
        reports = {shard.number: folder.report(shard) for shard in wanted if shard.number in finished}
        for report in reports.values():
            _tell(report, on_failure)
        total = sum(shard.num_bytes for shard in wanted)
        num_bytes = total - sum(shard.num_bytes for shard in missing)
        for done in execute(work, run.source.read_tasks(missing), len(missing)):
            folder.store(done)
            reports[done.number] = done.report
            _tell(done.report, on_failure)
            num_bytes += folder.shards[done.number - 1].num_bytes
            on_progress(work.stage, num_bytes, total)
    whole = Report()
    for shard in wanted:
        whole.add_report(reports[shard.number])
    return whole


def on_this_machine(work: Work, tasks: Iterator[Task], num_tasks: int) -> Iterator[Done]:
    """Do one shard on each core, or, if they are fewer than the cores, one after the other on all."""
    if num_tasks < num_cores():
        yield from map(work.worker(FORKING), tasks)
        return
    with Pool(work.worker(IN_THIS_THREAD), fork=True) as pool:
        running: set[Future[Done]] = set()
        for task in tasks:
            running.add(pool.submit(task))
            if len(running) > pool.num_workers:  # one waits, read already
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (one.result() for one in done)
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (one.result() for one in done)


def _tell(report: Report, on_failure: Callable[[int, str], None]) -> None:
    for number, reason in report.errors.items():
        on_failure(number, reason)
