"""What is said of a ladder, in English and in Korean; every sentence follows from its numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.evaluation.document import Difference, Estimate
from regard.evaluation.scores import Interval
from regard.lineage.document import Climbed, Lineage, includes_zero

LANGUAGES = ("en", "ko")
_LOW_BLEU = 5.0  # below it translations share hardly more than single words with the references

WORDS = {
    "en": {
        "language": "English",
        "title": "What does attention buy?",
        "summary": "Summary",
        "rungs": "All rungs",
        "rung": "rung",
        "weights": "weights",
        "updates": "updates",
        "seconds": "seconds",
        "short": "BLEU, 1-20 words",
        "long": "BLEU, 41-70 words",
        "kept": "kept",
        "aer": "AER ↓",
        "entropy": "entropy, nats",
        "speed": "sent./s",
        "none": "none",
        "unknown": "-",
        "lengths": "BLEU by length of the source",
        "words": "words in the source",
        "steps": "What each step bought",
        "base": "compared with",
        "idea": "what is new",
        "gain": "BLEU",
        "gain_long": "BLEU, 41-70 words",
        "p": "p",
        "verdict": "shown?",
        "shown": "yes",
        "unshown": "no",
        "sample": "The same sentence from every rung",
        "no_attention": "has no attention: there is nothing to draw",
        "nothing": "said nothing",
        "signatures": "Signatures",
        "note_rungs": "In brackets or below: 95 % intervals by bootstrap, {resamples:,} resamples. Seconds "
        "are those of training, its preparation included. Kept: BLEU at 41-70 words as a share of BLEU at "
        "1-20. AER: alignment error rate against links made by hand, less is better. Entropy: how scattered "
        "the looks of a piece of the reference are, its mean over at most 200 sentences; 0 is one place. Of "
        "many heads those are read that were found to align words. Scores are cased and detokenised, of the "
        "designs alone: nothing was tried again and no long source was split.",
        "note_steps": "Paired bootstrap with {resamples:,} resamples; p is the larger of that of the "
        "bootstrap and that of approximate randomisation with {trials:,} trials. Shown: p is below 0.05 and "
        "the interval does not include zero; not corrected for several comparisons.",
    },
    "ko": {
        "language": "한국어",
        "title": "어텐션은 무엇을 가져다주는가?",
        "summary": "요약",
        "rungs": "모든 모델",
        "rung": "모델",
        "weights": "매개변수 수",
        "updates": "갱신 횟수",
        "seconds": "학습 시간(초)",
        "short": "BLEU, 1~20단어",
        "long": "BLEU, 41~70단어",
        "kept": "유지율",
        "aer": "AER ↓",
        "entropy": "엔트로피(nat)",
        "speed": "초당 문장 수",
        "none": "없음",
        "unknown": "-",
        "lengths": "원문 길이에 따른 BLEU",
        "words": "원문의 단어 수",
        "steps": "비교 대상에 견주어 얻은 것",
        "base": "비교 대상",
        "idea": "새로운 점",
        "gain": "BLEU",
        "gain_long": "BLEU, 41~70단어",
        "p": "p",
        "verdict": "차이가 확인됨",
        "shown": "예",
        "unshown": "아니요",
        "sample": "같은 문장의 모델별 번역",
        "no_attention": "어텐션이 없어 그릴 것이 없습니다",
        "nothing": "아무것도 출력하지 않았습니다",
        "signatures": "측정 방식(서명)",
        "note_rungs": "괄호나 아랫줄의 값은 부트스트랩({resamples:,}회)으로 구한 95% 신뢰 구간입니다. 학습 "
        "시간에는 준비 시간이 들어 있습니다. 유지율은 1~20단어 문장의 BLEU에 대한 41~70단어 문장의 BLEU "
        "비율입니다. AER는 사람이 만든 단어 정렬과 비교한 정렬 오류율로, 낮을수록 좋습니다. 엔트로피는 참조 "
        "번역의 조각(서브워드) 하나를 만들 때 어텐션이 얼마나 흩어지는지를 최대 200문장에서 평균한 값이며, "
        "0이면 한 곳만 봅니다. 헤드가 여럿이면 단어를 정렬하는 것으로 나타난 헤드만 읽습니다. 점수는 "
        "대소문자를 구별하고 토큰화를 되돌린 글로 계산했습니다. 설계 자체를 재기 위해, 이상해 보이는 번역을 "
        "다시 시도하거나 긴 원문을 나누지 않았습니다.",
        "note_steps": "대응 부트스트랩(paired bootstrap, {resamples:,}회)으로 비교했습니다. p는 "
        "부트스트랩과 근사 무작위화 검정({trials:,}회)의 값 가운데 큰 쪽입니다. p가 0.05보다 작고 구간에 "
        "0이 들어 있지 않을 때만 차이가 확인된 것으로 봅니다. 다중 비교 보정은 하지 않았습니다.",
    },
}


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A text of the summary, and what it lists."""

    text: str
    items: tuple[str, ...] = ()


