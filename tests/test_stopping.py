"""Signals that end a training, in a small program that shows progress as `regard train` does. No torch."""

import os
import pty
import signal
import sys

import pytest

PROGRAM = """
import sys, time
from regard.cli.progress import progress
from regard.training.stopping import Stopped, catching_signals

with catching_signals() as signals:
    try:
        with signals.stages(progress, "stopped")() as report:
            for done in range(10**6):
                report("reading", done, 10**6)
                time.sleep(0.01)
    except Stopped as stopped:
        raise SystemExit(128 + stopped.number)
"""


@pytest.mark.timeout(60)
def test_a_terminal_that_is_closed_while_a_bar_is_shown_does_not_hide_the_signal():
    """The bar is drawn a last time when it ends. On a closed terminal that would be an error of its own."""
    process, terminal = pty.fork()
    if not process:
        os.execv(sys.executable, [sys.executable, "-c", PROGRAM])
    shown = b""
    while b"reading" not in shown:
        shown += os.read(terminal, 4096)
    os.kill(process, signal.SIGSTOP)  # so that the terminal is gone when the program goes on
    os.close(terminal)
    os.kill(process, signal.SIGCONT)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 128 + signal.SIGHUP
