"""Makes the golden model of this version of the format: a file that every later version must read alike.

    python tests/golden/make.py

It writes `model-1.regard`, a model of random weights, and `model-1.json`, what it makes of three texts. The
numbers in there come from our own code, and that is what they are for: translations of a file that somebody
has kept must not change. So neither file is ever made again; a new format gets files of its own.
`trace-1.json` is a trace of that model by the first version that wrote traces.
"""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from small import random_weights, shrink

from regard.alignment.reading import Reading
from regard.model.presets import PRESETS
from regard.modelfile import ModelFile, save_model
from regard.options.search import BeamOptions
from regard.options.text import CharacterOptions
from regard.text.tokenizer import TokenizerPair
from regard.translate.translator import Translator
from regard.vocabulary import EOS, NUM_RESERVED, SPACE

MODEL, TRANSLATIONS = (Path(__file__).parent / name for name in ("model-1.regard", "model-1.json"))
TEXTS = ["il pleut.", "le chat dort ici, et le chien aussi", "où êtes-vous ?"]
FRENCH = [
    "il pleut.",
    "le chat dort.",
    "je suis étudiant.",
    "où êtes-vous ?",
    "la maison est grande.",
    "le chien aussi.",
]
ENGLISH = [
    "it is raining.",
    "the cat sleeps.",
    "I am a student.",
    "where are you?",
    "the house is big.",
    "the dog too.",
]
CLEAR = 0.01  # a choice by less might be another on another machine


def model() -> ModelFile:
    """Return a Transformer of width 8 that says letters: its first number tells these from all other ids."""
    tokenizers = TokenizerPair.learn(FRENCH, ENGLISH, CharacterOptions(joint=True))
    options = shrink(PRESETS["regard-small"])
    vocab_size = tokenizers.source.vocab_size
    weights = random_weights(options, vocab_size, vocab_size, seed=37)
    first_V = np.where(np.arange(vocab_size) < NUM_RESERVED, -1.0, 1.0)
    first_V[tokenizers.target.pieces.index(SPACE)] = 1.15
    first_V[EOS] = 1.3
    weights["source.weight"][:, 0] = first_V
    weights["decoder_norm.bias"][0] = 9.0
    weights["decoder_norm.weight"] = 3 * np.sign(weights["decoder_norm.weight"])
    card = {
        "created": "2026-11-16",
        "regard": "0.1.0",
        "preset": "regard-small",
        "data": {"num_pairs": 6, "num_read": 7},
        "training": {"step": 0, "seconds": 0.0, "reason": "its weights are random"},
    }
    config = {"seed": 37, "model": options.model_dump()}
    return ModelFile(
        options, weights, tokenizers, "fr", "en", config, card, Reading(1, 0, True), split_above=40
    )


def main() -> None:
    """Write both files, unless there are any."""
    for path in (MODEL, TRANSLATIONS):
        if path.exists():
            sys.exit(f"{path} exists and must stay as it is; a new format gets a file of its own")
    save_model(MODEL, model())
    translator = Translator.open(MODEL)
    search = {"beam_size": 4, "no_repeat_ngram": 2}
    encode = translator.tokenizers.source.encode_batch
    for text, ids in zip(TEXTS, encode(TEXTS), strict=True):
        (found,) = translator.decoder.search([ids], BeamOptions(**search))
        print(f"{text!r} by a margin of {found.margin:.4f}")
        if found.margin < CLEAR:
            MODEL.unlink()
            sys.exit("another seed or text, please: a choice was too close")
    found = translator.translate(TEXTS, guard=False, **search)
    recorded = [
        {"source": one.source, "text": one.text, "log_prob": round(one.log_prob, 3), "links": list(one.links)}
        for one in found
    ]
    TRANSLATIONS.write_text(
        json.dumps({"search": search, "translations": recorded}, indent=1, ensure_ascii=False) + "\n"
    )


if __name__ == "__main__":
    main()
