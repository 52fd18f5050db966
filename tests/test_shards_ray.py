"""Shards on Ray: the bytes of one machine, also if machines are lost; a small cluster of three nodes on this one."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import pytest

import regard.shards.on_ray
from regard.cli import run
from regard.engines import Compute
from regard.options.search import BeamOptions
from regard.shards.cut import Source
from regard.shards.on_ray import on_ray
from regard.shards.run import Run, run_shards
from regard.shards.work import Translating

ray = pytest.importorskip("ray", reason="the extra [ray] is not installed")

GOLDEN = Path(__file__).parent / "golden" / "model-1.regard"
QUICK = ("--beam", "1", "--no-guard")
NUM_SHARDS = 30


@pytest.fixture
def cluster(monkeypatch):
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own
        three = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        others = [three.add_node(num_cpus=1) for _ in range(2)]
        ray.init(address=three.address, log_to_driver=False)
        yield three, others
        ray.shutdown()
        three.shutdown()


@pytest.fixture
def text(write):
    return write("in.fr", "il pleut.\nle chat dort.\n\ncafe\0\nla petite maison est rouge.\n" * 30)


@pytest.mark.slow
def test_a_lost_node_costs_no_line_and_repeats_none(cluster, text, tmp_path, caplog, monkeypatch):
    three, others = cluster
    done, clusters = Counter(), []

    class Watched(regard.shards.on_ray._Cluster):
        def __init__(self, *how):
            super().__init__(*how)
            clusters.append(self)

    monkeypatch.setattr(regard.shards.on_ray, "_Cluster", Watched)

    def place(_):  # here, so that it is sent as code: workers do not find this module
        return ray.get_runtime_context().get_node_id(), os.getpid()

    def counted(work, tasks, num_tasks):
        for one in on_ray(work, tasks, num_tasks):
            done[one.number] += 1
            yield one
            if done.total() == 1:  # a node whose worker still starts would have no shard to lose
                for start in [result for result, doing in clusters[0]._doing.items() if doing.task is None]:
                    assert ray.wait([start], timeout=100)[0]
            if done.total() == NUM_SHARDS // 2:
                workers = [doing.worker for doing in clusters[0]._doing.values()]
                places = ray.get([worker.__ray_call__.remote(place) for worker in workers])
                (lost,) = (process for node, process in places if node == others[0].node_id)
                three.remove_node(others[0], allow_graceful=False)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(lost, signal.SIGKILL)  # it would outlive its node for a moment, and go on

    asked = {"search": BeamOptions(beam_size=1), "guard": False}
    work = Translating.of([GOLDEN], Compute(), asked, None, as_json=False)
    how = Run(Source(text), tmp_path / "out", NUM_SHARDS)
    report = run_shards(how, work, counted, lambda *_: None, lambda *_: None)
    assert done == dict.fromkeys(range(1, NUM_SHARDS + 1), 1) and len(report.errors) == 30
    assert re.search(r"a worker was lost; shard \d+ is given to another one", caplog.text)
    assert run(["translate", "--join", str(how.folder), "--out", str(tmp_path / "joined.en")]) == 3
    assert (
        run(["translate", str(GOLDEN), "--file", str(text), *QUICK, "--out", str(tmp_path / "plain.en")]) == 3
    )
    assert (tmp_path / "joined.en").read_bytes() == (tmp_path / "plain.en").read_bytes()

    # The command line finds the two nodes that are left by their address.
    command = ["translate", GOLDEN, text, "--shards", 3, "--out", tmp_path / "cli", "--on", "ray", *QUICK]
    environment = os.environ | {"RAY_ADDRESS": three.address}
    words = [sys.executable, "-m", "regard", *map(str, command)]
    stopped = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
    while not list((tmp_path / "cli").glob("0*.txt")):
        time.sleep(0.002)
    stopped.terminate()
    assert "the same command goes on" in stopped.communicate()[1] and stopped.returncode == 143
    assert subprocess.run(words, env=environment, capture_output=True).returncode == 3
    assert run(["translate", "--join", str(tmp_path / "cli"), "--out", str(tmp_path / "cli.en")]) == 3
    assert (tmp_path / "cli.en").read_bytes() == (tmp_path / "plain.en").read_bytes()
