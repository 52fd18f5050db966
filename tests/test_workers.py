"""Work shared among processes and threads comes back whole, in order, and leaves nothing behind."""

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.errors import SourceError
from regard.translate.executor import map_batches

WAYS = pytest.mark.parametrize("much", [False, True], ids=["threads", "processes"])


def square(number):
    """The work, at times slow, so that later jobs are done before earlier ones."""
    time.sleep(0.02 * (number % 3 == 0))
    return number * number


@WAYS
@pytest.mark.parametrize("num_workers", [None, 1, 2, 5])
def test_answers_come_in_the_order_of_the_jobs(much, num_workers):
    jobs = list(range(17))
    assert list(map_batches(square, jobs, num_workers, much)) == [(job, job * job) for job in jobs]
    assert list(map_batches(square, [], num_workers, much)) == []
    assert not multiprocessing.active_children()


def test_more_jobs_than_a_pipe_holds_are_all_done():
    jobs = list(range(40_000))
    assert [done for _, done in map_batches(lambda job: job + 1, jobs, 2, True)] == [job + 1 for job in jobs]


@WAYS
def test_an_error_of_the_work_is_raised_where_the_work_was_wanted(much):
    def work(number):
        if number == 3:
            raise SourceError("text 3 is no text")
        return number

    with pytest.raises(SourceError, match="text 3 is no text"):
        list(map_batches(work, list(range(8)), 2, much))
    assert not multiprocessing.active_children()


def test_processes_are_used_for_much_work_and_only_then():
    def who(number):
        time.sleep(0.05)
        return os.getpid()

    assert {done for _, done in map_batches(who, [1, 2, 3, 4], 2, False)} == {os.getpid()}
    others = {done for _, done in map_batches(who, [1, 2, 3, 4], 2, True)}
    assert os.getpid() not in others and len(others) == 2


def test_a_process_that_may_have_no_children_does_the_work_in_threads():
    """As a worker of multiprocessing's own pools is."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(_sum_of_squares) == sum(number * number for number in range(6))


def _sum_of_squares():
    return sum(done for _, done in map_batches(square, list(range(6)), 2, True))


def test_a_worker_that_is_killed_is_an_error_and_not_an_endless_wait():
    def work(number):
        if number == 1:
            os.kill(os.getpid(), 9)
        return number

    with pytest.raises(ChildProcessError, match="killed"):
        list(map_batches(work, list(range(6)), 2, True))
    assert not multiprocessing.active_children()


def test_workers_of_a_killed_process_do_not_live_on():
    """They would wait for ever to be rid of answers that nobody takes."""
    code = """
import os, sys, time
from regard.translate.executor import map_batches
def work(number):
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(0.2)
    return b"x" * 1_000_000
for _ in map_batches(work, list(range(100)), 2, True):
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        workers = {int(process.stdout.readline()) for _ in range(2)}
        process.kill()
        process.wait()
        deadline = time.monotonic() + 10
        while any(map(is_alive, workers)):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def is_alive(number):
    """Whether there is a process of this number that still does something."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_who_stops_listening_leaves_no_process_behind():
    answers = map_batches(square, list(range(50)), 2, True)
    assert next(answers) == (0, 0)
    answers.close()
    assert not multiprocessing.active_children()
