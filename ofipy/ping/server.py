# SPDX-License-Identifier: BSD-3-Clause
"""The server: one endpoint that every lane of this host leads to, and that echoes what comes."""

import contextlib
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

import ofipy
from ofipy._discovery.av import Peer
from ofipy.jobs.keys import configured
from ofipy.ping.place import Place
from ofipy.ping.wire import (
    BYE,
    ECHO,
    HEADER,
    HELLO,
    LARGEST,
    TAG_ANSWER,
    TAG_ASK,
    WireError,
    pack_hello,
    parse_hello,
)

__all__ = ["Server", "open_server"]

_LOOPBACK = "127.0.0.1"
_UNSENT = 64  # answers to one peer; what it asks beyond is not answered
_PEERS = 4096
_GLANCE = 0.2  # seconds between two looks at whether the server is to end


def open_server(place: Place, provider: str | None = None) -> ofipy.Endpoint[ofipy.Domain]:
    """Open the endpoint of a server.

    Parameters
    ----------
    place : Place
        Where it is. Without a host it is on every network if this process has a key to ask peers for, else on the
        loopback interface and in shared memory.
    provider : str, optional
        Provider by name. Default: as configured.

    Raises
    ------
    ofipy.FabricError
        When it cannot be there, or the port is another's.
    """
    node = place.host or (None if configured() is not None else _LOOPBACK)
    return ofipy.open(service=place.port, provider=provider, node=node)


class Server:
    """Echo until told to end.

    Parameters
    ----------
    endpoint : Endpoint
        Of :func:`open_server`; this closes it.
    serves : tuple of str
        What the server answers to, for clients.
    """

    def __init__(self, endpoint: ofipy.Endpoint[ofipy.Domain], serves: tuple[str, ...] = ("ping",)) -> None:
        self.endpoint = endpoint
        self.answered = 0
        """Echoes."""
        self.refused = 0
        """Messages that are none of the protocol, or were one too many."""
        self._hello = pack_hello(serves)
        self._buffer = bytearray(HEADER.size + LARGEST)
        self._unsent: dict[int, deque[ofipy.Request]] = {}

    def serve(self, ended: Callable[[], bool]) -> None:
        """Answer until `ended` says so; it is called several times a second."""
        while True:
            receive = self.endpoint.trecv_into(self._buffer, tag=TAG_ASK)
            while not receive.done:
                if ended():
                    receive.cancel()
                    return
                with contextlib.suppress(ofipy.FabricError):  # the time is over, or the message is too long
                    receive.wait(timeout=_GLANCE)
            self._take(receive)

    def _take(self, receive: ofipy.Request) -> None:
        """Answer the message of a receive that has ended."""
        try:
            receive.wait()
        except ofipy.FabricError:  # too long, or its sender was lost meanwhile
            self.refused += 1
            return
        if receive.source is not None:
            self._answer(receive.source, bytes(memoryview(self._buffer)[: receive.length]))

    def _answer(self, peer: Peer, asked: bytes) -> None:
        kind = asked[:1]
        if kind == BYE:
            self._forget(peer)
            return
        if kind == HELLO:
            try:
                parse_hello(asked)
            except WireError:
                self.refused += 1
                return
            self._send(peer, self._hello)
            return
        if kind == ECHO and len(asked) >= HEADER.size and self._send(peer, asked):
            self.answered += 1
        elif not self.answer_other(peer, asked):
            self.refused += 1

    def answer_other(self, peer: Peer, asked: bytes) -> bool:
        """Answer a message that is none of a ping; False: it is refused. Servers that serve more have their own."""
        return False

    def _send(self, peer: Peer, answer: bytes) -> bool:
        """Send an answer without waiting for it; False: too many of this peer's wait already."""
        unsent = self._unsent.pop(int(peer), deque())
        self._unsent[int(peer)] = unsent  # at the end: whoever asked least recently is first
        while unsent and unsent[0].done:
            unsent.popleft()
        if len(unsent) >= _UNSENT:
            return False
        try:
            unsent.append(self.endpoint.tsend(answer, peer, tag=TAG_ANSWER))
        except ofipy.FabricError:  # the peer is gone
            return False
        if len(self._unsent) > _PEERS:
            self._forget(next(iter(self._unsent)))
        return True

    def _forget(self, peer: int) -> None:
        """Remove a peer, with what it has not received."""
        self._unsent.pop(int(peer), None)
        with contextlib.suppress(ofipy.FabricError):
            self.endpoint.av.remove(peer)

    def close(self) -> None:
        """Close the endpoint."""
        self.endpoint.close(linger=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
