"""How long the NumPy engine takes, and what a probe that nobody uses costs.

    python benchmarks/runtime_step.py [--rounds 15]

A sentence of 14 pieces, 15 greedy steps, alone and 64 at a time, vocabulary 8,000, the models of model_step.py.
The cost of the probe is the number of quantities in a step times the call of an empty function with a made-up name.
"""

import argparse
import statistics
import time

import numpy as np
from model_step import MODELS, VOCAB

from regard.contract import Engine, Ragged, make_batch, unseen
from regard.model.build import build_model, export_arrays
from regard.options.parse import parse
from regard.runtime.build import build_engine
from regard.vocabulary import BOS


def decode(engine: Engine, rows: int) -> float:
    """Return the seconds of reading and fifteen greedy steps."""
    sources = Ragged.of([np.arange(300, 314)] * rows)
    started = time.perf_counter()
    state, ids_R = engine.start(make_batch(sources, None, np.arange(rows))), np.full(rows, BOS)
    for _ in range(15):
        step = engine.step(state, ids_R)
        state, ids_R = step.state, step.logits_RV.argmax(-1)
    return time.perf_counter() - started


def probe_share(engine: Engine) -> float:
    """Return the share of unused probes in one step of one sentence."""
    state = engine.start(make_batch(Ragged.of([np.arange(300, 314)]), None, np.arange(1)))
    names: list[str] = []
    engine.step(state, np.full(1, BOS), lambda name, value: (names.append(name), value)[1])
    steps = []
    for _ in range(200):
        started = time.perf_counter()
        engine.step(state, np.full(1, BOS))
        steps.append(time.perf_counter() - started)
    started = time.perf_counter()
    for layer in range(20_000):
        unseen(f"decoder.{layer}.cross.weights", state)
    call = (time.perf_counter() - started) / 20_000
    return call * len(names) / statistics.median(steps)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    for name in ("gru-bahdanau", "lstm-luong", "transformer-tiny", "transformer-small"):
        options = parse("model", MODELS[name])
        engine = build_engine(options, export_arrays(build_model(options, VOCAB, VOCAB)))
        alone, many = (
            1000 * statistics.median(decode(engine, rows) for _ in range(rounds)) for rows in (1, 64)
        )
        print(
            f"{name:18} alone {alone:6.1f} ms  64 at a time {many:6.1f} ms  "
            f"unused probes {100 * probe_share(engine):.1f} % of a step"
        )


if __name__ == "__main__":
    main()
