"""How fast the live page is: first paint, a step, a change, in a real browser on this machine.

    python benchmarks/page.py [--rounds 7] [--file]

Starts `regard serve` on a free port, or with --file writes the page with its models to one file; opens it in
headless Chromium and prints the median of each, and the longest time for which the page could not be moved.
"""

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from regard.trace.live import LivePage

MODELS = ("fr-en-rnn", "fr-en-luong", "fr-en")
TEXT = "L'accord sur la zone économique européenne a été signé en août 1992."
STEP = """() => {
  const begun = performance.now();
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "]" }));
  document.body.getBoundingClientRect();
  return performance.now() - begun;
}"""


WATCH = """() => {
  window.longest = 0;
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
  }).observe({ entryTypes: ["longtask"] });
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--file", action="store_true", help="the page in one file, without a server")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.file:
            path = Path(folder) / "page.html"
            LivePage.of(*MODELS).save(path)
            measure(path.as_uri(), options.rounds)
            return
        log = Path(folder) / "log"
        with log.open("w") as stream:
            server = subprocess.Popen(
                [sys.executable, "-m", "regard", "serve", "--port", "0", "--quiet"], stderr=stream
            )
        try:
            while not (found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text())):
                time.sleep(0.05)
            measure(f"{found[0]}/", options.rounds)
        finally:
            server.terminate()
            server.wait()


def measure(url: str, rounds: int) -> None:
    """Print the medians."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for model in MODELS:
            paints, steps, changes, longest = [], [], [], []
            for _ in range(rounds):
                shown = browser.new_page()
                begun = time.perf_counter()
                shown.goto(f"{url}#m={model}&s={TEXT}")
                shown.wait_for_selector(".target .chip")
                paints.append(time.perf_counter() - begun)
                shown.wait_for_selector("body.ready")
                steps += [shown.evaluate(STEP) / 1000 for _ in range(5)]
                shown.evaluate(WATCH)
                begun = time.perf_counter()
                shown.locator(".source .chip").nth(5).press("1")
                shown.wait_for_selector(".changes .now")
                shown.wait_for_selector('.go[aria-busy="false"]')
                changes.append(time.perf_counter() - begun)
                longest.append(shown.evaluate("window.longest"))
                shown.close()
            paint, step, change = (1000 * statistics.median(one) for one in (paints, steps, changes))
            print(
                f"{model:12} useful paint {paint:4.0f} ms, step {step:3.0f} ms, change {change:4.0f} ms, "
                f"longest task of a change {statistics.median(longest):3.0f} ms"
            )
        browser.close()


if __name__ == "__main__":
    main()
