"""Makes and runs a model of one layer: `python -m regard.fast.probe float32` fails where CTranslate2 does."""

import sys

import numpy as np

from regard.alignment.reading import USUAL_READING
from regard.fast.convert import convert
from regard.fast.searcher import Library
from regard.options.model import TransformerOptions
from regard.runtime.shapes import weight_shapes

_VOCAB = 300


def run(precision: str) -> None:
    """Search with a random model: enough for the library to choose its instructions."""
    sizes = {"hidden_size": 64, "feed_forward_size": 128, "num_heads": 2}
    options = TransformerOptions(num_encoder_layers=1, num_decoder_layers=1, **sizes)
    random = np.random.default_rng(1)
    shapes = weight_shapes(options, _VOCAB, _VOCAB)
    weights = {name: random.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}
    translator = Library(convert(options, weights, USUAL_READING), precision, 1).open()
    for beam_size in (1, 2):
        translator.translate_batch([["9", "8", "2"]], beam_size=beam_size, max_decoding_length=4)


if __name__ == "__main__":
    run(sys.argv[1])
