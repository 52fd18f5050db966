"""Every option: its name, type, default, help and check, in one place.

A choice between designs is a choice between classes, told apart by `kind`,
so an option that means nothing for a design does not exist there.
`docs/options.md` is printed from these classes.
"""

import difflib
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from regard.errors import ConfigError
from regard.vocabulary import NUM_RESERVED


class Options(BaseModel):
    """A section of the configuration: frozen, and closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class SubwordOptions(Options):
    """Subwords by SentencePiece, learnt from the corpus."""

    kind: Literal["unigram", "bpe"] = "unigram"
    """`unigram` (Kudo 2018) or `bpe` (Sennrich et al. 2016)."""
    vocab_size: int = Field(8000, gt=NUM_RESERVED, le=1_000_000)
    """Number of pieces wanted, the reserved ones counted; a small corpus may give fewer."""
    joint: bool = True
    """One vocabulary for both languages; otherwise one for each."""


class WordOptions(Options):
    """Whole words, as in the first papers."""

    kind: Literal["word"] = "word"
    """Whole words."""
    vocab_size: int = Field(30_000, gt=NUM_RESERVED, le=1_000_000)
    """Number of words kept, most frequent first, the reserved ids counted."""
    joint: bool = False
    """One vocabulary for both languages; otherwise one for each."""
    unknown: Literal["bytes", "unk"] = "bytes"
    """A word outside the vocabulary becomes its bytes (nothing is lost) or `<unk>` (as in the papers)."""


class CharacterOptions(Options):
    """Letters, one by one."""

    kind: Literal["character"] = "character"
    """Single characters."""
    vocab_size: int = Field(4000, gt=NUM_RESERVED, le=1_000_000)
    """Number of characters kept, most frequent first, the reserved ids counted; others become bytes."""
    joint: bool = True
    """One vocabulary for both languages; otherwise one for each."""


TokenizerOptions = Annotated[SubwordOptions | WordOptions | CharacterOptions, Field(discriminator="kind")]


class BatchOptions(Options):
    """How pairs are gathered into batches."""

    batch_tokens: int = Field(4096, ge=1)
    """Most tokens in a batch, padding counted, on the longer of its two sides."""
    max_tokens: int = Field(256, ge=1)
    """Pairs with more tokens than this on either side are left out, and counted."""


SECTIONS: dict[str, Any] = {"tokenizer": TokenizerOptions, "batch": BatchOptions}


def parse(section: str, values: Mapping[str, Any]) -> Any:
    """Return the options of a section from plain values, or raise an error that names the key."""
    try:
        return TypeAdapter(SECTIONS[section]).validate_python({**_first_kind(section), **values})
    except ValidationError as error:
        raise ConfigError(_explain(section, error)) from None


def _first_kind(section: str) -> dict[str, str]:
    """Return the kind that is meant where none is named: the default of the first class."""
    kind = _classes(SECTIONS[section])[0].model_fields.get("kind")
    return {"kind": kind.default} if kind else {}


def _classes(section: Any) -> list[type[Options]]:
    if get_origin(section) is Annotated:
        section = get_args(section)[0]
    if get_origin(section) in (Union, types.UnionType):
        return list(get_args(section))
    return [section]


def _explain(section: str, error: ValidationError) -> str:
    """Return one line for the first thing that is wrong: the key, the value, and what would be right."""
    problem = error.errors()[0]
    classes = _classes(SECTIONS[section])
    kinds = {kind: cls for cls in classes if "kind" in cls.model_fields for kind in _choices(cls, "kind")}
    if problem["type"] == "union_tag_invalid":
        value = problem["input"].get("kind")
        return f"{section}.kind = {value!r} is not valid; {_nearest(str(value), list(kinds))}"
    key = str(problem["loc"][-1])
    if problem["type"] == "extra_forbidden":
        cls = kinds.get(str(problem["loc"][0]), classes[0])
        return f"{section}.{key} does not exist; {_nearest(key, list(cls.model_fields))}"
    if problem["type"] == "literal_error":
        cls = kinds.get(str(problem["loc"][0]), classes[0])
        return f"{section}.{key} = {problem['input']!r} is not valid; " + _nearest(
            str(problem["input"]), _choices(cls, key)
        )
    what = problem["msg"][0].lower() + problem["msg"][1:]
    return f"{section}.{key} = {problem['input']!r} is not valid; {what}"


def _choices(cls: type[Options], key: str) -> list[str]:
    return [str(choice) for choice in get_args(cls.model_fields[key].annotation)]


def _nearest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"choose from: {', '.join(known)}"


def reference() -> str:
    """Return the reference page of all options as Markdown; `docs/options.md` is this text."""
    lines = [
        "# Options",
        "",
        "Printed by `python -m regard.config > docs/options.md`; a test keeps it true.",
        "",
    ]
    for name, section in SECTIONS.items():
        for cls in _classes(section):
            lines += [
                f"## `{name}`: {cls.__doc__}",
                "",
                "| option | values | default | meaning |",
                "|---|---|---|---|",
            ]
            for key, field in cls.model_fields.items():
                if choices := get_args(field.annotation):
                    values = " ".join(f"`{choice}`" for choice in choices)
                else:
                    limits = ", ".join(
                        f"{sign} {getattr(limit, name):,}"
                        for limit in field.metadata
                        for name, sign in (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<="))
                        if hasattr(limit, name)
                    )
                    values = " ".join(filter(None, (getattr(field.annotation, "__name__", ""), limits)))
                lines.append(f"| `{name}.{key}` | {values} | `{field.default}` | {field.description} |")
            lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(reference(), end="")
