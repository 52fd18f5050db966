"""Models on the hub of Hugging Face, fetched by its own client because the user named one.

The client is the extra `[hub]`. It keeps what it has fetched in its cache, which transformers uses too, and
asks the server that the environment variable HF_ENDPOINT names, if it does.
"""

import os
import re
import sys
from pathlib import Path

from regard.errors import ForeignModelError, how_to_install
from regard.importing.huggingface import WEIGHTS

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_SMALL = (
    "config.json", "source.spm", "target.spm", "vocab.json", "target_vocab.json", "tokenizer_config.json",
    "README.md",
)  # fmt: skip
_USUAL_HUB = "https://huggingface.co"


def is_hub_name(path: Path) -> bool:
    """Tell whether an argument names a model of the hub, OWNER/NAME, and no file or folder here."""
    return _NAME.fullmatch(path.as_posix()) is not None and not path.exists()


def fetch(name: str) -> Path:
    """Return the folder of a model of the hub, with the files that importing reads and no others.

    The name of the folder is the revision. What is in the cache is not fetched again.
    """
    try:
        import huggingface_hub
        from huggingface_hub.errors import (
            EntryNotFoundError,
            LocalEntryNotFoundError,
            RepositoryNotFoundError,
        )
        from huggingface_hub.utils import disable_progress_bars
    except ImportError:
        raise ForeignModelError(
            f"{name}: no such folder here; to fetch a model of this name from {_USUAL_HUB}, install the "
            f"extra [hub]: {how_to_install('hub')}"
        ) from None
    if not sys.stderr.isatty():
        disable_progress_bars()
    best, other = WEIGHTS
    hub = os.environ.get("HF_ENDPOINT") or _USUAL_HUB
    try:
        folder = Path(huggingface_hub.snapshot_download(name, allow_patterns=[*_SMALL, best]))
        if not (folder / best).is_file():  # many a model has its weights in several formats
            huggingface_hub.hf_hub_download(name, other, revision=folder.name)
    except RepositoryNotFoundError:
        raise ForeignModelError(
            f"{name}: no such folder here, and no public model of this name on {hub}; check the name"
        ) from None
    except LocalEntryNotFoundError:
        raise ForeignModelError(
            f"{name}: no such folder here, and {hub} cannot be reached; check the network, or give a folder"
        ) from None
    except EntryNotFoundError:
        raise ForeignModelError(
            f"{name}: has neither {best} nor {other} on {hub}; name another model"
        ) from None
    except Exception as error:  # of the client, of its HTTP library, of the disk
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ForeignModelError(f"{name}: cannot be fetched from {hub} ({first:.120})") from None
    return folder
