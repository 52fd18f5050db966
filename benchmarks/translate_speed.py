"""How fast we translate beside others: sentences a second and latency, the same weights for all, interleaved.

    python benchmarks/translate_speed.py tiny.regard rnn.regard test.en --peer transformers=peers/transformers/bin/python ...

The models, trained with our own command on Multi30k:

    regard train train.en.gz train.de.gz --out tiny.regard --time 30m --preset regard-small
    regard train train.en.gz train.de.gz --out rnn.regard --time 10m --vocab 8000 --preset regard-rnn

`regard-small` is a Transformer 4 + 4, width 128, inner 256, 4 heads, one matrix for both embeddings and the output;
`regard-rnn` is Bahdanau's GRU 256. No peer runs our RNN, so it is timed alone, sentences and bare steps.

Each contender is a process that sits still while another translates; in each round all translate all sentences. Ours is
`regard.load(MODEL).translate(texts)`: tokenisation, detokenisation, probabilities and attention are in its time, with
batches and threads of its own choice; once as a bare search (`guard=False`), as the peers search, and once as it is called
by default, when what looks wrong is tried again. `regard` is the NumPy engine; where the extra `[fast]` is installed, the same is
done with it, and with its int8, bare. Peers are given the same sources as ids, prepared beforehand, and their ids are
left as they are; they hold our trained weights, in batches of 64 of about the same length:

| contender | called as |
|---|---|
| `transformers` | `generate` of Hugging Face's Pegasus (its Marian with the norms where ours are), two threads |
| `ctranslate2-float32`, `-int8` | `Translator.translate_batch`, `inter_threads=2, intra_threads=1` |
| `joeynmt` | its `greedy` and `beam_search`, two threads |

The share of sentences for which a contender says exactly the ids that we say shows that the models are the same. With a
beam it is lower, because scores are divided by the length to a power by Hugging Face and CTranslate2, by
(5 + length) / 6 (Wu et al. 2016) by us and JoeyNMT, and because the rules to stop differ.

The peers, each in an environment of its own:

    python -m venv peers/transformers && peers/transformers/bin/pip install torch==2.13.0 transformers
    python -m venv peers/ctranslate2 && peers/ctranslate2/bin/pip install ctranslate2 numpy
    python -m venv peers/joeynmt && peers/joeynmt/bin/pip install torch==2.13.0 importlib_metadata joeynmt==2.3.0

`--cold` times `regard translate MODEL TEXT` from the start of the process to its end, and its peak memory (the
largest of its processes, if it has several).
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from regard.contract import Engine, Ragged, make_batch
from regard.engines import fault
from regard.modelfile import ModelFile, load_model
from regard.runtime.build import build_engine
from regard.runtime.equations import sinusoids
from regard.vocabulary import BOS, EOS

BEAM_SIZES = (1, 5)
THREADS = 2
NUM_TOKENS = 15  # source tokens of the sentence translated alone, `</s>` counted, and steps of the RNN
NUM_STEPPED = 30
NUM_COLD = 5
COLD_TEXT = "A man is riding a bike ."
# A process inherits the peak memory of the one that started it; a bare Python has less than any of ours.
LAUNCHER = """
import os, sys, time
start = time.perf_counter()
silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
_, status, used = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent), 0)
print(time.perf_counter() - start, used.ru_maxrss, os.waitstatus_to_exitcode(status))
"""


class Worker:
    """A contender in its own process, quiet until it is asked."""

    def __init__(self, python: str, order: dict[str, Any]) -> None:
        threads = {} if order["contender"] == "regard" else {"OMP_NUM_THREADS": str(order["threads"])}
        self.process = subprocess.Popen(
            [python, str(Path(__file__).with_name("translate_speed_peers.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | threads,
        )
        self.version = self.ask(json.dumps(order))["version"]

    def ask(self, line: str) -> dict[str, Any]:
        """Send a line and return the answer to it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            print(line, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise ChildProcessError(f"stopped with exit code {self.process.wait()}")
        return json.loads(answer)

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def check(path: Path, model: ModelFile) -> None:
    """Raise an error unless the peers can hold the model."""
    wanted = {"kind": "transformer", "norm": "pre", "tie": "all"}
    given = {key: getattr(model.options, key, None) for key in wanted}
    if given != wanted or model.options.positions.kind != "sinusoidal":
        raise SystemExit(
            f"{path}: peers can hold a Transformer with {wanted} and sinusoids; this one has {given}"
        )


def read_sentences(path: Path, model: ModelFile, num_sentences: int) -> list[dict[str, Any]]:
    """Return the first sentences of a file, as text and as ids."""
    lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()][:num_sentences]
    rows = model.tokenizers.source.encode_batch([model.tokenizers.clean_source(line) for line in lines])
    return [{"text": line, "ids": [*row.tolist(), EOS]} for line, row in zip(lines, rows, strict=True)]


