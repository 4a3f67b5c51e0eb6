# SPDX-License-Identifier: BSD-3-Clause
"""Shared memory between processes of one host: see README.md beside this file."""

from ofipy._discovery.providers import Provider

provider = Provider(name="shm", module="ofipy.providers.shm._shm")
