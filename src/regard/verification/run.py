"""Verifying: the promises of docs/architecture.md that can be tested on any model, tested on this one."""

import hashlib
import platform
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path

import numpy as np

import regard
from regard import engines
from regard.corpus.language_codes import Languages
from regard.design import design
from regard.engines import Compute
from regard.errors import ConfigError, ModelFileError, RegardError
from regard.fast.searcher import FastSearcher
from regard.loaded import Loaded
from regard.modelfile import ModelFile, load_model
from regard.options.search import BeamOptions
from regard.parallel import num_cores, one_blas_thread
from regard.progress import Progress, unshown
from regard.search.searcher import Query
from regard.search.task import Found, Hypothesis
from regard.starter import locate
from regard.text.imported import ImportedTokenizer
from regard.text.tokenizer import Tokenizer
from regard.translate.plan import whole_stretches
from regard.translate.result import Part, Translation
from regard.translate.translator import IN_THIS_THREAD, Translator
from regard.verification.certificate import Certificate, Figures, Promise, Status, Subject
from regard.verification.parity import check_comparable, compare_with_folder
from regard.verification.sentences import Sentences, sentences_for
from regard.vocabulary import UNK

_CLOSE = 1e-3
"""Log-probabilities of one translation that are no further apart differ by rounding only."""
_SEARCHES = (BeamOptions(beam_size=1), BeamOptions())
_HARD = (
    "", "1,234.56 €", "https://example.org/a?b=1", "“So,” — ‘what’?", "naïve e\u0301te\u0301",
    "日本語 한국어", "ﬁ ½ Ａ", "🙂👩‍👩‍👧", "a\u00a0b\u202f!", "\ud800", "x" * 300,
)  # fmt: skip

Outcome = tuple[Status, str]


@dataclass(frozen=True)
class _Trial:
    """A model and the sentences it is tried with."""

    model: ModelFile
    sentences: Sentences
    against: Path | None
    usual: Loaded = field(repr=False)

    @cached_property
    def translator(self) -> Translator:
        """The translator that users get."""
        return Translator(self.usual, IN_THIS_THREAD)

    @cached_property
    def translations(self) -> list[Translation]:
        """All sentences, translated together."""
        return self.translator.translate(self.sentences.sources)

    @cached_property
    def queries(self) -> list[Query]:
        """The sentences as a searcher takes them, without those that would be split."""
        most = self.usual.max_source
        read = [one.ids for one in whole_stretches(self.usual, self.sentences.sources)]
        return [Query(ids) for ids in read if len(ids) and (most is None or len(ids) <= most)]

    @cached_property
    def found(self) -> list[tuple[BeamOptions, list[Found]]]:
        """What NumPy finds, greedily and with a beam."""
        steps = self.usual.searcher.steps
        with one_blas_thread():  # the matrices of a step are too small for more
            return [(options, steps.search(self.queries, options)) for options in _SEARCHES]

    @cached_property
    def forced(self) -> list[tuple[Query, Hypothesis, Hypothesis]]:
        """Each of these translations as NumPy found it, and as NumPy reads the whole of it."""
        steps = self.usual.searcher.steps
        pairs = [
            (query, one.hypotheses[0])
            for _, found in self.found
            for query, one in zip(self.queries, found, strict=True)
        ]
        with one_blas_thread():
            return [
                (query, one, steps.force([query.source], [np.array(one.ids, np.int64)])[0])
                for query, one in pairs
            ]


