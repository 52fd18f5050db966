"""Running the server: its sockets, its signals, its log."""

import asyncio
import contextlib
import logging
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from regard.errors import ConfigError
from regard.server.app import build_app
from regard.server.service import Service
from regard.server.settings import ServerOptions

_log = logging.getLogger("regard.server")

_BACKLOG = 2048  # connections that wait to be accepted


def serve(
    models: Mapping[str, Path], options: ServerOptions, on_ready: Callable[[str], object] | None = None
) -> None:
    """Serve until a signal ends it; SIGHUP reads the models again. `on_ready` is given the address."""
    listener = _listen(options)
    _raise_file_limit()
    service = Service(models, options)
    try:
        config = uvicorn.Config(
            build_app(service),
            http=_protocol(options),
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            proxy_headers=options.proxy is not None,
            forwarded_allow_ips=options.proxy or "",
            timeout_graceful_shutdown=round(options.deadline),
            backlog=_BACKLOG,
        )
        server = uvicorn.Server(config)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_run(server, service, listener, on_ready))
    finally:
        service.close()
        listener.close()


async def _run(
    server: uvicorn.Server,
    service: Service,
    listener: socket.socket,
    on_ready: Callable[[str], object] | None,
) -> None:
    loop = asyncio.get_running_loop()
    reloading: set[asyncio.Task[None]] = set()

    async def reload() -> None:
        try:
            await asyncio.to_thread(service.reload)
            _log.info("the models were read again")
        except Exception as error:
            _log.error("the models were not read again: %s", error)

    def begin() -> None:
        if not reloading:
            task = loop.create_task(reload())
            reloading.add(task)
            task.add_done_callback(reloading.discard)

    loop.add_signal_handler(signal.SIGHUP, begin)
    listener.listen(_BACKLOG)  # who reads the address below can connect
    names = ", ".join(service.served.models)
    host, port, *_ = listener.getsockname()
    shown = f"[{host}]" if ":" in host else host
    print(
        f"regard serves {names} at http://{shown}:{port} (documentation: /docs)", file=sys.stderr, flush=True
    )
    if on_ready is not None:
        loop.run_in_executor(None, on_ready, f"http://{shown}:{port}/")
    with contextlib.suppress(KeyboardInterrupt):
        await server.serve(sockets=[listener])


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's if it is installed, None for the usual one."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _listen(options: ServerOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"cannot serve at {options.host}:{options.port} ({reason}); choose another --port"
        ) from None
    return listener


def _raise_file_limit() -> None:
    """Allow as many open sockets as the system lets us."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _protocol(options: ServerOptions) -> type[HttpToolsProtocol]:
    """Return HTTP with deadlines: a request must arrive, and its answer be taken, within some seconds."""

    class Protocol(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._expect(options.receive_seconds)

        def connection_lost(self, exc: Exception | None) -> None:
            self._expect(None)
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            if self._timer is None:
                self._expect(options.receive_seconds)

        def on_message_complete(self) -> None:
            super().on_message_complete()
            self._expect(options.deadline + 2 * options.receive_seconds)

        def on_response_complete(self) -> None:
            self._expect(None)
            super().on_response_complete()

        def _expect(self, seconds: float | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None if seconds is None else self.loop.call_later(seconds, self._give_up)

        def _give_up(self) -> None:
            if self.transport is not None:
                self.transport.abort()

    return Protocol


class JsonLines(logging.Formatter):
    """Log records as lines of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        import json

        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
        }
        message = record.getMessage()
        line |= json.loads(message) if message.startswith("{") else {"message": message}
        if record.exc_info:
            line["fault"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
