# SPDX-License-Identifier: BSD-3-Clause
"""Device memory: not here."""

import errno

from fabtests.base.absent import absent

PROGRAM = absent("Device memory.", "capability hmem: device memory is refused by name", code=errno.ENODATA)
