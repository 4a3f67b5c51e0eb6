# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints of several contexts: not here."""

from fabtests.base.absent import absent

PROGRAM = absent(
    "Endpoints of several contexts.", "capability named_rx_ctx: several endpoints on one queue take its place"
)
