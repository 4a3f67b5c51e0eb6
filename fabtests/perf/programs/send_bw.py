# SPDX-License-Identifier: BSD-3-Clause
"""Messages one way, or both."""

from fabtests.perf.kinds import Kind

__all__ = ["KIND"]

KIND = Kind(title="Send BW Test", operation="send", latency=False)
