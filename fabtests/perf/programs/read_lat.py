# SPDX-License-Identifier: BSD-3-Clause
"""Single reads, each until its completion."""

from fabtests.perf.kinds import Kind

__all__ = ["KIND"]

KIND = Kind(title="RDMA_Read Latency Test", operation="read", latency=True)
