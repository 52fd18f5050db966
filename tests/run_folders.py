"""Run folders for tests, written by hand as a training writes them."""

import json
import math

CONFIG = {
    "tokenizer": {"kind": "unigram", "vocab_size": 4000},
    "batch": {"batch_tokens": 4096},
    "model": {"kind": "recurrent", "attention": {"kind": "attend-then-step"}},
    "train": {"label_smoothing": 0.1, "betas": [0.9, 0.98]},
    "seed": 1,
}
FACTS = {"num_pairs": 29000, "num_validation_pairs": 1014, "vocab_size": 4000, "num_parameters": 3_210_000}


def update(step, **values):
    loss = 1 + 8 * math.exp(-step / 100)
    line = {
        "kind": "update",
        "step": step,
        "epoch": step // 50,
        "loss": loss,
        "nll": loss - 0.1,
        "rate": 1e-3,
        "norm": 0.5,
    }
    return line | {"tokens": 4000} | values


def validation(step, bleu, best=True, **values):
    line = {
        "kind": "validation",
        "step": step,
        "nll": 2.0,
        "bleu": bleu,
        "shuffled_nll": 4.0,
        "entropy": None,
    }
    return line | {"best": best} | values


def log_of(num_updates, every=50):
    """The lines of a run that gets better at each validation."""
    lines = []
    for step in range(1, num_updates + 1):
        lines.append(update(step))
        if step % every == 0:
            lines.append(validation(step, bleu=step / 10))
    return lines


def write_run(folder, log=(), times=(), result=None, tail="", config=CONFIG, **head):
    """Write a run folder; `tail` is what stands after the last whole line of the log."""
    folder.mkdir(parents=True)
    about = {"format": "regard-run/1", "out": f"{folder.stem}.regard", "created": "2026-11-16T02:30:00Z"}
    about |= {"languages": ["fr", "en"], "preset": None, "config": config, "facts": FACTS} | head
    (folder / "run.json").write_text(json.dumps(about))
    if log or tail:
        (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log) + tail)
    if times:
        (folder / "times.jsonl").write_text("".join(json.dumps(line) + "\n" for line in times))
    if result:
        (folder / "result.json").write_text(json.dumps(result))
    return folder


RESULT = {
    "step": 200,
    "reason": "validation has not improved for 8 times",
    "scores": {"bleu": 21.5, "chrf": 44.0, "signatures": {"bleu": "nrefs:1"}, "by_length": []},
}
