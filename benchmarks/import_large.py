"""What importing a model of OPUS-MT's shape costs: seconds, memory, and what the result costs to load and to train on.

Makes a MarianMTModel folder with random weights (75 million with the usual options), exports it to the other formats,
and imports each in a process of its own. `--train` fine-tunes the result on random sentences and says what 100,000
words would cost.

    python benchmarks/import_large.py [--layers 6] [--pieces 60000] [--train 2m]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import safetensors.numpy
import sentencepiece

_SIZE, _INNER, _HEADS = 512, 2048, 8
_LOAD = (
    "import sys, time; from pathlib import Path; from regard.modelfile import load_model; start = time.time(); \
load_model(Path(sys.argv[1])); print(time.time() - start)"
)
_MODELS = {"huggingface": "model.safetensors", "ctranslate2": "model.bin", "marian": "model.npz"}
_WORDS = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--pieces", type=int, default=60_000)
    parser.add_argument("--formats", nargs="+", choices=[*_MODELS], default=[*_MODELS])
    parser.add_argument("--train", metavar="TIME", help="train so long, such as 2m")
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
            train(folder, words, options.train)


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
    start = os.times().elapsed
    process = subprocess.Popen([sys.executable, "-m", "regard", *map(str, words)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"regard {words[0]} failed")
    return os.times().elapsed - start, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def train(folder: Path, words: list[str], time: str) -> None:
    """Fine-tune for a while; print how fast, and what 100,000 words cost."""
    random = np.random.default_rng(2)
    for side in ("fr", "en"):
        lines = [" ".join(random.choice(words, random.integers(5, 30))) for _ in range(3000)]
        (folder / f"text.{side}").write_text("\n".join(lines) + "\n")
    files = [folder / f"text.{side}" for side in ("fr", "en")]
    _, processor, memory = measured(
        "train", *files, "--from", folder / "huggingface.regard", "--out", folder / "tuned.regard",
        "--time", time, "--workers", 1, "--keep", "all",
    )  # fmt: skip
    log = next(folder.rglob("log.jsonl")).read_text()
    print(log[-3000:], processor, memory)


if __name__ == "__main__":
    main()
