"""Is a killed training the training never stopped: random SIGKILLs, and every bit compared.

    python benchmarks/kills.py --kills 50

Small trainings of each family run as processes of their own on a corpus of our grammar, are killed at random
moments (preparation and saving included) and started again until they are done. Weights, optimiser state,
averages and the log must then be those of a run that nobody stopped.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from regard.sample import read_sample, write_sample
from regard.training.checkpoint import newest_checkpoint

FAMILIES = {
    "transformer": ["regard-small", "model.hidden_size=16", "model.feed_forward_size=32"],
    "bahdanau": ["regard-rnn", "model.hidden_size=16", "model.embedding_size=16"],
    "luong": ["luong2015", "model.hidden_size=16", "model.embedding_size=16", "tokenizer=bpe"],
    "sutskever": ["sutskever2014", "model.hidden_size=16", "model.embedding_size=16", "tokenizer=bpe"],
    "cho": ["cho2014", "model.hidden_size=16", "model.embedding_size=16", "tokenizer=bpe"],
}
COMMON = ["batch.batch_tokens=512", "tokenizer.vocab_size=500", "train.valid_steps=20"]


def command(corpus: Path, out: Path, family: str) -> list[str]:
    preset, *settings = FAMILIES[family]
    sets = [f"--set={setting}" for setting in (*settings, *COMMON)]
    files = [str(corpus / "sample.fr"), str(corpus / "sample.en")]
    return [
        sys.executable,
        "-m",
        "regard",
        "train",
        *files,
        "--out",
        str(out),
        "--preset",
        preset,
        "--steps=300",
        *sets,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    num_same = num_killed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_sample(folder, read_sample(400))
        wholes, seconds = {}, {}
        for family in FAMILIES:
            wholes[family] = folder / f"{family}.regard"
            started = time.monotonic()
            subprocess.run(command(folder, wholes[family], family), check=True, **quiet)
            seconds[family] = time.monotonic() - started
        run = 0
        while num_killed < arguments.kills:
            family = list(FAMILIES)[run % len(FAMILIES)]
            out = folder / f"{family}-{run}.regard"
            run += 1
            kills = 0
            while True:
                process = subprocess.Popen(command(folder, out, family), **quiet)
                if kills < 10 and num_killed < arguments.kills:
                    try:
                        process.wait(dice.uniform(0.15, 0.5) * seconds[family])
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.wait()
                        kills += 1
                        num_killed += 1
                        continue
                assert process.wait() == 0
                break
            same = equal(wholes[family], out)
            num_same += same
            print(
                f"{family:12} killed {kills} times: {'the same to the last bit' if same else 'DIFFERENT'}",
                flush=True,
            )
    print(f"{num_killed} kills in {run} runs; {num_same} of {run} runs bit-identical")
    sys.exit(num_same != run)


def equal(one: Path, other: Path) -> bool:
    folders = one.with_suffix(".run"), other.with_suffix(".run")
    if (folders[0] / "log.jsonl").read_bytes() != (folders[1] / "log.jsonl").read_bytes():
        return False
    checkpoints = [newest_checkpoint(folder)[0] for folder in folders]
    assert checkpoints[0] and checkpoints[1]
    first, second = (checkpoint.tensors for checkpoint in checkpoints if checkpoint)
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


if __name__ == "__main__":
    main()
