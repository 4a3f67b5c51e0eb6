# SPDX-License-Identifier: BSD-3-Clause
"""Half a round trip of messages."""

from fabtests.perf.kinds import Kind

__all__ = ["KIND"]

KIND = Kind(title="Send Latency Test", operation="send", latency=True)
