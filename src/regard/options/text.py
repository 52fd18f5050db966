"""Options of the tokenizer and of batches."""

from operator import not_
from typing import Annotated, Literal

from pydantic import (
    Field,
)

from regard.options.section import Options, named
from regard.vocabulary import NUM_RESERVED


class SubwordOptions(Options):
    """Subwords, learnt from the corpus with SentencePiece."""

    kind: Literal["unigram", "bpe"] = "unigram"
    """`unigram` (Kudo 2018) or `bpe` (Sennrich et al. 2016)."""
    vocab_size: int = Field(8000, gt=NUM_RESERVED, le=1_000_000)
    """Vocabulary size, including the reserved ids; a small corpus may give fewer pieces."""
    joint: bool = True
    """One vocabulary for both languages, or one for each."""
    elisions: bool = False
    """Begin a new word after an elided one, as in *l'espagnol* or *qu'elle*: the rest then has the pieces
    that it has elsewhere."""


class WordOptions(Options):
    """Whole words, as in the first papers."""

    kind: Literal["word"] = "word"
    """Whole words."""
    vocab_size: int = Field(30_000, gt=NUM_RESERVED, le=1_000_000)
    """Vocabulary size, including the reserved ids; the most frequent words are kept."""
    joint: bool = False
    """One vocabulary for both languages, or one for each."""
    unknown: Literal["bytes", "unk"] = "bytes"
    """A word outside the vocabulary becomes its bytes (nothing is lost) or `<unk>` (as in the papers)."""


class CharacterOptions(Options):
    """Single characters."""

    kind: Literal["character"] = "character"
    """Single characters."""
    vocab_size: int = Field(4000, gt=NUM_RESERVED, le=1_000_000)
    """Vocabulary size, including the reserved ids; the most frequent characters are kept, others become
    bytes."""
    joint: bool = True
    """One vocabulary for both languages, or one for each."""


class ImportedOptions(Options):
    """Pieces of another program's tokenizer; it comes with an imported model and is not learnt."""

    kind: Literal["imported"] = "imported"
    """As in the program that the model comes from."""
    vocab_size: int = Field(gt=NUM_RESERVED)
    """Vocabulary size, including the reserved ids."""
    joint: bool
    """One vocabulary for both languages, or one for each."""
    bytes: bool = Field(False, exclude_if=not_)
    """Characters outside the vocabulary become bytes, not `<unk>`."""
    to: str = Field("", exclude_if=not_)
    """Language of the translations of a multilingual model: `>>to<<` is put before each source."""


TokenizerOptions = Annotated[
    SubwordOptions | WordOptions | CharacterOptions, Field(discriminator="kind"), named("unigram")
]


class BatchOptions(Options):
    """Size of the training batches."""

    batch_tokens: int = Field(4096, ge=1)
    """Maximum number of tokens in a batch, including padding, on the longer of the two sides."""
    max_tokens: int = Field(256, ge=1)
    """Pairs with more tokens than this on either side are removed; their number is reported."""
