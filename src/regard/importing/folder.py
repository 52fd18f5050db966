"""The files of a model of another program, in a folder or in a zip archive, which is not unpacked to disk."""

import hashlib
import json
import re
import zipfile
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from regard.errors import ForeignModelError, TokenizerError
from regard.importing.weights import Vocabulary
from regard.text.imported import ImportedTokenizer

_LICENCE = re.compile(r"^licen[sc]e:\s*['\"]?([\w.+-]+)", re.MULTILINE)
_OPUS = re.compile(r"opus-mt(?:-tc-\w+)?-([a-z]{2,3})-([a-z]{2,3})")
_MAX_BYTES = 64 << 20  # of a vocabulary, a tokenizer or a configuration
_EMPTY = np.empty(0, np.uint8)
_MAX_RATIO = 25
"""Numbers hardly get smaller by compression, and texts by a factor of ten; zip bombs by a thousand."""


class Folder:
    """A folder on disk, or files of a common prefix."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def below(self, name: str) -> "Folder":
        """Return a folder of this one."""
        return Folder(self.path / name)

    def has(self, name: str) -> bool:
        """Tell whether there is such a file."""
        return (self.path / name).is_file()

    def refuse(self, name: str, why: str) -> NoReturn:
        """Raise an error that names a file and what is wrong with it."""
        raise ForeignModelError(f"{self.path / name}: {why}") from None

    def data(self, name: str) -> NDArray[np.uint8]:
        """Return a file of any size, read when it is looked at."""
        path = self.path / name
        if path.exists() and not path.is_file():  # a pipe would be waited for
            self.refuse(name, "is no regular file")
        try:
            return np.asarray(np.memmap(path, np.uint8, "r")) if path.stat().st_size else _EMPTY
        except (OSError, ValueError) as error:
            self.refuse(name, f"cannot be read ({getattr(error, 'strerror', None) or error})")

    def bytes(self, name: str) -> bytes:
        """Return a small file."""
        data = self.data(name)
        if len(data) > _MAX_BYTES:
            self.refuse(name, f"is larger than {_MAX_BYTES:,} bytes")
        return data.tobytes()

    def text(self, name: str) -> str:
        """Return a small file as text."""
        try:
            return self.bytes(name).decode()
        except UnicodeDecodeError as error:
            self.refuse(name, f"is no text in UTF-8 ({error.reason} at byte {error.start})")

    def any_json(self, name: str) -> Any:
        """Return what a JSON file holds."""
        try:
            return json.loads(self.bytes(name))
        except (ValueError, RecursionError) as error:
            self.refuse(name, f"is not JSON ({error!s:.60})")

    def json(self, name: str) -> dict[str, Any]:
        """Return a JSON object."""
        found = self.any_json(name)
        if not isinstance(found, dict):
            self.refuse(name, "is not a JSON object")
        return found

    def tokenizer(self, name: str | None, vocabulary: Vocabulary, joint: bool) -> ImportedTokenizer:
        """Return the tokenizer of a SentencePiece model; without one, spaces separate the pieces."""
        try:
            model = b"" if name is None else self.bytes(name)
            if name is not None and not model:
                self.refuse(name, "is empty")
            has_bytes = vocabulary.has_bytes and b"<0x00>" in model  # if SentencePiece cuts into bytes
            return ImportedTokenizer(vocabulary.learnt, model, joint, has_bytes)
        except TokenizerError as error:
            self.refuse(name or "", str(error))

    def licence(self) -> str | None:
        """Return the licence that README.md states in its head, as on the hub of Hugging Face."""
        found = _LICENCE.search(self.text("README.md")) if self.has("README.md") else None
        return found[1] if found else None

    def sha256(self, name: str) -> str:
        """Return the hash of a file, read in pieces."""
        try:
            with (self.path / name).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            self.refuse(name, f"cannot be read ({error.strerror or error})")


def languages_of(name: str) -> tuple[str, str] | None:
    """Return the languages in the name of an OPUS-MT model."""
    found = _OPUS.search(name)
    return (found[1], found[2]) if found else None


def origin(
    folder: Folder, file: str, form: str, name: str, licence: str | None, converted: list[str]
) -> dict[str, Any]:
    """Return where a model comes from and what was changed, for its card."""
    return {
        "imported": {
            "format": form,
            "name": name,
            "licence": licence,
            "file": file,
            "sha256": folder.sha256(file),
            "converted": converted,
        }
    }


class Package(Folder):
    """The files below a folder of a zip archive; `folder` ends in a slash, or is empty."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, folder: str) -> None:
        super().__init__(path)
        self._archive = archive
        self._folder = folder

    def refuse(self, name: str, why: str) -> NoReturn:
        """Raise an error that names a file of the archive and what is wrong with it."""
        raise ForeignModelError(f"{self.path}: {self._folder + name!r:.100} {why}") from None

    def has(self, name: str) -> bool:
        """Tell whether there is such a file."""
        return self._folder + name in self._archive.NameToInfo

    def data(self, name: str) -> NDArray[np.uint8]:
        """Return a file; memory is bounded by a multiple of the archive's size."""
        if not self.has(name):
            self.refuse(name, "is missing")
        info = self._archive.getinfo(self._folder + name)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others have no limit
            self.refuse(name, "is compressed by another method than deflate")
        if info.file_size > _MAX_RATIO * min(info.compress_size, self.path.stat().st_size) + (1 << 16):
            self.refuse(name, f"is {info.file_size:,} bytes from {info.compress_size:,} compressed ones")
        try:
            return np.frombuffer(self._archive.read(info), np.uint8)
        except Exception as error:  # damage shows in many ways: zlib.error, BadZipFile, NotImplementedError
            self.refuse(name, f"is damaged ({error!s:.60})")

    def sha256(self, name: str) -> str:
        """Return the hash of a file."""
        return hashlib.sha256(self.data(name).data).hexdigest()

    def below(self, name: str) -> "Package":
        """Return a folder of this one."""
        return Package(self.path, self._archive, f"{self._folder}{name}/")


def open_archive(path: Path) -> zipfile.ZipFile:
    """Return a zip archive, of which nothing but the list of its files is read."""
    try:
        return zipfile.ZipFile(path)
    except OSError as error:
        raise ForeignModelError(f"{path}: cannot be read ({error.strerror or error})") from None
    except Exception as error:
        raise ForeignModelError(f"{path}: not a zip archive, or damaged ({error!s:.60})") from None


def open_package(path: Path, mark: str) -> Package:
    """Return the folder of a zip archive in which a file called `mark` lies, at the top or one below it."""
    archive = open_archive(path)
    names = archive.namelist()
    outside = [one for one in names if one.startswith("/") or ".." in re.split(r"[/\\]", one)]
    if outside:
        raise ForeignModelError(f"{path}: {outside[0]!r:.60} leads out of the package")
    found = [one for one in names if one.rpartition("/")[2] == mark and one.count("/") <= 1]
    if len(found) != 1:
        raise ForeignModelError(f"{path}: has {len(found)} files {mark} at its top; is it a whole package?")
    return Package(path, archive, found[0].removesuffix(mark))
