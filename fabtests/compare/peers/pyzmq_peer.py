# SPDX-License-Identifier: BSD-3-Clause
"""pyzmq: a pair of PAIR sockets over ipc, in the abstract namespace so that no file stays, or over tcp."""

import secrets
from functools import partial
from typing import Literal

import zmq

from fabtests.compare.contender import Bytes
from fabtests.compare.peers.channel import Channel, Step

__all__ = ["PyZmq"]

COPY_LIMIT = 65536  # pyzmq's own default below which it copies a message rather than track it


class PyZmq(Channel):
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

    def sender(self, buffer: Bytes) -> Step:
        """``send``, without a copy where the message is long."""
        return partial(self._socket.send, buffer.data, copy=buffer.size < COPY_LIMIT)

    def receiver(self, buffer: Bytes) -> Step:
        """``recv_into``."""
        return partial(self._socket.recv_into, buffer.data)

    def close(self) -> None:
        """Close socket and context."""
        self._socket.close()
        self._context.term()
