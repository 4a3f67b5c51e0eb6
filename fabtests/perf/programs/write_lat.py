# SPDX-License-Identifier: BSD-3-Clause
"""Half a round trip of writes: each side spins on its memory."""

from fabtests.perf.kinds import Kind

__all__ = ["KIND"]

KIND = Kind(title="RDMA_Write Latency Test", operation="write", latency=True)
