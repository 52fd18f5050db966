"""One contender of `translate_speed.py`, in a Python of its own, which need not have regard.

The first line of standard input is the order, as JSON: who translates, where the model and its weights are, and the
sentences, as text and as ids. When the model is built and warm, the answer is a line of JSON; from then on every line
`WHAT BEAM_SIZE` is answered by another one: to `all` the seconds and the ids of all sentences, to `one` the median
seconds of the one sentence alone.
"""

import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

PAD, BOS, EOS, UNK = range(4)  # the ids in the sentences, each of which ends in EOS
REPEATS = 10


@dataclass(frozen=True)
class Contender:
    """How a package is given sentences, outside the time; translates them, timed; and what its answers are in ids."""

    package: str
    prepare: Callable[[list[dict[str, Any]]], Any]
    translate: Callable[[Any, int], Any]
    ids: Callable[[Any], list[list[int]]]


def max_length(num_source: int) -> int:
    """Return the limit that `Translator.translate` sets, `</s>` counted on both sides."""
    return 2 * num_source + 20


def up_to_end(ids: list[int]) -> list[int]:
    """Return the ids before `</s>`."""
    return ids[: ids.index(EOS)] if EOS in ids else ids


def regard(order: dict[str, Any]) -> Contender:
    """Texts to translations, as a user gets them; the peers are spared the tokenizers."""
    import regard

    translator = regard.load(order["model"], engine=order["engine"], precision=order["precision"])
    id_of = {piece: id for id, piece in enumerate(translator.model.tokenizers.target.pieces)}
    return Contender(
        "regard",
        lambda sentences: [sentence["text"] for sentence in sentences],
        lambda texts, beam_size: translator.translate(texts, beam_size=beam_size, guard=order["guard"]),
        # What was put back into a translation is no piece of the vocabulary.
        lambda said: [[id for piece in one.pieces if (id := id_of.get(piece, UNK)) != EOS] for one in said],
    )


def load_torch_weights(model: Any, weights: dict[str, np.ndarray], names: dict[str, str]) -> None:
    """Put our weights into a peer's model, by the peer's names of our parts; biases that we do not have are 0."""
    import torch

    ours = {names["table"]: weights["source.weight"]}
    for name, array in weights.items():
        if name.startswith(("encoder_norm.", "decoder_norm.")):
            ours[f"{names['prefix']}{name.replace('_norm.', '.layer_norm.')}"] = array
        if not name.startswith(("encoder.", "decoder.")):
            continue
        side, layer, part = name.split(".", 2)
        module, _, leaf = part.rpartition(".")
        prefix = f"{names['prefix']}{side}.layers.{layer}."
        if leaf in ("W_QKV", "W_Q", "W_KV", "W_O"):
            letters = leaf.removeprefix("W_")
            for letter, matrix in zip(letters, np.split(array, len(letters)), strict=True):
                ours[f"{prefix}{names[f'{side}.{module}']}.{names[letter]}.weight"] = matrix
        elif module == "feed_forward":
            ours[f"{prefix}{names[leaf[-1]]}.{'weight' if leaf[0] == 'W' else 'bias'}"] = array
        else:
            ours[f"{prefix}{names[f'{side}.{module}']}.{leaf}"] = array
    for name, parameter in model.named_parameters():
        if name.endswith(".bias"):
            torch.nn.init.zeros_(parameter)
        elif name not in ours and parameter.requires_grad:
            raise ValueError(f"{name} has no weight of ours")
    with torch.no_grad():
        for name, array in ours.items():
            model.get_parameter(name).copy_(torch.from_numpy(np.ascontiguousarray(array)))
    model.eval()


def torch_contender(
    package: str, order: dict[str, Any], search: Callable[[Any, Any, int, int], Any]
) -> Contender:
    """Return the contender whose `search(source_BS, real_BS, beam_size, max_tokens)` gives rows of ids."""
    import torch

    torch.set_num_threads(order["threads"])

    def prepare(sentences: list[dict[str, Any]]) -> list[tuple[list[int], Any]]:
        lengths = [len(sentence["ids"]) for sentence in sentences]
        numbers = sorted(range(len(sentences)), key=lengths.__getitem__, reverse=True)
        batches = []
        for first in range(0, len(numbers), order["batch"]):
            chosen = numbers[first : first + order["batch"]]
            source_BS = torch.full((len(chosen), lengths[chosen[0]]), PAD)
            for row, number in enumerate(chosen):
                source_BS[row, : lengths[number]] = torch.tensor(sentences[number]["ids"])
            batches.append((chosen, source_BS))
        return batches

    def translate(batches: list[tuple[list[int], Any]], beam_size: int) -> dict[int, Any]:
        said = {}
        with torch.inference_mode():
            for numbers, source_BS in batches:
                limit = max_length(source_BS.shape[1])
                rows = search(source_BS, source_BS != PAD, beam_size, limit)
                said.update(zip(numbers, rows, strict=True))
        return said

    def ids(said: dict[int, Any]) -> list[list[int]]:
        return [up_to_end([int(id) for id in said[number]]) for number in range(len(said))]

    return Contender(package, prepare, translate, ids)


