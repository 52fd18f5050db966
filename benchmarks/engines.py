"""How fast models are in each of our engines: milliseconds a line, together and one by one, in turn.

    python benchmarks/engines.py text.fr a.regard b.regard --lines 100 [--engines numpy ctranslate2] [--rounds 3]

One thread, without the guard. With several models the first one's speed is 1.
"""

import argparse
import statistics
import time
from pathlib import Path

from regard.engines import Compute
from regard.loaded import Loaded
from regard.translate.translator import IN_THIS_THREAD, Translator

NUM_ALONE = 10


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--lines", type=int, default=100)
    parser.add_argument("--engines", nargs="+", default=["numpy", "ctranslate2"])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    lines = arguments.text.read_text("utf-8").splitlines()[: arguments.lines]
    for engine in arguments.engines:
        compute = Compute(engine, num_threads=1)
        opened = {
            name: Translator(Loaded.open(name, compute=compute), IN_THIS_THREAD) for name in arguments.models
        }
        for beam in (1, 5):
            for title, jobs in (("together", [lines]), ("one by one", [[one] for one in lines[:NUM_ALONE]])):
                spent: dict[str, list[float]] = {name: [] for name in opened}
                for _ in range(arguments.rounds + 1):
                    for name, translator in opened.items():
                        start = time.process_time()
                        for job in jobs:
                            translator.translate(job, beam_size=beam, guard=False)
                        spent[name].append(1000 * (time.process_time() - start) / sum(map(len, jobs)))
                first = spent[arguments.models[0]][1:]
                for name, times in spent.items():
                    ratio = statistics.median(a / b for a, b in zip(first, times[1:], strict=True))
                    print(
                        f"{engine:12} beam {beam}  {title:10}  {Path(name).stem:12} "
                        f"{statistics.median(times[1:]):7.2f} ms a line  {ratio:.2f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
