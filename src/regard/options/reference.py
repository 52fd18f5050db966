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

Printed by `python -m regard.options.reference > docs/options.md`; a test keeps it true.

Set an option with `--set section.option=value`, for example `--set model.hidden_size=256`.

Where a design can be chosen, the option `kind` chooses it. A bare word stands for the `kind`:
`model.attention.scorer=dot` is short for `model.attention.scorer.kind=dot`.
Each design has a table of its own options below; a design without further options has none.
"""


def reference() -> str:
    """Return the reference page of all options as Markdown; `docs/options.md` is this text."""
    lines = [_HEAD]
    described: set[type[Options]] = set()
    for name, section in SECTIONS.items():
        lines += _describe(name, option_classes(section), described)
    return "\n".join(lines)


def _describe(name: str, choices: list[type[Options]], described: set[type[Options]]) -> Iterator[str]:
    """Yield the lines about the choices that an option has, then about the choices within them."""
    inner: dict[str, list[type[Options]]] = {}
    for cls in choices:
        options = [key for key in cls.model_fields if key != "kind" or len(allowed(cls, "kind")) > 1]
        if cls in described or not options:
            continue
        described.add(cls)
        kinds = (
            " or ".join(f"`{kind}`" for kind in allowed(cls, "kind")) if "kind" in cls.model_fields else ""
        )
        yield from (
            f"## `{name}`" + (f" = {kinds}" if kinds and len(choices) > 1 else ""),
            "",
            f"{inspect.getdoc(cls)}",
            "",
            "| option | values | default | meaning |",
            "|---|---|---|---|",
        )
        meanings = _meanings(cls)
        for key in options:
            field = cls.model_fields[key]
            default = field.default
            if within := option_classes(field.annotation):
                default, inner[key] = default.kind, within
            shown = "none" if default is None else f"`{default}`"
            yield f"| `{name}.{key}` | {_allowed(field, within)} | {shown} | {meanings[key]} |"
        yield ""
    for key, within in inner.items():
        yield from _describe(f"{name}.{key}", within, described)


def _allowed(field: Any, choices: list[type[Options]]) -> str:
    """Return which values an option takes."""
    if choices:
        return " ".join(f"`{kind}`" for choice in choices for kind in allowed(choice, "kind"))
    if get_origin(field.annotation) is Literal:
        return " ".join(f"`{literal}`" for literal in get_args(field.annotation))
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