def ranged(value: float, around: Interval | None, language: str, form: str = ".1f", unit: str = "") -> str:
    """Return a number and below it where it lies: `34.2`, `32.9 to 35.6`."""
    if around is None:
        return f"{value:{form}}{unit}"
    between = " to " if language == "en" else "~"
    return f"{value:{form}}{unit}\n{around.low:{form}}{between}{around.high:{form}}{unit}"


def one_line(text: str) -> str:
    """Return a ranged number in one line: `34.2 (32.9 to 35.6)`."""
    value, _, around = text.partition("\n")
    return f"{value} ({around})" if around else value


def share(kept: Estimate, language: str) -> str:
    """Return a share in per cent."""
    around = kept.interval and Interval(100 * kept.interval.low, 100 * kept.interval.high)
    return ranged(100 * kept.value, around, language, ".0f", " %" if language == "en" else "%")


def is_shown(change: Difference) -> bool:
    """Return whether the numbers show a difference, by both tests and the interval."""
    return change.is_beyond_chance and not includes_zero(change.interval)


def summary(lineage: Lineage, language: str) -> list[Paragraph]:
    """Return what was found, in plain words."""
    said = [_budget(lineage, language), _best(lineage, language), _lengths(lineage, language)]
    said += [_steps(lineage, language)] if lineage.steps else []
    return [*said, _alignment(lineage, language), _caution(lineage, language)]


def _budget(lineage: Lineage, language: str) -> Paragraph:
    budget, climbed = lineage.budget, lineage.rungs
    most, least = (choose(climbed, key=lambda one: one.num_updates) for choose in (max, min))
    slowest, fastest = (choose(one.seconds for one in climbed) for choose in (max, min))
    is_one, seconds = len(climbed) == 1, budget.seconds_each
    early = ", ".join(one.rung.title[language] for one in climbed if one.ended_early)
    if language == "en":
        designs = "One design was" if is_one else f"{len(climbed)} designs were"
        share = f"{budget.steps_each:,} updates" if seconds is None else _time(seconds, "en")
        said = (
            f"{designs} trained on the same {budget.num_pairs:,} pairs, {share}{'' if is_one else ' each'}."
        )
        said += f" Validation no longer improved, and training ended before that: {early}." if early else ""
        if not is_one and seconds is not None:
            said += (
                f" Equal time is not equal updates: the most were {most.num_updates:,}, by "
                f"{most.rung.title['en']}, the fewest {least.num_updates:,}, by {least.rung.title['en']}."
            )
        elif not is_one:
            said += (
                f" Equal updates are not equal time: they took from {_time(fastest, 'en')} "
                f"to {_time(slowest, 'en')}."
            )
        return Paragraph(said)
    each = "" if is_one else "각각 "
    said = f"같은 문장 쌍 {budget.num_pairs:,}개로 모델 {len(climbed)}개를 {each}"
    if seconds is None:
        said += f"{budget.steps_each:,}회{'씩' if each else ''} 갱신하며 학습시켰습니다."
    else:
        said += f"{_time(seconds, 'ko')} 동안 학습시켰습니다."
    said += f" 검증 점수가 더 나아지지 않아 그 전에 학습을 마친 모델: {early}." if early else ""
    if not is_one and seconds is not None:
        said += (
            " 시간이 같다고 갱신 횟수가 같은 것은 아닙니다. 가장 많이 갱신한 모델은 "
            f"{most.rung.title['ko']}, {most.num_updates:,}회이고, 가장 적게 갱신한 모델은 "
            f"{least.rung.title['ko']}, {least.num_updates:,}회입니다."
        )
    elif not is_one:
        said += (
            " 갱신 횟수가 같다고 시간이 같은 것은 아닙니다. 짧게는 "
            f"{_time(fastest, 'ko')}, 길게는 {_time(slowest, 'ko')} 걸렸습니다."
        )
    return Paragraph(said)


