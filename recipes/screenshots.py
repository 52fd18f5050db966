"""Takes the pictures of the live page that stand in the documentation.

    python recipes/screenshots.py docs/figures

Starts `regard serve` with the bundled models on a free port and drives headless Chromium. One picture is of the
page in one file, opened from disk without a network. Pictures have 256 colours, which makes the files small.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from regard.trace.live import LivePage

TEXT = "L'accord sur la zone économique européenne a été signé en août 1992."
FILE = "page-file"
# name: address, width, height, dark, what is done first
PICTURES: dict[str, tuple[str, int, int, bool, str]] = {
    "page": ("open=", 1180, 640, False, "drag"),
    "page-dark": ("open=map", 1180, 1000, True, "drag"),
    "page-ko": ("open=map&lang=ko", 1180, 1000, False, ""),
    "page-phone": ("open=", 390, 1150, False, "drag"),
    FILE: ("open=map", 390, 960, False, "drag"),
    "page-compare": (
        "open=&c=1&s=Jane%20s'est%20rendue%20en%20Afrique%20en%20septembre%20dernier.",
        1180,
        870,
        False,
        "",
    ),
    "page-step": ("m=fr-en-luong&s=Je%20suis%20étudiant.&open=steps&step=5", 1180, 1100, False, ""),
    "page-heads": ("m=fr-en&open=heads", 1180, 1100, True, ""),
    "lesson-2-ko": ("lesson=2&lang=ko", 1180, 900, False, ""),
    "lesson-6": ("lesson=6", 1440, 950, False, "cards"),
    "lesson-13-dark": ("lesson=13", 1180, 1150, True, ""),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "log"
        with log.open("w") as stream:
            server = subprocess.Popen(
                [sys.executable, "-m", "regard", "serve", "--port", "0", "--quiet"], stderr=stream
            )
        try:
            while not (found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text())):
                time.sleep(0.05)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=shutil.which("chromium"), args=["--no-sandbox"]
                )
                file = Path(scratch) / "translator.html"
                LivePage.of("fr-en-rnn", "fr-en-fixed").save(file)
                for name in PICTURES:
                    take(browser, file.as_uri() if name == FILE else f"{found[0]}/", name, folder)
                browser.close()
        finally:
            server.terminate()
            server.wait()


def take(browser: Any, url: str, name: str, folder: Path) -> None:
    """Take one picture."""
    address, width, height, dark, first = PICTURES[name]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        locale="en-US",
        color_scheme="dark" if dark else "light",
    )
    context.set_default_timeout(120_000)
    context.set_offline(name == FILE)
    shown = context.new_page()
    shown.goto(f"{url}#{address}")
    shown.wait_for_selector("body.ready")
    shown.wait_for_selector(".target .chip")
    if first == "drag":
        start = shown.locator(".target .chip", has_text="European").bounding_box()
        end = shown.locator(".source .chip", has_text="économique").bounding_box()
        shown.mouse.move(start["x"] + 20, start["y"] + 15)
        shown.mouse.down()
        shown.mouse.move(end["x"] + 30, end["y"] + 15, steps=5)
        shown.mouse.up()
        shown.wait_for_selector(".changes .now")
        shown.mouse.move(1, 1)  # what is under the pointer is marked
    if first == "cards":
        for _ in range(2):
            shown.keyboard.press(".")
    shown.wait_for_selector('.go[aria-busy="false"]')
    shown.wait_for_timeout(500)
    path = folder / f"{name}.png"
    shown.screenshot(path=path)
    Image.open(path).convert("RGB").quantize(
        256, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE
    ).save(path, optimize=True)
    print(name)
    context.close()


if __name__ == "__main__":
    main()
