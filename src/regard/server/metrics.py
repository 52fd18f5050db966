"""Counts for Prometheus. No label holds an address, a key or a text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from regard.server.service import Service

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """What a server has done."""

    def __init__(self, service: "Service") -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "regard_requests", "Requests answered.", ("path", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "regard_request_seconds", "Time to answer.", ("path",), buckets=_SECONDS, registry=self._registry
        )
        self._characters = Counter("regard_characters", "Characters to translate.", registry=self._registry)
        self._texts = Counter("regard_texts", "Texts to translate.", registry=self._registry)
        self._cached = Counter("regard_cache_hits", "Texts translated before.", registry=self._registry)
        self._refused = Counter("regard_refused", "Requests refused.", ("why",), registry=self._registry)
        waiting = Gauge("regard_waiting", "Texts that are not done.", registry=self._registry)
        waiting.set_function(lambda: service.desk.num_waiting)

    def count_request(self, path: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def count_characters(self, texts: Sequence[str]) -> None:
        """Count what is to be translated."""
        self._texts.inc(len(texts))
        self._characters.inc(sum(map(len, texts)))

    def count_cached(self) -> None:
        """Count a text whose translation was kept."""
        self._cached.inc()

    def count_refused(self, why: str) -> None:
        """Count a request that a limit refused."""
        self._refused.labels(why).inc()

    @property
    def num_characters(self) -> int:
        """The characters counted so far."""
        return int(self._characters._value.get())

    def text(self) -> bytes:
        """Return everything in the format of Prometheus."""
        return generate_latest(self._registry)
