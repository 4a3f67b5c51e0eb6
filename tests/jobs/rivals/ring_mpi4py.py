# SPDX-License-Identifier: BSD-3-Clause
"""The ring all-reduce of docs/how-to over mpi4py."""

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
left, right = (rank - 1) % size, (rank + 1) % size


def all_reduce(array: npt.NDArray[np.float64]) -> None:
    parts = np.array_split(array, size)
    room = np.empty_like(parts[0])
    for step in range(2 * (size - 1)):
        summing = step < size - 1
        mine, next_one = parts[(rank - step) % size], parts[(rank - step - 1) % size]
        into = room[: len(next_one)] if summing else next_one
        comm.Sendrecv(mine, right, recvbuf=into, source=left)
        if summing:
            next_one += into


array = np.full(1_000_000, rank + 1.0)
all_reduce(array)
if rank == 0:
    print(array.min(), array.max())
