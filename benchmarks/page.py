"""How fast the live page is: first paint, a step, a change, in a real browser on this machine.

    python benchmarks/page.py [--rounds 7] [--file]

Starts `regard serve` on a free port, or with --file writes the page with its models to one file; opens it in
headless Chromium and prints the median of each, and the longest time for which the page could not be moved. A
change is measured at the first word of the translation, which costs a whole search, and at the fifth ("European").
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
WORDS = (1, 5)  # of the translation, which are told to look elsewhere
SETTLED = 1500  # milliseconds
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
    """Print the medians; of changes also what the browser's processes computed, which other work disturbs less."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        processes = browser.new_browser_cdp_session()

        def computed() -> float:
            """Seconds of processor time of all processes of the browser."""
            told = processes.send("SystemInfo.getProcessInfo")["processInfo"]
            return sum(one["cpuTime"] for one in told)

        for model in MODELS:
            paints, steps, longest = [], [], []
            changes: dict[int, list[tuple[float, float]]] = {word: [] for word in WORDS}
            for _ in range(rounds):
                shown = browser.new_page()
                begun = time.perf_counter()
                shown.goto(f"{url}#m={model}&s={TEXT}")
                shown.wait_for_selector(".target .chip")
                paints.append(time.perf_counter() - begun)
                shown.wait_for_selector("body.ready")
                shown.evaluate(WATCH)
                for word in WORDS:
                    shown.locator(".target .chip").nth(word - 1).click()
                    shown.wait_for_timeout(SETTLED)  # the effects of the translation before are there
                    begun, work = time.perf_counter(), computed()
                    shown.locator(".source .chip").nth(5).press("1")
                    shown.wait_for_selector(".changes .now")
                    shown.wait_for_selector('.go[aria-busy="false"]')
                    changes[word].append((time.perf_counter() - begun, computed() - work))
                    shown.wait_for_timeout(SETTLED)
                    shown.locator(".undo").click()
                    shown.wait_for_selector(".changes .now", state="detached")
                longest.append(shown.evaluate("window.longest"))
                shown.locator(".target .chip").first.click()
                steps += [shown.evaluate(STEP) / 1000 for _ in range(5)]
                shown.close()
            paint, step = (1000 * statistics.median(one) for one in (paints, steps))
            changed = "; ".join(
                f"change at word {word} {1000 * statistics.median(seconds):.0f} ms, processor {1000 * statistics.median(work):.0f} ms"
                for word, (seconds, work) in (
                    (word, zip(*took, strict=True)) for word, took in changes.items()
                )
            )
            print(
                f"{model:12} useful paint {paint:4.0f} ms, step {step:3.0f} ms; {changed}; "
                f"longest task {statistics.median(longest):3.0f} ms",
                flush=True,
            )
        browser.close()


if __name__ == "__main__":
    main()
