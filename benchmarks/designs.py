"""Which design learns most in a given time on small data: the loss on held-out sentences after equal CPU time.

    python benchmarks/designs.py train.de train.en val.de val.en --seconds 300 [--only rnn small]

Each design is trained from scratch on one thread with Adam, warm-up and linear decay over the time it has, on the
same batches; the loss is in nats per target piece, so that designs compare directly. `--save` keeps the models, for
`regard evaluate`, `benchmarks/readings.py` and `benchmarks/engines.py`.
"""

import argparse
import tempfile
import time
from itertools import islice
from pathlib import Path

import torch

from regard.corpus.batches import Batches, Share
from regard.corpus.read import open_corpus, sample_pairs
from regard.corpus.store import build_store
from regard.model.build import Model, build_model, count_parameters, export_arrays
from regard.model.engine import batch_loss
from regard.model.noise import Noise
from regard.modelfile import ModelFile, save_model
from regard.options.parse import parse
from regard.options.text import BatchOptions, SubwordOptions
from regard.text.tokenizer import TokenizerPair

RNN = {"kind": "recurrent", "hidden_size": 256, "embedding_size": 256, "dropout": 0.3}
SMALL = {"hidden_size": 256, "feed_forward_size": 1024, "num_heads": 4, "dropout": 0.2}
TINY = {
    "hidden_size": 128,
    "feed_forward_size": 256,
    "num_heads": 4,
    "num_encoder_layers": 4,
    "num_decoder_layers": 4,
}
LUONG = {"kind": "step-then-attend", "scorer": "general"}
DESIGNS = {
    "rnn": RNN,
    "rnn-linear": RNN | {"readout": "linear"},
    "rnn-lstm": RNN | {"cell": "lstm"},
    "rnn-layer-norm": RNN | {"layer_norm": True},
    "rnn-luong": RNN | {"attention": LUONG},
    "rnn-dot": RNN | {"attention": {"scorer": "scaled-dot"}},
    "rnn-untied": RNN | {"tie": "none"},
    "rnn-tied-all": RNN | {"tie": "all"},
    "rnn-weight-dropout": RNN | {"weight_dropout": 0.2},
    "rnn-variational": RNN | {"variational": True, "recurrent_dropout": 0.2},
    "rnn-word-dropout": RNN | {"word_dropout": 0.1},
    "rnn-384": RNN | {"hidden_size": 384},
    "rnn-no-attention": RNN | {"attention": "none"},
    "small": SMALL,
    "small-post": SMALL | {"norm": "post"},
    "small-untied": SMALL | {"tie": "none"},
    "small-learned": SMALL | {"positions": "learned"},
    "small-less-dropout": SMALL | {"dropout": 0.1},
    "small-more-dropout": SMALL | {"dropout": 0.3},
    "tiny": TINY | {"dropout": 0.1},
    "tiny-more-dropout": TINY | {"dropout": 0.2},
    **{
        f"{deep}+{shallow}{'-ssru' if ssru else ''}": TINY
        | {"num_encoder_layers": deep, "num_decoder_layers": shallow, "dropout": 0.1}
        | ({"decoder_self": "ssru"} if ssru else {})
        for deep, shallow, ssru in ((4, 4, False), (6, 2, False), (6, 1, False), (6, 2, True))
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs=4, type=Path)
    parser.add_argument("--only", nargs="+", choices=DESIGNS, default=list(DESIGNS))
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--save", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    train, valid = open_corpus(arguments.files[:2]), open_corpus(arguments.files[2:])
    pairs = sample_pairs(train.pairs(), 30_000)
    tokenizers = TokenizerPair.learn(
        [pair.source for pair in pairs], [pair.target for pair in pairs], SubwordOptions(vocab_size=8000)
    )
    with tempfile.TemporaryDirectory() as folder:
        stores = [
            build_store(corpus.pairs(), tokenizers, Path(folder) / name)
            for name, corpus in (("train", train), ("valid", valid))
        ]
        training, held_out = (Batches([Share(s)], BatchOptions(batch_tokens=2048), seed=1) for s in stores)
        for name in arguments.only:
            model = learn(name, training, held_out, tokenizers.source.vocab_size, arguments.seconds)
            if arguments.save:
                arguments.save.mkdir(parents=True, exist_ok=True)
                weights = export_arrays(model)
                made = ModelFile(model.options, weights, tokenizers, "fr", "en", {}, {})
                save_model(arguments.save / f"{name}.regard", made)


def learn(name: str, training: Batches, held_out: Batches, vocab_size: int, seconds: float) -> Model:
    model = build_model(parse("model", DESIGNS[name]), vocab_size, vocab_size)
    optimiser = torch.optim.AdamW(model.parameters(), 0.0, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    rate = 1e-3 if model.options.kind == "recurrent" else 2e-3 * (128 / model.options.hidden_size) ** 0.5
    start, tokens = time.process_time(), 0
    for step, (_, batch) in enumerate(training.iterate()):
        spent = (time.process_time() - start) / seconds
        if spent >= 1:
            break
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1, spent / 0.1, (1 - spent) / 0.9)
        optimiser.zero_grad(set_to_none=True)
        loss = batch_loss(model, batch, Noise(1, step), 0.1).smoothed / batch.num_target_tokens
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        tokens += batch.num_target_tokens
    nll = num = 0.0
    with torch.no_grad():
        for _, batch in islice(held_out.iterate(), held_out.num_batches(0)):
            nll += batch_loss(model, batch, None, 0.0).nll.item()
            num += batch.num_target_tokens
    print(
        f"{name:20} {nll / num:6.3f} nats per piece  {step:6,} updates  {tokens:10,} tokens  "
        f"{count_parameters(model) / 1e6:.2f} M parameters",
        flush=True,
    )
    return model


if __name__ == "__main__":
    main()
