"""What a server allows; every limit is on unless it is changed."""

from dataclasses import dataclass, field
from pathlib import Path

from regard.engines import Compute


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of a server."""

    host: str = "127.0.0.1"
    port: int = 5000
    num_workers: int | None = None
    """Processes that translate; None is one for each processor."""
    compute: Compute = field(default_factory=Compute)
    """Which engine translates, and in which precision."""
    max_characters: int = 5000
    """Of one text."""
    max_texts: int = 128
    """Of one request."""
    max_body: int = 1 << 20
    """Bytes of a request."""
    max_alternatives: int = 10
    max_waiting: int = 256
    """Texts that wait or are being translated; more are refused with 503."""
    deadline: float = 30.0
    """Seconds until a request is answered or given up."""
    receive_seconds: float = 10.0
    """Seconds in which a request must have arrived."""
    rate: int = 1_000_000
    """Characters of one client in a minute."""
    max_trace: int = 600
    """Characters of a text that is traced: a trace grows with the square of its sentences."""
    max_document: int = 200_000
    """Characters of a document."""
    document_seconds: float = 600.0
    """Seconds for which a document is kept after it was last asked for."""
    cache_characters: int = 200_000
    """Characters of sources whose translations are kept; 0 keeps none."""
    keys: Path | None = None
    """A file of API keys; with it every request needs one."""
    suggestions: Path | None = None
    """A SQLite file for the corrections that clients send."""
    max_suggestions: int = 100_000
    glossaries: Path | None = None
    """A SQLite file for the glossaries that clients keep; None keeps them in memory."""
    lessons: str | None = None
    """Lessons of the page, as JSON, instead of ours."""
    origins: tuple[str, ...] = ()
    """Web pages of other sites that may call the server."""
    proxy: str | None = None
    """Address of a proxy whose `X-Forwarded-For` is believed."""
    log_texts: bool = False
    """Whether the log holds what is translated."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches the server, and directly."""
        return self.host in ("127.0.0.1", "::1", "localhost") and self.proxy is None
