"""From a user's files to what training reads: inspected, cleaned, split, tokenised, stored.

All of it stands in the folder `data` of a run, which appears whole or not at all:
the tokenizers, a store for each corpus and one for validation, pre-trained vectors if any are given, and
`data.json` with the counts and the validation pairs as text.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from regard.contract import Features, num_source_tokens
from regard.corpus.batches import Share
from regard.corpus.clean import clean_pairs, what_to_clean
from regard.corpus.findings import Report
from regard.corpus.inspect import inspect
from regard.corpus.read import Corpus, Pair, sample_pairs
from regard.corpus.split import Split, split_off
from regard.corpus.store import Store, build_store
from regard.errors import CorpusError
from regard.files import writing_folder
from regard.options.text import CharacterOptions, SubwordOptions, WordOptions
from regard.progress import Progress
from regard.text.tokenizer import Tokenizer, TokenizerPair
from regard.training.embeddings import FoundVectors, look_up, read_vectors, save_vectors
from regard.training.folder import ANOTHER_VERSION
from regard.training.guide import write_links
from regard.training.request import NO_VECTORS, Side, VectorFiles
from regard.vocabulary import NUM_RESERVED

MIN_PAIRS = 50
_FORMAT = "regard-data/1"
_MIN_VALIDATION_PAIRS = 15
_VALIDATION_SHARE = 50  # one pair in so many, between those two
_TOKENIZER_PAIRS = 100_000  # teach the tokenizer; more cost time and change little
_MAX_VALIDATION_NUMBERS = 1 << 26  # of features: 256 MB
_TOO_BROKEN = 0.5


@dataclass(frozen=True, slots=True)
class Material:
    """The corpora of a run: those to train on, with their weights, and one to validate on, if given."""

    corpora: tuple[tuple[Corpus, float], ...]
    validation: Corpus | None
    keep_rules: tuple[str, ...] = ()

    @property
    def feature_size(self) -> int | None:
        """How many numbers each feature vector has, None if the sources are texts."""
        return self.corpora[0][0].feature_size


@dataclass(frozen=True, slots=True)
class Facts:
    """What preparation counted."""

    source_language: str | None
    target_language: str | None
    num_read: int
    num_removed: dict[str, int]  # by rule
    num_held_out: int  # left out of training, being paraphrases of validation pairs
    num_pairs: int
    num_validation_pairs: int
    num_words: int  # of both sides, in the pairs that were read
    corpora: tuple[str, ...]  # their files
    skipped: dict[str, int]  # entries of the files that hold no pair, by reason
    notes: tuple[str, ...]  # what inspection could not check, or wonders about
    num_shifted: int
    vocab_sizes: tuple[int, int]
    rare_share: float  # of a vocabulary learnt here that training sees fewer than five times, else 0
    vectors: tuple[dict[str, Any], ...] = ()  # how many pieces each file of pre-trained vectors covers


@dataclass(frozen=True, slots=True)
class Prepared:
    """What training reads."""

    tokenizers: TokenizerPair
    shares: tuple[Share, ...]
    validation: tuple[tuple[str, str], ...]  # in the place of features stands what only they have
    validation_store: Store
    facts: Facts
    vectors: dict[Side, FoundVectors]

    @property
    def sources(self) -> list[str | Features]:
        """The sources of the validation pairs."""
        if self.validation_store.feature_size is None:
            return [source for source, _ in self.validation]
        stored = self.validation_store.source.fetch(np.arange(len(self.validation_store)))
        return [Features(vectors_SF) for vectors_SF in stored.rows()]

    @property
    def references(self) -> list[str]:
        """The targets of the validation pairs."""
        return [target for _, target in self.validation]


@dataclass(frozen=True, slots=True)
class Inspected:
    """The corpora, and what is known of them before anything expensive is done."""

    material: Material
    reports: tuple[Report, ...]

    @property
    def num_words(self) -> int:
        """The words of both sides."""
        return sum(report.num_source_words + report.num_target_words for report in self.reports)

    @property
    def num_kept(self) -> int:
        """The pairs that are left after cleaning."""
        return sum(what_to_clean(report, self.material.keep_rules).num_kept for report in self.reports)

    def readings(self) -> list[Callable[[], Iterator[Pair]]]:
        """Return how to read the clean pairs of each corpus."""
        return [
            partial(clean_pairs, corpus, report, self.material.keep_rules)
            for (corpus, _), report in zip(self.material.corpora, self.reports, strict=True)
        ]


def inspect_material(material: Material, progress: Progress) -> Inspected:
    """Return what the corpora hold, or raise an error if nothing can be learnt from them."""
    corpora = [corpus for corpus, _ in material.corpora] + (
        [material.validation] if material.validation else []
    )
    for corpus in corpora:
        for _ in corpus.pairs():  # unequal files and broken encodings show in a second
            pass
    reports = tuple(inspect(corpus, material.validation, progress) for corpus, _ in material.corpora)
    for report in reports:
        _refuse_hopeless(report, material.keep_rules)
    inspected = Inspected(material, reports)
    if inspected.num_kept < MIN_PAIRS:
        read = sum(report.num_pairs for report in reports)
        raise CorpusError(
            f"{' and '.join(reports[0].files)}: {inspected.num_kept} good pairs of {read} are too few "
            f"for training; at least {MIN_PAIRS} are needed, and thousands for a useful model"
        )
    return inspected


def _refuse_hopeless(report: Report, keep_rules: Sequence[str]) -> None:
    names = " and ".join(report.files)
    if report.unrelated:
        raise CorpusError(
            f"{names}: the two sides have nothing in common; they may be different texts, or in a different "
            f"order. Compare a few {report.place}s, and see `regard inspect`"
        )
    cleaning = what_to_clean(report, keep_rules)
    if cleaning.num_kept < (1 - _TOO_BROKEN) * report.num_pairs:
        rule, count = max(cleaning.removed.items(), key=lambda item: item[1])
        raise CorpusError(
            f"{names}: {report.num_pairs - cleaning.num_kept:,} of {report.num_pairs:,} pairs have problems, "
            f"{count:,} of them {rule!r}; see `regard inspect`, and --keep {rule} if they are correct"
        )


@dataclass(frozen=True, slots=True)
class PrepareOptions:
    """How material is prepared.

    Tokenizers are learnt by their options, or are those of the model that training begins with.
    Pairs with more than `max_tokens` on a side are not validated on; of the others batches leave them out.
    """

    tokenizing: SubwordOptions | WordOptions | CharacterOptions | TokenizerPair
    max_tokens: int
    seed: int
    with_links: bool = False  # words are aligned, to teach attention
    vectors: VectorFiles = NO_VECTORS
    max_validation_pairs: int = 1000


def prepare(inspected: Inspected, folder: Path, options: PrepareOptions, progress: Progress) -> None:
    """Write all that training reads into a new folder, whole or not at all."""
    material, reports, readings = inspected.material, inspected.reports, inspected.readings()
    size, max_tokens = material.feature_size, options.max_tokens
    split = _split(inspected, options.max_validation_pairs, options.seed)
    # Reading order is not shuffled away by the sample: the same pairs always teach the same tokenizer.
    texts = (pair._replace(features=None) for read in readings for pair in split.keep(read()))
    taught = sample_pairs(texts, _TOKENIZER_PAIRS, options.seed)
    if not taught:
        raise CorpusError(
            f"{' and '.join(reports[0].files)}: every pair shares a sentence with a validation pair; "
            "give a validation set of your own with --valid"
        )
    tokenizers = options.tokenizing
    if not isinstance(tokenizers, TokenizerPair):
        progress("learning the vocabulary", 0, 1)
        sources = None if size is not None else [pair.source for pair in taught]
        tokenizers = TokenizerPair.learn(sources, [pair.target for pair in taught], tokenizers)
        progress("learning the vocabulary", 1, 1)
    vectors = look_up(options.vectors, tokenizers)
    with writing_folder(folder, "data.json") as temporary:
        save_vectors(temporary, vectors)
        stores = []
        for number, (read, report) in enumerate(zip(readings, reports, strict=True)):
            shown = partial(_show_store, progress, report.num_pairs)
            place = temporary / f"train-{number}"
            kept = split.keep(read())
            stores.append(build_store(kept, tokenizers, place, feature_size=size, on_progress=shown))
        if options.with_links:
            stores = write_links(stores, tokenizers, max_tokens, progress)
        validation = _short(split.validation, tokenizers, max_tokens)
        build_store(validation, tokenizers, temporary / "validation", feature_size=size)
        learnt = tokenizers is not options.tokenizing
        facts = replace(
            _facts(inspected, split, stores, len(validation), tokenizers, learnt),
            vectors=tuple(
                {"side": side} | asdict(one.coverage) | {"frozen": bool(options.vectors.freeze)}
                for side, one in vectors.items()
            ),
        )
        (temporary / "source.tokenizer").write_bytes(tokenizers.source.to_bytes())
        (temporary / "target.tokenizer").write_bytes(tokenizers.target.to_bytes())
        data = {
            "format": _FORMAT,
            # A corpus may hold nothing but paraphrases of validation pairs.
            "shares": [
                [store.folder.name, weight]
                for store, (_, weight) in zip(stores, material.corpora, strict=True)
                if len(store)
            ],
            "facts": asdict(facts),
            "validation": [[pair.source, pair.target] for pair in validation],
        }
        stores.clear()  # closes their files, which some systems do not rename
        (temporary / "data.json").write_text(json.dumps(data), "utf-8")


def _split(inspected: Inspected, most: int, seed: int) -> Split:
    """Return the pairs to validate on, at most so many, and what must therefore not be trained on."""
    material, readings = inspected.material, inspected.readings()
    if material.feature_size is not None:  # those of all pairs are held in memory
        first = next(iter(readings[0]())).features
        assert first is not None
        most = min(most, max(_MIN_VALIDATION_PAIRS, _MAX_VALIDATION_NUMBERS // first.vectors_SF.size))
    if material.validation is None:
        num_kept = what_to_clean(inspected.reports[0], material.keep_rules).num_kept  # the first is split
        return split_off(readings, min(most, max(_MIN_VALIDATION_PAIRS, num_kept // _VALIDATION_SHARE)), seed)
    given = (pair for pair in material.validation.pairs() if pair.source.strip() and pair.target.strip())
    return Split(tuple(sample_pairs(given, most, seed)), frozenset())


def _show_store(progress: Progress, num_pairs: int, num_done: int) -> None:
    progress("tokenising", num_done, num_pairs)


def _short(pairs: Sequence[Pair], tokenizers: TokenizerPair, max_tokens: int) -> list[Pair]:
    """Return the pairs that have no more than so many tokens on either side, at least two of them."""
    texts = [tokenizers.clean_source(pair.source) if pair.features is None else "" for pair in pairs]
    sources = tokenizers.source.encode_batch(texts)
    targets = tokenizers.target.encode_batch([tokenizers.clean_target(pair.target) for pair in pairs])
    short = []
    for pair, ids, target in zip(pairs, sources, targets, strict=True):
        source = ids if pair.features is None else pair.features.vectors_SF
        if len(source) and len(target) and max(num_source_tokens(source), len(target) + 1) <= max_tokens:
            short.append(pair)
    if len(short) < 2:
        raise CorpusError(
            f"{len(short)} of {len(pairs)} validation pairs have at most batch.max_tokens = {max_tokens} "
            "tokens on both sides; at least 2 are needed: give others with --valid, or raise batch.max_tokens"
        )
    return short


def _facts(
    inspected: Inspected,
    split: Split,
    stores: Sequence[Store],
    num_validation_pairs: int,
    tokenizers: TokenizerPair,
    learnt: bool,
) -> Facts:
    reports = inspected.reports
    cleanings = [what_to_clean(report, inspected.material.keep_rules) for report in reports]
    removed: dict[str, int] = {}
    for cleaning in cleanings:
        for rule, count in cleaning.removed.items():
            removed[rule] = removed.get(rule, 0) + count
    num_pairs = sum(map(len, stores))
    num_validated = 0 if inspected.material.validation else len(split.validation)
    return Facts(
        reports[0].source_language,
        reports[0].target_language,
        sum(report.num_pairs for report in reports),
        removed,
        inspected.num_kept - num_pairs - num_validated,
        num_pairs,
        num_validation_pairs,
        inspected.num_words,
        tuple(" + ".join(Path(file).name for file in report.files) for report in reports),
        dict(sum((Counter(report.skipped) for report in reports), Counter())),
        tuple(note for report in reports for note in report.notes),
        removed.get("shift", 0),
        (tokenizers.source.vocab_size, tokenizers.target.vocab_size),
        _rare_share(stores, tokenizers) if learnt else 0.0,
    )


def _rare_share(stores: Sequence[Store], tokenizers: TokenizerPair) -> float:
    """Return the share of learnt pieces that training sees fewer than five times, both sides counted."""
    joint = tokenizers.source is tokenizers.target
    counts = [
        np.zeros(tokenizers.source.vocab_size, np.int64),
        np.zeros(tokenizers.target.vocab_size, np.int64),
    ]
    for store in stores:
        for start in range(0, len(store), 4096):
            rows = np.arange(start, min(start + 4096, len(store)))
            for count, side in zip(counts, (store.source, store.target), strict=True):
                if side is store.source and store.feature_size is not None:
                    continue
                count += np.bincount(side.fetch(rows).flat.astype(np.int64), minlength=len(count))
        store.release()
    learnt = [counts[0] + counts[1]] if joint else counts
    rare = sum(int((count[NUM_RESERVED:] < 5).sum()) for count in learnt)
    return rare / sum(len(count) - NUM_RESERVED for count in learnt)


def load_prepared(folder: Path) -> Prepared:
    """Return what `prepare` wrote."""
    data: dict[str, Any] = json.loads((folder / "data.json").read_text("utf-8"))
    if data["format"] != _FORMAT:
        raise CorpusError(f"{folder}: has format {data['format']!r}, not {_FORMAT!r}; {ANOTHER_VERSION}")
    source = Tokenizer.from_bytes((folder / "source.tokenizer").read_bytes())
    target_bytes = (folder / "target.tokenizer").read_bytes()
    target = source if target_bytes == source.to_bytes() else Tokenizer.from_bytes(target_bytes)
    shares = tuple(Share(Store(folder / name), weight) for name, weight in data["shares"])
    facts = data["facts"]
    facts |= {name: tuple(facts[name]) for name in ("vocab_sizes", "corpora", "notes")}
    facts["vectors"] = tuple(facts.get("vectors", ()))
    validation = tuple((source, target) for source, target in data["validation"])
    tokenizers = TokenizerPair(source, target)
    return Prepared(
        tokenizers, shares, validation, Store(folder / "validation"), Facts(**facts), read_vectors(folder)
    )
