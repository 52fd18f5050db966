"""The tokenizer: any text to ids and back without loss, each piece with its place in the original."""

import hashlib
import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count, groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from regard.errors import TokenizerError
from regard.options.parse import parse
from regard.options.text import CharacterOptions, ImportedOptions, SubwordOptions, WordOptions
from regard.text.normalize import Normalized, normalize
from regard.text.segment import SPLITS, Ids, Segmenter, SubwordSegmenter, TableSegmenter
from regard.text.words import Span
from regard.vocabulary import FIRST_BYTE, NUM_RESERVED, RESERVED, SPACE, UNK, UNKNOWN

FORMAT = "regard-tokenizer/1"

# Characters that must not reach a segmenter, and travel as bytes: the sign that stands for a space,
# lone surrogates (which have no UTF-8), and line feeds (a table is stored one piece a line).
_RAW = re.compile(f"[{SPACE}\ud800-\udfff\n]")

# An elided word, the spaces after it (mostly none), and the letter that follows.
_ELISION = re.compile(r"(?<!\w)(?:[cdjlmnst]|[^\W\d_]{0,8}qu)['’]( *)(?=[^\W\d_])", re.IGNORECASE)

_BYTE_INFORMATION = 0.5  # a character that travels as bytes has two to four of them


@dataclass(frozen=True, slots=True)
class Encoding:
    """A text in pieces: what each is, its id, and which characters of the original it came from.

    The space in front of a word belongs to the word's first piece but not to its span.
    Bytes of one character all have the span of that character.
    """

    text: str
    pieces: tuple[str, ...]
    ids: tuple[int, ...]
    spans: tuple[Span, ...]


