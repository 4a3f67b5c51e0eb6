# SPDX-License-Identifier: BSD-3-Clause
"""Bare sockets between two hosts: one stream for bandwidth, datagrams that may not be fragmented for the MTU.

The listening sides live for one measurement. A caller must say a token first, which travelled over the endpoint that
has proved the key.
"""

import hmac
import socket
import struct
import time
from dataclasses import dataclass

__all__ = [
    "CHUNK",
    "PATIENCE",
    "TOKEN",
    "StreamInfo",
    "accept_stream",
    "connect_stream",
    "listen_stream",
    "probe_socket",
    "read_info",
    "receive_for",
    "resolve",
    "resolve_all",
    "route_mtu",
    "send_for",
    "send_probes",
]

CHUNK = 1 << 20
"""Bytes of one call."""
TOKEN = 16
"""Bytes that a caller says first."""
PATIENCE = 10.0
"""Seconds without progress after which a measurement ends."""
_MTU = {
    socket.AF_INET: (socket.IPPROTO_IP, 14),
    socket.AF_INET6: (socket.IPPROTO_IPV6, 24),
}  # IP_MTU, IPV6_MTU
_DISCOVER = {socket.AF_INET: (socket.IPPROTO_IP, 10), socket.AF_INET6: (socket.IPPROTO_IPV6, 23)}
_PROBE = 3  # IP_PMTUDISC_PROBE: never fragment, and believe no stored path MTU
# Of struct tcp_info (linux/tcp.h), which only grows at its end.
_INFO = 256
_MSS, _RETRANSMITTED, _SEGMENTS, _DELIVERED, _MARKED, _DUPLICATES = 16, 100, 156, 192, 196, 216


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """What the kernel says of the sending side of a connection."""

    segment: int
    """Bytes of payload in the largest segment."""
    segments: int
    """With payload, repetitions among them."""
    repeated: int
    """Sent again, without those that had arrived the first time."""
    delivered: int
    marked: int
    """Of those delivered, how many came with a mark of congestion."""


def read_info(connection: socket.socket) -> StreamInfo:
    """The kernel's counters of this connection; 0 where it is too old to count."""
    data = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO)

    def number(offset: int) -> int:
        return int(struct.unpack_from("=I", data, offset)[0]) if len(data) >= offset + 4 else 0

    return StreamInfo(
        segment=number(_MSS),
        segments=number(_SEGMENTS),
        repeated=max(0, number(_RETRANSMITTED) - number(_DUPLICATES)),
        delivered=number(_DELIVERED),
        marked=number(_MARKED),
    )


def resolve(host: str, kind: socket.SocketKind) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """Family and address of a host; the port is to be filled in.

    Raises
    ------
    OSError
        When there is no such host.
    """
    family, _, _, _, place = socket.getaddrinfo(host, 0, type=kind)[0]
    return family, (str(place[0]), 0)


def resolve_all(host: str) -> frozenset[str]:
    """Every address of a host; none if it is not known."""
    try:
        return frozenset(str(each[4][0]) for each in socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM))
    except OSError:
        return frozenset()


def listen_stream(address: str) -> socket.socket:
    """Listen for one connection at any port of this address; empty: of all."""
    family = (
        socket.AF_INET6 if ":" in address or (not address and socket.has_dualstack_ipv6()) else socket.AF_INET
    )
    both = family == socket.AF_INET6 and not address
    return socket.create_server((address, 0), family=family, backlog=1, dualstack_ipv6=both)


def accept_stream(listener: socket.socket, token: bytes, seconds: float = PATIENCE) -> socket.socket:
    """The connection of who knows the token; others are turned away.

    Raises
    ------
    TimeoutError
        When nobody comes in time.
    """
    until = time.monotonic() + seconds
    while True:
        listener.settimeout(max(0.01, until - time.monotonic()))
        connection, _ = listener.accept()
        connection.settimeout(2.0)
        try:
            said = connection.recv(TOKEN, socket.MSG_WAITALL)
        except OSError:
            said = b""
        if hmac.compare_digest(said, token):
            connection.settimeout(PATIENCE)
            return connection
        connection.close()
        if time.monotonic() > until:
            raise TimeoutError("nobody who knows the token has connected")


def connect_stream(host: str, port: int, token: bytes, seconds: float = PATIENCE) -> socket.socket:
    """Connect to who listens, and say the token.

    Raises
    ------
    OSError
        When it cannot be reached.
    """
    connection = socket.create_connection((host, port), timeout=seconds)
    try:
        connection.settimeout(PATIENCE)
        connection.sendall(token)
    except BaseException:
        connection.close()
        raise
    return connection


def send_for(connection: socket.socket, seconds: float) -> tuple[int, float]:
    """Send for a time, and wait until the other side has received everything and says so.

    Returns
    -------
    tuple of int and float
        Bytes, and seconds until the answer.

    Raises
    ------
    OSError
        When the connection breaks, or nothing is received for :data:`PATIENCE`.
    """
    chunk = memoryview(bytes(CHUNK))
    begin = time.perf_counter()
    sent = 0
    while time.perf_counter() - begin < seconds:
        connection.sendall(chunk)
        sent += CHUNK
    connection.shutdown(socket.SHUT_WR)
    if connection.recv(1) != b"!":
        raise ConnectionError("the other side has ended the measurement")
    return sent, time.perf_counter() - begin


def receive_for(connection: socket.socket, most: float) -> int:
    """Receive until the sender ends, and answer. Returns the bytes.

    Parameters
    ----------
    connection : socket
        Of the sender.
    most : float
        Seconds after which it is not waited for any longer.

    Raises
    ------
    OSError
        When the connection breaks, or nothing comes for :data:`PATIENCE`, or it takes too long.
    """
    chunk = bytearray(CHUNK)
    until = time.monotonic() + most
    received = 0
    while count := connection.recv_into(chunk):
        received += count
        if time.monotonic() > until:
            raise TimeoutError("the sender does not end")
    connection.sendall(b"!")
    return received


def probe_socket(family: socket.AddressFamily, address: str) -> socket.socket:
    """A socket of datagrams, none of which is fragmented."""
    opened = socket.socket(family, socket.SOCK_DGRAM)
    try:
        if family == socket.AF_INET6 and not address:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        opened.bind((address, 0))
        level, option = _DISCOVER[family]
        opened.setsockopt(level, option, _PROBE)
    except BaseException:
        opened.close()
        raise
    return opened


def route_mtu(host: str) -> tuple[int, str]:
    """MTU of the interface that leads to a host, and the address of this side there.

    Raises
    ------
    OSError
        When no route leads there.
    """
    family, (address, _) = resolve(host, socket.SOCK_DGRAM)
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        level, option = _DISCOVER[family]
        asking.setsockopt(level, option, _PROBE)  # else the stored path MTU is what is read
        asking.connect((address, 9))
        return asking.getsockopt(*_MTU[family]), str(asking.getsockname()[0])


def send_probes(probing: socket.socket, place: tuple[str, int], token: bytes, sizes: list[int]) -> list[int]:
    """Send each size three times, token first. Returns the sizes that this side could not send."""
    refused = []
    for size in sizes:
        for _ in range(3):
            try:
                probing.sendto(token + bytes(max(0, size - len(token))), place)
            except OSError:
                refused.append(size)
                break
    return refused
