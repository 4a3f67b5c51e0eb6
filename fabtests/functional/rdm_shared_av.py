# SPDX-License-Identifier: BSD-3-Clause
"""An address vector that processes share: not here."""

from fabtests.base.absent import absent

PROGRAM = absent(
    "An address vector that processes share.", "capability shared_av: each process inserts by itself"
)