class Tokenizer:
    """Turns text into ids and ids into text.

    `decode(encode(text).ids) == text` for every string, unless the options ask for `<unk>`.
    """

    before = ""
    """A piece that is put before each source, which only imported tokenizers have."""

    def __init__(
        self, options: SubwordOptions | WordOptions | CharacterOptions, segmenter: Segmenter
    ) -> None:
        learnt = segmenter.pieces[NUM_RESERVED:]
        if tuple(segmenter.pieces[:NUM_RESERVED]) != RESERVED or SPACE not in learnt or "" in learnt:
            raise TokenizerError("the pieces are not those of a regard tokenizer; it may be damaged")
        self.options: SubwordOptions | WordOptions | CharacterOptions | ImportedOptions = options
        self.pieces = segmenter.pieces
        self._segmenter = segmenter
        self._opens = isinstance(options, SubwordOptions) and options.elisions
        self._surfaces = self._reserved_surfaces() + [
            piece.replace(SPACE, " ").encode("utf-8", "surrogatepass") for piece in self.pieces[NUM_RESERVED:]
        ]

    @staticmethod
    def _reserved_surfaces() -> list[bytes]:
        """Return what each of the reserved ids gives to a text."""
        reserved = [b""] * FIRST_BYTE + [bytes([byte]) for byte in range(256)]
        reserved[UNK] = UNKNOWN.encode()
        return reserved

    @classmethod
    def learn(
        cls, texts: Iterable[str], options: SubwordOptions | WordOptions | CharacterOptions
    ) -> "Tokenizer":
        """Learn a tokenizer from (normalised) sentences."""
        marked: Iterable[str] = (" " + _RAW.sub("", text) for text in texts if text)
        if isinstance(options, SubwordOptions):
            if options.elisions:
                marked = map(_open, marked)
            return cls(options, SubwordSegmenter.learn(marked, options))
        return cls(options, TableSegmenter.learn(marked, options))

    def aimed_at(self, to: str) -> "Tokenizer":
        """Return the tokenizer of the sources that are translated into one of several languages."""
        raise TokenizerError(f"the model does not translate into {to!r:.20}, but into one language only")

    @property
    def can_sample(self) -> bool:
        """Whether a text can be cut in more than one way."""
        return isinstance(self.options, SubwordOptions)

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return len(self.pieces)

    @cached_property
    def information_V(self) -> NDArray[np.float32]:
        """How much each piece tells, from 0 to 1: *the* hardly anything, a rare or unknown word most.

        It grows with the logarithm of the rank, as Zipf's law has it. Vocabularies go from common to rare,
        but BPE lists its single characters after all others: they have ranks of their own.
        """
        places = {True: count(1), False: count(1)}
        ranks_V = [next(places[len(piece.strip(SPACE)) > 1]) for piece in self.pieces[NUM_RESERVED:]]
        learnt_V = np.log2(1 + np.array(ranks_V)) / np.log2(1 + max(ranks_V))
        reserved_V = np.ones(NUM_RESERVED)
        reserved_V[FIRST_BYTE:] = _BYTE_INFORMATION
        return np.concatenate([reserved_V, learnt_V]).astype(np.float32)

    @cached_property
    def ends_word_V(self) -> NDArray[np.bool_]:
        """True for the ids that cannot go on with a word: those that begin with a space or a sign, `</s>`."""
        return np.array([not _is_letter(one[:1]) for one in self._surfaces])

    @cached_property
    def joins_V(self) -> NDArray[np.bool_]:
        """True for the ids after which a word may begin without a space: those that end in a sign."""
        return np.array([bool(one.strip()) and not _is_letter(one[-1:]) for one in self._surfaces])

    def encode(self, text: str | Normalized) -> Encoding:
        """Return the pieces of a text. The spans of a normalised text lie in its original."""
        plain = text.text if isinstance(text, Normalized) else text
        ids = self.encode_batch([plain])[0].tolist()
        spans = self.spans(ids, plain)
        if isinstance(text, Normalized):
            spans = [text.to_original(span) for span in spans]
        original = text.original if isinstance(text, Normalized) else plain
        return Encoding(original, tuple(self.pieces[id] for id in ids), tuple(ids), tuple(spans))

    def encode_batch(self, texts: Sequence[str]) -> list[Ids]:
        """Return the ids of each text; the same as `encode` one by one, only faster."""
        return self._whole(texts, self._segmenter.segment)

    def sample_batch(self, texts: Sequence[str], strength: float, seed: int) -> list[Ids]:
        """Return a random segmentation of each text, for training: a function of texts and seed.

        It decodes to the same text. See `SubwordSegmenter.sample` for what `strength` means.
        """
        return self._whole(texts, lambda marked: self._segmenter.sample(marked, strength, seed))

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids without `<pad>`, `<s>` and `</s>`; bytes that form no character become �."""
        text, _ = self._surface(ids)
        return _close(text)[0] if self._opens else text

    def decode_spans(self, ids: Sequence[int]) -> tuple[str, list[Span]]:
        """Return the text of ids, and which of its characters each id gave; some, like `</s>`, give none.

        As in `encode`, the space before a word is in no span, and all bytes of a character have its span.
        """
        text, errors = self._surface(ids)
        spans: list[Span] = []
        place = -1 if ids and self._surfaces[ids[0]][:1] == b" " else 0
        for is_byte, run in groupby(ids, lambda one: FIRST_BYTE <= one < NUM_RESERVED):
            if is_byte:
                data = bytes(id - FIRST_BYTE for id in run)
                given = data.decode("utf-8", errors)
                if len(given.encode("utf-8", "surrogatepass")) == len(data) and "\ufffd" not in given:
                    sizes = [len(character.encode("utf-8", "surrogatepass")) for character in given]
                    for offset, size in enumerate(sizes):
                        spans += [(max(place + offset, 0), max(place + offset + 1, 0))] * size
                else:  # no characters: all of them together gave all the signs of that
                    spans += [(max(place, 0), place + len(given))] * len(data)
                place += len(given)
                continue
            for id in run:
                surface = self._surfaces[id].decode("utf-8", errors)
                start, end = place, place + len(surface)
                if len(surface) > 1 and surface[0] == " ":
                    start += 1
                spans.append((max(start, 0), max(end, 0)))
                place = end
        if not self._opens:
            return text, spans
        text, removed = _close(text)
        return text, _without(spans, removed)

    def to_bytes(self) -> bytes:
        """Return the whole tokenizer as bytes: a line of JSON, then the segmenter."""
        # Without the option the bytes, and so the hash, are those of versions that did not know it.
        options = self.options.model_dump(exclude=None if self._opens else {"elisions"})
        header = {"format": FORMAT, "options": options}
        return json.dumps(header).encode() + b"\n" + self._segmenter.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Tokenizer":
        """Return the tokenizer that `to_bytes` wrote."""
        line, _, body = data.partition(b"\n")
        try:
            header = json.loads(line)
            form, values = header["format"], dict(header["options"])
        except (ValueError, TypeError, KeyError, RecursionError):
            raise TokenizerError("these bytes are not a regard tokenizer") from None
        if form != FORMAT:
            raise TokenizerError(f"tokenizer of format {form!r}; this version reads {FORMAT!r}")
        if values.get("kind") == "imported":
            from regard.text.imported import ImportedTokenizer  # a kind of this class

            learnt, joint, has_bytes = header.get("pieces"), values.get("joint"), values.get("bytes")
            to = values.get("to", "")
            if not (isinstance(learnt, list) and all(isinstance(one, str) for one in learnt)):
                raise TokenizerError("the vocabulary of the tokenizer is missing; it may be damaged")
            return ImportedTokenizer(learnt, body, bool(joint), bool(has_bytes), str(to))
        options = parse("tokenizer", values)
        if isinstance(options, SubwordOptions):
            return cls(options, SubwordSegmenter(body))
        try:
            learnt = body.decode("utf-8", "surrogatepass").split("\n")
        except UnicodeDecodeError as error:
            raise TokenizerError(f"the tokenizer's table is damaged ({error})") from None
        return cls(
            options, TableSegmenter(learnt, SPLITS[options.kind], getattr(options, "unknown", "bytes"))
        )

    @property
    def sha256(self) -> str:
        """The hash of the whole tokenizer: equal hashes give equal ids."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def _surface(self, ids: Iterable[int]) -> tuple[str, str]:
        """Return the text of ids with its elided words still apart, and how its bytes are decoded."""
        surface = b"".join(map(self._surfaces.__getitem__, ids))
        errors = _errors(surface)
        return surface.decode("utf-8", errors).removeprefix(" "), errors

    def _whole(self, texts: Sequence[str], segment: Callable[[list[str]], list[Ids]]) -> list[Ids]:
        """Cut texts with `segment`, sending the characters it must not see around it as bytes."""
        if self._opens:
            texts = list(map(_open, texts))
        if not _holds_raw("".join(texts)):
            return segment([" " + text if text else "" for text in texts])
        parts = [_RAW.split(" " + text) if text else [""] for text in texts]
        ids = iter(segment(list(chain.from_iterable(parts))))
        result = []
        for text in texts:
            whole = [next(ids)]
            for raw in _RAW.findall(text):
                codes = np.frombuffer(raw.encode("utf-8", "surrogatepass"), np.uint8)
                whole += [FIRST_BYTE + codes.astype(np.int32), next(ids)]
            result.append(np.concatenate(whole))
        return result

    def spans(self, ids: Sequence[int], text: str) -> list[Span]:
        """Return the characters each piece covers, by walking over the text beside the pieces."""
        if self._opens:
            opened = _open(text)
            return _without(self._walk(ids, opened), _close(opened)[1])
        return self._walk(ids, text)

    def _walk(self, ids: Sequence[int], text: str) -> list[Span]:
        spans: list[Span] = []
        place = -1  # of the space put in front of the text
        missing = 0  # bytes still to come of the character at `place`
        for id in ids:
            if FIRST_BYTE <= id < NUM_RESERVED:
                missing = missing or len(text[place].encode("utf-8", "surrogatepass"))
                spans.append((place, place + 1))
                missing -= 1
                place += missing == 0
                continue
            length = _unknown_length(text, place) if id == UNK else len(self.pieces[id])
            start, end = place, place + length
            if length > 1 and (start < 0 or text[start] == " "):
                start += 1
            spans.append((max(start, 0), max(end, 0)))
            place = end
        return spans


