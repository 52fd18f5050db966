"""A Transformer of ours as a folder of CTranslate2, with its tokenizer and the lines of code that use it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar, cast

from regard.alignment.reading import USUAL_READING
from regard.engines import version
from regard.errors import ConfigError
from regard.fast.convert import convert, unfit
from regard.files import writing_folder
from regard.modelfile import ModelFile
from regard.options.model import ModelOptions, RecurrentOptions, TransformerOptions
from regard.text.imported import ImportedTokenizer
from regard.text.tokenizer import TokenizerPair
from regard.verification.parity import Parity, compare_with_ctranslate2

AnyOptions = TypeVar("AnyOptions", bound=RecurrentOptions | TransformerOptions)
MARK = "regard.json"
"""The file by which an exported folder is known as ours; in it is the parity report."""
ONLY_IN_TRAINING = {
    "init", "dropout", "attention_dropout", "feed_forward_dropout", "word_dropout", "teacher", "variational",
    "recurrent_dropout", "weight_dropout",
}  # fmt: skip
_USE = """import ctranslate2, sentencepiece
source = sentencepiece.SentencePieceProcessor(model_file="source.spm")
target = sentencepiece.SentencePieceProcessor(model_file="target.spm")
pieces = BEFORE + source.encode("Bonjour.", out_type=str)
print(target.decode(ctranslate2.Translator(".").translate_batch([pieces])[0].hypotheses[0]))
"""


def export_ctranslate2(model: ModelFile, out: Path, probes: list[str]) -> Parity | None:
    """Write an imported model as a folder of CTranslate2; return how it translates there, where installed.

    The tokens of the folder are the pieces of the model's SentencePiece tokenizers.
    """
    tokenizers = model.tokenizers
    if (why := unfit(model.options)) is not None:
        raise ConfigError(why)
    files = sentencepiece_models(tokenizers)
    converted = convert(model.options, model.weights, model.reading or USUAL_READING)
    names = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "decoder_start_token": "<s>"}
    config = json.loads(converted.files["config.json"]) | names | {"add_source_eos": converted.end}
    files |= {"model.bin": converted.files["model.bin"], "config.json": json.dumps(config, indent=1).encode()}
    for side, tokenizer in (("source", tokenizers.source), ("target", tokenizers.target)):
        files[f"{side}_vocabulary.json"] = json.dumps(list(tokenizer.pieces)).encode()
    before = tokenizers.source.before
    files["use.py"] = _USE.replace("BEFORE + ", f"[{before!r}] + " if before else "").encode()
    parity = None if version() is None else _replay(model, files, probes)
    with writing_folder(out, MARK) as folder:
        for name, data in files.items():
            (folder / name).write_bytes(data)
        (folder / MARK).write_text(about(model, parity), encoding="utf-8")
    return parity


def sentencepiece_models(tokenizers: TokenizerPair) -> dict[str, bytes]:
    """Return the files of the SentencePiece models of both sides; raise an error where there are none."""
    sides = {"source.spm": tokenizers.source, "target.spm": tokenizers.target}
    files = {
        name: one.model for name, one in sides.items() if isinstance(one, ImportedTokenizer) and one.model
    }
    if len(files) < 2:
        raise ConfigError(
            "only imported models can be exported: the tokenizer of this one does more than SentencePiece"
        )
    return files


def refuse_unless_like(options: ModelOptions, usual: AnyOptions, free: set[str], program: str) -> AnyOptions:
    """Return the options of a model; raise an error for one that differs from the usual and is not free."""
    given = options.model_dump(exclude=free | ONLY_IN_TRAINING)
    fixed = usual.model_dump(exclude=free | ONLY_IN_TRAINING)
    for name in fixed | given:
        if given.get(name) != fixed.get(name):
            raise ConfigError(f"{program} cannot express {name} = {given.get(name)!r:.60}")
    return cast("AnyOptions", options)


def readme(model: ModelFile, front: list[str], use: str) -> bytes:
    """Return a model card with what is known of the model's origin."""
    imported = model.card.get("imported")
    licence = imported.get("licence") if isinstance(imported, Mapping) else None
    front = [*front, *([f"license: {json.dumps(str(licence))}"] if licence else [])]
    languages = f"{model.source_language or '?'} to {model.target_language or '?'}"
    lines = [
        "---",
        *front,
        "---",
        "",
        f"{name_of(model)}, {languages}. Exported by regard. To translate:",
        "",
    ]
    return "\n".join([*lines, "```python", use + "```", ""]).encode()


def name_of(model: ModelFile) -> str:
    """Return what a model is called where it comes from."""
    imported = model.card.get("imported")
    return str(imported.get("name")) if isinstance(imported, Mapping) else "a model"


def about(model: ModelFile, parity: Parity | None) -> str:
    """Return what a folder says of itself: the model's card, and how it translates in the other program."""
    told = {"card": model.card, "parity": None if parity is None else vars(parity)}
    return json.dumps(told, indent=1, ensure_ascii=False)


def _replay(model: ModelFile, files: dict[str, bytes], probes: list[str]) -> Parity:
    """Translate the probes in both programs by greedy search."""
    import ctranslate2

    translator = ctranslate2.Translator("exported", files=files, compute_type="float32", intra_threads=1)
    return compare_with_ctranslate2(model, translator, probes)
