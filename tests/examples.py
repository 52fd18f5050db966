"""The examples in the documents: finding the code blocks and running them as a reader would.

A reader copies the blocks of a document in order into a shell or into Python, in an empty folder. A comment before
a block, which no reader sees, tells the test what it cannot know:

* `<!-- test: files train.fr train.en -->`: the reader brings these files, so the test writes them;
* `<!-- test: run `--steps 20` instead of `--time 30m` -->`: the test makes a shorter run, and does not compare what
  is printed;
* `<!-- test: output varies: WHY -->`: the block must run, what it prints is not compared;
* `<!-- test: skip: WHY -->`: the block cannot run here.
"""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from regard.sample import read_sample

BLOCK = re.compile(
    r"^((?:<!-- test: .*? -->\n)*)```(python|console|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
NOTE = re.compile(r"<!-- test: (.*?) -->")
INSTEAD = re.compile(r"run `([^`]+)` instead of `([^`]+)`")


@dataclass(frozen=True)
class Example:
    """One code block of a document, and what the comments before it say."""

    language: str
    code: str
    files: tuple[str, ...] = ()
    compared: bool = True
    skipped: bool = False


def examples(document):
    """Return the code blocks of a Markdown file in order."""
    return [_example(*match.groups()) for match in BLOCK.finditer(document.read_text(encoding="utf-8"))]


def _example(notes, language, code):
    files, compared, skipped = [], True, False
    for note in NOTE.findall(notes):
        if note.startswith("files "):
            files += note.split()[1:]
        elif re.fullmatch("skip: .+", note):
            skipped = True
        else:
            code, compared = read_note(note, code)
    return Example(language, code, tuple(files), compared, skipped)


def read_note(note, code):
    """Return the code that the test runs, and whether its output is compared."""
    if instead := INSTEAD.fullmatch(note):
        assert instead[2] in code, f"{instead[2]!r} is not in the block:\n{code}"
        return code.replace(instead[2], instead[1]), False
    assert re.fullmatch("output varies: .+", note), f"not a comment that the test knows: {note!r}"
    return code, False


class Reader:
    """Runs examples in a folder that is empty at first, with `regard` and `python` on the path."""

    def __init__(self, folder):
        self.folder = folder / "reader"
        self.folder.mkdir()
        programs = folder / "bin"
        programs.mkdir()
        python = shlex.quote(sys.executable)
        for name, call in {"regard": f"{python} -m regard", "python": python}.items():
            (programs / name).write_text(f'#!/bin/sh\nexec {call} "$@"\n')
            (programs / name).chmod(0o755)
        path = [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
        self.environment = os.environ | {"PATH": os.pathsep.join(path)}

    def run(self, example):
        """Run one block; fail if it fails, or prints something else than the document shows."""
        for name in example.files:
            bring(self.folder / name)
        if example.skipped:
            return
        if example.language == "python":
            self._call([sys.executable, "-c", example.code], example.code)
        elif example.language == "sh":
            self._call(["sh", "-ec", example.code], example.code)
        else:
            for part in re.split(r"^\$ ", example.code, flags=re.MULTILINE)[1:]:
                command, *shown = part.splitlines()
                printed = self._call(["sh", "-ec", command], command)
                if example.compared:
                    assert matches("\n".join(shown), printed), f"{command}\n{printed}"

    def _call(self, words, shown):
        done = subprocess.run(words, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{shown}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def matches(shown, printed):
    """Tell whether a program printed what a document shows; `...` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in shown.strip("\n").split("..."))
    plain = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
    return re.fullmatch(pattern, plain, re.DOTALL) is not None


def bring(path):
    """Write a file that a reader would bring: sentences of the sample grammar, in the format its name asks for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    num_pairs, seed = (1500, 1) if path.name.startswith(("train", "mine")) else (60, 2)
    pairs = read_sample(num_pairs, seed)
    if path.suffix == ".tmx":
        units = "".join(
            f'<tu><tuv xml:lang="fr"><seg>{pair.source}</seg></tuv>'
            f'<tuv xml:lang="en"><seg>{pair.target}</seg></tuv></tu>\n'
            for pair in pairs
        )
        path.write_text(f'<tmx version="1.4"><header/><body>\n{units}</body></tmx>\n', encoding="utf-8")
    else:
        sides = [pair.source if path.suffix == ".fr" else pair.target for pair in pairs]
        path.write_text("".join(side + "\n" for side in sides), encoding="utf-8")
