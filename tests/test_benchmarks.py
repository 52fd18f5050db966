"""Every benchmark and recipe imports what there is, also inside its functions."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("benchmarks", "recipes") for path in (ROOT / folder).glob("*.py"))

# Peers' libraries are imported inside functions; of those only our own modules are looked up here.
CHECK = """
import ast, importlib, importlib.util, sys, traceback
from pathlib import Path

for name in sys.argv[1:]:
    path = Path(name)
    sys.path.insert(0, str(path.parent))
    try:
        spec = importlib.util.spec_from_file_location(f"imported_{path.parent.name}_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # where dataclasses look for it
        spec.loader.exec_module(module)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "regard":
                found = importlib.import_module(node.module)
                for one in node.names:
                    if not hasattr(found, one.name):
                        importlib.import_module(f"{node.module}.{one.name}")
    except Exception as error:
        print(f"{path.parent.name}/{path.name}: {error}")
    finally:
        sys.path.remove(str(path.parent))
"""


def test_every_benchmark_and_recipe_imports(tmp_path):
    assert len(FILES) > 20
    assert imported(FILES) == ""
    (tmp_path / "old.py").write_text("def main():\n    from regard.translate.translator import Nothing\n")
    assert "old.py: No module named" in imported([tmp_path / "old.py"])


def imported(paths):
    """What goes wrong in a fresh interpreter, a line for each file."""
    done = subprocess.run([sys.executable, "-c", CHECK, *map(str, paths)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
