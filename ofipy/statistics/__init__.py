# SPDX-License-Identifier: BSD-3-Clause
"""The counters of the processes of this host, read from their statistics pages.

Nothing of it is imported by ``import ofipy``.
"""

from ofipy.statistics.reader import Reader
from ofipy.statistics.records import Endpoint, Messages, Peer, Process, Snapshot

__all__ = ["Endpoint", "Messages", "Peer", "Process", "Reader", "Snapshot"]
