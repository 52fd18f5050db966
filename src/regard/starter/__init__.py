"""The models that come with the package."""

from pathlib import Path

from regard.errors import ModelFileError


def default_model() -> Path:
    """Return the model that translates where none is named."""
    found = sorted(Path(__file__).parent.glob("*.regard"))
    if not found:
        raise ModelFileError(
            "this installation brings no model of its own; name one as in: regard translate model.regard TEXT"
        )
    return found[0]
