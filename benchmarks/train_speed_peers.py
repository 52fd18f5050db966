"""One contender of `train_speed.py`, in a Python of its own, which need not have regard.

The first line of standard input is the order, as JSON: whose model, its sizes, where the batches are. When the model
is built and warm, the answer is a line of JSON; from then on every line is answered by one round of training on all
batches and another line of JSON: target tokens and seconds.
"""

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

PAD, BOS, EOS, UNK = range(4)  # the ids in the batches
SMOOTHING = 0.1
DROPOUT = 0.1
MAX_NORM = 1.0


@dataclass(frozen=True)
class Batch:
    """Sentence pairs side by side, longest source first (JoeyNMT wants them so), padded on the right."""

    source_BS: Tensor
    target_in_BT: Tensor
    target_out_BT: Tensor

    @property
    def source_length_B(self) -> Tensor:
        """The number of real source tokens."""
        return (self.source_BS != PAD).sum(1)

    @property
    def target_BT(self) -> Tensor:
        """`<s>`, the words and `</s>`, for models that shift the target themselves."""
        return torch.cat([self.target_in_BT[:, :1], self.target_out_BT], dim=1)


@dataclass(frozen=True)
class Contender:
    """A model, and its loss of a batch prepared beforehand, summed over the target tokens.

    `set_gradients` (batch, target tokens, step) is for those who do not just call `backward`.
    """

    package: str
    model: nn.Module
    prepare: Callable[[Batch], Any]
    loss: Callable[[Any, int], Tensor]
    set_gradients: Callable[[Any, int, int], None] | None = None


class Words(dict[str, int]):
    """Stands in for a peer's vocabulary, of which its model asks the size and the special ids."""

    pad_index, bos_index, eos_index, unk_index, sep_index = PAD, BOS, EOS, UNK, None
    specials, lang_tags = (), ()

    def __init__(self, size: int) -> None:
        super().__init__({"<blank>": PAD, "<pad>": PAD, "<s>": BOS, "</s>": EOS, "<unk>": UNK})
        self.size = size

    def __len__(self) -> int:
        return self.size


def smoothed(logits_BTV: Tensor, target_BT: Tensor) -> Tensor:
    """Return torch's own label-smoothed cross-entropy: what transformers, OpenNMT-py and eole train with."""
    return functional.cross_entropy(
        logits_BTV.flatten(0, -2),
        target_BT.flatten(),
        ignore_index=PAD,
        reduction="sum",
        label_smoothing=SMOOTHING,
    )


def initialise(model: nn.Module) -> None:
    """Fill weights that two peers leave to their training command: numbers that overflow are slow."""
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            if isinstance(module, nn.LayerNorm):
                module.reset_parameters()
            elif parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
            else:
                nn.init.zeros_(parameter)


