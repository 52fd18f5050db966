"""The pinned environment of the tests is whole, hashed, and tied to no index."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PIN = re.compile(r"([a-z0-9._-]+)==[^ ]+ --hash=sha256:[0-9a-f]{64}")


def test_everything_the_tests_need_is_pinned_by_hash_and_no_index_is_named():
    lines = (ROOT / "requirements-test.txt").read_text().splitlines()
    pins = [PIN.fullmatch(line) for line in lines if not line.startswith("#")]
    assert all(pins) and len(pins) > 40
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["fast"], *extras["hub"], *extras["serve"], *extras["test"]]
    names = {re.match(r"[\w.-]+", one)[0].lower() for one in needed}
    assert names - {project["name"]} <= {pin[1].replace("_", "-") for pin in pins}
