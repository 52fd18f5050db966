"""`regard import`: a model of another program as a model file."""

import argparse
from pathlib import Path

NAME = "import"
HELP = "make a model file from a model of another program, such as OPUS-MT"
DESCRIPTION = (
    "Reads a model and writes a model file that all commands can use. It reads a MarianMTModel folder\n"
    "of Hugging Face (config.json, model.safetensors or pytorch_model.bin, source.spm, target.spm,\n"
    "vocab.json), a Transformer of Marian itself (.npz and vocabularies), a CTranslate2 folder (model.bin\n"
    "and vocabularies), or an Argos package. The other program is not needed. OWNER/NAME fetches a model\n"
    "from huggingface.co, if there is no such folder and the extra [hub] is installed; nothing else\n"
    "downloads anything."
)
# What parts of the names of Creative Commons licences mean.
_FORBIDDEN = {"nc": "commercial use", "nd": "sharing changed copies, and an imported file is one"}
EXAMPLES = """examples:
  regard import opus-mt-fr-en --out opus.regard --pairs some.fr some.en
  regard import opus-mt-fr-en --out opus.regard --text some.fr
  regard import translate-fr_en.argosmodel --out argos.regard
  regard import Helsinki-NLP/opus-mt-fr-en --out opus.regard
  regard import marian/model.npz --out marian.regard
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "path", type=Path, metavar="MODEL", help="folder or package of the other program, or OWNER/NAME"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the model file to write")
    parser.add_argument(
        "--pairs", type=Path, nargs=2, metavar=("SOURCE", "TARGET"),
        help="some hundred sentences and their translations, to choose the attention head that aligns words",
    )  # fmt: skip
    parser.add_argument(
        "--text", type=Path, metavar="FILE",
        help="the same from a text in the source language, which the model translates itself",
    )  # fmt: skip
    parser.add_argument(
        "--languages",
        nargs=2,
        metavar=("FROM", "TO"),
        help="language codes, if the model does not name them",
    )
    parser.add_argument(
        "--to", metavar="LANGUAGE",
        help="the language that a multilingual model translates into, by its own code, such as fra",
    )  # fmt: skip


def run(options: argparse.Namespace) -> None:
    """Import the model."""
    from regard.cli.progress import progress
    from regard.corpus.read import open_corpus
    from regard.design import design
    from regard.files import refuse_to_replace
    from regard.importing.hub import fetch, is_hub_name
    from regard.importing.run import import_model
    from regard.text.imported import ImportedTokenizer

    refuse_to_replace([options.out], [*(options.pairs or ()), options.text])
    pairs = options.pairs and ((one.source, one.target) for one in open_corpus(options.pairs).pairs())
    texts = None
    if options.text is not None:
        texts = (one.source for one in open_corpus([options.text, options.text]).pairs())
    path, name = options.path, None
    if is_hub_name(path):
        folder = fetch(path.as_posix())
        path, name = folder, f"{path.as_posix()}@{folder.name[:12]}"
    with progress() as show:
        imported = import_model(
            path,
            options.out,
            pairs=pairs,
            texts=texts,
            languages=options.languages,
            name=name,
            to=options.to,
            on_progress=show,
        )
    model, card = imported.model, imported.model.card["imported"]
    languages = f"{model.source_language or '?'} to {model.target_language or '?'}"
    print(f"wrote {options.out}: {card['name']}, {languages}, {design(model.options).description}")
    licence = card["licence"]
    print(f"licence: {licence or 'not stated in the folder; see where the model comes from'}")
    for part, what in _FORBIDDEN.items():
        if licence and part in licence.lower().split("-"):
            print(f"this licence forbids {what}; that holds for {options.out} too")
    source = model.tokenizers.source
    if options.to is None and isinstance(source, ImportedTokenizer) and source.languages:
        print(
            f"multilingual: {', '.join(source.languages)}; choose one with --to, or begin texts with >>code<<"
        )
    if design(model.options).size("cross") == (1, 1):
        print("word alignment: the weights of its attention")
    elif model.reading is None:
        print("word alignment: mean of the last layer but one; --pairs or --text chooses a head")
    else:
        print(f"word alignment: chosen from {imported.num_pairs:,} pairs; `regard info` says which head")
