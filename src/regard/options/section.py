"""What all option classes share: frozen, closed to unknown keys, chosen by `kind`.

A choice between designs is a choice between classes, told apart by `kind`,
so an option that means nothing for a design does not exist there.
"""

import difflib
import types
from collections.abc import Mapping
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator


class Options(BaseModel):
    """A section of the configuration: frozen, and closed to unknown keys."""

    # Validators are built on first use, and the docstrings of options are read by reference.py alone:
    # both cost a tenth of a second at every start.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _none_by_name(cls, values: Any) -> Any:
        """Let `none` stand for no value where there may be none; TOML has no other word for it."""
        if not isinstance(values, Mapping):
            return values
        optional = {
            name for name, field in cls.model_fields.items() if type(None) in get_args(field.annotation)
        }
        return {key: None if key in optional and value == "none" else value for key, value in values.items()}


def named(first: str, **synonyms: str) -> BeforeValidator:
    """Let a bare word stand for a choice of that kind, and no kind for the first one."""

    def name_the_kind(value: Any) -> Any:
        if isinstance(value, str):
            value = {"kind": value}
        if isinstance(value, Mapping):
            kind = value.get("kind", first)
            value = {**value, "kind": synonyms.get(kind, kind) if isinstance(kind, str) else kind}
        return value

    return BeforeValidator(name_the_kind)


def option_classes(annotation: Any) -> list[type[Options]]:
    """Return the option classes an annotation offers; none if it is a plain value."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    members = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else [annotation]
    return [member for member in members if isinstance(member, type) and issubclass(member, Options)]


def nearest(word: str, known: list[str]) -> str:
    """Return the end of an error message about a name that is not known: the nearest that is, or all."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"choose from: {', '.join(known)}"
