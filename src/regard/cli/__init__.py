"""The command line: one short module per verb, and errors turned into exit codes.

Nothing heavy is imported before a verb runs, so that `--help` answers at once.
"""

import argparse
import atexit
import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, NoReturn, cast

import regard
from regard.cli import (
    adapt,
    align,
    demo,
    doctor,
    evaluate,
    export,
    imports,
    info,
    inspect,
    lineage,
    models,
    page,
    runs,
    sample,
    serve,
    show,
    suggestions,
    train,
    translate,
    verify,
)
from regard.errors import ConfigError, OutputError, RegardError
from regard.files import MAX_EXPANSION, expansion_allowed

_VERBS = (
    demo, translate, show, page, serve, align, evaluate, train, adapt, lineage, runs, imports, export,
    inspect, verify, info, models, sample, suggestions, doctor,
)  # fmt: skip

_READERS = (translate, align, evaluate, train, adapt, lineage, inspect)  # of files that may be compressed
_INTERRUPTED = 130
_WORD_OF_INTERRUPT = "regard: interrupted"
_TERMINATED = 128 + signal.SIGTERM
_signal: int | None = None  # that asked for the end
_IMPORT_SYSTEM = ("importlib._bootstrap", "_frozen_importlib")  # two names of one module
_IMPORT_SECONDS = 0.02  # between two looks whether an import is over
_NO_MEMORY = "not enough memory; close other programs, or take a smaller file, batch or model"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run `regard` and exit: 0 when done, 2 for the user's mistake, 130 or 143 when stopped."""
    _fill_closed_streams()
    signal.signal(signal.SIGTERM, _stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not what `nohup` or `&` ignores
        signal.signal(signal.SIGINT, _stop)
    try:
        code = run(sys.argv[1:] if arguments is None else arguments)
    except SystemExit as end:
        if end.code != _TERMINATED:
            raise
        code = _TERMINATED
    if code in (_INTERRUPTED, _TERMINATED):
        # If the signal came while the text of a function was executed, as in making a dataclass, Python would
        # end by that signal although it was handled. Threads of a library may abort when Python ends.
        atexit._run_exitfuncs()
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run `regard` with these arguments and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(
                errors="backslashreplace"
            )  # a terminal that cannot show é must not end the work
    debug = "--debug" in arguments
    try:
        options = _parse([argument for argument in arguments if argument != "--debug"])
        with expansion_allowed(getattr(options, "max_expansion", MAX_EXPANSION)):
            code = int(options.run(options) or 0)
        sys.stdout.flush()
        return code
    except RegardError as error:
        if debug:
            raise
        print(f"regard: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        if debug:
            raise
        print(_WORD_OF_INTERRUPT, file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (`regard ... | head`).
        _give_up_output()
        return 141
    except OSError as error:
        if debug:
            raise
        _give_up_output()
        print(f"regard: {_reason(error)}", file=sys.stderr)
        return 2
    except MemoryError:
        if debug:
            raise
        print(f"regard: {_NO_MEMORY}", file=sys.stderr)
        return 2
    except Exception as error:
        if debug:
            raise
        if _signal is not None:  # a library has made another error of ours
            if _signal == signal.SIGINT:
                print(_WORD_OF_INTERRUPT, file=sys.stderr)
            return 128 + _signal
        what = f"{type(error).__name__}: {error}".replace("\n", " ")
        print(
            f"regard: this is a bug in regard; please report it with the output of --debug ({what})",
            file=sys.stderr,
        )
        return 1


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOMEM:
        return _NO_MEMORY
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def _fill_closed_streams() -> None:
    """Put something in the place of each standard stream that is closed (`>&-`).

    Otherwise the next file we open would get its number, and what a library prints would land in that file.
    Reading from a closed standard input or writing to a closed standard output is an error of one line;
    messages to a closed standard error are lost.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    sys.stdin = sys.stdin or io.TextIOWrapper(io.BufferedReader(_ClosedInput()))
    sys.stdout = sys.stdout or io.TextIOWrapper(cast(BinaryIO, _ClosedOutput()), write_through=True)
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


class _ClosedInput(io.RawIOBase):
    def readable(self) -> bool:
        return True

    def readinto(self, _: object) -> NoReturn:
        raise ConfigError("standard input is closed; give the text in quotes, or a file")


class _ClosedOutput(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, _: object) -> NoReturn:
        raise OutputError("standard output is closed; send it to a file, or to /dev/null")


def _give_up_output() -> None:
    """Send what is still to be printed nowhere; the interpreter would try again and fail again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _stop(signal_number: int, frame: FrameType | None) -> None:
    """Leave as if by an error, so that temporary files are removed and workers ended.

    An error raised within an import or a finaliser (`__del__`) may be swallowed, or come out as another one:
    it waits for the end of that.
    """
    if hasattr(signal, "setitimer") and _would_be_lost(frame):
        signal.signal(signal.SIGALRM, lambda _, later: _stop(signal_number, later))
        signal.setitimer(signal.ITIMER_REAL, _IMPORT_SECONDS)
        return
    global _signal
    _signal = signal_number
    if signal_number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + signal_number)


def _would_be_lost(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__") in _IMPORT_SYSTEM or frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options; words may stand after flags, which argparse takes amiss in a verb."""
    parser = _parser()
    arguments, after = list(arguments), []
    if "--" in arguments:  # what comes after it are words, whatever they begin with
        place = arguments.index("--")
        arguments, after = arguments[:place], arguments[place + 1 :]
    options, left = parser.parse_known_args(arguments)
    flags = [word for word in left if word.startswith("-")]
    taken = next(
        (name for name in ("words", "files") if isinstance(getattr(options, name, None), list)), None
    )
    if flags or (taken is None and left + after):
        parser.error(f"unrecognized arguments: {' '.join(flags or left + after)}")
    if taken is not None:
        kind = Path if taken == "files" else str
        setattr(options, taken, [*getattr(options, taken), *map(kind, left + after)])
    return options


class _Parser(argparse.ArgumentParser):
    """A parser whose mistakes are errors like all others: one line, exit code 2."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message}; see `{self.prog} --help`")

    def _print_message(self, message: str, file: Any = None) -> None:
        print(message, end="", file=file or sys.stderr, flush=True)  # argparse would hide that this fails


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="regard",
        description="Neural machine translation that shows where it looks.",
        epilog="`regard VERB --help` explains one verb. With `--debug`, an error shows its traceback.",
    )
    parser.add_argument("--version", action="version", version=f"regard {regard.__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for verb in _VERBS:
        one = verbs.add_parser(
            verb.NAME,
            help=verb.HELP,
            description=verb.DESCRIPTION,
            epilog=verb.EXAMPLES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        verb.add_arguments(one)
        if verb in _READERS:
            one.add_argument(
                "--max-expansion", type=int, default=MAX_EXPANSION, metavar="N",
                help="read compressed files that expand to at most N times their size (%(default)s)",
            )  # fmt: skip
        one.set_defaults(run=verb.run)
    return parser