def _is_letter(byte: bytes) -> bool:
    """Tell whether a byte is a letter or digit of ASCII, or part of any other character."""
    return bool(byte) and (byte[0] >= 0x80 or byte.isalnum())


def _errors(surface: bytes) -> str:
    """Return how to decode bytes: lone surrogates as they are, unless something else is wrong as well."""
    try:
        surface.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return "replace"
    return "surrogatepass"


def _open(text: str) -> str:
    """Put one more space behind every elided word."""
    return _ELISION.sub(r"\g<0> ", text) if "'" in text or "’" in text else text


def _close(text: str) -> tuple[str, list[int]]:
    """Take one space away behind every elided word, if there is one; return the text and where they were."""
    removed = [found.end() - 1 for found in _ELISION.finditer(text) if found[1]]
    ends = [-1, *removed, len(text)]
    return "".join(text[start + 1 : end] for start, end in pairwise(ends)), removed


def _without(spans: list[Span], removed: list[int]) -> list[Span]:
    """Return spans of a text as spans of the text without the characters at these places."""
    return [(start - bisect_left(removed, start), end - bisect_left(removed, end)) for start, end in spans]


def _holds_raw(text: str) -> bool:
    """Tell whether there is a raw character, ten times as fast as by searching for the pattern."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return SPACE in text or "\n" in text


def _unknown_length(text: str, place: int) -> int:
    """Return the length of the word, with the space before it, that `<unk>` stands for at this place."""
    rest = _RAW.split((" " + text)[place + 1 :], maxsplit=1)[0]
    return len(SPLITS["word"](rest)[0])


@dataclass(frozen=True, slots=True)
class TokenizerPair:
    """The tokenizers of the two sides; with a joint vocabulary they are one and the same."""

    source: Tokenizer
    target: Tokenizer

    @property
    def sha256(self) -> str:
        """The hash of both: equal hashes give equal ids on both sides."""
        return hashlib.sha256((self.source.sha256 + self.target.sha256).encode()).hexdigest()

    @staticmethod
    def clean_source(text: str) -> str:
        """Return the text as every source goes to its tokenizer, in learning, training and translating."""
        return normalize(text, fold_quotes=True)

    @staticmethod
    def clean_target(text: str) -> str:
        """Return the text as every target goes to its tokenizer; it keeps its quotation marks."""
        return normalize(text)

    @classmethod
    def learn(
        cls,
        sources: Sequence[str] | None,
        targets: Sequence[str],
        options: SubwordOptions | WordOptions | CharacterOptions,
    ) -> "TokenizerPair":
        """Learn one tokenizer from both sides, or one from each, as the options say.

        Sources that are no texts are None; that of the targets then stands for both.
        """
        texts = [*map(cls.clean_source, sources or ())], [*map(cls.clean_target, targets)]
        if options.joint or sources is None:
            tokenizer = Tokenizer.learn(chain(*texts), options)
            return cls(tokenizer, tokenizer)
        return cls(Tokenizer.learn(texts[0], options), Tokenizer.learn(texts[1], options))
