# SPDX-License-Identifier: BSD-3-Clause
"""The halo exchange of docs/how-to over mpi4py."""

import numpy as np
from mpi4py import MPI

ROWS, COLUMNS, STEPS = 64, 64, 500

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
above = rank - 1 if rank > 0 else MPI.PROC_NULL
below = rank + 1 if rank < size - 1 else MPI.PROC_NULL

rows = ROWS // size
plate = np.zeros((rows + 2, COLUMNS))
exchange = []
for other, room, edge in ((above, plate[0], plate[1]), (below, plate[-1], plate[-2])):
    exchange += [comm.Recv_init(room, other), comm.Send_init(edge, other)]
if rank == 0:
    plate[0] = 100.0

for _ in range(STEPS):
    MPI.Prequest.Startall(exchange)
    MPI.Request.Waitall(exchange)
    plate[1:-1, 1:-1] = (plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]) / 4

heat = comm.reduce(plate[1:-1].sum())
if rank == 0:
    print(f"heat {heat:.6f}")
