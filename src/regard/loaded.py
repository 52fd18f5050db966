"""A model ready for use, opened once and shared by translating, tracing, aligning, evaluating and serving."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.alignment.reading import USUAL_READING, Reading
from regard.contract import Engine
from regard.corpus.language_codes import Languages, check_languages, one_language
from regard.engines import Compute, Used
from regard.errors import ModelFileError
from regard.fast.choice import choose
from regard.memory import LEAST_SCORE, TranslationMemory
from regard.modelfile import ModelFile, load_model
from regard.options.model import feature_size
from regard.runtime.build import build_engine
from regard.search.ensemble import Ensemble
from regard.search.searcher import Searcher, StepSearcher
from regard.text.known import KnownWords
from regard.text.tokenizer import TokenizerPair


@dataclass(frozen=True)
class Loaded:
    """A searcher with its tokenizers, and what is known of the model.

    `reading` says which attention is its word alignment. A source of more than `split_above` tokens is split.
    A model with a `feature_size` reads feature vectors of so many numbers and no text.
    `known_words` are the words of the target side of its training text, where the model file has them.
    `file` is the model file, None for a model that is still being trained and for several models together.
    `used` says which engine computes.
    """

    tokenizers: TokenizerPair
    searcher: Searcher
    reading: Reading = USUAL_READING
    split_above: int | None = None
    source_language: str | None = None
    target_language: str | None = None
    name: str = "model"
    file: ModelFile | None = None
    feature_size: int | None = None
    known_words: KnownWords | None = None
    used: Used = field(default_factory=Used)

    @classmethod
    def with_engine(cls, engine: Engine[Any], tokenizers: TokenizerPair, **known: Any) -> "Loaded":
        """Return the model of an engine of the contract; `known` are further fields."""
        reading = known.pop("reading", None) or USUAL_READING
        return cls(tokenizers, StepSearcher(engine, reading, tokenizers.target), reading, **known)

    @classmethod
    def of(cls, *models: ModelFile, name: str = "model", compute: Compute | None = None) -> "Loaded":
        """Return a model, or several that translate together as an ensemble."""
        first = models[0]
        if any(model.tokenizers.sha256 != first.tokenizers.sha256 for model in models):
            raise ModelFileError(
                "an ensemble needs models with the same vocabulary; train them on the same files with "
                "different seeds"
            )
        posterior = first.reading is not None and first.reading.posterior
        engines = [build_engine(one.options, one.weights, posterior=posterior) for one in models]
        loaded = cls.with_engine(
            engines[0] if len(engines) == 1 else Ensemble(engines),
            first.tokenizers,
            reading=first.reading,
            split_above=first.split_above,
            source_language=first.source_language,
            target_language=first.target_language,
            name=name,
            file=first if len(models) == 1 else None,
            feature_size=feature_size(first.options.source),
            known_words=first.known_words,
        )
        searcher, used = choose(models, loaded.searcher.steps, compute or Compute())
        return replace(loaded, searcher=searcher, used=used)

    @classmethod
    def open(cls, *paths: str | Path, compute: Compute | None = None, to: str | None = None) -> "Loaded":
        """Return the model of a file or of a name of the package, or of several together.

        A multilingual model translates into the language `to`.
        """
        name = " + ".join(Path(path).name for path in paths)
        models = [load_model(Path(path)) for path in paths]
        if to is not None:
            models = [model.aimed_at(to) for model in models]
        return cls.of(*models, name=name, compute=compute)

    def by_steps(self) -> "Loaded":
        """Return the model with the searcher that takes one step at a time, in which steps can be watched."""
        return replace(self, searcher=self.searcher.steps, used=Used(why="every step is watched"))

    def check_languages(self, what: str, languages: Languages) -> None:
        """Raise an error if the model is known not to translate between these languages.

        `what` begins the part of the message about them, such as "the test set is".
        """
        mend = "give the files the other way round, or another model"
        check_languages(f"{self.name} translates", Languages.of(self), what, languages, mend)

    def read_memory(self, *paths: str | Path, least_score: float = LEAST_SCORE) -> TranslationMemory:
        """Return the translation memory of one file or of two plain ones, in the languages of the model."""
        return TranslationMemory.read(
            *paths,
            source_language=self.source_language,
            target_language=self.target_language,
            least_score=least_score,
        )

    @cached_property
    def translates(self) -> bool:
        """Whether a target is to say all that its source says, unlike a summary or a caption."""
        return self.feature_size is None and not one_language(self.source_language, self.target_language)

    @property
    def max_source(self) -> int | None:
        """The most source tokens that are translated in one go, `</s>` not counted; None: any number."""
        readable = None if self.searcher.max_tokens is None else self.searcher.max_tokens - 1
        return min((one for one in (self.split_above, readable) if one is not None), default=None)
