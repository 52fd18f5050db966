"""Options from plain values, with an error that names the key."""

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from regard.errors import ConfigError
from regard.options.model import ModelOptions
from regard.options.search import SearchOptions
from regard.options.section import Options, nearest, option_classes
from regard.options.text import BatchOptions, TokenizerOptions
from regard.options.training import TrainOptions

SECTIONS: dict[str, Any] = {
    "tokenizer": TokenizerOptions,
    "batch": BatchOptions,
    "model": ModelOptions,
    "train": TrainOptions,
    "search": SearchOptions,
}


def parse(section: str, values: Mapping[str, Any]) -> Any:
    """Return the options of a section from plain values, or raise an error that names the key."""
    try:
        return _adapter(section).validate_python(values)
    except ValidationError as error:
        raise ConfigError(_explain(section, error)) from None


@cache
def _adapter(section: str) -> TypeAdapter[Any]:
    return TypeAdapter(SECTIONS[section])


def _explain(section: str, error: ValidationError) -> str:
    """Return one line for the first thing that is wrong: the key, the value, and what would be right."""
    problem = error.errors()[0]
    cls, path = _find(section, problem["loc"])
    key, value = ".".join(path), problem["input"]
    if problem["type"] == "union_tag_invalid":
        kinds = [kind for choice in _choices_of(cls, section, path) for kind in allowed(choice, "kind")]
        return f"{key}.kind = {value.get('kind')!r} is not valid; {nearest(str(value.get('kind')), kinds)}"
    if problem["type"] == "extra_forbidden":
        return f"{key} does not exist; {nearest(path[-1], list(cls.model_fields))}"
    if problem["type"] == "literal_error":
        return f"{key} = {value!r} is not valid; {nearest(str(value), allowed(cls, path[-1]))}"
    if problem["type"] == "value_error":
        return f"{key} is not valid; {problem['ctx']['error']}"
    return f"{key} = {value!r} is not valid; {problem['msg'][0].lower()}{problem['msg'][1:]}"


def _find(section: str, location: tuple[int | str, ...]) -> tuple[type[Options], list[str]]:
    """Return the innermost option class of a location, and the keys on the way there.

    pydantic's locations name the kind of each choice as well as the key; a user knows the keys only.
    """
    path, choices = [section], option_classes(SECTIONS[section])
    cls = choices[0]
    for part in map(str, location):
        if len(choices) > 1 and (chosen := [choice for choice in choices if part in allowed(choice, "kind")]):
            cls, choices = chosen[0], chosen
            continue
        path.append(part if part.isprintable() else repr(part))
        if part in cls.model_fields and (inner := option_classes(cls.model_fields[part].annotation)):
            choices = inner
    return cls, path


def _choices_of(cls: type[Options], section: str, path: list[str]) -> list[type[Options]]:
    return option_classes(SECTIONS[section] if len(path) == 1 else cls.model_fields[path[-1]].annotation)


def allowed(cls: type[Options], key: str) -> list[str]:
    """Return the values that an option with a closed choice takes."""
    return [str(value) for value in get_args(cls.model_fields[key].annotation)]
