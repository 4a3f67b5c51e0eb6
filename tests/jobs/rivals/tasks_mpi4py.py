# SPDX-License-Identifier: BSD-3-Clause
"""Tasks over mpi4py.futures: ``mpiexec -n 4 python -m mpi4py.futures tasks_mpi4py.py``."""

import random

from mpi4py.futures import MPIPoolExecutor


def hits(seed: int, throws: int = 100_000) -> int:
    draw = random.Random(seed).random
    return sum(draw() ** 2 + draw() ** 2 < 1 for _ in range(throws))


if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        total = sum(executor.map(hits, range(30)))
    print("pi is about", round(4 * total / 3_000_000, 2))
