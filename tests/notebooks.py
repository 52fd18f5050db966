"""Notebooks without Jupyter: run the code cells in order and keep or check what they print.

    python tests/notebooks.py docs/tutorial.ipynb           run in this folder, write the outputs into the file
    python tests/notebooks.py docs/tutorial.ipynb --check   run, and compare the texts with those in the file

The metadata of a cell may have a comment for the test, `"test"`, in the words of `examples.py`: a shorter run, or
output that varies.
"""

import argparse
import ast
import contextlib
import io
import json
from pathlib import Path

from examples import read_note

KEPT = ("text/plain", "image/svg+xml")  # the page that a trace also offers would make the file large


def run_cell(code, names):
    """Return what a cell prints and, as a notebook would show it, the value of its last line."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "<cell>", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    outputs = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())})
    if value is not None:
        outputs.append({"output_type": "execute_result", "metadata": {}, "data": shown(value)})
    return outputs


def shown(value):
    """Return a value in the forms that a notebook keeps."""
    bundle = value._repr_mimebundle_() if hasattr(value, "_repr_mimebundle_") else {"text/plain": repr(value)}
    return {form: lines(bundle[form]) for form in KEPT if form in bundle}


def lines(text):
    """Return a text as notebooks write it: a list of lines with their ends."""
    return text.splitlines(keepends=True)


def texts(outputs):
    """Return the plain texts among the outputs of a cell."""
    return ["".join(output.get("text") or output["data"]["text/plain"]) for output in outputs]


def run(path, *, check):
    """Run a notebook in the current folder; with `check` compare the texts, else write the outputs."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    names, count = {"__name__": "__main__"}, 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        code, note = "".join(cell["source"]), cell["metadata"].get("test")
        code, compared = read_note(note, code) if note and check else (code, True)
        outputs, count = run_cell(code, names), count + 1
        if not check:
            for output in outputs:
                if output["output_type"] == "execute_result":
                    output["execution_count"] = count
            cell["outputs"], cell["execution_count"] = outputs, count
        elif compared:
            found, wanted = texts(outputs), texts(cell["outputs"])
            assert found == wanted, f"cell {count} prints\n{found}\nand not, as in the file,\n{wanted}"
    if not check:
        path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    run(arguments.path, check=arguments.check)