def verify(path: Path, against: Path | None = None, on_progress: Progress = unshown) -> Certificate:
    """Test the promises on a model file; `against` is a CTranslate2 folder that should translate alike.

    Raises an error for what cannot be tested at all, such as a file that is not there.
    """
    place = locate(path)
    try:
        with place.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error.strerror or error})") from None
    subject = Subject(path.name, digest, place.stat().st_size)
    started = time.perf_counter()
    try:
        model = load_model(place)
    except ModelFileError as error:
        others = (Promise(name, "not tried", "the file cannot be used") for name in _CHECKS)
        return _certificate(subject, "", (Promise("file", "fail", str(error)), *others), None)
    usual = Loaded.of(model)
    load_seconds = time.perf_counter() - started
    if against is not None:
        check_comparable(model, against)
    trial = _Trial(model, sentences_for(model), against, usual)
    subject = Subject(
        subject.name, digest, subject.num_bytes, str(Languages.of(model)), design(model.options).description
    )
    checks = _CHECKS if against is None else _CHECKS | {"folder": _folder}
    promises = [Promise("file", "pass", "every part has the hash it was saved with")]
    figures = None
    for number, (name, check) in enumerate(checks.items()):
        on_progress("verifying", number, len(checks))
        try:
            if figures is None:  # before another engine takes memory
                figures = _measured(trial, load_seconds)
            status, detail = check(trial)
        except RegardError as error:
            status, detail = "fail", str(error)
        promises.append(Promise(name, status, detail))
    told = f"{len(trial.sentences.sources)} sources: {trial.sentences.origin}"
    return _certificate(subject, told, tuple(promises), figures)


def _certificate(
    subject: Subject, sentences: str, promises: tuple[Promise, ...], figures: Figures | None
) -> Certificate:
    fast = engines.version()
    machine = {
        "python": f"Python {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
        "cores": f"{num_cores()} cores",
        "numpy": f"NumPy {np.__version__}",
        "ctranslate2": "no CTranslate2" if fast is None else f"CTranslate2 {fast}",
    }
    today = date.today().isoformat()
    return Certificate(subject, regard.__version__, today, machine, sentences, promises, figures)


def _measured(trial: _Trial, load_seconds: float) -> Figures:
    """Translate all sentences and return how long that took."""
    trial.translator.translate(trial.sentences.sources[:1])  # what is loaded at first use is not timed
    started = time.perf_counter()
    num_sentences = len(trial.translations)
    seconds = time.perf_counter() - started
    return Figures(str(trial.usual.used), load_seconds, num_sentences / seconds, _peak_bytes())