def regard(options: dict[str, Any], vocab_size: int) -> Contender:
    from regard.contract import Batch as OwnBatch
    from regard.model.build import build_model
    from regard.model.engine import batch_loss
    from regard.model.noise import Noise
    from regard.options.parse import parse
    from regard.options.training import TrainOptions
    from regard.training.workers import Workers, choose_num_workers

    model = build_model(parse("model", options), vocab_size, vocab_size)
    # As `regard train` divides the threads it is given.
    num_threads = torch.get_num_threads()
    num_workers = choose_num_workers(num_threads, 4096)
    torch.set_num_threads(num_threads // num_workers)
    workers = Workers(model, TrainOptions(label_smoothing=SMOOTHING), 1, num_workers)

    def prepare(batch: Batch) -> OwnBatch:
        arrays = (batch.source_BS, batch.target_in_BT, batch.target_out_BT)
        return OwnBatch(*(array.numpy() for array in arrays), np.arange(len(batch.source_BS)))

    def loss(batch: OwnBatch, step: int) -> Tensor:
        return batch_loss(model, batch, Noise(1, step), SMOOTHING).smoothed

    def set_gradients(batch: OwnBatch, num_tokens: int, step: int) -> None:
        workers.set_gradients([batch], num_tokens, step)

    return Contender("regard", model, prepare, loss, set_gradients)


def marian(options: dict[str, Any], vocab_size: int) -> Contender:
    from transformers import MarianConfig, MarianMTModel

    size = options["size"]
    config = MarianConfig(
        vocab_size=vocab_size,
        d_model=size,
        encoder_layers=options["layers"],
        decoder_layers=options["layers"],
        encoder_attention_heads=options["heads"],
        decoder_attention_heads=options["heads"],
        encoder_ffn_dim=options["inner_size"],
        decoder_ffn_dim=options["inner_size"],
        activation_function="relu",
        dropout=DROPOUT,
        attention_dropout=DROPOUT,
        activation_dropout=DROPOUT,
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        pad_token_id=PAD,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        attn_implementation=options["attention"],
    )
    model = MarianMTModel(config)

    def prepare(batch: Batch) -> tuple[dict[str, Any], Tensor]:
        inputs = {
            "input_ids": batch.source_BS,
            "attention_mask": (batch.source_BS != PAD).long(),
            "decoder_input_ids": batch.target_in_BT,
            "use_cache": False,
        }
        return inputs, batch.target_out_BT

    def loss(prepared: tuple[dict[str, Any], Tensor], step: int) -> Tensor:
        inputs, target_BT = prepared
        return smoothed(model(**inputs).logits, target_BT)

    return Contender("transformers", model, prepare, loss)


def opennmt(options: dict[str, Any], vocab_size: int) -> Contender:
    from onmt.model_builder import build_base_model
    from onmt.opts import train_opts
    from onmt.utils.parse import ArgumentParser

    parser = ArgumentParser()
    train_opts(parser)
    size = options["size"]
    flags = f"-word_vec_size {size} -hidden_size {size} -dropout {DROPOUT} -attention_dropout {DROPOUT}"
    flags += f" -enc_layers {options['layers']} -dec_layers {options['layers']}"
    if options["kind"] == "transformer":
        flags += " -encoder_type transformer -decoder_type transformer -position_encoding"
        flags += f" -heads {options['heads']} -transformer_ff {options['inner_size']}"
        flags += " -share_vocab -share_embeddings -share_decoder_embeddings"
    else:
        flags += " -encoder_type rnn -decoder_type rnn -rnn_type LSTM"
        flags += " -global_attention general -input_feed 1"
    parsed = parser.parse_args(["-data", "none", "-src_vocab", "none", "-save_model", "none", *flags.split()])
    ArgumentParser.update_model_opts(parsed)
    words = Words(vocab_size)
    model = build_base_model(parsed, {"src": words, "tgt": words})
    initialise(model)

    def prepare(batch: Batch) -> tuple[Tensor, ...]:
        return batch.source_BS[..., None], batch.target_BT[..., None], batch.source_length_B

    def loss(prepared: tuple[Tensor, ...], step: int) -> Tensor:
        readout_BTH, _ = model(*prepared)
        return smoothed(model.generator(readout_BTH), prepared[1][:, 1:, 0])

    return Contender("OpenNMT-py", model, prepare, loss)


def eole(options: dict[str, Any], vocab_size: int) -> Contender:
    from eole.config.models import TransformerModelConfig
    from eole.config.training import TrainingConfig
    from eole.models.model import EncoderDecoderModel

    config = TransformerModelConfig(
        architecture="transformer",
        hidden_size=options["size"],
        layers=options["layers"],
        heads=options["heads"],
        transformer_ff=options["inner_size"],
        add_ffnbias=True,
        share_embeddings=True,
        share_decoder_embeddings=True,
        embeddings={
            "word_vec_size": options["size"],
            "position_encoding_type": "SinusoidalInterleaved",
        },
    )
    training = TrainingConfig(dropout=[DROPOUT], attention_dropout=[DROPOUT])
    words = Words(vocab_size)
    model = EncoderDecoderModel.build(config, {"src": words, "tgt": words, "specials": {}}, training)
    initialise(model)

    def prepare(batch: Batch) -> tuple[Tensor, ...]:
        return batch.source_BS, batch.target_BT, batch.source_length_B

    def loss(prepared: tuple[Tensor, ...], step: int) -> Tensor:
        return smoothed(model.generator(model(*prepared).dec_out), prepared[1][:, 1:])

    return Contender("eole", model, prepare, loss)


def joeynmt(options: dict[str, Any], vocab_size: int) -> Contender:
    from joeynmt.model import build_model

    size = options["size"]
    side = {
        "type": options["kind"],
        "hidden_size": size,
        "num_layers": options["layers"],
        "embeddings": {"embedding_dim": size, "dropout": DROPOUT, "scale": options["kind"] == "transformer"},
        "dropout": DROPOUT,
    }
    if options["kind"] == "transformer":
        side |= {"num_heads": options["heads"], "ff_size": options["inner_size"], "layer_norm": "pre"}
        encoder = decoder = side
    else:
        encoder = side | {"rnn_type": "gru", "bidirectional": True}
        decoder = side | {
            "rnn_type": "gru",
            "attention": "bahdanau",
            "input_feeding": True,
            "init_hidden": "bridge",
            "hidden_dropout": DROPOUT,
        }
    words = Words(vocab_size)
    tied = options["kind"] == "transformer"
    config = {"encoder": encoder, "decoder": decoder, "tied_embeddings": tied, "tied_softmax": tied}
    model = build_model(config, words, words)
    model.loss_function = ("crossentropy", SMOOTHING)

    def prepare(batch: Batch) -> dict[str, Tensor]:
        return {
            "src": batch.source_BS,
            "src_length": batch.source_length_B,
            "src_mask": (batch.source_BS != PAD)[:, None],
            "trg_input": batch.target_in_BT,
            "trg": batch.target_out_BT,
            "trg_mask": (batch.target_in_BT != PAD)[:, None],
        }

    def loss(inputs: dict[str, Tensor], step: int) -> Tensor:
        return model(return_type="loss", **inputs)[0]

    return Contender("joeynmt", model, prepare, loss)


CONTENDERS = {"regard": regard, "marian": marian, "opennmt": opennmt, "eole": eole, "joeynmt": joeynmt}


def read_batches(path: str) -> list[Batch]:
    """Return the batches that the other side wrote, their rows sorted."""
    with np.load(path) as arrays:
        batches = []
        for number in range(len(arrays.files) // 3):
            parts = [arrays[f"{name}_{number}"] for name in ("source", "target_in", "target_out")]
            order = np.argsort(-(parts[0] != PAD).sum(1), kind="stable")
            batches.append(Batch(*(torch.from_numpy(part[order]) for part in parts)))
    return batches


def count_flops(run: Callable[[], None]) -> int:
    """Return the operations of all matrix products of a run."""

    def in_place(_: Any, left: Any, right: Any, *args: Any, **kwargs: Any) -> int:
        return 2 * left[0] * left[1] * right[1]

    def vector(matrix: Any, *args: Any, **kwargs: Any) -> int:
        return 2 * matrix[0] * matrix[1]

    aten = torch.ops.aten
    mapping = {aten.addmm_: in_place, aten.mv: vector}
    with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        run()
    return counter.get_total_flops()


def main() -> None:
    # Whatever a peer prints goes to standard error; the answers have the line to themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    order = json.loads(sys.stdin.readline())
    torch.set_num_threads(order["threads"])
    torch.manual_seed(1)
    contender = CONTENDERS[order["contender"]](order["options"], order["vocab_size"])
    contender.model.train()
    batches = read_batches(order["batches"])
    tokens = [int((batch.target_out_BT != PAD).sum()) for batch in batches]
    prepared = [contender.prepare(batch) for batch in batches]
    optimiser = torch.optim.AdamW(contender.model.parameters(), 1e-4, betas=(0.9, 0.98), fused=True)
    last = 0.0

    def learn() -> None:
        """Train the plain way, as all peers do."""
        nonlocal last
        for step, batch in enumerate(prepared):
            optimiser.zero_grad(set_to_none=True)
            loss = contender.loss(batch, step) / tokens[step]
            loss.backward()
            nn.utils.clip_grad_norm_(contender.model.parameters(), MAX_NORM)
            optimiser.step()
        last = loss.item()

    def train() -> None:
        if contender.set_gradients is None:
            return learn()
        for step, batch in enumerate(prepared):
            contender.set_gradients(batch, tokens[step], step)
            nn.utils.clip_grad_norm_(contender.model.parameters(), MAX_NORM)
            optimiser.step()
        return None

    flops = count_flops(learn)
    loss = last  # of the last batch of the first round, for all contenders alike
    train()
    about = {
        "version": version(contender.package),
        "parameters": sum(parameter.numel() for parameter in contender.model.parameters()),
        "flops": flops,
        "loss": loss,
    }
    print(json.dumps(about), file=answers, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        train()
        answer = {"tokens": sum(tokens), "seconds": time.perf_counter() - start}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
