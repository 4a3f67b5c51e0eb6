# SPDX-License-Identifier: BSD-3-Clause
"""Writes into memory of a side that does nothing."""

from fabtests.perf.kinds import Kind

__all__ = ["KIND"]

KIND = Kind(title="RDMA_Write BW Test", operation="write", latency=False, iterations=5000)
