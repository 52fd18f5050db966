"""What can be asked for: a text, and how it is to be translated."""

from dataclasses import dataclass, field
from typing import Literal, TypedDict, Unpack, get_args

from regard.contract import Features
from regard.errors import ConfigError, SourceError
from regard.memory import TranslationMemory
from regard.options.search import BeamOptions
from regard.search.searcher import Search
from regard.terms.glossary import Glossary
from regard.text.markup import Markup


class SearchArguments(TypedDict, total=False):
    """The options of the section `search` as keyword arguments; docs/options.md says what each means."""

    kind: Literal["beam", "sample", "risk"]
    no_repeat_ngram: int | None
    max_ratio: float
    extra_tokens: int
    beam_size: int
    length_penalty: float
    coverage_penalty: float
    diversity: float
    temperature: float
    top_k: int | None
    top_p: float | None
    typical_p: float | None
    seed: int
    num_samples: int


class RequestArguments(TypedDict, total=False):
    """What can be asked of a source."""

    prefix: str | None
    num_best: int
    search: Search
    guard: bool
    glossary: Glossary | None
    markup: Markup | None
    memory: TranslationMemory | None


@dataclass(frozen=True, slots=True)
class Request:
    """A text to translate, with its own options.

    White space within a sentence becomes one space; other control characters are left out.

    `num_best` asks for alternatives, `prefix` for a translation that begins so. The `guard` translates
    sentence by sentence and tries again what looks wrong; nothing is tried again for samples and for
    translations with a prefix.

    The terms of a `glossary` are enforced by beam search; samples do not follow it.
    With `markup` the tags of the text are taken out before and put into the translation where the words they
    covered went: `Translation.marked`.
    What a translation `memory` has is taken as it is, unless there is a prefix; similar sources are shown in
    `Translation.memory`.

    A source that is no text has `features`, and as `text` the names of their positions, as `of` makes it.
    """

    text: str
    prefix: str | None = None
    num_best: int = 1
    search: Search = field(default_factory=BeamOptions)
    guard: bool = True
    features: Features | None = None
    glossary: Glossary | None = None
    markup: Markup | None = None
    memory: TranslationMemory | None = None

    @classmethod
    def of(cls, source: "str | Features", **asked: Unpack["RequestArguments"]) -> "Request":
        """Return the request of a text or of features."""
        if isinstance(source, Features):
            return cls(source.text, features=source, **asked)
        return cls(source, **asked)

    def __post_init__(self) -> None:
        """Raise an error for what is no text, and for options that contradict each other."""
        for what, value in (("text", self.text), ("prefix", self.prefix)):
            if not isinstance(value, str) and (what == "text" or value is not None):
                raise TypeError(f"a {what} must be a string, and this is {value!r:.40}")
            if value is not None and "\0" in value:
                raise SourceError(f"a {what} must not have NUL characters; was it read as UTF-16?")
        if self.glossary is not None and not isinstance(self.search, BeamOptions):
            raise ConfigError("a glossary needs beam search; leave out the glossary or search.kind")
        if self.markup not in (None, *get_args(Markup)):
            raise ConfigError(f"markup = {self.markup!r:.40} is not valid; use xml or html")
        if self.markup is not None and (self.num_best > 1 or self.features is not None):
            raise ConfigError("mark-up is carried into one translation of a text; leave out num_best")
        if self.memory is not None and self.features is not None:
            raise ConfigError("a translation memory has texts, and the source is features; leave it out")
        widest = self.search.beam_size if isinstance(self.search, BeamOptions) else None
        if self.num_best < 1 or (widest is not None and self.num_best > widest):
            raise ConfigError(f"num_best = {self.num_best} is not valid; use 1 up to the beam size")
