"""Work shared among processes and threads comes back whole, in order, and leaves nothing behind."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy  # noqa: F401 - its matrix library is the one that is held to a thread
import pytest
import threadpoolctl

from regard.errors import SourceError, UnequalError, WorkerError
from regard.parallel import Pool, map_in_order, one_blas_thread

WAYS = pytest.mark.parametrize("fork", [False, True], ids=["threads", "processes"])
PATIENCE_SECONDS = 60  # other work may have the processors


def square(number):
    """The work, at times slow, so that later items are done before earlier ones."""
    time.sleep(0.02 * (number % 3 == 0))
    return number * number


@WAYS
@pytest.mark.parametrize("num_workers", [None, 1, 2, 5])
def test_results_come_in_the_order_of_the_items(fork, num_workers):
    items = list(range(17))
    assert list(map_in_order(square, items, num_workers, fork=fork)) == [item * item for item in items]
    assert list(map_in_order(square, [], num_workers, fork=fork)) == []
    assert not multiprocessing.active_children()


@WAYS
@pytest.mark.parametrize("num_workers", [1, 2])
def test_futures_have_the_results_in_any_order(fork, num_workers):
    with Pool(square, num_workers, fork=fork) as pool:
        futures = [pool.submit(number) for number in range(9)]
        assert [future.result() for future in reversed(futures)] == [n * n for n in range(8, -1, -1)]


def test_many_small_items_and_large_results_all_arrive():
    assert list(map_in_order(lambda item: item + 1, range(5000), 2, fork=True)) == list(range(1, 5001))
    large = list(map_in_order(lambda item: bytes([item]) * 3_000_000, range(6), 2, fork=True))
    assert [(one[0], len(one)) for one in large] == [(number, 3_000_000) for number in range(6)]


@WAYS
@pytest.mark.parametrize("num_workers", [1, 2])
def test_an_error_of_the_work_is_raised_where_the_result_was_wanted(fork, num_workers):
    def work(number):
        if number == 3:
            raise SourceError("text 3 is no text")
        return number

    results = map_in_order(work, range(8), num_workers, fork=fork)
    assert [next(results), next(results), next(results)] == [0, 1, 2]
    with pytest.raises(SourceError, match="text 3 is no text"):
        next(results)
    assert not multiprocessing.active_children()


def test_an_error_with_more_than_a_message_comes_through():
    def work(number):
        raise UnequalError("3 and 4 lines", 3, 4)

    with pytest.raises(UnequalError, match="3 and 4 lines") as caught:
        list(map_in_order(work, range(8), 2, fork=True))
    assert (caught.value.num_source, caught.value.num_target) == (3, 4)


@WAYS
def test_only_a_few_items_are_read_ahead(fork):
    read = []
    results = map_in_order(abs, (read.append(number) or number for number in range(1000)), 2, fork=fork)
    next(results)
    results.close()
    assert len(read) < 10


def test_processes_are_used_only_if_asked_for():
    def who(number):
        time.sleep(0.05)
        return os.getpid()

    assert set(map_in_order(who, range(4), 2)) == {os.getpid()}
    others = set(map_in_order(who, range(4), 2, fork=True))
    assert os.getpid() not in others and len(others) == 2


def test_a_process_that_may_have_no_children_does_the_work_in_threads():
    """As a worker of multiprocessing's own pools is."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(_sum_of_squares) == sum(number * number for number in range(6))


def _sum_of_squares():
    return sum(map_in_order(square, range(6), 2, fork=True))


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "killed by signal 9; is there enough memory"),
        (lambda: sys.exit(3), "ended with exit code 3"),
    ],
)
def test_the_death_of_a_worker_is_an_error_and_not_an_endless_wait(end, message):
    def work(number):
        if number == 1:
            end()
        return number

    with pytest.raises(WorkerError, match=message):
        list(map_in_order(work, range(6), 2, fork=True))
    assert not multiprocessing.active_children()


WAITING = """
import os, signal, sys, time
from regard.parallel import map_in_order
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in a job of the background
def work(number):
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(0.2)
    return b"x" * 1_000_000
try:
    for _ in map_in_order(work, range(100), 2, fork=True):
        time.sleep(60)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_workers_of_a_process_that_ends_do_not_live_on(end):
    """A killed one cannot end them: they would wait for ever to be rid of results that nobody takes."""
    command = [sys.executable, "-c", WAITING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        workers = {int(process.stdout.readline()) for _ in range(2)}
        for number in (process.pid, *(workers if end == signal.SIGINT else ())):  # Ctrl-C reaches all of them
            os.kill(number, end)
        process.wait(PATIENCE_SECONDS)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(map(is_alive, workers)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert "Traceback" not in process.stderr.read()
    assert process.returncode == (130 if end == signal.SIGINT else -9)


def is_alive(number):
    """Whether there is a process of this number that still does something."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_caller_that_stops_early_leaves_no_process_behind():
    results = map_in_order(square, range(50), 2, fork=True)
    assert next(results) == 0
    results.close()
    assert not multiprocessing.active_children()


def blas_threads():
    found = {one["num_threads"] for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"}
    return max(found)


def test_overlapping_calls_leave_the_matrix_library_as_they_found_it():
    with threadpoolctl.threadpool_limits(2, "blas"):
        first, second = (map_in_order(square, range(9), 2) for _ in range(2))
        assert (next(first), next(second), blas_threads()) == (0, 0, 1)
        first.close()
        assert blas_threads() == 1
        second.close()
        assert blas_threads() == 2
        with one_blas_thread(), one_blas_thread():
            assert blas_threads() == 1
        assert blas_threads() == 2
