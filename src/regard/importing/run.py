"""From a folder of another program to a model file."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from pathlib import Path

import numpy as np

import regard
from regard.contract import Batch, Ragged, make_batch
from regard.corpus.language_codes import is_language
from regard.engines import NUMPY
from regard.errors import ForeignModelError, TokenizerError
from regard.importing.ctranslate2 import MODEL, PACKAGE, read_argos_package, read_ctranslate2_folder
from regard.importing.huggingface import is_marian_folder, read_marian_folder
from regard.importing.marian import find_marian, read_marian
from regard.importing.marian_bin import is_marian_bin
from regard.modelfile import ModelFile, save_model
from regard.progress import Progress, unshown
from regard.runtime.build import build_engine
from regard.runtime.recurrent import tells_posterior
from regard.training.reading import choose_reading
from regard.translate.translator import IN_THIS_THREAD, Translator

_MAX_PAIRS = 600
_MAX_TOKENS = 8000  # of the targets, for the choice of a head: more change it seldom and cost seconds
_ROWS = 16
_PICKLES = (".pt", ".pth", ".ckpt")


@dataclass(frozen=True)
class Imported:
    """A model file that was written, and from how many pairs its aligning head was chosen."""

    out: Path
    model: ModelFile
    num_pairs: int


def import_model(
    path: Path,
    out: Path,
    *,
    pairs: Iterable[tuple[str, str]] | None = None,
    texts: Iterable[str] | None = None,
    languages: Sequence[str] | None = None,
    name: str | None = None,
    to: str | None = None,
    on_progress: Progress = unshown,
) -> Imported:
    """Read a model of another program and write it as a model file.

    The head that aligns is chosen from `pairs` of source and translation, or from `texts`, which the model
    then translates itself. `languages` are source and target, for a folder that does not name them. `name` is
    what the model is called where it comes from, if the folder has another name. A multilingual model
    translates into the language `to`, one of those it names.
    """
    on_progress("reading the model", 0, 3)
    model = read_model(path)
    if name is not None:
        model = _named(model, name)
    if to is not None:
        try:
            model = model.aimed_at(to)
        except TokenizerError as error:
            raise ForeignModelError(f"{path}: {error}") from None
    if languages is not None:
        model = replace(model, source_language=languages[0], target_language=languages[1])
    on_progress("choosing the head that aligns", 1, 3)
    chosen = [pair for pair in islice(pairs or (), _MAX_PAIRS) if all(map(str.strip, pair))]
    if not chosen and texts is not None:
        chosen = _translated(model, list(islice(texts, _MAX_PAIRS)))
    if chosen:
        posterior = tells_posterior(model.options)
        engine = build_engine(model.options, model.weights, posterior=posterior)
        model = replace(model, reading=choose_reading(engine, _batches(model, chosen), _MAX_TOKENS))
    model = replace(model, card=_dated(model))
    on_progress("writing the model file", 2, 3)
    save_model(out, model)
    on_progress("writing the model file", 3, 3)
    return Imported(out, model, len(chosen))


def read_model(path: Path) -> ModelFile:
    """Return the model of a file or folder of another program."""
    if not path.exists():
        raise ForeignModelError(f"{path}: no such file or folder; check the name")
    if path.suffix in _PICKLES:
        raise ForeignModelError(
            f"{path}: is a checkpoint that only the program that wrote it can open; convert it there to "
            "CTranslate2 or safetensors"
        )
    if is_marian_folder(path):
        return read_marian_folder(path)
    if (path / MODEL).is_file() and not is_marian_bin(path / MODEL):
        return read_ctranslate2_folder(path)
    if path.suffix == ".argosmodel" or (path / PACKAGE).is_file():
        return read_argos_package(path)
    if (file := find_marian(path)) is not None:
        return read_marian(file)
    raise ForeignModelError(
        f"{path}: is not a model that can be imported; give an .argosmodel, .npz or .bin of Marian, or a "
        "folder with model.safetensors, pytorch_model.bin, model.bin or an .npz"
    )


def _named(model: ModelFile, name: str) -> ModelFile:
    """Return the model with this name in its card, and with the languages of the name if it has none."""
    card = model.card | {"imported": model.card["imported"] | {"name": name}}
    found = name.partition("@")[0].split("-")[-2:]
    if model.source_language is None and len(found) == 2 and all(map(is_language, found)):
        return replace(model, card=card, source_language=found[0], target_language=found[1])
    return replace(model, card=card)


def _dated(model: ModelFile) -> dict[str, object]:
    return {"created": date.today().isoformat(), "regard": regard.__version__, **model.card}


def _translated(model: ModelFile, texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return texts with the model's own translations."""
    texts = [text for text in texts if text.strip()]
    translator = Translator.of(model, pool=IN_THIS_THREAD, compute=NUMPY)
    found = translator.translate(texts, beam_size=1)
    return [(text, one.text) for text, one in zip(texts, found, strict=True) if one.text.strip()]


def _batches(model: ModelFile, pairs: Sequence[tuple[str, str]]) -> Iterator[Batch]:
    """Yield the pairs in small batches."""
    tokenizers, longest = model.tokenizers, model.split_above or 256
    sources = tokenizers.source.encode_batch([tokenizers.clean_source(source) for source, _ in pairs])
    targets = tokenizers.target.encode_batch([tokenizers.clean_target(target) for _, target in pairs])
    fitting = [n for n in range(len(pairs)) if len(sources[n]) < longest and len(targets[n]) < longest]
    for start in range(0, len(fitting), _ROWS):
        rows = fitting[start : start + _ROWS]
        yield make_batch(
            Ragged.of([sources[n] for n in rows]), Ragged.of([targets[n] for n in rows]), np.array(rows)
        )
