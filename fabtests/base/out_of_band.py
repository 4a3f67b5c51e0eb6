# SPDX-License-Identifier: BSD-3-Clause
"""libfabric's exchange beside the fabric (``-b``, ``-E``): addresses, and when both sides are ready."""

import socket
import struct

import ofipy
from fabtests.base.channel import Channel, connect, listen
from fabtests.base.program import Failed

__all__ = ["BLOCK", "OOB_PORT", "OutOfBand", "behind_name", "pack_name", "unpack_name"]

BLOCK = 1024
"""Bytes of a control message: a name is sent in one, whatever its length."""

OOB_PORT = 3000

_NAME = "out-of-band connection"
_READY = struct.Struct("=i")
_LENGTH = struct.Struct("=H")

# An address of the internet tells its length by its family; what a C program leaves behind it is not ours to read.
_LENGTHS = {socket.AF_INET: 16, socket.AF_INET6: 28}
_IP = (ofipy.AddressFormat.IPV4, ofipy.AddressFormat.IPV6)


class OutOfBand:
    """One connection; the server listens from the start, and accepts when asked to."""

    def __init__(self, *, host: str | None, port: int, node: str | None = None) -> None:
        self._listener: socket.socket | None = None
        self._channel: Channel | None = None
        self._client = host is not None
        if host is None:
            self._listener = listen(port, node)
        else:
            self._channel = Channel(connect(host, port), name=_NAME)

    @property
    def port(self) -> int:
        """Where the server listens."""
        assert self._listener is not None
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def connected(self) -> bool:
        """Whether the other side is there."""
        return self._channel is not None

    def accept(self) -> None:
        """Server: wait for the client; again for the next one."""
        assert self._listener is not None
        if self._channel is not None:
            self._channel.close()
        self._channel = Channel(self._listener.accept()[0], name=_NAME)

    def ready(self) -> None:
        """Wait until the other side says the same."""
        self.send(_READY.pack(0))
        (status,) = _READY.unpack(self.receive(_READY.size))
        if status:
            raise Failed(f"the other side says {status} over the out-of-band connection")

    def sync(self) -> None:
        """Wait for each other, the client first."""
        if self._client:
            self.send(b"a")
            self.receive(1)
        else:
            self.receive(1)
            self.send(b"a")

    def send(self, data: bytes) -> None:
        """Send bytes."""
        assert self._channel is not None
        self._channel.send_bytes(data)

    def receive(self, size: int) -> bytes:
        """Receive that many bytes."""
        assert self._channel is not None
        return self._channel.receive_bytes(size)

    def swap(self, block: bytes) -> bytes:
        """Exchange blocks."""
        self.send(block)
        return self.receive(BLOCK)

    def close(self) -> None:
        """Close what is open."""
        for each in (self._channel, self._listener):
            if each is not None:
                each.close()


def pack_name(endpoint: ofipy.Endpoint, behind: bytes = b"") -> bytes:
    """The endpoint's name in a block, and what goes behind it; the name's length at the very end."""
    name = endpoint.address.raw(endpoint.provider)
    if len(name) + len(behind) > BLOCK - _LENGTH.size:
        raise Failed(f"a name of {len(name)} bytes and {len(behind)} of options do not fit into {BLOCK}")
    return (name + behind).ljust(BLOCK - _LENGTH.size, b"\0") + _LENGTH.pack(len(name))


def behind_name(block: bytes) -> bytes:
    """What goes behind the name in a block; nothing where a message holds a name alone."""
    if len(block) < BLOCK:
        return b""
    (length,) = _LENGTH.unpack(block[-_LENGTH.size :])
    return block[length : -_LENGTH.size]


def unpack_name(endpoint: ofipy.Endpoint, block: bytes) -> bytes:
    """A name out of a block, or out of a message that holds it alone."""
    if endpoint.info.address_format in _IP:
        family = int.from_bytes(block[:2], "little")
        return block[: _LENGTHS.get(family, len(block))]  # type: ignore[call-overload]
    if len(block) < BLOCK:
        return block
    (length,) = _LENGTH.unpack(block[-_LENGTH.size :])
    return block[:length]
