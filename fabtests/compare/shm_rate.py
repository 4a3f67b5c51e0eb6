# SPDX-License-Identifier: BSD-3-Clause
"""The case of many small messages over shared memory."""

from fabtests.compare.entrants import MPI, UCX
from fabtests.compare.windows import Rates

__all__ = ["ShmRate"]


class ShmRate(Rates):
    """How many messages go through; UCX sends one after the other, without an acknowledgement in between."""

    name = "shm-rate"
    provider = "shm"
    modes = ("native", "request")
    sizes = (8, 1024)
    peers = (MPI, UCX)
