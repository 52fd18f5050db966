"""The tokenizer of an imported model: another program's SentencePiece model with a vocabulary beside it.

It gives the ids that the other program gives. So it is not lossless: SentencePiece normalises by NFKC and
joins white space, and a piece outside the vocabulary becomes `<unk>`. Spans still lie in the text as it was.
"""

import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from regard.errors import TokenizerError
from regard.options.text import ImportedOptions
from regard.text.segment import Ids
from regard.text.tokenizer import FORMAT, Tokenizer
from regard.text.words import Span
from regard.vocabulary import FIRST_BYTE, NUM_RESERVED, RESERVED, SPACE, UNK

# The target language of a multilingual model stands before the text and is a piece of its own.
_LANGUAGE = re.compile(r">>[^<>\s]+<<")

_MAX_PIECES = 1_000_000


class ImportedTokenizer(Tokenizer):
    """Another program's tokenizer with our ids: pieces by SentencePiece or by spaces, then a vocabulary.

    The reserved ids are there, but only with `has_bytes` a character outside the vocabulary becomes bytes.
    """

    def __init__(
        self, learnt: Sequence[str], model: bytes, joint: bool, has_bytes: bool = False, to: str = ""
    ) -> None:
        """Take the pieces that follow the reserved ids, and a SentencePiece model; none: spaces separate.

        `to` is the language of all translations of a multilingual model.
        """
        if not 0 < len(learnt) <= _MAX_PIECES or len(set(learnt)) < len(learnt) or "" in learnt:
            raise TokenizerError(
                "the vocabulary of the tokenizer is empty or has a piece twice; it may be damaged"
            )
        size = NUM_RESERVED + len(learnt)
        self.options = ImportedOptions(vocab_size=size, joint=joint, bytes=has_bytes, to=to)
        self.pieces = [*RESERVED, *learnt]
        self.model = model
        self.before = f">>{to}<<" if to else ""
        self._opens = False
        self._ids = {piece: id for id, piece in enumerate(learnt, NUM_RESERVED)}
        if has_bytes:
            self._ids |= {RESERVED[id]: id for id in range(FIRST_BYTE, NUM_RESERVED)}
        if to and to not in self.languages:
            known = f"into {', '.join(self.languages)}" if self.languages else "into one language only"
            raise TokenizerError(f"the model does not translate into {to!r:.20}, but {known}")
        if model:
            try:
                self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
            except (RuntimeError, ValueError, OSError) as error:
                raise TokenizerError(f"not a SentencePiece model ({error!s:.80})") from None
        self._surfaces = self._reserved_surfaces() + [
            self._surface_of(piece).encode("utf-8", "surrogatepass") for piece in learnt
        ]

    @property
    def learnt(self) -> Sequence[str]:
        """The pieces after the reserved ids."""
        return self.pieces[NUM_RESERVED:]

    @property
    def can_sample(self) -> bool:
        """Whether a text can be cut in more than one way."""
        return False

    @property
    def languages(self) -> list[str]:
        """The target languages of a multilingual model, which stand as `>>fra<<` before a source."""
        return sorted(piece[2:-2] for piece in self.learnt if _LANGUAGE.fullmatch(piece))

    def aimed_at(self, to: str) -> "ImportedTokenizer":
        """Return the tokenizer of the sources that are translated into one of the languages."""
        options = self.options
        assert isinstance(options, ImportedOptions)
        return ImportedTokenizer(self.learnt, self.model, options.joint, options.bytes, to)

    @cached_property
    def information_V(self) -> NDArray[np.float32]:
        """How much each piece tells; nothing is lost with one that names a language."""
        told_V = super().information_V.copy()
        told_V[[id for id, piece in enumerate(self.pieces) if _LANGUAGE.fullmatch(piece)]] = 0
        return told_V

    def encode_batch(self, texts: Sequence[str]) -> list[Ids]:
        """Return the ids of each text."""
        return [np.array([id for id, _ in self._cut(text)], np.int32) for text in texts]

    def sample_batch(self, texts: Sequence[str], strength: float, seed: int) -> list[Ids]:
        """Return the one segmentation there is."""
        return self.encode_batch(texts)

    def spans(self, ids: Sequence[int], text: str) -> list[Span]:
        """Return the characters each piece covers, without the space before a word."""
        spans = [span for _, span in self._cut(text)]
        if len(spans) != len(ids):
            raise TokenizerError(f"{len(ids)} pieces are not those of the text {text!r:.40}")
        return spans

    def to_bytes(self) -> bytes:
        """Return the whole tokenizer as bytes: a line of JSON with the vocabulary, then SentencePiece's."""
        options = self.options.model_dump()
        header = {"format": FORMAT, "options": options, "pieces": list(self.learnt)}
        return json.dumps(header).encode() + b"\n" + self.model

    def _surface_of(self, piece: str) -> str:
        """Return what a piece gives to a text: without SentencePiece each is a word."""
        return piece.replace(SPACE, " ") if self.model else f" {piece}"

    def _cut(self, text: str) -> list[tuple[int, Span]]:
        """Return the pieces of a text as ids, each with its characters."""
        language = _LANGUAGE.match(text)
        start = language.end() if language and language[0] in self._ids else 0
        found = [(self._ids[text[:start]], (0, start))] if start else []
        if self.before and text and not start:
            found = [(self._ids[self.before], (0, 0))]
        rest = text[start:].encode("utf-8", "replace").decode()  # lone surrogates have no UTF-8
        words: Iterable[tuple[str, Span]]
        if not self.model:
            words = ((one[0], one.span()) for one in re.finditer(r"\S+", rest))
        else:
            cut = self._processor.encode(rest, return_type="offset_mapping")
            words = zip(cut["pieces"], cut["offsets"], strict=True)
        for piece, (first, last) in words:
            while first < last - 1 and rest[first].isspace():
                first += 1
            found.append((self._ids.get(piece, UNK), (start + first, start + last)))
        return found
