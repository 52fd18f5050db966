"""Every example in the README and the documents runs, in order, and prints what it says it prints."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from examples import Reader, examples, matches

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "README.ko.md", *sorted((ROOT / "docs").glob("*.md"))]
TRANSLATIONS = {
    path: path.with_name(path.name.replace(".ko.", ".")) for path in DOCUMENTS if ".ko." in path.name
}
NOTEBOOKS = sorted((ROOT / "docs").glob("*.ipynb"))
MODELS = ROOT / "docs" / "models.md"
PROBES = ROOT / "docs" / "probes.md"
QUOTE = re.compile(r"^`([^`\n]+)`:\n```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "document",
    [path for path in DOCUMENTS if examples(path) and path not in TRANSLATIONS],
    ids=lambda path: path.name,
)
@pytest.mark.slow
@pytest.mark.timeout(900)  # some of them train
def test_the_examples_of_a_document_run(document, tmp_path):
    reader = Reader(tmp_path)
    for example in examples(document):
        reader.run(example)


@pytest.mark.parametrize("translation", TRANSLATIONS, ids=lambda path: path.name)
def test_a_translated_document_has_the_examples_of_the_original(translation):
    def without_comments(document):
        return [replace(one, code=re.sub("  # .*", "", one.code)) for one in examples(document)]

    assert without_comments(translation) == without_comments(TRANSLATIONS[translation])


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
@pytest.mark.slow
@pytest.mark.timeout(900)  # it trains
def test_the_cells_of_a_notebook_run(notebook, tmp_path):
    run = [sys.executable, ROOT / "tests" / "notebooks.py", notebook, "--check"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_has_the_outputs_of_one_run(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    ran = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in ran] == list(range(1, len(ran) + 1))
    assert all(cell["outputs"] for cell in ran) and len({cell["id"] for cell in cells}) == len(cells)


def test_three_dots_stand_for_anything_and_nothing_else_does():
    assert matches("BLEU ...\nwrote it", "BLEU 12.3\nin 3 s\nwrote it\n")
    assert not matches("BLEU ...\nwrote it", "BLEU 12.3\nwrote nothing\n")
    assert not matches("a", "a\nb\n")


def test_every_shell_and_python_block_of_a_document_is_an_example():
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        assert len(examples(document)) == len(
            re.findall(r"^\s*```(?:python|console|sh|bash)\b", text, re.MULTILINE)
        )


def test_links_between_documents_lead_somewhere():
    for document in [*DOCUMENTS, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        prose = re.sub(r"`[^`\n]*`", "", document.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", prose):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_code_quoted_in_a_block_stands_in_the_file_named_above_it():
    text = MODELS.read_text(encoding="utf-8")
    quotes = QUOTE.findall(text)
    assert len(quotes) == text.count("```py\n") > 0
    for file, code in quotes:
        lines = {line.strip() for line in (ROOT / file).read_text(encoding="utf-8").splitlines()}
        for line in code.splitlines():
            assert line.strip() in lines, f"{file}: {line}"


def test_code_quoted_in_a_table_stands_in_the_runtime():
    files = (ROOT / "src" / "regard" / "runtime").glob("*.py")
    runtime = " ".join(" ".join(file.read_text(encoding="utf-8").split()) for file in files)
    quoted = list(code_in_tables(MODELS))
    assert len(quoted) > 50
    for code in quoted:
        assert " ".join(code.split()) in runtime, code


def code_in_tables(document):
    """The code in the columns named `code` of a document's tables; none of it may hold a `|`."""
    columns = []
    for line in document.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line[1:-1].split("|")] if line.startswith("|") else []
        if not cells:
            columns = []
        elif not columns:
            columns = [number for number, cell in enumerate(cells) if cell.endswith("code")]
        elif "---" not in cells:
            yield from (cells[number][1:-1] for number in columns if cells[number].startswith("`"))


def test_every_recorded_quantity_is_listed():
    pytest.importorskip("torch")
    from small import VOCAB, random_batch, shrink

    from regard.model.build import build_model, export_arrays
    from regard.model.presets import PRESETS
    from regard.options.model import RecurrentOptions, StepAttendStep, TransformerOptions
    from regard.probes import Recorder
    from regard.runtime.build import build_engine

    recorder = Recorder()
    two_steps = RecurrentOptions(cell="gru-after", attention=StepAttendStep())
    recurring = TransformerOptions(decoder_self="ssru")
    for options in map(shrink, [*PRESETS.values(), two_steps, recurring]):
        arrays = export_arrays(build_model(options, VOCAB, VOCAB))
        build_engine(options, arrays).force(random_batch(1), recorder)
    recorded = {re.sub(r"\b\d\b", "{l}", re.sub("(right|left)ward", "{d}", name)) for name in recorder}
    assert recorded == set(listed_names(PROBES))


def listed_names(document):
    """The names in the first column under "What is recorded"; `.keys` after `a.query` stands for `a.keys`."""
    section = document.read_text(encoding="utf-8").split("## What is recorded")[1].split("\n## ")[0]
    for line in re.findall(r"^\| `.*", section, re.MULTILINE):
        stem = ""
        for name in re.findall(r"`([^`]+)`", line.split("|")[1]):
            stem, _, last = (stem + name if name.startswith(".") else name).rpartition(".")
            yield f"{stem}.{last}" if stem else last


def test_decisions_are_short():
    for decision in (ROOT / "docs" / "decisions").glob("*.md"):
        assert len(decision.read_text(encoding="utf-8").splitlines()) <= 40, decision.name
