"""The tokenizer of an imported OPUS-MT model against that of transformers: ids, and where each piece lies in the text.

Takes a folder with the tokenizer, vocabulary and config.json of an OPUS-MT model, and texts. Both SentencePiece models
read all lines. A span lies right if the piece is in SentencePiece's normalisation of its characters; so only spans of
characters that become several, divided between two pieces, can lie wrong. `--fuzz` adds lines of random characters. Needs transformers and torch.

    python benchmarks/import_tokenizer.py opus-mt-tc-big-fr-en text.fr text.en --lines 2500 --fuzz 2500
"""

import argparse
import random
import tempfile
from itertools import islice
from pathlib import Path

import sentencepiece
from import_marian import train

from regard.importing.run import read_model
from regard.text.imported import ImportedTokenizer
from regard.vocabulary import NUM_RESERVED, SPACE, UNK


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--lines", type=int, default=2500, help="of each text")
    parser.add_argument("--fuzz", type=int, default=2500)
    options = parser.parse_args()
    texts = {path.name: lines_of(path, options.lines) for path in options.texts}
    texts["random characters"] = [fuzz(random.Random(number)) for number in range(options.fuzz)]
    with tempfile.TemporaryDirectory() as temporary:
        theirs = train(options.folder, Path(temporary) / "theirs", "swish", [("a", "a")], 0)
        model = read_model(theirs.folder)
        print("| text | lines | pieces | lines whose ids differ | spans that lie wrong |")
        print("|---|---|---|---|---|")
        for name, lines in texts.items():
            for side, ours in (("source", model.tokenizers.source), ("target", model.tokenizers.target)):
                own = sentencepiece.SentencePieceProcessor(model_file=str(options.folder / f"{side}.spm"))
                print(
                    f"| {name}, {side}.spm | {len(lines):,} | {row(ours, own, theirs.tokenizer, side, lines)} |"
                )


def lines_of(path: Path, count: int) -> list[str]:
    with path.open(encoding="utf-8") as file:
        return [line.rstrip("\n") for line in islice(file, count)]


def fuzz(noise: random.Random) -> str:
    """Return random characters of all planes, often those that NFKC changes, with spaces of all kinds."""
    ranges = [(32, 127), (160, 0x250), (0x300, 0x600), (0x2000, 0x2070), (0x3000, 0x3100), (0xFB00, 0xFB50),
              (0xFF00, 0xFFF0), (0x1F600, 0x1F650), (0xAC00, 0xD7A4), (0x1D400, 0x1D500)]  # fmt: skip
    return "".join(chr(noise.randrange(*noise.choice(ranges))) for _ in range(noise.randrange(1, 60)))


def row(
    ours: ImportedTokenizer,
    own: sentencepiece.SentencePieceProcessor,
    theirs: object,
    side: str,
    lines: list[str],
) -> str:
    """Return how many pieces there are, lines whose ids differ, and spans that lie wrong."""
    num_pieces = num_lines = num_spans = 0
    for line in lines:
        ids = ours.encode_batch([line])[0].tolist()
        named = {"text_target": line} if side == "target" else {"text": line}
        wanted = theirs(**named).input_ids[:-1]
        pieces = ["<unk>" if id == UNK else ours.pieces[id] for id in ids]
        num_lines += theirs.convert_tokens_to_ids(pieces) != wanted
        num_pieces += len(ids)
        covered = 0
        for id, (first, last) in zip(ids, ours.spans(ids, line), strict=True):
            if not covered <= first <= last <= len(line):
                num_spans += 1
            elif id >= NUM_RESERVED and last > first:
                said = "".join(own.normalize(line[first:last]).replace(SPACE, " ").split())
                num_spans += "".join(ours.pieces[id].replace(SPACE, " ").split()) not in said
            covered = max(covered, first)
    return f"{num_pieces:,} | {num_lines} | {num_spans}"


if __name__ == "__main__":
    main()
