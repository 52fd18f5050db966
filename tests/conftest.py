import os
from itertools import islice
from pathlib import Path

# Small models on several workers: more threads than cores only wait for each other. Read when torch and NumPy load.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

# Deadlines and the check for slow data measure what else the machine does; wrong answers are looked for here.
settings.register_profile("regard", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("regard")

from regard.sample import read_sample  # noqa: E402


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


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """French-English pairs of our grammar in two files."""
    folder = tmp_path_factory.mktemp("corpus")
    short = (pair for pair in read_sample(seed=3) if len(pair.source.split()) <= 8)
    pairs = list(islice(short, 300))
    for side in ("source", "target"):
        name = {"source": "some.fr", "target": "some.en"}[side]
        (folder / name).write_text("".join(getattr(pair, side) + "\n" for pair in pairs), "utf-8")
    return folder / "some.fr", folder / "some.en"
