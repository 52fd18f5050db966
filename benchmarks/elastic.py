"""Does a training on several processes or machines survive the loss of one? torchrun's elastic restart, and every bit compared.

    python benchmarks/elastic.py
    python benchmarks/elastic.py --nodes 2 --ranks 2
    python benchmarks/elastic.py --nodes 2 --ranks 2 --lose node

A small Transformer is trained twice by `torchrun --max-restarts 3`: once undisturbed, and once with a process killed
after some update. A "node" is an agent of torchrun with `--ranks` processes; all nodes are on this machine, on loopback.
With `--lose node` the last node is killed, the agent and all of its processes, and started again. Weights, optimiser state,
averages and the log must then be those of the undisturbed training.
"""

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from regard.sample import read_sample, write_sample
from regard.training.checkpoint import newest_checkpoint

SMALL = (
    "model.hidden_size=16", "model.feed_forward_size=32", "batch.batch_tokens=512", "tokenizer.vocab_size=500",
    "train.valid_steps=20",
)  # fmt: skip


class Nodes:
    """The agents of torchrun for one training."""

    def __init__(self, options: argparse.Namespace, corpus: Path, out: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.command = [
            sys.executable, "-m", "torch.distributed.run", "--nnodes", options.nodes, "--nproc-per-node", options.ranks,
            "--max-restarts", 3, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{port}",
            "--rdzv-id", out.stem, "--local-addr", "localhost",
            "-m", "regard", "train", corpus / "sample.fr", corpus / "sample.en", "--out", out,
            "--preset", "regard-small", "--steps", options.steps, *(f"--set={one}" for one in SMALL),
        ]  # fmt: skip
        self.log = out.with_suffix(".run") / "log.jsonl"
        self.said = out.with_suffix(".said").open("a")
        self.agents = [self.start()]
        for _ in range(1, options.nodes):
            while socket.socket().connect_ex(("127.0.0.1", port)):  # the first node is where they meet
                time.sleep(0.1)
            self.agents.append(self.start())

    def start(self) -> subprocess.Popen[bytes]:
        """Start a node."""
        return subprocess.Popen(
            list(map(str, self.command)), stdout=self.said, stderr=self.said, start_new_session=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},
        )  # fmt: skip

    def wait_for_update(self, step: int) -> None:
        """Return once the log holds this update."""
        while not self.log.exists() or f'"step": {step},' not in self.log.read_text():
            assert all(agent.poll() is None for agent in self.agents), Path(self.said.name).read_text()
            time.sleep(0.02)

    def lose_rank(self) -> None:
        """Kill the last process of the last node."""
        agent = self.agents[-1].pid
        ranks = Path(f"/proc/{agent}/task/{agent}/children").read_text().split()
        os.kill(int(ranks[-1]), signal.SIGKILL)

    def lose_node(self) -> None:
        """Kill the last node, and start another one in its place."""
        agent = self.agents.pop()
        ranks = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
        for process in (agent.pid, *map(int, ranks)):
            os.kill(process, signal.SIGKILL)
        agent.wait()
        self.agents.append(self.start())

    def end(self) -> None:
        """Wait for the end of the training."""
        codes = [agent.wait() for agent in self.agents]
        self.said.close()
        assert codes == [0] * len(codes), Path(self.said.name).read_text()


def same(one: Path, other: Path) -> bool:
    folders = one.with_suffix(".run"), other.with_suffix(".run")
    if (folders[0] / "log.jsonl").read_bytes() != (folders[1] / "log.jsonl").read_bytes():
        return False
    first, second = (newest_checkpoint(folder)[0] for folder in folders)
    assert first and second
    return first.tensors.keys() == second.tensors.keys() and all(
        torch.equal(first.tensors[name], second.tensors[name]) for name in first.tensors
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=4, help="processes of each node")
    parser.add_argument("--lose", choices=("rank", "node"), default="rank")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    step = random.Random(options.seed).randrange(21, options.steps - 10)
    with tempfile.TemporaryDirectory() as name:
        corpus = Path(name)
        write_sample(corpus, read_sample(400))
        whole, broken = corpus / "whole.regard", corpus / "broken.regard"
        seconds = []
        for out in (whole, broken):
            started = time.monotonic()
            nodes = Nodes(options, corpus, out)
            if out == broken:
                nodes.wait_for_update(step)
                nodes.lose_node() if options.lose == "node" else nodes.lose_rank()
            nodes.end()
            seconds.append(time.monotonic() - started)
        is_same = same(whole, broken)
        print(
            f"{options.nodes} x {options.ranks} processes, {options.steps} updates; a {options.lose} killed after update "
            f"{step}: {'the same to the last bit' if is_same else 'DIFFERENT'} ({seconds[0]:.0f} s undisturbed, "
            f"{seconds[1]:.0f} s)"
        )
    sys.exit(not is_same)


if __name__ == "__main__":
    main()
