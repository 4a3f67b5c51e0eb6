# SPDX-License-Identifier: BSD-3-Clause
"""Atomic operations on memory of a side that does nothing."""

from fabtests.perf.kinds import Kind

__all__ = ["KIND"]

KIND = Kind(title="Atomic BW Test", operation="atomic", latency=False)
