"""The models that come with the package. Each has a name, which can stand wherever a model file can.

`recipes/starter.py` makes them; their cards say of what data, and how good they are.
"""

import difflib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from regard.errors import ConfigError, ModelFileError

DEFAULT = "fr-en"
ENDING = ".regard"
FOLDER_VARIABLE = "REGARD_MODELS"
"""The environment variable that names another folder of models than that of the package."""
PACKAGE = Path(__file__).parent
"""The folder of the bundled models."""
_PAIR = re.compile(r"[A-Za-z]{2}[-_][A-Za-z]{2}(?:[-_]\w+)*")  # named as models are
_MISTYPED = 0.75  # with a hyphen and as near to a name is no text


def bundled() -> dict[str, Path]:
    """Return the files of the models of the package, or of the folder REGARD_MODELS, by name."""
    return dict(sorted((path.stem, path) for path in folder().glob(f"*{ENDING}")))


def folder() -> Path:
    """Return the folder where names are looked up."""
    return Path(os.environ.get(FOLDER_VARIABLE) or PACKAGE)


def default_model() -> Path:
    """Return the model that translates where none is named."""
    path = bundled().get(DEFAULT)
    if path is None:
        raise ModelFileError(
            "this installation has no bundled models; name a file, as in: regard translate model.regard TEXT"
        )
    return path


def names_model(word: str, *, has_more: bool = False) -> bool:
    """Whether a word of a command names a model: a file, or one of the package. One mistyped is an error.

    So is a pair of languages for which there is none, if the command `has_more` words.
    """
    if word.endswith(ENDING) or _is_file(word) or word in bundled():
        return True
    close = difflib.get_close_matches(word, bundled(), n=1, cutoff=_MISTYPED)
    if close and "-" in word:
        raise ModelFileError(
            f"there is no model {word!r}; did you mean {close[0]!r}? "
            "To translate it as a text, use standard input"
        )
    if has_more and _PAIR.fullmatch(word):
        raise ModelFileError(
            f"there is no model {word!r}; `regard models` lists those there are. "
            "To translate it as a text, use standard input"
        )
    return False


def locate(path: Path) -> Path:
    """Return the file of a model: the path itself, or that of a model of the package named so."""
    return path if _is_file(path) else bundled().get(str(path), path)


def chosen_models(paths: Sequence[Path]) -> dict[str, Path]:
    """Return the models by name; those of the package if none is named."""
    if not paths:
        return bundled()
    models: dict[str, Path] = {}
    for path in paths:
        found = locate(path)
        if found.stem in models:
            raise ConfigError(f"two models are named {found.stem}; rename one of the files")
        models[found.stem] = found
    return models


def _is_file(path: str | Path) -> bool:
    # A text may be too long for the name of a file: pathlib would raise an error.
    return os.path.isfile(path)  # noqa: PTH113
