"""The rungs of the ladder: the designs of the papers at one size, so that what differs is the idea.

All are as wide as the Transformer `regard-small`, so that an hour or two on a laptop is enough; recurrent
rungs have the cell and readout of `regard-rnn`. The papers' own sizes are presets of their own. Each rung
says what it is compared with, that is, what one idea it adds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.errors import ConfigError
from regard.model.presets import PRESETS
from regard.options.section import nearest

_WIDTH = PRESETS["regard-small"].hidden_size


@dataclass(frozen=True, slots=True)
class Rung:
    """One model of the ladder, and the rung whose idea it changes (None: the first)."""

    name: str
    title: Mapping[str, str]  # in each language of the report
    idea: Mapping[str, str]
    preset: str
    after: str | None
    model: Mapping[str, Any] = field(default_factory=dict)

    @property
    def narrow(self) -> Mapping[str, Mapping[str, Any]]:
        """The options that give it the width of the others, and the rate that suits that width."""
        if self.preset == "regard-small":
            return {}
        rate = {"kind": "adam", "rate": 2e-3}  # 1e-3 is slow, at 4e-3 `luong-dot` gets worse
        return {
            "model": {"hidden_size": _WIDTH, "embedding_size": _WIDTH},
            "train": {"optimiser": rate},
        }

    @property
    def has_attention(self) -> bool:
        """Whether the model looks at its source at every step."""
        return bool(self.model.get("attention", {}).get("kind") != "none")


def _luong(scorer: str, window: Mapping[str, Any] | None = None) -> dict[str, Any]:
    attention: dict[str, Any] = {"kind": "step-then-attend", "scorer": {"kind": scorer}}
    return {"attention": attention | ({"window": dict(window)} if window else {})}


LADDER = (
    Rung(
        "sutskever",
        {"en": "Fixed vector (Sutskever 2014)", "ko": "고정 벡터 (Sutskever 2014)"},
        {
            "en": "the decoder starts from the last state of an encoder that reads backwards",
            "ko": "원문을 거꾸로 읽은 인코더의 마지막 상태에서 디코더가 시작하고, 원문을 다시 보지 않습니다",
        },
        "regard-rnn",
        None,
        {"attention": {"kind": "none", "context": "start"}, "reading": "reversed"},
    ),
    Rung(
        "cho",
        {"en": "Fixed vector at every step (Cho 2014)", "ko": "매 단계에 넣는 고정 벡터 (Cho 2014)"},
        {
            "en": "the same one vector is offered again at every step (and the source is read forwards)",
            "ko": "같은 벡터 하나를 디코더에 단계마다 다시 넣습니다(원문은 앞에서부터 읽습니다)",
        },
        "regard-rnn",
        "sutskever",
        {"attention": {"kind": "none", "context": "every"}, "reading": "forward"},
    ),
    Rung(
        "bahdanau",
        {"en": "Additive attention (Bahdanau 2015)", "ko": "가산 어텐션 (Bahdanau 2015)"},
        {
            "en": "before each step it looks at all source states anew (and the source is read both ways)",
            "ko": "디코더가 매 단계에 앞서 원문의 모든 은닉 상태를 새로 봅니다(원문은 양방향으로 읽습니다)",
        },
        "regard-rnn",
        "cho",
    ),
    Rung(
        "luong-dot",
        {"en": "Dot (Luong 2015)", "ko": "dot (Luong 2015)"},
        {
            "en": "it looks after the step, and a score is a mere product",
            "ko": "한 단계를 계산한 뒤에 원문을 보며, 점수는 단순한 내적입니다",
        },
        "regard-rnn",
        "bahdanau",
        _luong("dot"),
    ),
    Rung(
        "luong-general",
        {"en": "General (Luong 2015)", "ko": "general (Luong 2015)"},
        {
            "en": "a learnt matrix stands in the product, over √n",
            "ko": "내적 안에 학습된 행렬이 들어가고, √n으로 나눕니다",
        },
        "regard-rnn",
        "luong-dot",
        _luong("scaled-general"),
    ),
    Rung(
        "luong-concat",
        {"en": "Concat (Luong 2015)", "ko": "concat (Luong 2015)"},
        {
            "en": "Bahdanau's score in Luong's place",
            "ko": "점수 함수는 Bahdanau를, 보는 순서는 Luong을 따릅니다",
        },
        "regard-rnn",
        "luong-dot",
        _luong("additive"),
    ),
    Rung(
        "luong-location",
        {"en": "Location (Luong 2015)", "ko": "location (Luong 2015)"},
        {
            "en": "it decides where to look without seeing what stands there",
            "ko": "무엇이 있는지 보지 않고 볼 위치를 정합니다",
        },
        "regard-rnn",
        "luong-dot",
        _luong("location"),
    ),
    Rung(
        "luong-local",
        {"en": "General, local window (Luong 2015)", "ko": "general, 지역 창 (Luong 2015)"},
        {
            "en": "it predicts a place and looks at a window around it",
            "ko": "위치를 예측하고 그 둘레의 창 안만 봅니다",
        },
        "regard-rnn",
        "luong-general",
        _luong("scaled-general", {"kind": "local-p"}),
    ),
    Rung(
        "transformer",
        {"en": "Transformer (Vaswani 2017)", "ko": "트랜스포머 (Vaswani 2017)"},
        {"en": "nothing but attention, in many heads", "ko": "오직 어텐션만, 여러 헤드로 씁니다"},
        "regard-small",
        "bahdanau",
        {"num_encoder_layers": 2, "num_decoder_layers": 2},  # with four it learns too slowly for an hour
    ),
)


def base_of(rung: Rung, chosen: Sequence[Rung]) -> Rung | None:
    """Return the nearest of the chosen rungs that a rung builds on, None if there is none."""
    by_name = {one.name: one for one in LADDER}
    after = rung.after
    while after is not None and by_name[after] not in chosen:
        after = by_name[after].after
    return None if after is None else by_name[after]


def rungs(names: str | None) -> tuple[Rung, ...]:
    """Return the rungs of these names, separated by commas, in the order of the ladder; None: all."""
    if names is None:
        return LADDER
    known = [rung.name for rung in LADDER]
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            raise ConfigError(f"there is no rung {name!r}; {nearest(name, known)}")
    if not wanted:
        raise ConfigError(f"name one rung or more: {', '.join(known)}")
    return tuple(rung for rung in LADDER if rung.name in wanted)
