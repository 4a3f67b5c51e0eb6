# SPDX-License-Identifier: BSD-3-Clause
"""A bare TCP connection over loopback, with loops in C that spin: what the kernel takes, and nothing else."""

import platform
import socket

import ofipy
from fabtests.compare.contender import Contender, TimedInC, Times

__all__ = ["Socket"]

LOOPBACK = "127.0.0.1"


class Socket(TimedInC, Contender):
    """One ``send`` and one ``recv`` a message, more where the kernel takes or gives less."""

    def __init__(self, first: bool) -> None:
        super().__init__(first)
        self._listener = socket.create_server((LOOPBACK, 0)) if first else None
        self._connection: socket.socket | None = None

    def version(self) -> str:
        """The kernel does the work."""
        return platform.release()

    def offer(self) -> int | None:
        """The first side listens on this port."""
        return self._listener.getsockname()[1] if self._listener is not None else None

    def meet(self, other: int | None) -> None:
        """Connect, or accept."""
        if self._listener is not None:
            self._connection, _ = self._listener.accept()
            self._listener.close()
        else:
            assert other is not None
            self._connection = socket.create_connection((LOOPBACK, other))
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.setblocking(False)

    def measure(self, count: int, times: Times | None) -> None:
        """One call."""
        assert self._connection is not None
        ofipy.measure.socket_pingpong(
            self._connection,
            first=self.first,
            send=self.outgoing,
            receive=self.incoming,
            iterations=count,
            nanoseconds=times,
        )

    def stream(self, window: int) -> None:
        """One call."""
        assert self._connection is not None
        ofipy.measure.socket_stream(
            self._connection,
            first=self.first,
            buffer=self.outgoing if self.first else self.incoming,
            messages=window,
        )

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
