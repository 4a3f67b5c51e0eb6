# SPDX-License-Identifier: BSD-3-Clause
"""The traffic class of an endpoint in every packet of its connections, as a capture of loopback has them."""

from __future__ import annotations

import socket
import struct

import pytest

import ofipy

ETH_P_ALL = 3
EXPEDITED = 0xB8
HEADER = 14  # of Ethernet, which loopback has, too


def read_packet(frame: bytes) -> tuple[int, int, int] | None:
    """Source port, destination port and traffic class of a packet of TCP, else None."""
    kind = struct.unpack_from("!H", frame, 12)[0]
    if kind == 0x0800 and frame[HEADER + 9] == socket.IPPROTO_TCP:
        length, traffic_class = 4 * (frame[HEADER] & 15), frame[HEADER + 1]
    elif kind == 0x86DD and frame[HEADER + 6] == socket.IPPROTO_TCP:
        length, traffic_class = 40, (frame[HEADER] & 15) << 4 | frame[HEADER + 1] >> 4
    else:
        return None
    source, destination = struct.unpack_from("!HH", frame, HEADER + length)
    return source, destination, traffic_class


@pytest.mark.usefixtures("privileged")
@pytest.mark.parametrize("node", ["127.0.0.1", "::1"])
def test_every_packet_has_it(node: str) -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as capture:
        capture.bind(("lo", ETH_P_ALL))
        with (
            ofipy.open(provider="tcp", node=node, traffic_class=EXPEDITED) as a,
            ofipy.open(provider="tcp", node=node) as b,
        ):
            a.tsend(b"there" * 50_000, a.insert(b.address), tag=1)
            assert b.trecv(tag=1).wait(timeout=20).length == 250_000
            b.tsend(b"back", b.insert(a.address), tag=2)
            assert a.trecv(tag=2).wait(timeout=20).data == b"back"
            port = int(str(b.address).rpartition(":")[2])
        capture.setblocking(False)
        sent, answered = [], []
        while True:
            try:
                packet = read_packet(capture.recv(1 << 17))
            except BlockingIOError:
                break
            if packet is not None and packet[1] == port:
                sent.append(packet[2])
            elif packet is not None and packet[0] == port:
                answered.append(packet[2])
    # The first packet of each side is that of the handshake.
    assert (set(sent), set(answered)) == ({EXPEDITED}, {0})
    assert len(sent) > 2
