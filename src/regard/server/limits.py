"""Who may ask for how much: API keys and characters a minute."""

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict
from pathlib import Path

from regard.errors import ConfigError
from regard.files import writing
from regard.server.errors import ApiError

_MAX_CLIENTS = 10_000
_SEPARATOR = "\t"


class Keys:
    """API keys by name; the file has their hashes only."""

    def __init__(self, path: Path) -> None:
        self._hashes: dict[str, str] = {}
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            name, tab, digest = line.partition(_SEPARATOR)
            if not tab or len(digest.strip()) != 64:
                raise ConfigError(f"{path}: line {number}: write a name, a tab and a SHA-256 hash")
            self._hashes[name] = digest.strip().lower()

    def name_of(self, key: str) -> str | None:
        """Return the name of a key, None if it is wrong; the time it takes tells nothing of the keys."""
        given = _digest(key)
        found = None
        for name, digest in self._hashes.items():
            if hmac.compare_digest(given, digest):
                found = name
        return found


def add_key(path: Path, name: str) -> str:
    """Make a key, write its hash into the file, and return it."""
    if not name or _SEPARATOR in name or name.startswith("#") or not name.isprintable():
        raise ConfigError(f"the name of a key must be plain text, and this is {name!r:.40}")
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    if any(line.partition(_SEPARATOR)[0] == name for line in lines):
        raise ConfigError(f"{path}: has a key named {name!r}; choose another name, or delete its line")
    key = secrets.token_urlsafe(32)
    with writing(path) as (stream,):
        stream.writelines(f"{line}\n".encode() for line in [*lines, f"{name}{_SEPARATOR}{_digest(key)}"])
    path.chmod(0o600)
    return key


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class Rates:
    """Characters a minute for each client: a bucket that fills steadily and holds a minute's worth."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # characters left, and when

    def take(self, client: str, num_characters: int) -> None:
        """Count the characters, or raise when the client has had its share."""
        now = time.monotonic()
        left, then = self._buckets.pop(client, (float(self._per_minute), now))
        left = min(self._per_minute, left + (now - then) * self._per_minute / 60)
        # A text longer than a minute's worth is let through when the bucket is full.
        enough = left >= min(num_characters, self._per_minute)
        self._buckets[client] = (left - num_characters if enough else left), now
        while len(self._buckets) > _MAX_CLIENTS:
            self._buckets.popitem(last=False)
        if not enough:
            missing = min(num_characters, self._per_minute) - left
            wait = max(1, round(60 * missing / self._per_minute + 0.5))
            raise ApiError(
                429, f"more than {self._per_minute:,} characters a minute; try again in {wait} s", wait
            )


def client_of(address: str | None) -> str:
    """Return what stands for an address in the limits: of IPv6 the network, for one machine has many."""
    try:
        parsed = ipaddress.ip_address(address or "")
    except ValueError:
        return "unknown"
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
