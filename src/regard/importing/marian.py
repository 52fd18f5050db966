"""A model of Marian itself: an `.npz` or `.bin` file, its vocabularies, and its SentencePiece models if any.

The decoder starts from a vector of zeros.
"""

import re
from collections.abc import Callable
from pathlib import Path

import sentencepiece

from regard.contract import Floats
from regard.errors import ForeignModelError
from regard.importing.folder import Folder, languages_of, origin
from regard.importing.marian_bin import MarianBin, is_marian_bin
from regard.importing.marian_file import MarianFile, plain, read_settings
from regard.importing.marian_recurrent import read_recurrent
from regard.importing.marian_transformer import read_transformer
from regard.importing.npz import Npz
from regard.importing.weights import MAX_SPLIT, Vocabulary, frozen_start
from regard.modelfile import ModelFile
from regard.options.model import RecurrentOptions, TransformerOptions
from regard.text.tokenizer import TokenizerPair

_Reader = Callable[
    [MarianFile, Vocabulary, Vocabulary], tuple[RecurrentOptions | TransformerOptions, dict[str, Floats]]
]
_READERS: dict[str, tuple[_Reader, list[str]]] = {
    "transformer": (read_transformer, ["biases of keys and values folded", "positions as a table"]),
    **dict.fromkeys(("amun", "nematus", "s2s"), (read_recurrent, ["update gates turned round"])),
}


def find_marian(path: Path) -> Path | None:
    """Return the model that a path names: an `.npz` or `.bin`, or that of a folder; None if there is none."""
    if path.is_file():
        return path if path.suffix == ".npz" or is_marian_bin(path) else None
    found = [one for one in sorted(path.glob("*.npz")) if ".optimizer." not in one.name and one.is_file()]
    found = found or [one for one in sorted(path.glob("*.bin")) if is_marian_bin(one)]
    if len(found) > 1:
        raise ForeignModelError(f"{path}: has {len(found)} models; name one, such as {found[0]}")
    return found[0] if found else None


def read_marian(path: Path) -> ModelFile:
    """Return the model of an `.npz` or `.bin` file; its vocabularies must be in the same folder."""
    folder, file = Folder(path.parent), MarianFile.of(Npz(path) if path.suffix == ".npz" else MarianBin(path))
    design = file.word("type", "?")
    if design not in _READERS:
        file.npz.refuse(f"its type is {design!r:.40}, which is none of {', '.join(_READERS)}")
    names = _vocabulary_files(folder, path.name)
    source, target = (
        _vocabulary(folder, name, size) for name, size in zip(names, file.whole("dim-vocabs", 2), strict=True)
    )
    read, changes = _READERS[design]
    options, weights = read(file, source, target)
    joint = source.pieces == target.pieces
    tokenizers = []
    for name, own, vocabulary in zip(names, ("source.spm", "target.spm"), (source, target), strict=True):
        spm = name if name.endswith(".spm") else own if folder.has(own) else None
        tokenizers.append(folder.tokenizer(spm, vocabulary, joint))
    languages = languages_of(str(path.resolve())) or (None, None)
    converted = ["ids in our order", *changes]
    return ModelFile(
        options=options,
        weights=weights,
        tokenizers=TokenizerPair(*tokenizers),
        source_language=languages[0],
        target_language=languages[1],
        config={"imported": file.settings},
        card=origin(folder, path.name, "Marian", path.name, folder.licence(), converted),
        split_above=MAX_SPLIT,
        frozen=frozen_start(weights),
    )


def _vocabulary_files(folder: Folder, model: str) -> list[str]:
    """Return the names of both vocabularies, as a file beside the model names them, or what is there."""
    for name in (f"{model}.decoder.yml", "decoder.yml", f"{model}.yml"):
        if folder.has(name):
            given = read_settings(folder.text(name)).get("vocabs", [])
            named = [re.split(r"[/\\]", one)[-1] for one in given]
            if len(named) == 2 and all(map(str.isprintable, named)):
                return named
            folder.refuse(name, f"names {len(named)} vocabularies and should name 2")
    own = ("source.spm", "target.spm")
    found = [
        one.name
        for one in sorted(folder.path.iterdir())
        if one.name not in own and (one.suffix == ".spm" or re.search(r"vocab.*\.(yml|yaml|json)$", one.name))
    ]
    if len(found) == 2 and [name[:3] for name in sorted(found)] == ["src", "trg"]:
        return sorted(found)  # as the models of Firefox call them
    if len(found) != 1:
        folder.refuse("decoder.yml", f"is missing, and there are {len(found)} vocabularies; name both in it")
    return found * 2


def _vocabulary(folder: Folder, name: str, size: int) -> Vocabulary:
    """Return a vocabulary of so many pieces; ids without a piece are never said."""
    if not folder.has(name):
        folder.refuse(name, "is missing; put the vocabularies of the model beside it")
    if name.endswith(".spm"):
        try:
            model = sentencepiece.SentencePieceProcessor(model_proto=folder.bytes(name))
        except (RuntimeError, ValueError, OSError) as error:
            folder.refuse(name, f"is no SentencePiece model ({error!s:.60})")
        pieces = [model.id_to_piece(id) for id in range(model.vocab_size())]
        end, unknown = model.eos_id(), model.unk_id()
    else:
        pieces = _listed(folder, name)
        end, unknown = (
            pieces.index(piece) if piece in pieces else old_id if pieces[old_id : old_id + 1] in old else -1
            for piece, old_id, old in (("</s>", 0, (["eos"], [""])), ("<unk>", 1, (["UNK"], [""])))
        )
    pieces = (pieces + [""] * size)[:size]
    if not (0 <= end < size and 0 <= unknown < size):
        folder.refuse(name, "has no </s> or no <unk>")
    other = tuple(id for id, piece in enumerate(pieces) if piece in ("", "<s>", "<pad>"))
    return Vocabulary(pieces, None, end, unknown, other)


def _listed(folder: Folder, name: str) -> list[str]:
    """Return the pieces of a vocabulary by id: of a JSON or YAML file of pieces with ids, or a list."""
    text = folder.text(name)
    if not name.endswith((".yml", ".yaml", ".json")):
        return text.removesuffix("\n").split("\n")
    if text.lstrip().startswith("{"):
        pairs = [*folder.json(name).items()]
    else:
        entries = text.replace("\r\n", "\n").replace("\n: ", ": ").split("\n")
        pairs = [_pair(entry) for entry in entries if entry not in ("", "---")]
    ids: dict[str, int] = {}
    for piece, id in pairs:
        if not re.fullmatch(r"\d{1,6}", str(id)):
            folder.refuse(name, f"is no list of pieces with ids (at {piece!r:.40})")
        ids[piece] = int(id)
    pieces = [""] * (max(ids.values(), default=-1) + 1)
    for piece, number in ids.items():
        pieces[number] = piece
    return pieces


def _pair(entry: str) -> tuple[str, str]:
    """Return piece and id of an entry of YAML; a long piece follows a question mark."""
    piece, colon, id = entry.removeprefix("? ").rpartition(":")
    return (plain(piece.strip()), id.strip()) if colon else (entry, "")
