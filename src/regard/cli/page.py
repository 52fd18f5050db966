"""`regard page`: the page where a translation can be watched, questioned and changed."""

import argparse
from dataclasses import replace
from pathlib import Path

from regard.cli.serve import chosen_models, need_packages
from regard.errors import ConfigError

_MAX_BYTES = 40_000_000  # of a model: a browser has it in memory as text, as bytes and as numbers

NAME = "page"
HELP = "watch a model translate, and change what it looks at, in a browser"
DESCRIPTION = (
    "Starts a server on this machine only and opens its page in the browser: translate any sentence, drag\n"
    "the gaze of a word to another, edit words, switch heads off, take thirteen lessons. Ctrl-C ends it.\n"
    "With --out no server is started: the page is written to a file that translates by itself, offline."
)
EXAMPLES = """examples:
  regard page
  regard page mine.regard
  regard page --lessons my-course.json
  regard page --no-browser --port 8000
  regard page fr-en-rnn fr-en-fixed --out translator.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "models", type=Path, nargs="*", metavar="MODEL", help="model file, or name of a bundled model"
    )
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: a free one)")
    parser.add_argument(
        "--lessons", type=Path, metavar="FILE", help="lessons of your own, as docs/lessons.md describes them"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE.html", help="write one file with the models and an engine in it"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address only")


def run(options: argparse.Namespace) -> None:
    """Serve the page and open it, or write it."""
    if options.out is not None:
        _write(options)
        return
    need_packages()
    if not 0 <= options.port < 1 << 16:
        raise ConfigError(f"--port {options.port} is not valid; use 0 to 65535")
    import logging
    import webbrowser

    from regard.server.serve import serve
    from regard.server.settings import ServerOptions
    from regard.viewer.lessons import read_lessons

    lessons = None if options.lessons is None else read_lessons(options.lessons)
    logging.getLogger("regard").setLevel(logging.ERROR)
    serve(
        chosen_models(options.models),
        ServerOptions(port=options.port, lessons=lessons),
        None if options.no_browser else webbrowser.open,
    )


def _write(options: argparse.Namespace) -> None:
    """Write the page that translates by itself."""
    from regard.engines import NUMPY
    from regard.files import writing
    from regard.loaded import Loaded
    from regard.trace.live import facts
    from regard.viewer.lessons import read_lessons
    from regard.viewer.page import live_page

    if options.out.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--out {options.out}: end the name in .html")
    lessons = None if options.lessons is None else read_lessons(options.lessons)
    models = []
    for name, path in chosen_models(options.models).items():
        loaded = replace(Loaded.open(path, compute=NUMPY), name=name)
        data = path.read_bytes()
        if len(data) > _MAX_BYTES:
            raise ConfigError(
                f"{path}: has {len(data) / 1e6:.0f} MB, and a page holds models of up to "
                f"{_MAX_BYTES / 1e6:.0f} MB; use `regard serve`"
            )
        models.append((facts(loaded), data))
    page = live_page(models, lessons).encode()
    with writing(options.out) as (stream,):
        stream.write(page)
    names = ", ".join(one["name"] for one, _ in models)
    print(f"{options.out}: {names}; {len(page) / 1e6:.1f} MB. Open it in a browser.")
