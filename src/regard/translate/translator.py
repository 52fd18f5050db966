"""`Translator`: text in, translations out. Users, servers, validation and traces all come this way."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Protocol, Unpack

from regard.contract import Features
from regard.engines import Compute
from regard.errors import ConfigError, SourceError
from regard.loaded import Loaded
from regard.memory import TranslationMemory
from regard.modelfile import ModelFile
from regard.options.parse import parse
from regard.parallel import Pool
from regard.search.searcher import Search, Searcher
from regard.search.task import Found
from regard.terms.glossary import Glossary
from regard.translate.outcome import describe
from regard.translate.plan import whole_stretches
from regard.translate.queue import Batch, Job, Queue
from regard.translate.request import Request, RequestArguments, SearchArguments
from regard.translate.result import Translation

Work = Callable[[Job], list[Found]]
Terms = Glossary | Mapping[str, str | Sequence[str]] | str | Path
"""A glossary, or terms with their translation or several forms of it."""


Memory = TranslationMemory | str | Path
"""A translation memory, or the file that has it."""


class MakePool(Protocol):
    """Chooses where searches are done, such as `functools.partial(make_pool, num_workers=1)`."""

    def __call__(self, work: Work, *, much: bool) -> Pool[Job, list[Found]]:
        """Return a pool for the work; `much` says whether there is much of it."""
        ...


def make_pool(
    work: Work, *, much: bool, num_workers: int | None = None, fork: bool | None = None
) -> Pool[Job, list[Found]]:
    """Return the fastest pool for this work; only much work is worth the start of processes or threads.

    `num_workers` None is one for each processor. `fork` None: if this process has no other threads, which
    might hold a lock at that moment.
    """
    fork = threading.active_count() == 1 if fork is None else fork
    return Pool(work, num_workers if much else 1, fork=fork)


FORKING: MakePool = partial(make_pool, fork=True)
"""For a program of its own, such as the command line: it forks even beside threads that only draw or wait."""
IN_THIS_THREAD: MakePool = partial(make_pool, num_workers=1)
"""For an engine that cannot be used by several at once, such as one on a GPU."""

_FIRST_TEXTS = 32  # at least, of those that are seen first: small batches are slow
_FORCE_TOKENS = 1024  # of all rows forced together: the scores of all words for each are kept at once


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is done at once.

    A batch has at most `batch_tokens` source tokens in all its rows. At most `window_texts` texts, or
    `window_characters` characters, are read ahead: enough for batches of like lengths, few enough for any
    memory. Above `much_tokens` tokens, in all rows of all batches, starting processes is worth its time.
    """

    batch_tokens: int = 4096
    window_texts: int = 2000
    window_characters: int = 400_000
    much_tokens: int = 3_000


