"""What the guard costs on lines that make no sense, as a ratio to the plain search, in one run.

    python benchmarks/garbage.py fr-en [--lines 60]

Lines of random characters, one word of 2,000 letters, and one word said 400 times; processor time of one thread.
"""

import argparse
import random
import string
import time

from regard.loaded import Loaded
from regard.translate.translator import IN_THIS_THREAD, Translator


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--lines", type=int, default=60)
    arguments = parser.parse_args()
    draw = random.Random(5)
    signs = string.ascii_letters + string.digits + string.punctuation + "      éàü€日"
    noise = ["".join(draw.choices(signs, k=draw.randint(20, 120))) for _ in range(arguments.lines)]
    translator = Translator(Loaded.open(arguments.model), IN_THIS_THREAD)
    for name, texts in (
        ("random characters", noise),
        ("one long word", ["a" * 2000]),
        ("one word", ["chat " * 400]),
    ):
        seconds, words = [], []
        for guard in (False, True):
            start = time.process_time()
            found = translator.translate(texts, guard=guard)
            seconds.append(time.process_time() - start)
            words.append(sum(len(one.text.split()) for one in found))
        print(
            f"{name}: {seconds[1]:.1f} s with the guard, {seconds[0]:.1f} s without, ratio {seconds[1] / seconds[0]:.2f}; "
            f"words {words[1]:,} and {words[0]:,} from {sum(len(text.split()) for text in texts):,}",
            flush=True,
        )


if __name__ == "__main__":
    main()
