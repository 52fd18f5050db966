"""Every example in the README and the documents runs, in order, and prints what it says it prints."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from small import random_weights, shrink

from regard.model.presets import preset
from regard.modelfile import ModelFile, save_model
from regard.options.text import SubwordOptions
from regard.sample import read_sample, write_sample
from regard.text.tokenizer import TokenizerPair

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "README.ko.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODELS = ROOT / "docs" / "models.md"
QUOTE = re.compile(r"^`([^`\n]+)`:\n```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document):
    return [(match[1], match[2]) for match in BLOCK.finditer(document.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if blocks(path)], ids=lambda path: path.name)
@pytest.mark.slow
@pytest.mark.timeout(400)  # some of them train
def test_the_examples_of_a_document_run(document, tmp_path):
    write_sample(tmp_path / "corpus", read_sample(20_000))
    write_model(tmp_path / "fr-en.regard")
    for language, code in blocks(document):
        if language == "python":
            done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, f"{code}\n{done.stderr}"
        else:
            check_console(code, tmp_path)


def write_model(path):
    """A model file as the examples find it, small and untrained."""
    pairs = read_sample(300)
    sides = [pair.source for pair in pairs], [pair.target for pair in pairs]
    tokenizers = TokenizerPair.learn(*sides, SubwordOptions(vocab_size=500))
    options = shrink(preset("regard-small"))
    weights = random_weights(options, tokenizers.source.vocab_size, tokenizers.target.vocab_size)
    save_model(path, ModelFile(options, weights, tokenizers, "fr", "en", {}, {}))


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
    from regard.probes import Recorder
    from regard.runtime.build import build_engine

    recorder = Recorder()
    for options in map(shrink, PRESETS.values()):
        arrays = export_arrays(build_model(options, VOCAB, VOCAB))
        build_engine(options, arrays).force(random_batch(1), recorder)
    recorded = {re.sub(r"\b\d\b", "{l}", re.sub("(right|left)ward", "{d}", name)) for name in recorder}
    assert recorded == set(listed_names(MODELS))


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
