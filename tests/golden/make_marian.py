"""Makes `marian/`: a small MarianMTModel of transformers with its tokenizer, and what transformers computes.

Run in an environment with transformers 5.23, torch and sentencepiece: python tests/golden/make_marian.py
"""

import io
import json
from pathlib import Path

import sentencepiece
import torch
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

HERE = Path(__file__).parent / "marian"
FRENCH = ["le chat dort", "la maison est grande", "un petit chien mange", "je vois le grand chat noir"]
ENGLISH = ["the cat sleeps", "the house is big", "a small dog eats", "i see the big black cat"]
SOURCES = ["le chat noir dort", "la grande maison", "un chien — vois"]
TARGETS = ["the black cat sleeps", "the big house", "a dog sees"]


def train(lines, path):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 20),
        model_writer=model,
        vocab_size=36,
        normalization_rule_name="identity",
        hard_vocab_limit=False,
        minloglevel=2,
    )
    path.write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return [processor.IdToPiece(id) for id in range(len(processor))][3:]


def main():
    HERE.mkdir(exist_ok=True)
    pieces = sorted({*train(FRENCH, HERE / "source.spm"), *train(ENGLISH, HERE / "target.spm")})
    pieces.remove("n")  # a piece that the SentencePiece models have and the vocabulary has not
    order = [*pieces[:7], "</s>", "<unk>", *pieces[7:], "<pad>"]  # the special ids stand anywhere
    vocab = {piece: id for id, piece in enumerate(order)}
    (HERE / "vocab.json").write_text(json.dumps(vocab, ensure_ascii=False))
    ids = {"pad_token_id": vocab["<pad>"], "decoder_start_token_id": vocab["<pad>"]}
    config = MarianConfig(
        vocab_size=len(vocab), d_model=8, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=12, decoder_ffn_dim=12, activation_function="swish",
        scale_embedding=True, max_position_embeddings=64, init_std=0.5, eos_token_id=vocab["</s>"],
        forced_eos_token_id=None, **ids,
    )  # fmt: skip
    torch.manual_seed(6)
    model = MarianMTModel(config).eval()
    with torch.no_grad():
        for name, one in model.named_parameters():
            if name.endswith("bias"):
                one.normal_(0, 0.3)
        model.final_logits_bias.normal_(0, 0.2)
    model.save_pretrained(HERE)
    (HERE / "generation_config.json").unlink()
    tokenizer = MarianTokenizer(str(HERE / "source.spm"), str(HERE / "target.spm"), str(HERE / "vocab.json"))
    expected = []
    for source, target in zip(SOURCES, TARGETS, strict=True):
        read, said = (
            tokenizer(source, return_tensors="pt"),
            tokenizer(text_target=target, return_tensors="pt"),
        )
        with torch.no_grad():
            logits = model.double()(**read, labels=said.input_ids).logits[0]
        greedy = model.generate(
            **read, num_beams=1, max_new_tokens=6, do_sample=False, bad_words_ids=[[vocab["<pad>"]]]
        )
        expected.append(
            {
                "source": source,
                "target": target,
                "source_ids": read.input_ids[0].tolist(),
                "target_ids": said.input_ids[0].tolist(),
                "logits": [[round(one, 6) for one in row] for row in logits.tolist()],
                "greedy": greedy[0, 1:].tolist(),
            }
        )
    (HERE / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()
