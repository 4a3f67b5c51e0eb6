# SPDX-License-Identifier: BSD-3-Clause
"""RDMA devices (InfiniBand, RoCE, iWARP) by libibverbs: see README.md beside this file."""

from ofipy._discovery.providers import Provider

provider = Provider(
    name="verbs",
    module="ofipy.providers.verbs._verbs",
)
