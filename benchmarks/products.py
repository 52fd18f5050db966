"""Products of a weight matrix in blocks against the whole matrix: microseconds, one thread.

    OMP_NUM_THREADS=1 python benchmarks/products.py

Needs OpenBLAS with AVX-512; elsewhere `in_blocks` makes no blocks, and both are the same.
"""

import time
from collections.abc import Callable

import numpy as np

from regard.parallel import one_blas_thread
from regard.runtime.equations import in_blocks, linear

SHAPES = (
    (512, 58_000),
    (512, 2048),
    (2048, 512),
    (512, 512),
    (256, 12_000),
    (256, 1024),
    (192, 8000),
    (128, 8000),
)
ROWS = (1, 5, 16, 32, 64, 160, 320)
BUDGET = 2e9  # multiplications


def best(function: Callable[[], object], times: int) -> float:
    """Return the microseconds of the best of five rounds."""
    found = []
    for _ in range(6):
        start = time.perf_counter()
        for _ in range(times):
            function()
        found.append(1e6 * (time.perf_counter() - start) / times)
    return min(found[1:])


def main() -> None:
    random = np.random.default_rng(1)
    print("| weights (in, out) | " + " | ".join(f"{num} rows" for num in ROWS) + " |")
    print("|---|" + "---|" * len(ROWS))
    with one_blas_thread():
        for size, num_out in SHAPES:
            W = np.asfortranarray(random.normal(size=(num_out, size)).astype(np.float32))
            blocks, b = in_blocks(W), np.zeros(num_out, np.float32)
            cells = []
            for num_rows in ROWS:
                x = random.normal(size=(num_rows, size)).astype(np.float32)
                times = int(min(300, max(2, BUDGET / (x.size * num_out))))
                whole, by_block = (best(lambda M=M, x=x, b=b: linear(x, M, b), times) for M in (W, blocks))
                cells.append(f"{whole:,.0f} -> {by_block:,.0f} ({whole / by_block:.1f})")
            print(f"| {size}, {num_out} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
