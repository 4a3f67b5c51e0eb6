# SPDX-License-Identifier: BSD-3-Clause
"""A passive endpoint that becomes an active one: not here."""

from fabtests.base.absent import absent

PROGRAM = absent(
    "A passive endpoint that becomes an active one.",
    "capability passive_to_active: the address would be all that is kept",
)
