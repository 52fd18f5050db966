"""What importing a model of OPUS-MT's shape costs: seconds, memory, and what the result costs to load and to train on.

Makes a MarianMTModel folder with random weights (75 million with the usual options), exports it to the other formats,
and imports each in a process of its own. `--train` fine-tunes the result for some updates on random sentences (PyTorch).
Needs Linux.

    python benchmarks/import_large.py [--layers 6] [--pieces 60000] [--train 4]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import safetensors.numpy
import sentencepiece

from regard.modelfile import load_model

_SIZE, _INNER, _HEADS = 512, 2048, 8
_LOAD = """import sys, time; from pathlib import Path; from regard.modelfile import load_model
start = time.perf_counter()
load_model(Path(sys.argv[1]))
print(time.perf_counter() - start)"""
# The peak that the system keeps for a child begins with that of its parent; this one does not.
_RUN = """import sys, time; from regard import cli
status = cli.run(sys.argv[1:])
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(time.process_time(), peak)
sys.exit(status)"""
_MODELS = {"huggingface": "model.safetensors", "ctranslate2": "model.bin", "marian": "model.npz"}
_TOKENS = 4000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--pieces", type=int, default=60_000)
    parser.add_argument("--formats", nargs="+", choices=[*_MODELS], default=[*_MODELS])
    parser.add_argument("--train", type=int, default=0, metavar="N", help="train for N updates")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = make(folder / "huggingface", options.layers, options.pieces)
        (folder / "probe.fr").write_text(f"{words[0]}\n")
        print(f"load at the start: {os.getloadavg()[0]:.1f}")
        print("| format | size | import | processor | most memory | of the size | loading |")
        print("|---|---|---|---|---|---|---|")
        out = folder / "huggingface.regard"
        for form in options.formats:
            if form != "huggingface":
                measured("export", str(folder / "huggingface.regard"), "--to", form, "--out", folder / form,
                         "--probes", folder / "probe.fr")  # fmt: skip
                out = folder / f"{form}.regard"
            print(row(folder / form, _MODELS[form], out), flush=True)
        if options.train:
            train(folder / "huggingface.regard", options.train)


def make(folder: Path, num_layers: int, num_pieces: int) -> list[str]:
    """Write a folder; return the words of its tokenizer."""
    folder.mkdir()
    random = np.random.default_rng(1)
    words = ["".join(chr(97 + letter) for letter in random.integers(0, 26, 5)) for _ in range(3000)]
    texts = [" ".join(random.choice(words, 10)) for _ in range(2000)]
    prefix = folder / "source"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_prefix=str(prefix), vocab_size=2000, hard_vocab_limit=False,
        minloglevel=2,
    )  # fmt: skip
    (folder / "source.model").rename(folder / "source.spm")
    (folder / "target.spm").write_bytes((folder / "source.spm").read_bytes())
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    real = [model.id_to_piece(id) for id in range(3, model.vocab_size())]
    fillers = [f"filler{number}" for number in range(num_pieces - 3 - len(real))]
    pieces = ["</s>", "<unk>", *real, *fillers, "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({piece: id for id, piece in enumerate(pieces)}))
    config = {
        "model_type": "marian", "d_model": _SIZE, "activation_function": "swish", "scale_embedding": True,
        "max_position_embeddings": _SIZE, "decoder_start_token_id": len(pieces) - 1,
    }  # fmt: skip
    for side in ("encoder", "decoder"):
        numbers = (("layers", num_layers), ("attention_heads", _HEADS), ("ffn_dim", _INNER))
        config |= {f"{side}_{key}": value for key, value in numbers}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "fr", "target_lang": "en"}))
    table = random.normal(0, 0.02, (len(pieces), _SIZE)).astype(np.float32)
    table[-1] = 0  # as in all OPUS-MT models
    tensors = {"model.shared.weight": table, "final_logits_bias": np.zeros((1, len(pieces)), np.float32)}
    for side in ("encoder", "decoder"):
        for layer in range(num_layers):
            tensors |= layer_of(f"model.{side}.layers.{layer}", side == "decoder", random)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return words


def layer_of(name: str, is_decoder: bool, random: np.random.Generator) -> dict[str, np.ndarray]:
    found = {}
    for part in ("self_attn", "encoder_attn") if is_decoder else ("self_attn",):
        shapes = {f"{part}.{one}_proj": (_SIZE, _SIZE) for one in ("q", "k", "v", "out")}
        found |= linear(name, shapes, random) | norm(f"{name}.{part}_layer_norm")
    found |= linear(name, {"fc1": (_INNER, _SIZE), "fc2": (_SIZE, _INNER)}, random)
    return found | norm(f"{name}.final_layer_norm")


def linear(
    name: str, shapes: dict[str, tuple[int, int]], random: np.random.Generator
) -> dict[str, np.ndarray]:
    found = {}
    for part, shape in shapes.items():
        found[f"{name}.{part}.weight"] = random.normal(0, 0.05, shape).astype(np.float32)
        found[f"{name}.{part}.bias"] = np.zeros(shape[0], np.float32)
    return found


def norm(name: str) -> dict[str, np.ndarray]:
    return {f"{name}.weight": np.ones(_SIZE, np.float32), f"{name}.bias": np.zeros(_SIZE, np.float32)}


def row(folder: Path, file: str, out: Path) -> str:
    """Import a folder and return what it cost."""
    size = (folder / file).stat().st_size
    seconds, processor, memory = measured("import", folder, "--out", out)
    loading = float(
        subprocess.run([sys.executable, "-c", _LOAD, out], capture_output=True, check=True).stdout
    )
    return (
        f"| {folder.name} | {size / 1e6:.0f} MB | {seconds:.1f} s | {processor:.1f} s | {memory / 1e6:.0f} MB | "
        f"{memory / size:.2f} | {loading:.2f} s |"
    )


def measured(*words: object) -> tuple[float, float, int]:
    """Run a command of regard; return its seconds, processor seconds and most bytes of memory."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *map(str, words)], capture_output=True, text=True, check=True
    )
    processor, kilobytes = done.stdout.split()[-2:]
    return time.perf_counter() - start, float(processor), int(kilobytes) * 1024


