# SPDX-License-Identifier: BSD-3-Clause
"""Packets of the connection manager on the cable between the hosts.

A packet has headers of Ethernet, IPv4 and UDP, two of InfiniBand (BTH, DETH), and a MAD: InfiniBand specification,
volume 1, 12.6 (messages of the connection manager) and 13.4.3 (a MAD's header), and annex A17 (RoCE v2).
"""

import socket
import struct
import threading
import zlib
from collections import Counter
from typing import Self

ETHERNET, IP, UDP, BTH, DETH, MAD = 14, 20, 8, 12, 8, 256
START = IP + UDP + BTH + DETH  # of the MAD, behind the header of Ethernet
PORT = 4791
# Places in the MAD.
CLASS, TRANSACTION, ATTRIBUTE, CONVERSATION, QUEUE_PAIR, REASON = 1, 8, 16, 24, 56, 34
CONNECTION_MANAGER = 7
REQUEST, REJECTION = 0x10, 0x12
STALE = 10  # the reason of a rejection: the queue pair is in a connection already

_ALL_PROTOCOLS = 3
_FORCED_BUFFER = 33  # SO_RCVBUFFORCE
_BUFFER_BYTES = 64 << 20
_PACKET_LEVEL, _STATISTICS = 263, 6  # SOL_PACKET, PACKET_STATISTICS


def listen() -> socket.socket:
    """What leaves and arrives by eth0, from now on."""
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
    wire.setsockopt(socket.SOL_SOCKET, _FORCED_BUFFER, _BUFFER_BYTES)
    wire.bind(("eth0", _ALL_PROTOCOLS))
    return wire


def mad_of(packet: bytes, kind: int) -> bytes | None:
    """The MAD of a packet from its IP header on, if it is one of the connection manager, of this kind."""
    mad = packet[START : START + MAD]
    if len(mad) != MAD or packet[IP + 2 : IP + 4] != PORT.to_bytes(2, "big"):
        return None
    if mad[CLASS] != CONNECTION_MANAGER or mad[ATTRIBUTE : ATTRIBUTE + 2] != kind.to_bytes(2, "big"):
        return None
    return mad


def checksum(packet: bytes) -> bytes:
    """The last four bytes of a packet: a CRC over all but what routers change."""
    masked = bytearray(packet)
    masked[1] = masked[8] = 0xFF
    masked[10:12] = b"\xff\xff"
    masked[IP + 6 : IP + UDP] = b"\xff\xff"
    masked[IP + UDP + 4] = 0xFF
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + masked))


class Rejections:
    """Counts the rejections between the hosts, in a thread: the kernels' own and the programs'."""

    def __init__(self) -> None:
        self._reasons: Counter[int] = Counter()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> Self:
        self._wire = listen()
        self._wire.settimeout(0.2)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._wire.close()

    def _read(self) -> None:
        while True:
            try:
                packet = self._wire.recv(65536)
            except TimeoutError:
                if self._over.is_set():
                    return
                continue
            mad = mad_of(packet[ETHERNET:], REJECTION)
            if mad is not None:
                self._reasons[int.from_bytes(mad[REASON : REASON + 2], "big")] += 1

    @property
    def reasons(self) -> Counter[int]:
        """How many there were for each reason so far."""
        return Counter(self._reasons)

    def finish(self) -> Counter[int]:
        """Count all that has come, and stop; none was missed."""
        self._over.set()
        self._thread.join()
        missed = struct.unpack("=II", self._wire.getsockopt(_PACKET_LEVEL, _STATISTICS, 8))[1]
        assert missed == 0, f"{missed} packets were not seen"
        return self.reasons