PEGASUS_NAMES = {
    "table": "model.shared.weight",
    "prefix": "model.",
    "Q": "q_proj",
    "K": "k_proj",
    "V": "v_proj",
    "O": "out_proj",
    "1": "fc1",
    "2": "fc2",
} | {
    f"{side}.{ours}": theirs
    for side in ("encoder", "decoder")
    for ours, theirs in {
        "own": "self_attn",
        "own_sum.norm": "self_attn_layer_norm",
        "cross": "encoder_attn",
        "cross_sum.norm": "encoder_attn_layer_norm",
        "feed_forward_sum.norm": "final_layer_norm",
    }.items()
}


def transformers(order: dict[str, Any]) -> Contender:
    """Pegasus, which is Hugging Face's Marian with norms before the sub-layers, as ours has them."""
    import torch
    from transformers import GenerationConfig, PegasusConfig, PegasusForConditionalGeneration

    weights, options = dict(np.load(order["weights"])), order["options"]
    config = PegasusConfig(
        vocab_size=len(weights["source.weight"]),
        d_model=options["hidden_size"],
        encoder_layers=options["num_encoder_layers"],
        decoder_layers=options["num_decoder_layers"],
        encoder_attention_heads=options["num_heads"],
        decoder_attention_heads=options["num_heads"],
        encoder_ffn_dim=options["feed_forward_size"],
        decoder_ffn_dim=options["feed_forward_size"],
        max_position_embeddings=len(weights["positions"]),
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=PAD,
        eos_token_id=EOS,
        forced_eos_token_id=None,
        decoder_start_token_id=BOS,
    )
    model = PegasusForConditionalGeneration(config)
    for side in (model.model.encoder, model.model.decoder):
        side.embed_positions.weight.data.copy_(torch.from_numpy(weights["positions"]))
    load_torch_weights(model, weights, PEGASUS_NAMES)
    # It is added anyway: `<pad>` and `<s>` are never said, as with us.
    model.final_logits_bias[:, :EOS] = -torch.inf

    @cache
    def how(beam_size: int, max_tokens: int) -> GenerationConfig:
        return GenerationConfig(
            num_beams=beam_size,
            do_sample=False,
            early_stopping=beam_size > 1,  # the faster rule, that of CTranslate2: `beam_size` finished ones
            max_new_tokens=max_tokens,
            pad_token_id=PAD,
            eos_token_id=EOS,
            decoder_start_token_id=BOS,
        )

    def search(source_BS: Any, real_BS: Any, beam_size: int, max_tokens: int) -> Any:
        said_BT = model.generate(
            source_BS, attention_mask=real_BS.long(), generation_config=how(beam_size, max_tokens)
        )
        return said_BT[:, 1:]

    return torch_contender("transformers", order, search)


JOEYNMT_NAMES = {
    "table": "src_embed.lut.weight",
    "prefix": "",
    "Q": "q_layer",
    "K": "k_layer",
    "V": "v_layer",
    "O": "output_layer",
    "1": "feed_forward.pwff_layer.0",
    "2": "feed_forward.pwff_layer.3",
    "encoder.own": "src_src_att",
    "encoder.own_sum.norm": "layer_norm",
    "encoder.feed_forward_sum.norm": "feed_forward.layer_norm",
    "decoder.own": "trg_trg_att",
    "decoder.own_sum.norm": "x_layer_norm",
    "decoder.cross": "src_trg_att",
    "decoder.cross_sum.norm": "dec_layer_norm",
    "decoder.feed_forward_sum.norm": "feed_forward.layer_norm",
}


class Words(dict[str, int]):
    """Stands in for JoeyNMT's vocabulary, of which its model asks the size and the special ids."""

    pad_index, bos_index, eos_index, unk_index, sep_index = PAD, BOS, EOS, UNK, None
    specials, lang_tags = (), ()

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def __len__(self) -> int:
        return self.size


