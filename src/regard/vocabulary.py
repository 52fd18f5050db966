"""The ids that mean the same in every vocabulary of regard, so that nobody has to look them up.

| ids     | meaning                                                              |
|---------|----------------------------------------------------------------------|
| 0       | `<pad>`: fills up the shorter rows of a batch; never learnt          |
| 1       | `<s>`: what the decoder reads before the first word                  |
| 2       | `</s>`: ends every source and every target                           |
| 3       | `<unk>`: a word outside the vocabulary (word tokenizer only)         |
| 4-259   | `<0x00>` to `<0xFF>`: the bytes of characters outside the vocabulary |
| 260 ... | pieces learnt from the corpus                                        |
"""

PAD, BOS, EOS, UNK = range(4)
FIRST_BYTE = 4
NUM_RESERVED = FIRST_BYTE + 256
RESERVED = ("<pad>", "<s>", "</s>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)))

SPACE = "\u2581"  # how a space is written inside a piece, as in SentencePiece: ▁
UNKNOWN = "\u2047"  # how <unk> reads in text: ⁇
