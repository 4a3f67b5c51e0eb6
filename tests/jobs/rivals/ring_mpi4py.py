# SPDX-License-Identifier: BSD-3-Clause
"""The sum of an array of every process, over mpi4py."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
array = np.full(1_000_000, comm.rank + 1.0)
comm.Allreduce(MPI.IN_PLACE, array)
if comm.rank == 0:
    print(array.min(), array.max())
