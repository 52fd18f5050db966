"""The design of a model says what the model then does; nothing else asks which family it is of."""

import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest
from small import random_batch, random_engine, shrink

import regard
from regard.design import design
from regard.model.presets import PRESETS
from regard.options.model import (
    AttendThenStep,
    ContentScorer,
    LearnedPositions,
    LocalWindow,
    LocationScorer,
    NoAttention,
    RecurrentOptions,
    StepAttendStep,
    StepThenAttend,
    TransformerOptions,
)
from regard.probes import Recorder

DESIGNS = {name: shrink(options) for name, options in PRESETS.items()} | {
    "plain cells, Gaussian window": shrink(
        RecurrentOptions(cell="rnn", attention=AttendThenStep(window=LocalWindow(kind="local-p")))
    ),
    "location": shrink(RecurrentOptions(cell="lstm", attention=StepThenAttend(scorer=LocationScorer()))),
    "window by step": shrink(
        RecurrentOptions(
            attention=StepThenAttend(scorer=ContentScorer(kind="dot"), window=LocalWindow(kind="local-m"))
        )
    ),
    "two steps": shrink(RecurrentOptions(cell="gru-after", attention=StepAttendStep(), num_layers=2)),
    "one fixed vector": shrink(RecurrentOptions(attention=NoAttention(context="every"), num_layers=2)),
    "ssru": shrink(TransformerOptions(decoder_self="ssru")),
    "learnt positions": shrink(
        TransformerOptions(positions=LearnedPositions(), num_encoder_layers=1, num_decoder_layers=2)
    ),
}
EVERY = pytest.mark.parametrize("options", DESIGNS.values(), ids=DESIGNS)


def recorded(options):
    """All that a model records of a forward pass, and the attention that it gives."""
    recorder = Recorder()
    forced = random_engine(options).force(random_batch(), recorder)
    return recorder, forced.attention_BTLNS


@EVERY
def test_the_attentions_are_those_that_a_model_records(options):
    about, (recorder, attention_BTLNS) = design(options), recorded(options)
    names = {f"{name}.weights" for layers in about.attentions.values() for name in layers}
    assert names == {name for name in recorder if name.endswith(".weights")}
    num_layers, num_heads = about.size("cross")
    assert attention_BTLNS.shape[2] == num_layers and about.has_attention == (num_layers > 0)
    assert attention_BTLNS.shape[3] == num_heads or not num_layers
    for name in names:
        heads = recorder[name][0].shape[1] if recorder[name][0].ndim == 4 else 1
        assert heads == about.num_heads, name


@EVERY
def test_rows_sum_to_one_unless_a_gaussian_scales_them(options):
    about, (_, attention_BTLNS) = design(options), recorded(options)
    sums = attention_BTLNS.sum(axis=-1)
    assert np.allclose(sums, 1, atol=1e-5) == about.rows_sum_to_one


@EVERY
def test_the_parts_that_can_be_switched_off_are_those_that_are_recorded(options):
    recorder, _ = recorded(options)
    patterns = {"heads": "*.heads", "mask": "decoder.*.self.seen", "positions": "target.positions"}
    found = {
        part for part, pattern in patterns.items() if any(fnmatchcase(name, pattern) for name in recorder)
    }
    assert design(options).parts == found
    assert design(options).max_positions == random_engine(options).max_tokens


@EVERY
def test_a_word_has_a_vector_of_the_width_that_its_option_says(options):
    recorder, _ = recorded(options)
    (embedded,) = {one.shape[-1] for one in recorder["source.embedded"]}
    assert getattr(options, design(options).embedding_option) == embedded


@EVERY
def test_the_gates_are_all_that_the_cells_record(options):
    recorder, _ = recorded(options)
    gates = r"(encoder\.\d+\.(right|left)ward|decoder\.(\d+|second))\.(update|reset|candidate|input|forget|output|memory)"
    wanted = {name for name in recorder if re.fullmatch(gates, name)}
    matched = {
        pattern: {name for name in recorder if fnmatchcase(name, pattern)}
        for pattern in design(options).gates
    }
    assert all(matched.values()) and set().union(*matched.values()) == wanted


@EVERY
def test_what_the_cards_show_is_recorded_and_kept(options):
    about, (recorder, _) = design(options), recorded(options)
    kept = about.states_kept(read_layer=0)
    num_layers, _ = about.size("cross")
    for show in (show for card in about.cards for show in card.shows if show.name and not show.optional):
        for name in {show.name.format(l=layer) for layer in range(max(num_layers, 1))}:
            assert name in recorder
            assert any(fnmatchcase(name, pattern) for pattern in kept), name


def test_of_a_wide_model_the_insides_of_one_layer_are_kept():
    wide = design(TransformerOptions(hidden_size=512, num_decoder_layers=6))
    inside = [name for name in wide.states_kept(read_layer=4) if name.endswith(".query")]
    assert inside == ["decoder.4.cross.query", "encoder.0.self.query"]


@EVERY
def test_the_attention_that_is_taught_exists(options):
    about = design(options)
    if about.taught is None:
        assert not about.has_attention
        return
    num_layers, num_heads = about.size("cross")
    assert about.taught.layer in range(num_layers) and about.taught.head in (None, *range(num_heads))


def test_a_design_needs_no_torch():
    code = "import sys, regard.design; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_else_asks_for_the_family():
    asks = re.compile(
        r"""kind["'\])]*\s*(===?|!==?|in)\s*[(\[{]?["'](transformer|recurrent)
        |case\s+["'](transformer|recurrent)
        |isinstance\([^)]*(Transformer|Recurrent)Options""",
        re.VERBOSE,
    )
    package = Path(regard.__file__).parent
    files = [*package.rglob("*.py"), *package.rglob("*.js")]
    asking = {path.relative_to(package) for path in files if asks.search(path.read_text(encoding="utf-8"))}
    # Engines, and what describes them:
    rooms = ("model", "runtime", "fast", "options", "viewer/static/engine")
    assert Path("design.py") in asking
    outside = [path for path in asking if not any(path.is_relative_to(room) for room in rooms)]
    assert outside == [Path("design.py")]
