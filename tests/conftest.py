import os
from pathlib import Path

# Small models on several workers: more threads than cores only wait for each other. Read when torch and NumPy load.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import pytest  # noqa: E402


@pytest.fixture(scope="session")
def shared_data():
    """The folder with real corpora, which are not part of the project."""
    folder = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(
            f"no corpora at {folder}; set REGARD_DATA to the folder that holds multi30k, europarl, ..."
        )
    return folder


@pytest.fixture
def write(tmp_path):
    """Writes a file of this name and content, and returns its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
