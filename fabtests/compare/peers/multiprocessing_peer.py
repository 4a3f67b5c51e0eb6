# SPDX-License-Identifier: BSD-3-Clause
"""Python's own ``multiprocessing.Connection``, what ``Pipe()`` gives: over an abstract Unix socket, or over TCP."""

import os
import platform
import secrets
import socket
from functools import partial
from multiprocessing.connection import Client, Connection, Listener
from typing import Literal

from fabtests.compare.contender import Bytes
from fabtests.compare.peers.channel import Channel, Step

__all__ = ["Multiprocessing"]


Address = str | tuple[str, int]


class Multiprocessing(Channel):
    """``send_bytes`` and ``recv_bytes_into``.

    Parameters
    ----------
    first : bool
        Whether this side sends first.
    family : str
        ``AF_UNIX`` or ``AF_INET``.
    """

    def __init__(self, first: bool, *, family: Literal["AF_UNIX", "AF_INET"]) -> None:
        super().__init__(first)
        self._family = family
        self._listener: Listener | None = None
        self._connection: Connection | None = None

    def version(self) -> str:
        """It comes with Python."""
        return platform.python_version()

    def offer(self) -> Address | None:
        """The first side listens."""
        if not self.first:
            return None
        unix = self._family == "AF_UNIX"
        self._listener = Listener(
            f"\0fabtests-{secrets.token_hex(16)}" if unix else ("127.0.0.1", 0), family=self._family
        )
        address: Address = self._listener.address
        return address

    def meet(self, other: Address | None) -> None:
        """Connect, or accept."""
        if self._listener is not None:
            self._connection = self._listener.accept()
            self._listener.close()
        else:
            assert other is not None
            self._connection = Client(other, family=self._family)
        if self._family == "AF_INET":
            # Otherwise what follows a header of its own waits for the acknowledgement of that.
            with socket.socket(fileno=os.dup(self._connection.fileno())) as shared:
                shared.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def sender(self, buffer: Bytes) -> Step:
        """``send_bytes``."""
        assert self._connection is not None
        return partial(self._connection.send_bytes, buffer.data)

    def receiver(self, buffer: Bytes) -> Step:
        """``recv_bytes_into``."""
        assert self._connection is not None
        return partial(self._connection.recv_bytes_into, buffer.data)

    def close(self) -> None:
        """Close the socket."""
        if self._connection is not None:
            self._connection.close()
