"""Imported OPUS-MT models against transformers: ids of the tokenizer, logits, greedy and beam tokens.

Takes a folder with the tokenizer, vocabulary and config.json of an OPUS-MT model, and a parallel text. Trains a
small MarianMTModel of each kind, imports it and compares. Needs transformers and torch. The kinds are three activation
functions, embeddings that are not shared between source and target, and weights saved in float16.

    python benchmarks/import_marian.py opus-mt-tc-big-fr-en text.fr text.en --steps 200 --sentences 200
"""

import argparse
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.contract import Ragged, make_batch
from regard.engines import NUMPY
from regard.importing.run import import_model
from regard.loaded import Loaded
from regard.modelfile import ModelFile, load_model
from regard.options.search import BeamOptions
from regard.runtime.build import build_engine
from regard.search.searcher import Query
from regard.vocabulary import EOS, NUM_RESERVED, UNK

_TOKENIZER = ("source.spm", "target.spm", "vocab.json")
_MAX_NEW = 40
_KINDS: dict[str, dict[str, Any]] = {
    "swish": {},
    "relu": {"activation_function": "relu"},
    "gelu": {"activation_function": "gelu"},
    "separate embeddings": {"share_encoder_decoder_embeddings": False},
    "float16": {},
}


@dataclass(frozen=True)
class Theirs:
    """A model of transformers, its tokenizer, and the folder it was saved in."""

    model: Any
    tokenizer: Any
    folder: Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--kinds", nargs="+", choices=[*_KINDS], default=[*_KINDS])
    options = parser.parse_args()
    pairs = list(
        zip(options.source.read_text().splitlines(), options.target.read_text().splitlines(), strict=True)
    )
    print("| kind | ids that differ | largest difference of logits | greedy alike | beam 4 alike |")
    print("|---|---|---|---|---|")
    for kind in options.kinds:
        with tempfile.TemporaryDirectory() as temporary:
            theirs = train(options.folder, Path(temporary) / "theirs", kind, pairs, options.steps)
            out = Path(temporary) / "ours.regard"
            import_model(theirs.folder, out)
            compare(theirs, load_model(out), kind, pairs[-options.sentences :])


def train(folder: Path, out: Path, kind: str, pairs: list[tuple[str, str]], steps: int) -> Theirs:
    import torch
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    config = json.loads((folder / "config.json").read_text())
    layers = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in
              (("layers", 2), ("ffn_dim", 128), ("attention_heads", 4))}  # fmt: skip
    config |= layers | {"d_model": 64, "activation_function": "swish"} | _KINDS[kind]
    config.pop("torch_dtype", None)
    torch.manual_seed(1)
    model = MarianMTModel(MarianConfig(**config))
    files = [str(folder / name) for name in _TOKENIZER]
    tokenizer = MarianTokenizer(*files)
    optimiser = torch.optim.Adam(model.parameters(), 2e-3)
    for step in range(steps):
        some = pairs[step * 16 % len(pairs) :][:16]
        batch = tokenizer(
            [source for source, _ in some],
            text_target=[target for _, target in some],
            return_tensors="pt",
            padding=True,
            truncation=True,
            max_length=60,
        )
        batch["labels"][batch["labels"] == tokenizer.pad_token_id] = -100
        optimiser.zero_grad()
        model(**batch).loss.backward()
        optimiser.step()
    if kind == "float16":  # saved in half the bits; both compute in 32
        model.half()
    model.save_pretrained(out)
    model = MarianMTModel.from_pretrained(out, dtype=torch.float32).eval()
    for name in _TOKENIZER:
        shutil.copy(folder / name, out / name)
    return Theirs(model, tokenizer, out)


def compare(theirs: Theirs, model: ModelFile, kind: str, pairs: list[tuple[str, str]]) -> None:
    import torch

    target = model.tokenizers.target
    pieces = target.pieces[NUM_RESERVED:]
    numbers = theirs.tokenizer.convert_tokens_to_ids(["</s>", "<unk>", *pieces])
    ours = [EOS, UNK, *range(NUM_RESERVED, target.vocab_size)]
    their_id = dict(zip(ours, numbers, strict=True))
    engine, loaded = build_engine(model.options, model.weights), Loaded.of(model, compute=NUMPY)
    num_ids, largest, alike = 0, 0.0, {1: 0, 4: 0}
    for source, reference in pairs:
        (read,), (said,) = model.tokenizers.source.encode_batch([source]), target.encode_batch([reference])
        inputs = theirs.tokenizer(source, return_tensors="pt")
        labels = theirs.tokenizer(text_target=reference, return_tensors="pt").input_ids
        num_ids += [their_id[id] for id in (*read.tolist(), EOS)] != inputs.input_ids[0].tolist()
        num_ids += [their_id[id] for id in (*said.tolist(), EOS)] != labels[0].tolist()
        with torch.no_grad():
            logits = theirs.model(**inputs, labels=labels).logits[0].numpy()
        forced = engine.force(make_batch(Ragged.of([read]), Ragged.of([said]), np.arange(1)))
        largest = max(largest, float(np.abs(forced.logits_BTV[0][:, ours] - logits[:, numbers]).max()))
        for size in alike:
            # With a length penalty of 0 both searches rank by the sum of log-probabilities alone.
            generated = theirs.model.generate(
                **inputs, num_beams=size, max_new_tokens=_MAX_NEW, length_penalty=0.0, early_stopping=False,
                do_sample=False,
            )  # fmt: skip
            search = BeamOptions(beam_size=size, length_penalty=0, max_ratio=1e-6, extra_tokens=_MAX_NEW)
            (found,) = loaded.searcher.search([Query(read)], search)
            wanted = [id for id in generated[0, 1:].tolist() if id != theirs.tokenizer.eos_token_id]
            got = [their_id[id] for id in found.hypotheses[0].ids]
            alike[size] += got[: _MAX_NEW - 1] == wanted[: _MAX_NEW - 1]
    print(
        f"| {kind} | {num_ids} | {largest:.1e} | {alike[1]} of {len(pairs)} | {alike[4]} of {len(pairs)} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
