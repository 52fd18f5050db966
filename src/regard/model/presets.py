"""Models by name: the papers', and our own. No torch is needed to look one up."""

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
    "regard-small": TransformerOptions(
        hidden_size=128, feed_forward_size=256, num_heads=4, num_encoder_layers=4, num_decoder_layers=4
    ),
    "regard-base": TransformerOptions(
        hidden_size=256, feed_forward_size=1024, num_heads=4, num_encoder_layers=3, num_decoder_layers=3
    ),
}


def preset(name: str) -> RecurrentOptions | TransformerOptions:
    """Return the options of a model by its name."""
    if name not in PRESETS:
        raise ConfigError(f"preset {name!r} does not exist; {nearest(name, list(PRESETS))}")
    return PRESETS[name]