def train(path: Path, num_updates: int) -> None:
    """Train on random sentences for some updates, each of about 4,000 target tokens; print how fast."""
    import torch

    from regard.contract import Ragged, make_batch
    from regard.model.build import build_model, import_arrays
    from regard.model.engine import batch_loss
    from regard.model.noise import Noise

    file, random = load_model(path), np.random.default_rng(2)
    sizes = file.tokenizers.source.vocab_size, file.tokenizers.target.vocab_size
    model = build_model(file.options, *sizes)
    import_arrays(model, file.weights)
    optimiser = torch.optim.AdamW(model.parameters(), 1e-5, fused=True)
    lengths = random.integers(10, 50, _TOKENS // 30)
    sides = [Ragged.of([random.integers(260, size, n) for n in lengths]) for size in sizes]
    batch = make_batch(*sides, np.arange(len(lengths)))
    print(f"load before training: {os.getloadavg()[0]:.1f}, threads {torch.get_num_threads()}")
    for step in range(num_updates):
        start, processor = time.perf_counter(), time.process_time()
        optimiser.zero_grad(set_to_none=True)
        batch_loss(model, batch, Noise(1, step), 0.1).smoothed.backward()
        optimiser.step()
        seconds, processor = time.perf_counter() - start, time.process_time() - processor
        print(
            f"update {step}: {batch.num_target_tokens:,} target tokens, {seconds:.1f} s, {processor:.1f} processor "
            f"seconds: {batch.num_target_tokens / processor:,.0f} tokens a processor second",
            flush=True,
        )
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    print(f"most memory: {int(peak.split()[1]) / 1e6:.1f} GB")


if __name__ == "__main__":
    main()
