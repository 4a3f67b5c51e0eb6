# SPDX-License-Identifier: BSD-3-Clause
"""Registrations that a cache drops: not here."""

from fabtests.base.absent import absent

PROGRAM = absent(
    "Registrations that a cache drops.",
    "capability mr_cache: ofipy registers what it is told to, and keeps none",
)