class Translator:
    """A model that translates texts.

    The same text becomes the same tokens, whatever else is translated with it.
    """

    def __init__(self, model: Loaded, pool: MakePool = make_pool, limits: Limits | None = None) -> None:
        """Make a translator; `pool` says where the searching is done.

        Without it, much work is shared among forked processes where that is safe, else among threads.
        """
        self.model = model
        self.limits = limits or Limits()
        self._make_pool = pool

    @classmethod
    def of(
        cls, *models: ModelFile, pool: MakePool = make_pool, compute: Compute | None = None
    ) -> "Translator":
        """Return the translator of a model, or of several together."""
        return cls(Loaded.of(*models, compute=compute), pool)

    @classmethod
    def open(
        cls,
        *paths: str | Path,
        pool: MakePool = make_pool,
        compute: Compute | None = None,
        to: str | None = None,
    ) -> "Translator":
        """Return the translator of a model file, or of several together; `to` is for a multilingual model."""
        return cls(Loaded.open(*paths, compute=compute, to=to), pool)

    def translate(
        self,
        texts: Sequence[str | Features | Request],
        *,
        num_best: int = 1,
        prefixes: Sequence[str | None] | None = None,
        guard: bool = True,
        glossary: Terms | None = None,
        memory: Memory | None = None,
        on_progress: Callable[[int], None] | None = None,
        **search: Unpack[SearchArguments],
    ) -> list[Translation]:
        """Return one translation for each text, in their order; that of a blank text is blank.

        The keyword arguments hold for all texts; a `Request` has its own. `num_best` asks for alternatives,
        `prefixes` for translations that begin so. The guard tries again what looks wrong. `glossary` says how
        terms are translated: a mapping of terms to translations, or a file. `memory` is a translation
        memory, or its file: what it has is taken as it is. `search` are options of that section of
        docs/options.md, such as `beam_size=1` or `kind="sample"`. `on_progress` is told how many texts are
        done.
        """
        if isinstance(texts, str) or isinstance(prefixes, str):
            raise TypeError("translate() takes a list of texts; put the one text into brackets")
        if prefixes is not None and len(prefixes) != len(texts):
            raise ConfigError(f"{len(texts)} texts and {len(prefixes)} prefixes; give one for each text")
        asked = self._asked(num_best, guard, parse("search", search), glossary, memory)
        requests = list(_requests(texts, asked))
        if prefixes is not None:
            requests = [replace(one, prefix=prefix) for one, prefix in zip(requests, prefixes, strict=True)]
        return list(self._run(iter(requests), on_progress))

    def stream(
        self,
        texts: Iterable[str | Features | Request],
        *,
        num_best: int = 1,
        guard: bool = True,
        glossary: Terms | None = None,
        memory: Memory | None = None,
        **search: Unpack[SearchArguments],
    ) -> Iterator[Translation]:
        """Yield one translation for each text, in their order, however many there are; see `translate`."""
        if isinstance(texts, str):
            raise TypeError("stream() takes many texts; put the one text into brackets")
        asked = self._asked(num_best, guard, parse("search", search), glossary, memory)
        return self._run(_requests(texts, asked), soon=True)

    def _asked(
        self, num_best: int, guard: bool, search: Search, glossary: Terms | None, memory: Memory | None
    ) -> RequestArguments:
        """Return what is asked of each text, with the files of terms and memory read."""
        if isinstance(glossary, str | Path):
            glossary = Glossary.read(glossary)
        elif glossary is not None and not isinstance(glossary, Glossary):
            glossary = Glossary.of(glossary)
        if isinstance(memory, str | Path):
            memory = self.model.read_memory(memory)
        return {
            "num_best": num_best,
            "guard": guard,
            "search": search,
            "glossary": glossary,
            "memory": memory,
        }

    def _run(
        self,
        requests: Iterator[Request],
        on_progress: Callable[[int], None] | None = None,
        *,
        soon: bool = False,
    ) -> Iterator[Translation]:
        """Yield the translations in the order of the requests, reading ahead by a window at a time.

        `soon`: the first ones are wanted before the others are done.
        """
        queue = Queue(self.model, self.limits.batch_tokens)
        numbered = enumerate(requests)
        done: dict[int, Translation] = {}
        num_done = num_given = 0
        pool: Pool[Job, list[Found]] | None = None
        running: dict[Future[list[Found]], Batch] = {}

        def finish(translations: list[tuple[int, Translation]]) -> None:
            nonlocal num_done
            done.update(translations)
            num_done += len(translations)
            if translations and on_progress is not None:
                on_progress(num_done)

        try:
            while True:
                while num_given in done:
                    yield done.pop(num_given)
                    num_given += 1
                while pool is None or len(running) < _num_running(pool):
                    batch = queue.take(1 if pool is None else max(1, pool.num_workers - len(running)))
                    if batch is None:
                        window = _window(numbered, self.limits)
                        if not window:
                            break
                        for part in _rounds(window) if soon and pool is None else [window]:
                            finish(queue.put(part))
                        pool = pool or self._pool(queue.num_tokens)
                    else:
                        assert pool is not None
                        running[pool.submit(batch.job)] = batch
                if running:
                    finished, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in finished:
                        finish(queue.give(running.pop(future), future.result()))
                elif num_given not in done:
                    return
        finally:
            if pool is not None:
                pool.close()

    def _pool(self, num_tokens: int) -> Pool[Job, list[Found]]:
        work = partial(search_job, self.model.searcher)
        return self._make_pool(work, much=num_tokens > self.limits.much_tokens)

    def force(
        self,
        sources: Sequence[str | Features],
        targets: Sequence[str],
        *,
        numbers: Sequence[int] | None = None,
    ) -> list[Translation]:
        """Return given translations with the probability of each word and where it came from.

        `numbers` are those of the pairs in the message of an error; without it they are counted from 1.
        """
        if isinstance(sources, str) or isinstance(targets, str):
            raise TypeError("force() takes two lists of texts; put single texts into brackets")
        if len(sources) != len(targets):
            raise SourceError(f"{len(sources)} sources and {len(targets)} translations; give one for each")
        model, tokenizers = self.model, self.model.tokenizers
        read = whole_stretches(model, sources)
        target_ids = tokenizers.target.encode_batch(list(map(tokenizers.clean_target, targets)))
        lengths = [max(len(one.ids), len(target)) for one, target in zip(read, target_ids, strict=True)]
        counted = range(1, len(sources) + 1) if numbers is None else numbers
        longest = model.searcher.max_tokens
        for number, one, length in zip(counted, read, lengths, strict=True):
            if not len(one.ids):
                raise SourceError(f"source {number} is blank; leave such pairs out")
            if longest is not None and length >= longest:
                raise SourceError(
                    f"pair {number} has {length + 1:,} tokens, and this model reads at most "
                    f"{longest:,}; shorten it"
                )
        forced: dict[int, Translation] = {}
        for places in _batches(lengths, _FORCE_TOKENS):
            said = model.searcher.force([read[n].ids for n in places], [target_ids[n] for n in places])
            for number, hypothesis in zip(places, said, strict=True):
                stretch = read[number]
                described = describe(model, stretch.source, stretch.ids, hypothesis)
                assert described is not None
                text, part = described
                log_prob, source = hypothesis.log_prob, stretch.source.original
                forced[number] = Translation(source, text, hypothesis.score, log_prob, (part,))
        return [forced[number] for number in range(len(read))]


