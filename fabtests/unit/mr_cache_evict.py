# SPDX-License-Identifier: BSD-3-Clause
"""Registrations that a cache drops when memory is unmapped: not here."""

from fabtests.base.absent import absent

PROGRAM = absent(
    "Registrations that a cache drops.",
    "capability mr_cache: verbs keeps up to 1,024 registrations, but each with its array and none by address",
)
