# SPDX-License-Identifier: BSD-3-Clause
"""pyzmq: a pair of PAIR sockets over ipc, in the abstract namespace so that no file stays, or over tcp."""

import secrets
from collections.abc import Callable
from functools import partial
from typing import Literal

import zmq

from fabtests.compare.contender import Contender

__all__ = ["PyZmq"]

COPY_LIMIT = 65536  # pyzmq's own default below which it copies a message rather than track it


class PyZmq(Contender):
    """``send`` and ``recv_into``.

    Parameters
    ----------
    first : bool
        Whether this side sends first.
    transport : str
        ``ipc`` or ``tcp``.
    """

    distribution = "pyzmq"

    def __init__(self, first: bool, *, transport: Literal["ipc", "tcp"]) -> None:
        super().__init__(first)
        self._wildcard = (
            "tcp://127.0.0.1:*" if transport == "tcp" else f"ipc://@fabtests-{secrets.token_hex(16)}"
        )
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PAIR)
        self._socket.linger = 0

    def version(self) -> str:
        """Of the binding and of the library under it."""
        return f"{super().version()} (libzmq {zmq.zmq_version()})"

    def offer(self) -> str | None:
        """The first side binds."""
        if not self.first:
            return None
        self._socket.bind(self._wildcard)
        address = self._socket.last_endpoint
        assert isinstance(address, bytes)
        return address.rstrip(b"\0").decode()

    def meet(self, other: str | None) -> None:
        """The second side connects."""
        if other is not None:
            self._socket.connect(other)

    def prepare(self, size: int, mode: str) -> None:
        """Choose how to send, too."""
        super().prepare(size, mode)
        copy = size < COPY_LIMIT
        self._send: Callable[[memoryview], object] = partial(self._socket.send, copy=copy)

    def exchange(self, count: int) -> None:
        """Ping-pong."""
        send, receive = self._send, self._socket.recv_into
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
        send, receive = self._send, self._socket.recv_into
        outgoing, incoming = self.outgoing.data, self.incoming.data
        if self.first:
            for _ in range(window):
                send(outgoing)
            receive(incoming)
        else:
            for _ in range(window):
                receive(incoming)
            send(memoryview(b"a"))

    def close(self) -> None:
        """Close socket and context."""
        self._socket.close()
        self._context.term()
