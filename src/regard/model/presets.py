"""Models by name: the papers', and our own. No torch is needed to look one up.

A paper's preset has the paper's widths. `resized` gives the same design the size of one of our own models,
for a machine without a GPU.
"""

from regard.errors import ConfigError
from regard.options.model import (
    AttendThenStep,
    ContentScorer,
    GaussianInit,
    LocalWindow,
    NoAttention,
    RecurrentOptions,
    StepThenAttend,
    TransformerOptions,
    UniformInit,
)
from regard.options.section import nearest

PRESETS: dict[str, RecurrentOptions | TransformerOptions] = {
    "sutskever2014": RecurrentOptions(
        cell="lstm",
        embedding_size=1000,
        hidden_size=1000,
        num_layers=4,
        reading="reversed",
        attention=NoAttention(context="start"),
        readout="linear",
        tie="none",
        init=UniformInit(bound=0.08),
        dropout=0.0,
    ),
    "cho2014": RecurrentOptions(
        cell="gru",
        embedding_size=100,
        hidden_size=1000,
        reading="forward",
        attention=NoAttention(context="every"),
        readout="maxout",
        tie="factored",
        init=GaussianInit(),
        dropout=0.0,
    ),
    "bahdanau2015": RecurrentOptions(
        cell="gru",
        embedding_size=620,
        hidden_size=1000,
        reading="both",
        attention=AttendThenStep(scorer=ContentScorer(kind="additive")),
        readout="maxout",
        tie="none",
        init=GaussianInit(),
        dropout=0.0,
    ),
    "luong2015": RecurrentOptions(
        cell="lstm",
        embedding_size=1000,
        hidden_size=1000,
        num_layers=4,
        reading="reversed",
        attention=StepThenAttend(
            scorer=ContentScorer(kind="general"), window=LocalWindow(kind="local-p", half_width=10)
        ),
        readout="linear",
        tie="none",
        init=UniformInit(bound=0.1),
        dropout=0.2,
    ),
    "vaswani2017": TransformerOptions(
        hidden_size=512,
        feed_forward_size=2048,
        num_heads=8,
        num_encoder_layers=6,
        num_decoder_layers=6,
        norm="post",
        tie="all",
        dropout=0.1,
        attention_dropout=0.0,
        feed_forward_dropout=0.0,
    ),
    "regard-rnn": RecurrentOptions(
        cell="gru",
        embedding_size=256,
        hidden_size=256,
        reading="both",
        attention=AttendThenStep(scorer=ContentScorer(kind="additive")),
        readout="maxout",
        layer_norm=True,
        tie="target",
        dropout=0.2,
    ),
    "regard-quick": RecurrentOptions(
        cell="gru",
        embedding_size=128,
        hidden_size=128,
        reading="both",
        attention=AttendThenStep(scorer=ContentScorer(kind="additive")),
        readout="maxout",
        layer_norm=True,
        tie="target",
        dropout=0.1,
    ),
    "regard-small": TransformerOptions(
        hidden_size=128, feed_forward_size=256, num_heads=4, num_encoder_layers=4, num_decoder_layers=4
    ),
    "regard-base": TransformerOptions(
        hidden_size=256, feed_forward_size=1024, num_heads=4, num_encoder_layers=3, num_decoder_layers=3
    ),
}


PAPERS = tuple(name for name in PRESETS if not name.startswith("regard-"))
_MAX_LAYERS = 2  # of a resized design: a stack stays a stack, and learns in minutes


def resized(name: str, own: str) -> RecurrentOptions | TransformerOptions:
    """Return the design of a paper at the size of one of our own presets of its family.

    Cell, layer norm, reading, attention, readout and ties are the paper's. No width and no number of layers
    or heads is larger. The initial weights and dropout are ours: the papers' are for widths of 1000.
    """
    paper, size = preset(name), preset(own)
    changes = {
        key: getattr(size, key)
        for key in type(paper).model_fields
        if key == "init" or key.endswith("dropout")
    }
    for key in type(paper).model_fields:
        if key.startswith("num_") or key.endswith("_size"):
            most = _MAX_LAYERS if key.endswith("layers") else getattr(size, key)
            changes[key] = min(getattr(paper, key), most)
    return paper.model_copy(update=changes)


def smaller_than_paper(name: str, model: RecurrentOptions | TransformerOptions) -> str | None:
    """Return how much smaller a model is than the preset of its paper, None if it is as large."""
    sizes = [(one.hidden_size, _num_layers(one)) for one in (model, preset(name))]
    (wide, deep), (paper_wide, paper_deep) = sizes
    if wide >= paper_wide and deep >= paper_deep:
        return None
    if deep == paper_deep:
        return f"{wide:,} wide instead of {paper_wide:,}"
    return f"{wide:,} wide and {deep} layers instead of {paper_wide:,} and {paper_deep}"


def _num_layers(model: RecurrentOptions | TransformerOptions) -> int:
    """Return the number of layers of the decoder."""
    return model.num_layers if model.kind == "recurrent" else model.num_decoder_layers


def preset(name: str) -> RecurrentOptions | TransformerOptions:
    """Return the options of a model by its name."""
    if name not in PRESETS:
        raise ConfigError(f"preset {name!r} does not exist; {nearest(name, list(PRESETS))}")
    return PRESETS[name]
