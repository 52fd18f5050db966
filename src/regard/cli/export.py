"""`regard export`: an imported model as a folder of another program."""

import argparse
from pathlib import Path

NAME = "export"
HELP = "write an imported model as a CTranslate2 folder"
DESCRIPTION = (
    "Writes the weights, vocabularies and SentencePiece tokenizers of an imported model as a folder that\n"
    "CTranslate2 loads as its own, with `use.py`, a program of a few lines that translates with it. If\n"
    "CTranslate2 is installed, some sentences are translated by both programs and compared."
)
EXAMPLES = """examples:
  regard export opus.regard --to ctranslate2 --out opus-ct2
  regard export opus.regard --to ctranslate2 --out opus-ct2 --probes some.fr
"""
_MAX_PROBES = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="model file, or name of a model")
    parser.add_argument("--to", choices=["ctranslate2"], required=True, help="the other program")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the folder to write")
    parser.add_argument(
        "--probes", type=Path, metavar="FILE",
        help=f"sentences that both programs translate, to compare them; at most {_MAX_PROBES} are used",
    )  # fmt: skip


def run(options: argparse.Namespace) -> None:
    """Export the model."""
    from regard.corpus.read import open_corpus
    from regard.importing.export import export_ctranslate2
    from regard.modelfile import load_model
    from regard.verification.sentences import sentences_for

    model = load_model(options.model)
    if options.probes is None:
        probes = sentences_for(model).texts
    else:
        pairs = open_corpus([options.probes, options.probes]).pairs()
        probes = [pair.source for _, pair in zip(range(_MAX_PROBES), pairs, strict=False)]
    parity = export_ctranslate2(model, options.out, [one for one in probes if one.strip()])
    print(f"wrote {options.out}; use.py in it translates a sentence")
    if parity is None:
        print("CTranslate2 is not installed here, so the two programs were not compared")
    else:
        print(
            f"compared with CTranslate2: {parity.num_identical} of {parity.num_sentences} translations "
            f"by greedy search identical, scores at most {parity.largest_difference:.1e} apart"
        )
