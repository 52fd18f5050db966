"""How text is cut into pieces: subwords by SentencePiece, or a table of words or characters.

A segmenter works on *marked* text, in which every word, the first one too, has a space in front of it.
It gives ids; the tokenizer around it takes care of the few characters it must not see.
"""

import io
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from regard.errors import TokenizerError
from regard.options.text import CharacterOptions, SubwordOptions, WordOptions
from regard.text.words import words
from regard.vocabulary import BOS, EOS, FIRST_BYTE, NUM_RESERVED, PAD, RESERVED, SPACE, UNK

Ids = NDArray[np.int32]


class Segmenter(Protocol):
    """What the tokenizer asks of a way of cutting."""

    @property
    def pieces(self) -> Sequence[str]:
        """The piece of each id; spaces are written ▁."""

    def segment(self, texts: list[str]) -> list[Ids]:
        """Return the ids of each marked text."""

    def sample(self, texts: list[str], strength: float, seed: int) -> list[Ids]:
        """Return a random segmentation of each marked text, a function of the seed."""

    def to_bytes(self) -> bytes:
        """Return all that is needed to make the same segmenter again."""


class SubwordSegmenter:
    """Subwords by SentencePiece: a unigram language model (Kudo 2018) or BPE (Sennrich et al. 2016)."""

    def __init__(self, model: bytes) -> None:
        self._model = model
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except (RuntimeError, ValueError, OSError) as error:
            raise TokenizerError(f"not a SentencePiece model ({error})") from error
        self.pieces: Sequence[str] = [self._processor.IdToPiece(id) for id in range(len(self._processor))]

    @classmethod
    def learn(cls, texts: Iterable[str], options: SubwordOptions) -> "SubwordSegmenter":
        """Learn the pieces from marked texts."""
        sentences = list(texts)
        vocab_size = options.vocab_size
        while True:
            model = io.BytesIO()
            try:
                sentencepiece.SentencePieceTrainer.train(
                    sentence_iterator=iter(sentences),
                    model_writer=model,
                    model_type=options.kind,
                    vocab_size=vocab_size,
                    hard_vocab_limit=False,
                    byte_fallback=True,
                    split_digits=True,
                    # The normaliser in front is ours: nothing here may change a character.
                    normalization_rule_name="identity",
                    remove_extra_whitespaces=False,
                    add_dummy_prefix=False,
                    pad_id=PAD,
                    bos_id=BOS,
                    eos_id=EOS,
                    unk_id=UNK,
                    max_sentence_length=1 << 16,
                    # The split of the work shows in the last digits of the scores: a fixed
                    # number gives the same model on every machine.
                    num_threads=2,
                    minloglevel=2,
                )
            except RuntimeError as error:
                vocab_size = _mended_size(str(error), vocab_size)
            else:
                return cls(model.getvalue())

    def segment(self, texts: list[str]) -> list[Ids]:
        """Return the best segmentation of each text."""
        # One by one: for a list SentencePiece starts a thread, and on a busy machine that is waited for.
        return [self._processor.encode(text, return_type="numpy") for text in texts]

    def sample(self, texts: list[str], strength: float, seed: int) -> list[Ids]:
        """Return random segmentations: of the lattice (Kudo 2018) or by BPE-dropout (Provilkov et al. 2020).

        `strength` is SentencePiece's alpha: for unigram the smoothing (smaller is wilder), for BPE the
        share of merges left out. SentencePiece seeds its random numbers once per thread, so a thread
        of its own for each call makes the result a function of the seed.
        """
        result: list[Ids] = []

        def work() -> None:
            encode = self._processor.encode
            for text in texts:
                ids = encode(text, return_type="numpy", enable_sampling=True, alpha=strength, nbest_size=-1)
                result.append(ids)

        with _SEED_LOCK:
            sentencepiece.set_random_generator_seed(seed & 0xFFFFFFFF)
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        return result

    def to_bytes(self) -> bytes:
        """Return the SentencePiece model."""
        return self._model


_SEED_LOCK = threading.Lock()


def _mended_size(message: str, vocab_size: int) -> int:
    """Return the largest vocabulary SentencePiece says the text can give, or raise what the user can do."""
    if found := re.search(r"value <= (\d+)", message):
        return int(found[1])
    if found := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        raise TokenizerError(
            f"tokenizer.vocab_size = {vocab_size} is too small for the characters of this corpus; "
            f"use at least {int(found[1]) + 1}"
        )
    raise TokenizerError(f"no tokenizer can be learnt from this text ({message.splitlines()[-1].strip()})")


class TableSegmenter:
    """Whole words or single characters, looked up in a table; what is not there becomes bytes or `<unk>`."""

    def __init__(
        self, learnt: Sequence[str], split: Callable[[str], list[str]], unknown: str = "bytes"
    ) -> None:
        self.pieces: Sequence[str] = [*RESERVED, *learnt]
        self._ids = {piece: id for id, piece in enumerate(learnt, start=NUM_RESERVED)}
        self._split = split
        self._unknown = unknown

    @classmethod
    def learn(cls, texts: Iterable[str], options: WordOptions | CharacterOptions) -> "TableSegmenter":
        """Keep the most frequent words or characters of marked texts."""
        split = SPLITS[options.kind]
        counts = Counter(piece for text in texts for piece in split(text))
        counts.pop(SPACE, None)
        # Ties are broken by the piece, so that the order of the corpus does not matter.
        ranked = sorted(counts, key=lambda piece: (-counts[piece], piece))
        learnt = [SPACE, *ranked[: options.vocab_size - NUM_RESERVED - 1]]
        return cls(learnt, split, getattr(options, "unknown", "bytes"))

    def segment(self, texts: list[str]) -> list[Ids]:
        """Return the ids of each text."""
        ids = ([id for piece in self._split(text) for id in self._look_up(piece)] for text in texts)
        return [np.array(row, np.int32) for row in ids]

    def sample(self, texts: list[str], strength: float, seed: int) -> list[Ids]:
        """Return the one segmentation there is: words and letters leave no choice."""
        return self.segment(texts)

    def to_bytes(self) -> bytes:
        """Return the learnt pieces, one a line; none holds white space."""
        return "\n".join(self.pieces[NUM_RESERVED:]).encode("utf-8", "surrogatepass")

    def _look_up(self, piece: str) -> list[int]:
        if (id := self._ids.get(piece)) is not None:
            return [id]
        if self._unknown == "unk":
            return [UNK]
        space, rest = (piece[0], piece[1:]) if piece[0] == SPACE else ("", piece)
        return [*map(self._ids.__getitem__, space), *(FIRST_BYTE + byte for byte in rest.encode())]


def _split_words(text: str) -> list[str]:
    """Cut before every word, with the one space in front of it, and at every other white character."""
    pieces: list[str] = []
    place = 0
    for start, end in words(text):
        joined = start > place and text[start - 1] == " "
        pieces += text[place : start - joined].replace(" ", SPACE)
        pieces.append((SPACE if joined else "") + text[start:end].replace(" ", SPACE))
        place = end
    return [*pieces, *text[place:].replace(" ", SPACE)]


def _split_characters(text: str) -> list[str]:
    return list(text.replace(" ", SPACE))


SPLITS: dict[str, Callable[[str], list[str]]] = {"word": _split_words, "character": _split_characters}
