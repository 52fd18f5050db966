"""Modules import what the table of layers in docs/architecture.md lets them import, and are short."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
TABLE = (
    (ROOT / "docs" / "architecture.md")
    .read_text(encoding="utf-8")
    .partition("## Layers")[2]
    .partition("\n## ")[0]
)
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| (.+) \|$", re.MULTILINE)
NAME = re.compile(r"`([^`]+)`")


def rows(table):
    """Each room, a file or a folder with a slash, with its layer and the number of its row."""
    return {
        room: (int(layer), number)
        for number, (layer, names, _) in enumerate(ROW.findall(table))
        for room in NAME.findall(names)
    }


def row_of(path, table):
    """The row of a file of the package, None if it has none: its own, or that of the nearest folder."""
    rooms = [path, *(f"{folder}/" for folder in map(str, Path(path).parents) if folder != ".")]
    return next((table[room] for room in rooms if room in table), None)


def imports(text):
    """All modules of the package that a module imports when it runs, with their lines."""
    found = []
    waiting = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports have full names"
            found += [(f"{node.module}.{alias.name}", node.lineno) for alias in node.names]
        waiting += ast.iter_child_nodes(node)
    return [(name, line) for name, line in found if name.split(".")[0] == "regard"]


def file_of(name):
    """The file, within the package, of a module or of a name in one."""
    parts = name.split(".")
    while parts:
        for path in (Path(*parts).with_suffix(".py"), Path(*parts, "__init__.py")):
            if (SOURCE / path).is_file():
                return path.relative_to("regard").as_posix()
        parts.pop()
    return None


def faults(path, text, table):
    """What a module may not import."""
    layer, own = row_of(path, table)
    found = []
    for name, line in imports(text):
        if name in ("regard", "regard.__version__"):
            continue  # loaded before any other module, and it imports nothing by itself
        other, number = row_of(file_of(name), table)
        if number != own and other >= layer:
            found.append(f"src/regard/{path}:{line}: layer {layer} imports {name} of layer {other}")
    return found


MODULES = {
    path.relative_to(SOURCE / "regard").as_posix(): path.read_text(encoding="utf-8")
    for path in (SOURCE / "regard").rglob("*.py")
}


def test_every_module_has_a_layer_and_every_row_a_module():
    table = rows(TABLE)
    assert [path for path in MODULES if row_of(path, table) is None] == []
    assert [room for room in table if not (SOURCE / "regard" / room).exists()] == []


def test_modules_import_their_own_row_and_earlier_layers_only():
    table = rows(TABLE)
    assert [fault for path, text in MODULES.items() for fault in faults(path, text, table)] == []


def test_the_files_that_a_row_names_exist():
    for _, names, owns in ROW.findall(TABLE):
        folders = [room for room in NAME.findall(names) if room.endswith("/")]
        for name in NAME.findall(owns) if folders else ():
            if re.fullmatch(r"[\w/]+(\.py|/)", name) and not name.startswith("recipes/"):
                inside = [path for path in MODULES if path.startswith(folders[0])]
                known = any(path.endswith(f"/{name}") or f"/{name}" in path for path in inside)
                assert known or (SOURCE / "regard" / folders[0] / name).exists(), f"{folders[0]}: {name}"


MAX_LINES, MAX_FUNCTION_LINES, MAX_PARAMETERS = 500, 80, 8
LONGER = {
    "search/beam.py: beam",  # one algorithm, whose steps share a dozen arrays
}


def test_files_functions_and_signatures_are_short():
    assert [path for path, text in MODULES.items() if text.count("\n") > MAX_LINES] == []
    found = set()
    for path, text in MODULES.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                given = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
                num_parameters = len([one for one in given if one.arg not in ("self", "cls")])
                num_lines = node.end_lineno - node.lineno + 1
                if num_lines > MAX_FUNCTION_LINES or num_parameters > MAX_PARAMETERS:
                    found.add(f"{path}: {node.name}")
    assert found <= LONGER


EXAMPLE = """
| 1 | `low.py` | a |
| 2 | `text/` | b |
| 2 | `draw/` | b |
| 2 | `text/words.py` | c |
| 3 | `search/` | c |
"""


def test_a_wrong_import_is_found_wherever_it_stands():
    table = {
        "errors.py": (0, 0),
        "text/": (2, 1),
        "draw/": (2, 2),
        "text/words.py": (1, 3),
        "search/": (3, 4),
    }
    assert faults("search/x.py", "from regard.text import words\nimport regard.draw.labels", table) == []
    assert (
        faults("text/x.py", "from regard.text.split import split\nfrom regard.text.words import words", table)
        == []
    )
    for wrong in (
        "from regard.search.beam import beam",
        "import regard.search.beam",
        "from regard.search import beam",
        "def f():\n    from regard.search.beam import beam",
        "if TYPE_CHECKING:\n    pass\nelse:\n    import regard.search",
        "from regard.draw.labels import printable",  # the same layer, another room
    ):
        assert len(faults("text/x.py", wrong, table)) == 1, wrong
    assert len(faults("text/words.py", "from regard.text.split import split", table)) == 1
    unseen = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import regard.search.beam\nimport regard"
    )
    assert faults("text/x.py", unseen, table) == []


def test_the_table_is_read_row_by_row():
    table = rows(EXAMPLE)
    assert table["low.py"] == (1, 0) and table["draw/"] == (2, 2)
    assert row_of("text/words.py", table) == (2, 3) and row_of("text/a/split.py", table) == (2, 1)
    assert row_of("other.py", table) is None
