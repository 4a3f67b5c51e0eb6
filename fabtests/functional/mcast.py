# SPDX-License-Identifier: BSD-3-Clause
"""Multicast: not here."""

import errno

from fabtests.base.absent import absent

PROGRAM = absent("Multicast.", "capability multicast: no provider of ofipy has it", code=errno.ENODATA)
