"""`regard export`: an imported model as a folder of another program."""

import argparse
from pathlib import Path

NAME = "export"
HELP = "write an imported model as a folder of CTranslate2, Hugging Face's transformers or Marian"
DESCRIPTION = (
    "Writes the weights, vocabularies and SentencePiece tokenizers of an imported model as a folder that\n"
    "CTranslate2, transformers (as a MarianMTModel) or Marian loads as its own, with `use.py`, a program of\n"
    "a few lines that translates with it. If the other program is installed, both programs translate some\n"
    "sentences, and the translations are compared."
)
EXAMPLES = """examples:
  regard export opus.regard --to ctranslate2 --out opus-ct2
  regard export opus.regard --to ctranslate2 --out opus-ct2 --probes some.fr
  regard export opus.regard --to huggingface --out opus-hf
  regard export opus.regard --to marian --out opus-marian
"""
_PROGRAMS = {"ctranslate2": "CTranslate2", "huggingface": "transformers", "marian": "pymarian"}
_MAX_PROBES = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="model file, or name of a model")
    parser.add_argument("--to", choices=[*_PROGRAMS], required=True, help="the other program")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the folder to write")
    parser.add_argument(
        "--probes", type=Path, metavar="FILE",
        help=f"sentences that both programs translate, to compare them; at most {_MAX_PROBES} are used",
    )  # fmt: skip


def run(options: argparse.Namespace) -> None:
    """Export the model."""
    from regard.corpus.read import open_corpus
    from regard.importing.export import export_ctranslate2
    from regard.importing.export_huggingface import export_huggingface
    from regard.importing.export_marian import export_marian
    from regard.modelfile import load_model
    from regard.verification.sentences import sentences_for

    model = load_model(options.model)
    if options.probes is None:
        probes = sentences_for(model).texts
    else:
        pairs = open_corpus([options.probes, options.probes]).pairs()
        probes = [pair.source for _, pair in zip(range(_MAX_PROBES), pairs, strict=False)]
    write = {"ctranslate2": export_ctranslate2, "huggingface": export_huggingface, "marian": export_marian}
    parity = write[options.to](model, options.out, [one for one in probes if one.strip()])
    program = _PROGRAMS[options.to]
    if options.to == "marian" and model.options.model_dump().get("positions") == {"kind": "sinusoidal"}:
        print("positions: by Marian's formula, which is not quite that of the paper; scores differ a little")
    print(f"wrote {options.out}; use.py in it translates a sentence")
    if parity is None:
        print(f"{program} is not installed here, so the two programs were not compared")
    else:
        print(
            f"compared with {program}: {parity.num_identical} of {parity.num_sentences} translations "
            f"by greedy search identical, scores at most {parity.largest_difference:.1e} apart"
        )
