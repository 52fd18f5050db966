"""What all models of Marian have: a file with the settings in it, embeddings and an output matrix."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from regard.contract import Floats, Ids
from regard.importing.marian_bin import MarianBin
from regard.importing.npz import Npz
from regard.importing.weights import Vocabulary

SETTINGS = "special:model.yml"
"""The array with the settings of a model."""
NEMATUS = "decoder_c_tt"
"""An array that is only in files with the names of Nematus, which Marian uses for `amun` and `nematus`."""
_NEEDED = {
    "right-left": ("false",),
    "ulr": ("false",),
    "factors-dim-emb": ("0",),
    "lemma-dim-emb": ("0",),
}
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_ESCAPED = dict(zip("0abtnvfreN_LP", "\0\a\b\t\n\v\f\r\x1b\x85\xa0\u2028\u2029", strict=True))

Settings = dict[str, list[str]]
Arrays = Iterator[tuple[str, Floats]]


@dataclass(frozen=True)
class Export:
    """What a model of ours becomes in an `.npz`, its embeddings and its output layer aside."""

    output: str
    """The name of the output layer."""
    order: Ids
    """Where each number of their embeddings is in ours."""
    settings: dict[str, Any]
    layers: Arrays


@dataclass(frozen=True)
class MarianFile:
    """An `.npz` or `.bin` file and its settings."""

    npz: Npz | MarianBin
    settings: Settings
    renamed: Mapping[str, str] = field(default_factory=dict)
    """The names in the file of arrays that have another one there."""

    @classmethod
    def of(cls, npz: Npz | MarianBin) -> "MarianFile":
        """Return a file with the settings that are in it; Nematus itself writes none."""
        if SETTINGS not in npz.names and NEMATUS in npz.names:
            return cls(npz, _settings_of_nematus(npz))
        text = npz.raw(SETTINGS).tobytes().rstrip(b"\0").decode("utf-8", "replace")
        return cls(npz, read_settings(text))

    def refuse_unless(self, needed: Mapping[str, Iterable[str]]) -> None:
        """Raise an error if a setting has another value than those that can be imported."""
        for key, values in {**_NEEDED, **needed}.items():
            given = self.word(key, "") if key in self.settings else None
            if given is not None and given not in values:
                self.npz.refuse(f"{key} = {given!r:.40} is not supported")

    def word(self, key: str, default: str) -> str:
        """Return a setting."""
        return next(iter(self.settings.get(key, [])), default)

    def whole(self, key: str, count: int = 1) -> list[int]:
        """Return a setting of so many whole numbers."""
        values = self.settings.get(key, [])
        if len(values) != count or not all(re.fullmatch(r"\d{1,7}", one) for one in values):
            self.npz.refuse(f"{key} = {values!r:.40} is not {count} whole number{'s' * (count > 1)}")
        return list(map(int, values))

    def has(self, name: str) -> bool:
        """Tell whether there is an array of this name."""
        return self.renamed.get(name, name) in self.npz.names

    def floats(self, name: str, *shape: int) -> Floats:
        """Return an array of this shape as 32-bit numbers."""
        name = self.renamed.get(name, name)
        if shape[0] == 1 and name in self.npz.names and self.npz.raw(name).ndim == 1:  # Nematus itself
            return self.npz.floats(name, *shape[1:])[None]
        return self.npz.floats(name, *shape)

    def row(self, name: str, size: int) -> Floats:
        """Return an array of one row."""
        row: Floats = self.floats(name, 1, size)[0]
        return row

    def bias(self, name: str, size: int) -> Floats:
        """Return a bias; where there is none it is 0."""
        return self.row(name, size) if self.has(name) else np.zeros(size, np.float32)

    def tables(self, source: Vocabulary, target: Vocabulary, size: int, output: str) -> dict[str, Floats]:
        """Return the embeddings and the output matrix, where it is another one, for our ids."""
        shared = self.has("Wemb") and not self.has("decoder_Wemb")
        own = ["Wemb"] * 2 if shared else ["encoder_Wemb", "decoder_Wemb"]
        tables = {"source.weight": source.rows(self.floats(own[0], len(source.pieces), size))}
        if not shared or source.pieces != target.pieces:
            tables["target.weight"] = target.rows(self.floats(own[1], len(target.pieces), size))
        if self.has(f"{output}_W"):
            W_o = target.rows(self.floats(f"{output}_W", size, len(target.pieces)).T)
        elif self.has(f"{output}_Wt"):
            W_o = target.rows(self.floats(f"{output}_Wt", len(target.pieces), size))
        else:
            return tables
        tables.setdefault("target.weight", tables["source.weight"])
        return tables | {"W_o": W_o}

    def tie(self, tables: Mapping[str, Floats]) -> Literal["none", "target", "all"]:
        """Return which of these tables are one."""
        return "none" if "W_o" in tables else "target" if "target.weight" in tables else "all"


def _settings_of_nematus(npz: Npz | MarianBin) -> Settings:
    """Return the settings of a model of Nematus from the shapes of its arrays."""
    normed = any(name.endswith("_lns") for name in npz.names)
    if any("_drt_" in name for name in npz.names):
        npz.refuse("has more than two transitions in a step, which is not supported")
    sizes = {name: npz.raw(name).shape for name in ("Wemb", "Wemb_dec", "encoder_Ux")}
    for name, shape in sizes.items():
        if len(shape) != 2:
            npz.refuse(f"{name} has shape {shape} and should be a matrix")
    return {
        "type": ["nematus"],
        "enc-cell": ["gru-nematus"],
        "dec-cell": ["gru-nematus"],
        "layer-normalization": [str(normed).lower()],
        "dim-emb": [str(sizes["Wemb"][1])],
        "dim-rnn": [str(sizes["encoder_Ux"][0])],
        "dim-vocabs": [str(sizes[name][0]) for name in ("Wemb", "Wemb_dec")],
    }


def read_settings(text: str) -> Settings:
    """Return the values of each key of a YAML file of keys with one value or a list."""
    found: Settings = {}
    values: list[str] = []
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and line[:1] not in (" ", "-", "#"):
            values = found[key] = []
        else:
            value = line.strip().removeprefix("-")
        value = value.strip()
        if value.startswith("[") and value.endswith("]"):
            values += [plain(one.strip()) for one in value[1:-1].split(",") if one.strip()]
        elif value:
            values.append(plain(value))
    return found


def plain(text: str) -> str:
    """Return a YAML text without its quotation marks and escapes."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) < 2 or not text[0] == text[-1] == '"':
        return text
    return _ESCAPE.sub(lambda one: _character(one[1]), text[1:-1])


def _character(code: str) -> str:
    if len(code) == 1:
        return _ESCAPED.get(code, code)
    number = int(code[1:], 16)
    return chr(number) if number < 0x110000 else "\ufffd"
