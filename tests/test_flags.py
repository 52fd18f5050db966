"""Every flag is explained once; the command line, the page and the documents take their words from there."""

import ast
from pathlib import Path

import regard
from regard.flags import FLAGS, table

PACKAGE = Path(regard.__file__).parent
DOCUMENTS = Path(__file__).parent.parent / "docs"


def test_the_document_explains_every_flag_as_the_data_do():
    assert table() in (DOCUMENTS / "translating.md").read_text(encoding="utf-8")
    assert all(f"| `{key}` | {flag.kind} | {flag.sentence} |\n" in table() for key, flag in FLAGS.items())


def test_every_flag_has_words_for_one_and_for_several_in_english_and_korean():
    for key, flag in FLAGS.items():
        assert key.islower() and flag.kind in ("warning", "remark")
        assert flag.sentence[0].isupper() and flag.sentence.endswith(".")
        assert not flag.short.endswith(".") and not flag.several.endswith(".")
        assert any("가" <= letter <= "힣" for letter in flag.korean)
        assert not any(letter.isascii() and letter.isalpha() for letter in flag.korean)


def test_no_flag_is_explained_that_nothing_sets():
    said = {
        node.value
        for path in (PACKAGE / "translate").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
    }
    assert FLAGS.keys() <= said