def _peak_bytes() -> int | None:
    """Return the most memory that this process has had, None on systems that do not tell."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _tokenizer(trial: _Trial) -> Outcome:
    """Texts come back from their ids, and every piece lies in its text."""
    tokenizers, texts = trial.model.tokenizers, [*trial.sentences.texts, *_HARD]
    num_unknown = 0
    for tokenizer, clean in (
        (tokenizers.source, tokenizers.clean_source),
        (tokenizers.target, tokenizers.clean_target),
    ):
        for text in map(clean, texts):
            found = tokenizer.encode(text)
            if any(not 0 <= start <= end <= len(text) for start, end in found.spans):
                return "fail", f"a piece of {text!r:.40} lies outside of it"
            num_unknown += UNK in found.ids
            if UNK not in found.ids and not _comes_back(tokenizer, text, found.ids):
                return "fail", f"{text!r:.40} comes back as {tokenizer.decode(found.ids)!r:.40}"
    what = f"{len(texts)} texts come back from their ids on both sides"
    if isinstance(tokenizers.source, ImportedTokenizer):
        what += ", normalised by SentencePiece"
    return "pass", what + (f"; {num_unknown} have characters without a piece" if num_unknown else "")


def _comes_back(tokenizer: Tokenizer, text: str, ids: Sequence[int]) -> bool:
    """Tell whether ids give their text, or for an imported tokenizer a text with the same ids."""
    back = tokenizer.decode(ids)
    if back == text or not isinstance(tokenizer, ImportedTokenizer):
        return back == text
    return tuple(tokenizer.encode_batch([back])[0].tolist()) == tuple(ids)


def _batches(trial: _Trial) -> Outcome:
    """Alone, together and in another order a source has the same translation."""
    sources = trial.sentences.sources
    order = random.Random(1).sample(range(len(sources)), len(sources))
    shuffled = dict(zip(order, trial.translator.translate([sources[n] for n in order]), strict=True))
    for number, together in enumerate(trial.translations):
        (alone,) = trial.translator.translate([sources[number]])
        for one, how in ((alone, "alone"), (shuffled[number], "in another order")):
            if (one.text, one.pieces) != (together.text, together.pieces):
                return "fail", f"source {number + 1} is translated otherwise {how}: {one.text!r:.60}"
    return "pass", f"{len(sources)} sources give the same alone, together and in another order"


def _engines(trial: _Trial) -> Outcome:
    """CTranslate2 finds what NumPy finds, and gives it the same scores."""
    try:
        fast = Loaded.of(trial.model, compute=Compute("ctranslate2")).searcher
    except ConfigError as error:
        return "not tried", str(error)
    assert isinstance(fast, FastSearcher)
    num_ties = 0
    for options, ours in trial.found:
        num_other = 0
        for a, b in zip(ours, fast.search(trial.queries, options), strict=True):
            differs = a.hypotheses[0].ids != b.hypotheses[0].ids
            num_ties += differs and a.in_doubt
            num_other += differs and not a.in_doubt
        if num_other:
            what = f"{num_other} of {len(ours)} sources with a beam of {options.beam_size}"
            return "fail", f"CTranslate2 translates {what} otherwise; use this model with --engine numpy"
    scored = fast.score([(query.source, one.ids) for query, one, _ in trial.forced])
    apart = max(
        (
            float(np.abs(np.subtract(theirs, whole.log_probs)).max())
            for theirs, (_, _, whole) in zip(scored, trial.forced, strict=True)
            if theirs
        ),
        default=0.0,
    )
    ties = f" but for {num_ties} ties" if num_ties else ""
    return _close(apart, f"NumPy and CTranslate2 find the same{ties}, greedily and with a beam")


def _steps(trial: _Trial) -> Outcome:
    """Step by step a translation has the scores that reading the whole of it gives."""
    apart = 0.0
    for _, one, whole in trial.forced:
        forced = whole.log_probs[: len(one.log_probs)]  # without `</s>` where the limit has cut it
        apart = max(apart, *np.abs(np.subtract(forced, one.log_probs)).tolist())
    return _close(apart, "scores of steps are those of the whole translation read at once")


def _close(apart: float, what: str) -> Outcome:
    return ("pass" if apart <= _CLOSE else "fail"), f"{what}; log-probabilities at most {apart:.1e} apart"


def _alignment(trial: _Trial) -> Outcome:
    """Attention is a distribution over the source, and links and pieces lie in the texts."""
    if not design(trial.model.options).size("cross")[0]:
        return "not tried", "the model has no attention"
    num_links = 0
    for number, one in enumerate(trial.translations, 1):
        num_links += len(one.links)
        words = (len(one.source_words), len(one.words))
        if any(not (0 <= source < words[0] and 0 <= target < words[1]) for source, target in one.links):
            return "fail", f"source {number} has a link to a word that is not there"
        if not all(_in_range(part, one) for part in one.parts):
            return "fail", f"source {number} has attention or pieces outside of its text"
    return "pass", f"{num_links:,} links lie in the texts, attention is from 0 to 1 and sums to 1 at most"


def _in_range(part: Part, whole: Translation) -> bool:
    """Tell whether all weights and spans of a part can be."""
    attention_TS = part.attention_TS
    spans = all(
        0 <= start <= end <= len(text)
        for text, found in ((whole.source, part.source_spans), (whole.text, part.spans))
        for start, end in found
    )
    shaped = attention_TS.shape == (len(part.pieces), len(part.source_pieces))
    sums = bool((attention_TS >= 0).all()) and bool((attention_TS.sum(axis=1) <= 1 + _CLOSE).all())
    return spans and shaped and sums


def _folder(trial: _Trial) -> Outcome:
    """The exported folder translates as the model does."""
    assert trial.against is not None
    found = compare_with_folder(trial.model, trial.against, trial.sentences.texts)
    alike = found.num_identical + found.num_ties == found.num_sentences
    ties = f", {found.num_ties} ties" if found.num_ties else ""
    what = f"{found.num_identical} of {found.num_sentences} translations of {trial.against} identical{ties}"
    status, detail = _close(found.largest_difference, what)
    return (status if alike else "fail"), detail


_CHECKS: dict[str, Callable[[_Trial], Outcome]] = {
    "tokenizer": _tokenizer,
    "batches": _batches,
    "engines": _engines,
    "steps": _steps,
    "alignment": _alignment,
}
