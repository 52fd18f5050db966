"""A report as a folder: the page, Markdown and JSON, all of them or nothing."""

import json
from pathlib import Path

from regard.errors import OutputError
from regard.evaluation.document import FORMAT, Evaluation
from regard.evaluation.page import page
from regard.evaluation.tables import markdown
from regard.files import writing_folder

_PAGE, _MARKDOWN, _JSON = "report.html", "report.md", "report.json"
_BEGINNING = json.dumps({"format": FORMAT}, indent=1).removesuffix("\n}").encode()


def check_folder(folder: Path, replace: bool) -> None:
    """Raise an error if there is something in the place of a report that may not be replaced."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not _is_report(folder):
        raise OutputError(
            f"{folder}: exists and is no report of ours; choose another name or remove it first"
        )
    if not replace:
        raise OutputError(
            f"{folder}: holds a report already; choose another name, or replace it with --force"
        )


def write_report(evaluation: Evaluation, folder: Path, title: str, replace: bool = False) -> None:
    """Write the report; the folder appears whole or not at all."""
    check_folder(folder, replace)
    data = json.dumps(evaluation.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    with writing_folder(folder, _JSON) as temporary:
        for name, text in (
            (_PAGE, page(evaluation, title)),
            (_MARKDOWN, markdown(evaluation, title)),
            (_JSON, data + "\n"),
        ):
            (temporary / name).write_bytes(text.encode("utf-8", "replace"))


def _is_report(folder: Path) -> bool:
    """Return whether a folder holds what we wrote, and nothing that anybody has put there since."""
    if not folder.is_dir() or folder.is_symlink():
        return False
    if not {one.name for one in folder.iterdir()} <= {_PAGE, _MARKDOWN, _JSON}:
        return False
    try:
        with (folder / _JSON).open("rb") as file:
            return file.read(len(_BEGINNING)) == _BEGINNING
    except OSError:
        return False
