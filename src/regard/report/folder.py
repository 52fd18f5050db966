"""The data of a report as a file, and how a folder with a report of ours is told from others."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

JSON = "report.json"


def json_text(data: Mapping[str, Any]) -> str:
    """Return the data of a report, which begins with its format, as JSON."""
    return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def holds_report(folder: Path, format: str) -> bool:
    """Return whether a folder holds the data of a report of this format."""
    beginning = json_text({"format": format}).removesuffix("\n}\n").encode()
    try:
        with (folder / JSON).open("rb") as file:
            return file.read(len(beginning)) == beginning
    except OSError:
        return False
