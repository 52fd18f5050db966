"""Neural machine translation that shows where it looks."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.translate import Translator

__version__ = "0.1.0"


def load(path: str | Path) -> "Translator":
    """Return the translator of a model file."""
    from regard.translate import Translator  # here, so that `import regard` costs nothing

    return Translator.open(Path(path))
