"""The folder of a ladder: its models, and beside them the report as pages, Markdown, a figure and JSON."""

import json
from itertools import product
from pathlib import Path

from regard.errors import OutputError
from regard.files import writing
from regard.lineage.document import FORMAT, Lineage
from regard.lineage.ladder import LADDER
from regard.lineage.page import file_name, length_chart, markdown, page
from regard.lineage.wording import LANGUAGES

MODELS = "models"
_JSON = "report.json"
_WRITERS = {"html": page, "md": markdown, "svg": length_chart}
_BEGINNING = json.dumps({"format": FORMAT}, indent=1).removesuffix("\n}").encode()


def check_folder(folder: Path) -> None:
    """Raise an error if a folder holds anything but the models and the report of a ladder."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise OutputError(f"{folder}: is a file; name a folder for the report")
    known = {MODELS, _JSON, *(file_name(*one) for one in product(LANGUAGES, _WRITERS))}
    foreign = [one.name for one in folder.iterdir() if one.name not in known and not _is_hidden(one)]
    models = folder / MODELS
    if models.exists() and not foreign:
        names = {f"{rung.name}{ending}" for rung in LADDER for ending in (".regard", ".run")}
        inside = models.iterdir() if models.is_dir() else [models]
        foreign = [f"{MODELS}/{one.name}" for one in inside if one.name not in names and not _is_hidden(one)]
    if not foreign and not _is_ours(folder / _JSON):
        foreign = [one.name for one in folder.iterdir() if one.name in known - {MODELS}]
    if foreign:
        raise OutputError(
            f"{folder}: holds {min(foreign)!r}, which is no part of a ladder; choose another folder for the "
            "report, or move that away"
        )


def write_report(lineage: Lineage, folder: Path) -> list[Path]:
    """Write the report, all of it or nothing, in place of an earlier one, and return its files."""
    check_folder(folder)
    data = json.dumps(lineage.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    texts = {folder / _JSON: data + "\n"}  # first in its place: by it the others are known to be ours
    for language, (ending, write) in product(LANGUAGES, _WRITERS.items()):
        texts[folder / file_name(language, ending)] = write(lineage, language)
    with writing(*texts) as streams:
        for stream, text in zip(streams, texts.values(), strict=True):
            stream.write(text.encode("utf-8", "replace"))
    return list(texts)


def _is_hidden(path: Path) -> bool:
    """Return whether a file is hidden: one that a killed process was writing, or a file manager's own."""
    return path.name.startswith(".")


def _is_ours(report: Path) -> bool:
    if not report.is_file():
        return False
    with report.open("rb") as file:
        return file.read(len(_BEGINNING)) == _BEGINNING
