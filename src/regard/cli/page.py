"""`regard page`: the page where a translation can be watched, questioned and changed."""

import argparse
from pathlib import Path

from regard.cli.serve import need_packages
from regard.errors import ConfigError
from regard.starter import chosen_models

NAME = "page"
HELP = "watch a model translate, and change what it looks at, in a browser"
DESCRIPTION = (
    "Starts a server on this machine only and opens its page in the browser: translate any sentence, drag\n"
    "the gaze of a word to another, edit words, switch heads off, take thirteen lessons. Ctrl-C ends it.\n"
    "With --out or --site no server is started: the page is written to one file, or to a folder for any\n"
    "web host, and translates by itself."
)
EXAMPLES = """examples:
  regard page
  regard page mine.regard
  regard page --lessons my-course.json
  regard page --no-browser --port 8000
  regard page fr-en-rnn fr-en-fixed --out translator.html
  regard page fr-en-rnn fr-en-fixed --site public
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
    parser.add_argument(
        "--site", type=Path, metavar="FOLDER", help="write a static site with the models and an engine in it"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address only")


def run(options: argparse.Namespace) -> None:
    """Serve the page and open it, or write it."""
    if options.out is not None or options.site is not None:
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
    from regard.trace.live import LivePage
    from regard.viewer.lessons import read_lessons

    if options.out is not None and options.out.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--out {options.out}: end the name in .html")
    lessons = None if options.lessons is None else read_lessons(options.lessons)
    page = LivePage.of(*options.models, lessons=lessons)
    names = ", ".join(facts["name"] for facts, _ in page.models)
    if options.site is not None:
        page.save_site(options.site)
        size = sum(len(data) for _, data in page.models) / 1e6
        print(f"{options.site}: {names}; {size:.1f} MB of models. Put the folder on a web host.")
    if options.out is not None:
        page.save(options.out)
        print(f"{options.out}: {names}; {options.out.stat().st_size / 1e6:.1f} MB. Open it in a browser.")
