"""Every example in the README and the documents runs, in order, and prints what it says it prints."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import regard.sample

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document):
    return [(match[1], match[2]) for match in BLOCK.finditer(document.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if blocks(path)], ids=lambda path: path.name)
@pytest.mark.slow
def test_the_examples_of_a_document_run(document, tmp_path):
    regard.sample.write(tmp_path / "corpus", num_pairs=20_000)
    for language, code in blocks(document):
        if language == "python":
            done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, f"{code}\n{done.stderr}"
        else:
            check_console(code, tmp_path)


def check_console(code, folder):
    """Run each line after `$` and find the lines shown below it, in order; `...` stands for anything."""
    for example in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, *shown = example.splitlines()
        words = shlex.split(command)
        assert words[0] == "regard", command
        done = subprocess.run([sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        pattern = ".*".join(re.escape(part) for part in "\n".join(shown).split("..."))
        assert re.fullmatch(pattern, done.stdout.rstrip("\n"), re.DOTALL), f"{command}\n{done.stdout}"


def test_links_between_documents_lead_somewhere():
    for document in [*DOCUMENTS, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_decisions_are_short():
    for decision in (ROOT / "docs" / "decisions").glob("*.md"):
        assert len(decision.read_text(encoding="utf-8").splitlines()) <= 40, decision.name
