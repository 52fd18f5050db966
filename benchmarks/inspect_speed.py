"""How long `regard inspect` takes on a corpus, and how much memory.

python benchmarks/inspect_speed.py train.fr.gz train.en.gz
"""

import json
import resource
import subprocess
import sys
import time


def main() -> None:
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "regard", "inspect", *sys.argv[1:], "--json"],
        stdout=subprocess.PIPE,
        check=True,
    )
    seconds = time.perf_counter() - started
    report = json.loads(done.stdout)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    problems = {rule: problem["count"] for rule, problem in report["problems"].items()}
    print(
        f"{report['pairs']:,} pairs in {seconds:.1f} s ({report['pairs'] / seconds:,.0f} pairs/s), {peak:.0f} MiB at most"
    )
    print(f"problems: {problems or 'none'}; shifts: {report['shifts'] or 'none'}")


if __name__ == "__main__":
    main()