def _best(lineage: Lineage, language: str) -> Paragraph:
    scored = [(lineage.evaluation.system(one.rung.name).scores["bleu"], one.rung) for one in lineage.rungs]
    bleu, rung = max(scored, key=lambda pair: pair[0].value)
    title, num = rung.title[language], len(lineage.evaluation.sources)
    told = one_line(ranged(bleu.value, bleu.interval, language))
    is_low = bleu.value < _LOW_BLEU
    if language == "en":
        said = f"The highest BLEU on {num:,} test sentences is {told}, that of {title}."
        low = " Scores this low are those of models that have learnt little; more time may change this."
    else:
        said = f"테스트 문장 {num:,}개에서 가장 높은 BLEU는 {told}이며, 모델은 {title}입니다."
        low = (
            " 점수가 이렇게 낮은 것은 모델이 아직 배운 것이 적다는 뜻이므로, 더 오래 학습하면 결과가 "
            "달라질 수 있습니다."
        )
    return Paragraph(said + (low if is_low else ""))


def _lengths(lineage: Lineage, language: str) -> Paragraph:
    short, long = lineage.num_short, lineage.num_long
    if not short or not long:
        if language == "en":
            return Paragraph(
                f"The test set has {short:,} sources of 1-20 words and {long:,} of 41-70: what becomes of "
                "long sentences cannot be said from it."
            )
        return Paragraph(
            f"테스트 문장 가운데 원문이 1~20단어인 것은 {short:,}개, 41~70단어인 것은 {long:,}개입니다. "
            "따라서 긴 문장에서 어떻게 되는지는 이 결과로 말할 수 없습니다."
        )
    known = [(one, one.kept) for one in lineage.rungs if one.kept is not None]
    if not known:
        return Paragraph(
            "No rung surely has 1 BLEU or more on sources of 1-20 words: there is nothing to keep."
            if language == "en"
            else "1~20단어 문장에서 BLEU가 확실히 1 이상인 모델이 없어, 유지율을 잴 수 없습니다."
        )
    items = tuple(f"{one.rung.title[language]}: {one_line(share(kept, language))}" for one, kept in known)
    if language == "en":
        said = (
            f"Of its BLEU on sources of 1-20 words (n = {short:,}), so much is left on sources of 41-70 "
            f"words (n = {long:,}):"
        )
    else:
        said = (
            f"원문이 1~20단어인 문장({short:,}개)의 BLEU를 100%라 할 때, 41~70단어인 문장({long:,}개)에서 "
            "남는 비율은 다음과 같습니다."
        )
    return Paragraph(said, items + _attention_verdict(lineage.rungs, language))


def _attention_verdict(climbed: Sequence[Climbed], language: str) -> tuple[str, ...]:
    """Return whether attention is what tells those apart that keep much and those that keep little."""
    around = [(one.rung.has_attention, one.kept.interval if one.kept else None) for one in climbed]
    with_it = [one for has_attention, one in around if has_attention and one]
    without = [one for has_attention, one in around if not has_attention and one]
    if not with_it or not without or len(with_it) + len(without) < len(around):
        return ()
    if min(one.low for one in with_it) > max(one.high for one in without):
        return (
            "Every design with attention keeps more than every one without, and their intervals do not "
            "overlap."
            if language == "en"
            else "어텐션이 있는 모델은 모두 어텐션이 없는 어느 모델보다도 높은 비율을 유지하며, 두 쪽의 신뢰 "
            "구간은 겹치지 않습니다.",
        )
    return (
        "These intervals do not show that every design with attention keeps more than every one without."
        if language == "en"
        else "이 구간만으로는 어텐션이 있는 모든 모델이 어텐션이 없는 모든 모델보다 더 많이 유지한다고 말할 "
        "수 없습니다.",
    )


