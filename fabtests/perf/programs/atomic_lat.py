# SPDX-License-Identifier: BSD-3-Clause
"""Single atomic operations, each until its completion."""

from fabtests.perf.kinds import Kind

__all__ = ["KIND"]

KIND = Kind(title="Atomic Latency Test", operation="atomic", latency=True)