def search_job(searcher: Searcher, job: Job) -> list[Found]:
    """Return what is found for a job; this is the work that a pool does."""
    if job.given is not None:
        (query,) = job.queries
        return [Found(tuple(searcher.force([query.source], [job.given])), None)]
    return searcher.search(job.queries, job.search, job.num_best)


def _requests(texts: Iterable[str | Features | Request], asked: RequestArguments) -> Iterator[Request]:
    for number, text in enumerate(texts, 1):
        if isinstance(text, Request):
            yield text
            continue
        try:
            yield Request.of(text, **asked)
        except (TypeError, SourceError) as error:
            raise type(error)(f"text {number}: {error}") from None


def _num_running(pool: Pool[Job, list[Found]]) -> int:
    """Return how many batches are under way at once: where several work, one waits for each of them."""
    return 1 if pool.num_workers == 1 else 2 * pool.num_workers


def _window(requests: Iterator[tuple[int, Request]], limits: Limits) -> list[tuple[int, Request]]:
    """Return the next requests: so many, or so many that they have together so many characters."""
    window: list[tuple[int, Request]] = []
    num_characters = 0
    for number, request in requests:
        window.append((number, request))
        num_characters += len(request.text) if request.features is None else request.features.vectors_SF.size
        if len(window) == limits.window_texts or num_characters >= limits.window_characters:
            break
    return window


def _rounds(window: list[tuple[int, Request]]) -> Iterator[list[tuple[int, Request]]]:
    """Yield the texts of the first window in parts that do not wait for each other, small ones first."""
    cuts = [cut for n in (4, 3, 2, 1) if (cut := len(window) >> n) >= _FIRST_TEXTS]
    for first, last in pairwise([0, *cuts, len(window)]):
        yield window[first:last]


def _batches(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Yield the numbers of the pairs that are forced together, longest first."""
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__)[::-1]:
        if batch and (len(batch) + 1) * (lengths[batch[0]] + 1) > max_tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
