"""Options given as `key=value` on the command line."""

import tomllib
from typing import Any

from regard.errors import ConfigError


def read_setting(setting: str, form: str) -> tuple[list[str], Any]:
    """Return the key of a setting, by its parts, and its value as TOML would read it, or as it stands."""
    key, equals, text = setting.partition("=")
    if not equals or not key:
        raise ConfigError(f"--set {setting} is not valid; write {form}")
    try:
        return key.split("."), tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return key.split("."), text
