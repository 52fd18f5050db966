"""Training: from a prepared corpus to a model, and the record of how it went."""

import os

from regard.errors import MissingExtraError


def load_torch() -> None:
    """Import torch as training wants it, or say how to install it."""
    # Threads that wait for one another must sleep and not spin: beside one other busy program, spinning
    # threads take the processor from those they wait for. Read when torch loads.
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    try:
        import torch  # noqa: F401 - the only heavy part, and an extra
    except (ImportError, OSError) as error:  # not there, or half of it is
        raise MissingExtraError("training", "train") from error
