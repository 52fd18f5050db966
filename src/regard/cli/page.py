"""`regard page`: the page where a translation can be watched, questioned and changed."""

import argparse
from pathlib import Path

from regard.cli.serve import chosen_models, need_packages
from regard.errors import ConfigError

NAME = "page"
HELP = "watch a model translate, and change what it looks at, in a browser"
DESCRIPTION = (
    "Starts a server on this machine only and opens its page in the browser: translate any sentence, drag\n"
    "the gaze of a word to another, edit words, switch heads off, take thirteen lessons. Ctrl-C ends it."
)
EXAMPLES = """examples:
  regard page
  regard page mine.regard
  regard page --lessons my-course.json
  regard page --no-browser --port 8000
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
    parser.add_argument("--no-browser", action="store_true", help="print the address only")


def run(options: argparse.Namespace) -> None:
    """Serve the page and open it."""
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