def _steps(lineage: Lineage, language: str) -> Paragraph:
    items = []
    for step in lineage.steps:
        told = one_line(ranged(step.bleu.value, step.bleu.interval, language, "+.2f"))
        names = step.rung.title[language], step.base.title[language]
        head = (
            f"{names[0]} over {names[1]}: {told} BLEU; "
            if language == "en"
            else f"{names[0]}: {names[1]} 대비 BLEU {told}. "
        )
        items.append(head + _verdict(step.bleu, language))
    return Paragraph(
        "What each step bought:" if language == "en" else "비교 대상에 견주어 얻은 것:", tuple(items)
    )


def _verdict(change: Difference, language: str) -> str:
    is_english = language == "en"
    if includes_zero(change.interval):
        if is_english:
            return "the interval includes zero, so no difference is shown."
        return "구간에 0이 들어 있어 차이가 있다고 할 수 없습니다."
    if not change.is_beyond_chance:
        return "chance may explain it." if is_english else "우연으로도 생길 수 있는 차이입니다."
    if change.value > 0:
        return "better, by more than chance explains." if is_english else "우연으로 보기 어려운 향상입니다."
    return "worse, by more than chance explains." if is_english else "우연으로 보기 어려운 하락입니다."


def _alignment(lineage: Lineage, language: str) -> Paragraph:
    if lineage.num_gold is None:
        return Paragraph(
            "No pairs aligned by hand were given (--gold), so how well attention aligns is not measured."
            if language == "en"
            else "사람이 정렬한 문장 쌍(--gold)이 주어지지 않아, 어텐션이 단어를 얼마나 잘 정렬하는지는 재지 "
            "않았습니다."
        )
    known = [(one, one.aer) for one in lineage.rungs if one.aer is not None]
    if not known:
        return Paragraph(
            "No rung has attention, so there are no alignments to score."
            if language == "en"
            else "어텐션이 있는 모델이 없어 평가할 단어 정렬이 없습니다."
        )
    one, aer = min(known, key=lambda pair: pair[1].value)
    told = one_line(ranged(aer.value, aer.interval, language, ".3f"))
    title = one.rung.title[language]
    return Paragraph(
        f"The lowest alignment error rate on {lineage.num_gold:,} pairs aligned by hand is {told}, that of "
        f"{title}."
        if language == "en"
        else f"사람이 정렬한 문장 쌍 {lineage.num_gold:,}개에서 가장 낮은 정렬 오류율(AER)은 {told}이며, "
        f"모델은 {title}입니다."
    )


def _caution(lineage: Lineage, language: str) -> Paragraph:
    seed = lineage.budget.seed
    if language == "en":
        said = (
            f"Each design was trained once (seed {seed}): the intervals tell what other test sentences "
            "would do to the scores, not what another training would."
        )
        held_out = (
            " The test sentences are those set aside for validation, which also chose the best state of each "
            "model: all scores may be a little too high. Give a test set of your own with --test."
        )
    else:
        said = (
            f"각 모델은 한 번만 학습시켰습니다(시드 {seed}). 신뢰 구간은 테스트 문장이 달라질 때의 변동을 "
            "나타낼 뿐, 다시 학습할 때의 변동은 담고 있지 않습니다."
        )
        held_out = (
            " 테스트 문장은 검증용으로 떼어 둔 것으로, 각 모델의 가장 좋은 체크포인트를 고르는 데에도 "
            "쓰였으므로, 모든 점수가 조금 높게 나왔을 수 있습니다. 별도의 테스트 문장은 --test로 줄 수 "
            "있습니다."
        )
    return Paragraph(said + (held_out if lineage.is_held_out else ""))


def _time(seconds: float, language: str) -> str:
    for size, english, korean in ((3600, "hours", "시간"), (60, "minutes", "분")):
        if seconds >= 2 * size:
            number = f"{seconds / size:.1f}".removesuffix(".0")
            return f"{number} {english}" if language == "en" else f"{number}{korean}"
    number = f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}"
    return f"{number} seconds" if language == "en" else f"{number}초"
