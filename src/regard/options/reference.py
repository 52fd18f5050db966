"""The reference page of all options, `docs/options.md`, printed by `python -m regard.options.reference`."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from regard.options.parse import SECTIONS, allowed
from regard.options.section import Options, option_classes

_LIMITS = (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<="))
_HEAD = """# Options

This page is generated: `python -m regard.options.reference > docs/options.md`.

Set an option with `--set section.option=value`, for example `--set model.hidden_size=256`.

Some options choose between designs, such as `model.attention.scorer`. The name of the design is its `kind`:
`--set model.attention.scorer=dot` is short for `--set model.attention.scorer.kind=dot`. The first kind in a
table is the default, unless a preset says otherwise. The column "kind" says which kinds have an option.
"""


def reference() -> str:
    """Return the reference page of all options as Markdown; `docs/options.md` is this text."""
    lines = [_HEAD]
    for name, section in SECTIONS.items():
        lines += _describe(name, option_classes(section))
    return "\n".join(lines)


def _describe(name: str, choices: list[type[Options]]) -> Iterator[str]:
    """Yield the section about the kinds that an option has, then the sections about the options of these."""
    inner: dict[str, list[type[Options]]] = {}
    rows: dict[tuple[str, ...], list[str]] = {}  # what is said of an option: the kinds of which it is true
    for cls in choices:
        meanings = _meanings(cls)
        for key in cls.model_fields:
            if key == "kind":
                continue
            field = cls.model_fields[key]
            default = field.default
            if within := option_classes(field.annotation):
                default = default.kind
                inner.setdefault(key, []).extend(each for each in within if each not in inner.get(key, ()))
            shown = "none" if default is None else f"`{default}`"
            row = (f"`{name}.{key}`", _allowed(field, within), shown, meanings[key])
            rows.setdefault(row, []).extend(_kinds(cls))
    kinds = [kind for cls in choices for kind in _kinds(cls)]
    yield from (f"## `{name}`", "")
    if len(choices) == 1:
        yield from (_purpose(choices[0]), "")
    else:
        yield from ("| kind | meaning |", "|---|---|")
        for cls in choices:
            detail = f" {_meanings(cls)['kind']}" if len(_kinds(cls)) > 1 else ""
            yield f"| {_code(_kinds(cls))} | {_purpose(cls)}{detail} |"
        yield ""
    if rows and len(choices) == 1:
        yield from ("| option | values | default | meaning |", "|---|---|---|---|")
        yield from (f"| {' | '.join(row)} |" for row in rows)
        yield ""
    elif rows:
        yield from ("| option | kind | values | default | meaning |", "|---|---|---|---|---|")
        names = [row[0] for row in rows]
        for (option, *rest), having in sorted(rows.items(), key=lambda row: names.index(row[0][0])):
            yield f"| {option} | {'all' if having == kinds else _code(having)} | {' | '.join(rest)} |"
        yield ""
    for key, within in inner.items():
        yield from _describe(f"{name}.{key}", within)


def _purpose(cls: type[Options]) -> str:
    return " ".join((inspect.getdoc(cls) or "").split())


def _kinds(cls: type[Options]) -> list[str]:
    return allowed(cls, "kind") if "kind" in cls.model_fields else []


def _code(words: list[str]) -> str:
    return " ".join(f"`{word}`" for word in words)


def _allowed(field: Any, choices: list[type[Options]]) -> str:
    """Return which values an option takes."""
    if choices:
        return _code([kind for choice in choices for kind in _kinds(choice)])
    if get_origin(field.annotation) is Literal:
        return _code(list(get_args(field.annotation)))
    limits = ", ".join(
        f"{sign} {getattr(limit, bound):,}"
        for limit in field.metadata
        for bound, sign in _LIMITS
        if hasattr(limit, bound)
    )
    plain = next(iter(get_args(field.annotation)), field.annotation)
    return " ".join(filter(None, (getattr(plain, "__name__", ""), limits)))


def _meanings(cls: type[Options]) -> dict[str, str]:
    """Return the docstring that stands under each option in the source."""
    found: dict[str, str] = {}
    for ancestor in reversed(cls.__mro__):
        if issubclass(ancestor, Options) and ancestor is not Options:
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(ancestor))).body
            assert isinstance(tree, ast.ClassDef)
            for option, text in zip(tree.body, tree.body[1:], strict=False):
                if isinstance(option, ast.AnnAssign) and isinstance(text, ast.Expr):
                    assert isinstance(option.target, ast.Name) and isinstance(text.value, ast.Constant)
                    found[option.target.id] = " ".join(str(text.value.value).split())
    return found


if __name__ == "__main__":
    print(reference(), end="")