def joeynmt(order: dict[str, Any]) -> Contender:
    import torch
    from joeynmt.model import build_model
    from joeynmt.search import beam_search, greedy

    weights, options = dict(np.load(order["weights"])), order["options"]
    side = {
        "type": "transformer",
        "hidden_size": options["hidden_size"],
        "ff_size": options["feed_forward_size"],
        "num_heads": options["num_heads"],
        "embeddings": {"embedding_dim": options["hidden_size"], "scale": True},
        "layer_norm": "pre",
    }
    config = {
        "encoder": side | {"num_layers": options["num_encoder_layers"]},
        "decoder": side | {"num_layers": options["num_decoder_layers"]},
        "tied_embeddings": True,
        "tied_softmax": True,
    }
    words = Words(len(weights["source.weight"]))
    model = build_model(config, words, words)
    load_torch_weights(model, weights, JOEYNMT_NAMES)
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-5  # theirs is 1e-6

    def search(source_BS: Any, real_BS: Any, beam_size: int, max_tokens: int) -> Any:
        mask_B1S = real_BS[:, None]
        memory_BSH, *_ = model(
            return_type="encode", src=source_BS, src_length=real_BS.sum(1), src_mask=mask_B1S
        )
        how = {
            "model": model,
            "encoder_output": memory_BSH,
            "encoder_hidden": None,
            "src_mask": mask_B1S,
            "max_output_length": max_tokens,
            "min_output_length": 0,
        }
        if beam_size == 1:
            return greedy(**how)[0]
        return beam_search(**how, beam_size=beam_size, alpha=1.0)[0]

    return torch_contender("joeynmt", order, search)


def ctranslate2(order: dict[str, Any]) -> Contender:
    import ctranslate2
    from ctranslate2.specs import TransformerSpec

    weights, options = dict(np.load(order["weights"])), order["options"]
    spec = TransformerSpec.from_config(
        (options["num_encoder_layers"], options["num_decoder_layers"]), options["num_heads"], pre_norm=True
    )

    def norm(theirs: Any, name: str) -> None:
        theirs.gamma, theirs.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]

    def attention(theirs: Any, name: str, matrices: tuple[str, ...]) -> None:
        for linear, matrix in zip(theirs.linear, matrices, strict=True):
            linear.weight = weights[f"{name}.{matrix}"]
        norm(theirs.layer_norm, f"{name}_sum.norm")

    for side in ("encoder", "decoder"):
        theirs = getattr(spec, side)
        norm(theirs.layer_norm, f"{side}_norm")
        embeddings = theirs.embeddings[0] if side == "encoder" else theirs.embeddings
        embeddings.weight, theirs.position_encodings.encodings = (
            weights["source.weight"],
            weights["positions"],
        )
        for number, layer in enumerate(theirs.layer):
            name = f"{side}.{number}"
            attention(layer.self_attention, f"{name}.own", ("W_QKV", "W_O"))
            if side == "decoder":
                attention(layer.attention, f"{name}.cross", ("W_Q", "W_KV", "W_O"))
            for linear, index in ((layer.ffn.linear_0, 1), (layer.ffn.linear_1, 2)):
                linear.weight = weights[f"{name}.feed_forward.W_{index}"]
                linear.bias = weights[f"{name}.feed_forward.b_{index}"]
            norm(layer.ffn.layer_norm, f"{name}.feed_forward_sum.norm")
    spec.decoder.projection.weight = weights["source.weight"]
    names = ["<blank>", "<s>", "</s>", "<unk>", *map(str, range(4, len(weights["source.weight"])))]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.validate()
    spec.optimize(quantization=order["precision"])
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        translator = ctranslate2.Translator(
            folder, compute_type=order["precision"], inter_threads=order["threads"], intra_threads=1
        )
    id_of = {name: id for id, name in enumerate(names)}

    def translate(sources: list[list[str]], beam_size: int) -> Any:
        return translator.translate_batch(
            sources,
            max_batch_size=order["batch"],
            beam_size=beam_size,
            max_decoding_length=max_length(max(map(len, sources))),
            min_decoding_length=0,
        )

    return Contender(
        "ctranslate2",
        lambda sentences: [[names[id] for id in sentence["ids"]] for sentence in sentences],
        translate,
        lambda said: [[id_of[name] for name in one.hypotheses[0]] for one in said],
    )


CONTENDERS = {"regard": regard, "transformers": transformers, "ctranslate2": ctranslate2, "joeynmt": joeynmt}


def main() -> None:
    # Whatever a peer prints goes to standard error; the answers have the line to themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    order = json.loads(sys.stdin.readline())
    contender = CONTENDERS[order["contender"]](order)
    given = {"all": contender.prepare(order["sentences"]), "one": contender.prepare([order["one"]])}

    def timed(what: str, beam_size: int) -> tuple[float, Any]:
        start = time.perf_counter()
        said = contender.translate(given[what], beam_size)
        return time.perf_counter() - start, said

    for what in given:
        for beam_size in order["beam_sizes"]:
            timed(what, beam_size)
    print(json.dumps({"version": version(contender.package)}), file=answers, flush=True)
    for line in sys.stdin:
        what, beam_size = line.split()
        if what == "all":
            seconds, said = timed(what, int(beam_size))
            answer = {"seconds": seconds, "ids": contender.ids(said)}
        else:
            answer = {"seconds": statistics.median(timed(what, int(beam_size))[0] for _ in range(REPEATS))}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
