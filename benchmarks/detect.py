"""How often the detected language is right, and how sure it says it is, by the number of letters.

    python benchmarks/detect.py LANGUAGE=FILE LANGUAGE=FILE ... [--words 1]

Each file has a text a line. `--words N` cuts each text to its first N words. For a confidence that means something, the
last two columns agree.
"""

import argparse
from pathlib import Path

from regard.server.languages import detect

BINS = (4, 8, 16, 32, 64, 10_000)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", metavar="LANGUAGE=FILE")
    parser.add_argument("--words", type=int)
    options = parser.parse_args()
    files = dict(one.split("=", 1) for one in options.files)
    found: dict[int, list[tuple[bool, float]]] = {most: [] for most in BINS}
    for language, path in files.items():
        for line in Path(path).read_text("utf-8").splitlines():
            text = " ".join(line.split()[: options.words])
            num_letters = sum(sign.isalpha() for sign in text)
            if num_letters:
                code, confidence = detect(text, sorted(files))[0]
                found[next(most for most in BINS if num_letters <= most)].append(
                    (code == language, confidence)
                )
    print(f"{'letters':>10} {'texts':>8} {'right':>8} {'says':>8}")
    for most, some in found.items():
        if some:
            right, says = (sum(values) / len(some) for values in zip(*some, strict=True))
            print(f"{f'<= {most}':>10} {len(some):>8,} {right:>8.1%} {says:>8.1%}")


if __name__ == "__main__":
    main()
