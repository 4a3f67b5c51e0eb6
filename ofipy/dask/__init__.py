# SPDX-License-Identifier: BSD-3-Clause
"""Dask over ofipy: the addresses ``ofi://host:port`` of :mod:`distributed`.

Nothing of this is imported by ofipy; `distributed` finds it by its entry point, when a cluster is started with
``protocol="ofi"``.
"""

import dask.config

__all__ = ["DEFAULTS"]

DEFAULTS = {
    "distributed": {
        "comm": {
            "ofi": {
                "provider": None,  # None: as ofipy.open() chooses
                "queue": "256 MiB",  # bytes that a connection may have on their way before a write waits
                "linger": "10 s",  # how long a close waits for what is on its way
                "keep": "1 GiB",  # bytes of memory that frames came in, kept for the next ones
                "keep-for": "2 minutes",  # and how long
            }
        }
    }
}
"""Settings, as Dask's configuration has them (``DASK_DISTRIBUTED__COMM__OFI__PROVIDER`` and so on)."""

dask.config.update_defaults(DEFAULTS)
