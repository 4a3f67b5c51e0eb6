# SPDX-License-Identifier: BSD-3-Clause
"""Python's own ``multiprocessing.Connection``: what ``Pipe()`` gives, met over an abstract Unix socket."""

import platform
import secrets
from multiprocessing.connection import Client, Connection, Listener

from fabtests.compare.contender import Contender

__all__ = ["Multiprocessing"]


class Multiprocessing(Contender):
    """``send_bytes`` and ``recv_bytes_into``."""

    def __init__(self, first: bool) -> None:
        super().__init__(first)
        self._listener: Listener | None = None
        self._connection: Connection | None = None

    def version(self) -> str:
        """It comes with Python."""
        return platform.python_version()

    def offer(self) -> str | None:
        """The first side listens."""
        if not self.first:
            return None
        address = f"\0fabtests-{secrets.token_hex(16)}"
        self._listener = Listener(address, family="AF_UNIX")
        return address

    def meet(self, other: str | None) -> None:
        """Connect, or accept."""
        if self._listener is not None:
            self._connection = self._listener.accept()
            self._listener.close()
        else:
            assert other is not None
            self._connection = Client(other, family="AF_UNIX")

    def exchange(self, count: int) -> None:
        """Ping-pong."""
        assert self._connection is not None
        send, receive = self._connection.send_bytes, self._connection.recv_bytes_into
        outgoing, incoming = self.outgoing.data, self.incoming.data
        if self.first:
            for _ in range(count):
                send(outgoing)
                receive(incoming)
        else:
            for _ in range(count):
                receive(incoming)
                send(outgoing)

    def stream(self, window: int) -> None:
        """One window."""
        assert self._connection is not None
        send, receive = self._connection.send_bytes, self._connection.recv_bytes_into
        outgoing, incoming = self.outgoing.data, self.incoming.data
        if self.first:
            for _ in range(window):
                send(outgoing)
            receive(incoming)
        else:
            for _ in range(window):
                receive(incoming)
            send(b"a")

    def close(self) -> None:
        """Close the socket."""
        if self._connection is not None:
            self._connection.close()
