# SPDX-License-Identifier: BSD-3-Clause
"""Cases of encrypted connections: beside OpenSSL alone, and beside ofipy without encryption."""

from fabtests.compare.case import Case, Cell, Line
from fabtests.compare.entrants import ENCRYPTED, OPENSSL, UNENCRYPTED, Entrant
from fabtests.compare.latency import Latency
from fabtests.compare.windows import Windows

__all__ = ["TlsBandwidth", "TlsLatency"]


class Encrypted(Case):
    """ofipy over TCP with ``OFIPY_ENCRYPTION=required``, through the loopback interface."""

    provider = "tcp"
    peers = (OPENSSL, UNENCRYPTED)

    @property
    def own(self) -> Entrant:
        """Ofipy that encrypts."""
        return ENCRYPTED

    def peer_cells(self, line: Line) -> dict[str, Cell]:
        """OpenSSL has one way; ofipy without encryption does the same as with it."""
        return {
            OPENSSL.name: Cell(OPENSSL, "plain", line.size),
            UNENCRYPTED.name: Cell(UNENCRYPTED, line.mode, line.size),
        }


class TlsLatency(Encrypted, Latency):
    """What encryption costs a small message."""

    name = "tls-latency"


class TlsBandwidth(Encrypted, Windows):
    """What it costs a large one."""

    name = "tls-bandwidth"
    modes = ("array",)
    sizes = (65536, 1 << 20, 4 << 20)
