# SPDX-License-Identifier: BSD-3-Clause
"""Tasks over dask.distributed: ``python tasks_dask.py``."""

import random

from distributed import Client


def hits(seed: int, throws: int = 100_000) -> int:
    draw = random.Random(seed).random
    return sum(draw() ** 2 + draw() ** 2 < 1 for _ in range(throws))


if __name__ == "__main__":
    with Client(n_workers=3, threads_per_worker=1) as client:
        total = sum(client.gather(client.map(hits, range(30))))
    print("pi is about", round(4 * total / 3_000_000, 2))
