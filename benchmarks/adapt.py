"""Adapt a model to new text, and measure what it gains there and what it forgets elsewhere.

The new text is divided by `regard adapt`; other test sets are measured with both models.

    python benchmarks/adapt.py en-fr --with manuals.tsv --time 10m --test tatoeba.en tatoeba.fr
"""

import argparse
import tempfile
from pathlib import Path

from regard.adapt import AFTER, BEFORE, Adapted, AdaptRequest, adapt
from regard.cli.adapt import report
from regard.cli.progress import progress
from regard.cli.settings import read_time
from regard.evaluation.run import evaluate
from regard.evaluation.testset import TestSet, read_test
from regard.training.display import open_display


def main() -> None:
    """Adapt and print the scores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--with", type=Path, nargs="+", required=True, dest="material")
    parser.add_argument("--general", type=Path, nargs="+", default=[])
    parser.add_argument("--time")
    parser.add_argument("--test", type=Path, nargs="+", action="append", default=[], metavar="FILE")
    parser.add_argument("--sentences", type=int, default=500, help="of each test set (default: 500)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "adapted.regard"
        seconds = read_time(options.time) if options.time else None
        request = AdaptRequest(options.model, tuple(options.material), out, tuple(options.general), seconds)
        adapted = adapt(request, open_display(), progress)
        tests = dict(adapted.tests)
        for files in options.test:
            whole = read_test(files)
            test = TestSet.of(whole.sources[: options.sentences], whole.references[: options.sentences])
            tests[files[0].name.split(".")[0]] = evaluate({BEFORE: options.model, AFTER: out}, test)
        print("\n".join(report(Adapted(out, adapted.trained, tests))))
        print(f"{adapted.trained.num_updates:,} updates in {adapted.trained.seconds / 60:.1f} minutes")


if __name__ == "__main__":
    main()