def write_weights(path: Path, model: ModelFile, sentences: list[dict[str, Any]]) -> None:
    """Write our weights and table of positions, long enough for any translation, for the peers."""
    longest = 2 * max(len(sentence["ids"]) for sentence in sentences) + 64
    positions = sinusoids(0, longest, model.options.hidden_size).astype(np.float32)
    np.savez(path, positions=positions, **model.weights)


def start(pythons: dict[str, str], order: dict[str, Any]) -> dict[str, Worker]:
    """Return a worker for each contender, ours first; one that cannot run is left out with its reason."""
    ours = {"contender": "regard", "engine": "numpy", "precision": "float32", "guard": False}
    orders = {
        "regard": ours,
        "regard, guarded": ours | {"guard": True},
        "regard, [fast]": ours | {"engine": "auto"},
        "regard, [fast] int8": ours | {"engine": "auto", "precision": "int8"},
        "transformers": {"contender": "transformers"},
        "ctranslate2-float32": {"contender": "ctranslate2", "precision": "float32"},
        "ctranslate2-int8": {"contender": "ctranslate2", "precision": "int8"},
        "joeynmt": {"contender": "joeynmt"},
    }
    if len(pythons) == 1 or fault("float32") is not None:  # an RNN, or without the extra
        orders = {name: own for name, own in orders.items() if "[fast]" not in name}
    workers = {}
    for name, own in orders.items():
        if own["contender"] in pythons:
            try:
                workers[name] = Worker(pythons[own["contender"]], order | own)
                print(f"{name}: {workers[name].version}", flush=True)
            except ChildProcessError as error:
                if name == "regard":
                    raise SystemExit(f"regard {error}; its own message stands above") from None
                print(f"{name}: left out: {error}", flush=True)
    return workers


def contest(title: str, workers: dict[str, Worker], order: dict[str, Any], num_rounds: int) -> None:
    """Run the rounds of all contenders and print speeds, ratios, agreement and latencies."""
    num_sentences, num_tokens = len(order["sentences"]), len(order["one"]["ids"])
    for beam_size in BEAM_SIZES:
        speeds: dict[str, list[float]] = {name: [] for name in workers}
        alone: dict[str, list[float]] = {name: [] for name in workers}
        said: dict[str, list[list[int]]] = {}
        for number in range(num_rounds):
            for name, worker in workers.items():
                answer = worker.ask(f"all {beam_size}")
                speeds[name].append(num_sentences / answer["seconds"])
                said[name] = answer["ids"]
                alone[name].append(1000 * worker.ask(f"one {beam_size}")["seconds"])
            shown = "  ".join(f"{name} {speed[-1]:,.0f}" for name, speed in speeds.items())
            print(f"{title}, beam {beam_size}, round {number + 1}: {shown} sentences/s", flush=True)
        for name in workers:
            same = sum(map(list.__eq__, said[name], said["regard"])) / num_sentences
            line = f"{title}, beam {beam_size}: {name:19} {statistics.median(speeds[name]):7,.1f} sentences/s"
            line += f"  {statistics.median(alone[name]):6.1f} ms for one of {num_tokens} tokens"
            if name != "regard":
                line += f"  {100 * same:5.1f} % say what we say"
            for peer in ("transformers", "ctranslate2-float32", "ctranslate2-int8"):
                if name.startswith("regard") and peer in speeds:
                    ratios = sorted(a / b for a, b in zip(speeds[name], speeds[peer], strict=True))
                    line += f"  {statistics.median(ratios):.2f} times {peer} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            print(line, flush=True)


