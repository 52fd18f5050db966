"""Options of runs in shards: a large file in pieces, on one machine or many."""

import argparse
import contextlib
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from regard.cli.progress import progress
from regard.errors import ConfigError, RegardError
from regard.files import writing
from regard.remote import Place, place

if TYPE_CHECKING:
    from regard.shards.cut import Source
    from regard.shards.run import Execute
    from regard.shards.work import Work
    from regard.translate.lines import Report

_PLACE = re.compile(r"([1-9]\d*)/([1-9]\d*)")


def add_shards(parser: argparse.ArgumentParser) -> None:
    """Declare the options of runs in shards."""
    parser.add_argument(
        "--shards", type=int, metavar="N",
        help="do the file in N shards into the folder --out; run it again to go on where it stopped",
    )  # fmt: skip
    parser.add_argument(
        "--shard", metavar="I/N", help="do only shard I of N, from 1, for schedulers such as Slurm"
    )
    parser.add_argument(
        "--on", choices=("here", "ray"), default="here",
        help="with --shards: work on this machine, or on Ray: the cluster RAY_ADDRESS, or a local one "
        "(default: here)",
    )  # fmt: skip
    parser.add_argument(
        "--join", type=place, metavar="FOLDER", help="write the lines of all shards in a folder in order"
    )


def asks_for_shards(options: argparse.Namespace, unfit: Mapping[str, object]) -> bool:
    """Tell whether a file is to be done in shards; options that do not go with that are errors.

    `unfit` are those of the verb, with their values.
    """
    if options.shards is None and options.shard is None:
        if options.on != "here":
            raise ConfigError(f"--on {options.on} is for shards; add --shards N --out FOLDER")
        return False
    if options.shard is not None and (options.shards is not None or options.on != "here"):
        raise ConfigError("--shard I/N does one shard on this machine; leave out --shards and --on")
    for name, value in unfit.items():
        if value is not None and value != []:
            raise ConfigError(f"{name} is not for shards; leave it out, or --shards")
    if options.out is None:
        raise ConfigError("shards go into a folder; name it: --out FOLDER")
    if options.out.is_file():
        raise ConfigError(f"--out {options.out} is a file; shards go into a folder")
    return True


def do_shards(
    options: argparse.Namespace,
    verb: str,
    source: "Source",
    work: "Work",
    on_failure: Callable[[int, str], None],
) -> "Report":
    """Do the shards that are not finished."""
    from regard.shards.run import Run, run_shards

    only, num_shards = None, options.shards
    if options.shard is not None:
        only, num_shards = _place(options.shard)
    run = Run(source, options.out, num_shards, only)
    try:
        with progress() as show:
            report = run_shards(run, work, _execute(options.on), show, on_failure)
    except (KeyboardInterrupt, SystemExit):
        _say(f"stopped{_how_far(options.out)}; the same command goes on from there")
        raise
    if only is None:
        join = f"regard {verb} --join {shlex.quote(str(options.out))} --out FILE"
        _say(f"all {num_shards:,} shards are done; to join them: {join}")
    return report


def join_shards(
    options: argparse.Namespace, has_more: bool, on_failure: Callable[[int, str], None]
) -> "Report":
    """Write the lines of all shards of a folder to --out or standard output."""
    from regard.shards.folder import ShardFolder

    if has_more or options.shards or options.shard:
        raise ConfigError("--join takes only the folder of the shards, and --out; leave out the rest")
    folder = ShardFolder.read(options.join)
    with contextlib.ExitStack() as stack:
        (out,) = stack.enter_context(writing(options.out)) if options.out else (sys.stdout.buffer,)
        show = stack.enter_context(progress())
        report = folder.join(out, show)
        out.flush()
    for number, reason in report.errors.items():
        on_failure(number, reason)
    if options.out:
        _say(f"wrote {options.out}: {report.num_lines:,} lines of {len(folder.shards):,} shards")
    return report


def _how_far(path: Place) -> str:
    from regard.shards.folder import ShardFolder

    try:
        folder = ShardFolder.read(path)
    except RegardError:
        return " before the first shard"
    return f" with {len(folder.finished()):,} of {len(folder.shards):,} shards done"


def _say(message: str) -> None:
    print(f"regard: {message}", file=sys.stderr)


def _place(shard: str) -> tuple[int, int]:
    match = _PLACE.fullmatch(shard)
    if match is None or int(match[1]) > int(match[2]):
        raise ConfigError(f"--shard {shard} is not valid; write --shard 1/500 up to --shard 500/500")
    return int(match[1]), int(match[2])


def _execute(place: str) -> "Execute":
    if place == "ray":
        from regard.shards.on_ray import on_ray

        return on_ray
    from regard.shards.run import on_this_machine

    return on_this_machine
