# SPDX-License-Identifier: BSD-3-Clause
"""Reads of memory of a side that does nothing."""

from fabtests.perf.kinds import Kind

__all__ = ["KIND"]

KIND = Kind(title="RDMA_Read BW Test", operation="read", latency=False)
