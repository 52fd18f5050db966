"""`regard serve`: an HTTP server that other programs already speak to."""

import argparse
from pathlib import Path

from regard.cli.settings import add_compute, read_compute, read_time
from regard.errors import ConfigError
from regard.starter import chosen_models

NAME = "serve"
HELP = "translate for other programs, over HTTP"
DESCRIPTION = (
    "Serves models over HTTP: LibreTranslate's API, DeepL's, OpenAI's, and our own with alignment and\n"
    "traces. It listens on this machine only, unless --host says otherwise. Without models it serves the\n"
    "bundled ones. SIGHUP reads the model files again; SIGTERM finishes what was asked and ends."
)
EXAMPLES = """examples:
  regard serve
  regard serve fr-en mine.regard --port 8080
  regard serve --suggestions corrections.db
  regard serve --keys keys.tsv --add-key alice
  regard serve --host 0.0.0.0 --keys keys.tsv --rate 100000
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "models", type=Path, nargs="*", metavar="MODEL", help="model file, or name of a bundled model"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=5000, help="port to listen on (default: 5000)")
    parser.add_argument(
        "--workers", type=int, metavar="N", help="processes that translate (default: one a processor)"
    )
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--max-characters", type=int, default=5000, metavar="N", help="of one text (default: 5000)"
    )
    limits.add_argument(
        "--max-texts", type=int, default=128, metavar="N", help="of one request (default: 128)"
    )
    limits.add_argument(
        "--max-body", type=int, default=1 << 20, metavar="BYTES", help="of one request (default: 1 MiB)"
    )
    limits.add_argument(
        "--max-document",
        type=int,
        default=200_000,
        metavar="N",
        help="characters of a document (default: 200000)",
    )
    limits.add_argument(
        "--max-waiting", type=int, default=256, metavar="N", help="texts in the queue (default: 256)"
    )
    limits.add_argument(
        "--deadline", default="30s", metavar="TIME", help="until a request is given up (default: 30s)"
    )
    limits.add_argument(
        "--rate",
        type=int,
        default=1_000_000,
        metavar="N",
        help="characters of a client in a minute (default: 1000000)",
    )
    access = parser.add_argument_group("access")
    access.add_argument(
        "--keys", type=Path, metavar="FILE", help="require an API key; the file has their hashes"
    )
    access.add_argument(
        "--add-key", metavar="NAME", help="make a key, add its hash to --keys, print it, and end"
    )
    access.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="URL",
        help="a site whose pages may call the server",
    )
    access.add_argument("--proxy", metavar="ADDRESS", help="believe X-Forwarded-For from this address")
    access.add_argument(
        "--suggestions", type=Path, metavar="FILE", help="keep corrections in this SQLite file"
    )
    access.add_argument(
        "--glossaries", type=Path, metavar="FILE", help="keep the glossaries of clients in this SQLite file"
    )
    add_compute(parser)
    parser.add_argument("--quiet", action="store_true", help="log faults only")
    parser.add_argument("--log-texts", action="store_true", help="write texts and translations into the log")


def need_packages() -> None:
    """Raise an error if what serving needs is not installed."""
    try:
        import fastapi  # noqa: F401
        import httptools  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise ConfigError("serving needs more packages; install them with: pip install '.[serve]'") from None


def run(options: argparse.Namespace) -> None:
    """Serve."""
    need_packages()
    if options.add_key is not None:
        from regard.server.limits import add_key

        if options.keys is None:
            raise ConfigError("--add-key needs --keys FILE")
        print(add_key(options.keys, options.add_key))
        return
    _check(options)
    import logging
    import sys

    from regard.server.serve import JsonLines, serve
    from regard.server.settings import ServerOptions

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("regard").setLevel(logging.ERROR if options.quiet else logging.INFO)
    serve(
        chosen_models(options.models),
        ServerOptions(
            host=options.host,
            port=options.port,
            num_workers=options.workers,
            compute=read_compute(options),
            max_characters=options.max_characters,
            max_texts=options.max_texts,
            max_body=options.max_body,
            max_document=options.max_document,
            max_waiting=options.max_waiting,
            deadline=read_time(options.deadline, "--deadline"),
            rate=options.rate,
            keys=options.keys,
            suggestions=options.suggestions,
            glossaries=options.glossaries,
            origins=tuple(options.allow_origin),
            proxy=options.proxy,
            log_texts=options.log_texts,
        ),
    )


def _check(options: argparse.Namespace) -> None:
    for name in ("max_characters", "max_texts", "max_body", "max_document", "max_waiting", "rate", "workers"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ConfigError(f"--{name.replace('_', '-')} {value} is not valid; use 1 or more")
    if not 0 <= options.port < 1 << 16:
        raise ConfigError(f"--port {options.port} is not valid; use 0 to 65535")
    if "*" in options.allow_origin:
        raise ConfigError("--allow-origin * would let every web page use the server; name the sites")
