"""Runs `regard` for the recipes, so that a recipe stopped half-way leaves a training that can go on."""

import signal
import subprocess
import sys
from typing import NoReturn


def regard(*words: object) -> None:
    """Run a command of regard, and leave with its exit code if it fails.

    Ctrl-C reaches it as well, and SIGTERM is passed on; either way it is given the time to save its work.
    """
    command = list(map(str, words))
    print("regard", *command, flush=True)
    before = signal.signal(signal.SIGTERM, _leave)
    with subprocess.Popen([sys.executable, "-m", "regard", *command]) as process:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            code = process.wait()
        except SystemExit:
            process.terminate()
            process.wait()
            raise
        finally:
            signal.signal(signal.SIGTERM, before)
    if code:
        raise SystemExit(code)


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)