def translate(
    title: str, path: Path, pythons: dict[str, str], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Let all contenders translate with one model; return the sentence that they translated alone."""
    model = load_model(path)
    sentences = read_sentences(arguments.source, model, arguments.sentences)
    one = min(sentences, key=lambda sentence: abs(len(sentence["ids"]) - NUM_TOKENS))
    with tempfile.TemporaryDirectory() as folder:
        order = {
            "model": str(path),
            "options": model.options.model_dump(),
            "weights": f"{folder}/weights.npz",
            "sentences": sentences,
            "one": one,
            "batch": arguments.batch,
            "threads": THREADS,
            "beam_sizes": BEAM_SIZES,
        }
        if len(pythons) > 1:
            check(path, model)
            write_weights(Path(order["weights"]), model, sentences)
        workers = start(pythons, order)
    contest(title, workers, order, arguments.rounds)
    for worker in workers.values():
        worker.close()
    return one


def time_steps(engine: Engine[Any], ids: list[int], num_rows: int, num_rounds: int) -> None:
    """Print the time of greedy steps of the bare engine, with the encoder and without."""
    batch = make_batch(Ragged.of([np.array(ids[:-1])] * num_rows), None, np.arange(num_rows))
    encoder, steps = [], []
    for _ in range(num_rounds + 1):
        started = time.perf_counter()
        state, ids_R = engine.start(batch), np.full(num_rows, BOS)
        read = time.perf_counter()
        for _ in range(NUM_TOKENS):
            said = engine.step(state, ids_R)
            state, ids_R = said.state, said.logits_RV.argmax(-1)
        encoder.append(1000 * (read - started))
        steps.append(1000 * (time.perf_counter() - read))
    whole = statistics.median(a + b for a, b in zip(encoder[1:], steps[1:], strict=True))
    print(
        f"rnn: {NUM_TOKENS} greedy steps, {num_rows} at a time: {statistics.median(steps[1:]):.2f} ms, "
        f"{whole:.2f} ms with the encoder of {len(ids)} source tokens",
        flush=True,
    )


def cold(path: Path) -> None:
    """Print the time and the peak memory of the command that translates one sentence."""
    command = [sys.executable, "-m", "regard", "translate", str(path), COLD_TEXT]
    runs = []
    for _ in range(NUM_COLD):
        launched = subprocess.run(
            [sys.executable, "-S", "-c", LAUNCHER, *command], capture_output=True, text=True, check=True
        )
        seconds, kilobytes, code = map(float, launched.stdout.split())
        if code:
            print(f"cold: `regard translate` ended with exit code {code:.0f}: {launched.stderr.strip()}")
            return
        runs.append((seconds, kilobytes / 1024))
    seconds, megabytes = (sorted(column) for column in zip(*runs, strict=True))
    print(
        f"cold: {statistics.median(seconds):.2f} s ({seconds[0]:.2f} to {seconds[-1]:.2f}), "
        f"peak memory {statistics.median(megabytes):.0f} MB ({megabytes[0]:.0f} to {megabytes[-1]:.0f})",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("transformer", type=Path, help="tiny.regard")
    parser.add_argument("recurrent", type=Path, help="rnn.regard")
    parser.add_argument("source", type=Path, help="sentences to translate, a line each")
    parser.add_argument("--peer", action="append", default=[], help="NAME=PYTHON, the peer's own Python")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=64, help="sentences in a batch of the peers")
    parser.add_argument("--cold", action="store_true", help="time the command line too")
    arguments = parser.parse_args()
    pythons = {"regard": sys.executable} | dict(peer.split("=", 1) for peer in arguments.peer)
    if arguments.cold:
        cold(arguments.transformer)
    translate("transformer", arguments.transformer, pythons, arguments)
    one = translate("rnn", arguments.recurrent, {"regard": sys.executable}, arguments)
    model = load_model(arguments.recurrent)
    engine = build_engine(model.options, model.weights)
    for num_rows in (1, arguments.batch):
        time_steps(engine, one["ids"], num_rows, NUM_STEPPED)


if __name__ == "__main__":
    main()
