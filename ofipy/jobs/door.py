# SPDX-License-Identifier: BSD-3-Clause
"""How a process and rank 0 tell each other that their endpoints have no version in common.

Then no message of the rendezvous arrives, and an endpoint does not know which job the other one is of. So rank 0 has a
door beside its endpoint: a socket of the system for datagrams, of the endpoint's number. A process whose greeting was
refused for its version knocks there. What is said through the door is the same in every release: the head of a message
of the rendezvous, with its proof, then an object of JSON.

    process    KNOCK    said: what both speak, in a sentence; ticket: ""
    rank 0     HEARD    heard: false; ticket: its own
    process    KNOCK    the same, with rank 0's ticket
    rank 0     HEARD    heard: true

Rank 0 draws its ticket when the job begins, so a knock at an earlier door cannot be sent again. An answer repeats the
nonce of the knock. Nothing but a proven message of the same run is answered. Without a key, the socket is one within
the host, and the kernel says which user has sent a datagram.
"""

import os
import re
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from ofipy._base import config
from ofipy._base.errors import IncompatiblePeer
from ofipy._discovery.address import Address
from ofipy.jobs.greeting import Kind, Run

__all__ = ["Door", "Knocker", "describe", "listen"]

_MOST = 4096  # bytes of a datagram
_CREDENTIALS = struct.Struct("3i")  # process, user, group: struct ucred
_TEXT_MOST = 1000  # characters of what a process may say
_SPOKEN = re.compile(r"the peer speaks (versions? [\d to]*\d) of (.+?), and this side (versions? [\d to]*\d)")

Place = Any
"""Where a datagram comes from, as the kind of the socket has it."""


def describe(error: IncompatiblePeer, rank: int) -> str:
    """What a process was told of rank 0's endpoint, as rank 0 is to hear it."""
    found = _SPOKEN.search(str(error))
    if found is None:
        return f"rank {rank} cannot speak with rank 0: {error}"
    theirs, protocol, own = found.groups()
    older = "rank 0" if "update ofipy on the peer's side" in str(error) else f"rank {rank}"
    return f"rank {rank} speaks {own} of {protocol}, and rank 0 {theirs}; update ofipy where {older} runs"


# ------------------------------------------------------------------------------------------------------------- sockets


def _local_name(port: int) -> str:
    return f"\0ofipy-job/1/{os.getuid()}/{port}"


def _open_local(name: str) -> socket.socket:
    """A socket within the host, each of whose datagrams comes with its sender's user."""
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    opened.bind(name)
    return opened


def _open_network(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, place = socket.getaddrinfo(
        host, port, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST
    )[0]
    opened = socket.socket(family, kind, protocol)
    try:
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, host != "::")
        opened.bind(place)
    except OSError:
        opened.close()
        raise
    return opened


def listen(address: Address, port: int, *, within_host: bool) -> socket.socket:
    """The socket of a door beside the endpoint of that address: reachable from where the endpoint is.

    Raises
    ------
    OSError
        When there can be none.
    """
    if within_host:
        return _open_local(_local_name(port))
    if (config.value("TCP_INTERFACE") or config.value("INTERFACE") or "any") == "any":
        try:
            return _open_network("::", port)
        except OSError:
            return _open_network("0.0.0.0", port)
    raw = address.raw("tcp")
    family = socket.AF_INET if len(raw) == 16 else socket.AF_INET6
    host = raw[4:8] if family == socket.AF_INET else raw[8:24]
    return _open_network(socket.inet_ntop(family, host), port)


def _receive(at: socket.socket) -> tuple[bytes, Place] | None:
    """The next datagram, and where it comes from; None: there is none, or it is another user's."""
    try:
        blob, extra, _, place = at.recvmsg(_MOST, socket.CMSG_SPACE(_CREDENTIALS.size), socket.MSG_DONTWAIT)
    except OSError:
        return None
    if at.family == socket.AF_UNIX:
        users = [_CREDENTIALS.unpack(data)[1] for _, kind, data in extra if kind == socket.SCM_CREDENTIALS]
        if users != [os.getuid()]:
            return b"", place
    return blob, place


def _received(at: socket.socket) -> Iterator[tuple[bytes, Place]]:
    while (found := _receive(at)) is not None:
        yield found


# -------------------------------------------------------------------------------------------------------------- sides


class Door:
    """Rank 0's side, in a thread of its own.

    Parameters
    ----------
    at : socket
        Closed with this.
    run : Run
        The job.
    hear : callable
        Called with what a process says that cannot be in the job, in the door's thread.
    """

    def __init__(self, at: socket.socket, run: Run, hear: Callable[[str], None]) -> None:
        self._at = at
        self._run = run
        self._hear = hear
        self._ticket = os.urandom(16).hex()
        self._stop = os.eventfd(0)
        self._thread = threading.Thread(target=self._serve, name="ofipy-door", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        os.eventfd_write(self._stop, 1)
        self._thread.join()
        self._at.close()
        os.close(self._stop)

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._at, select.POLLIN)
        poll.register(self._stop, select.POLLIN)
        while self._stop not in [descriptor for descriptor, _ in poll.poll()]:
            for blob, place in _received(self._at):
                self._answer(blob, place)

    def _answer(self, blob: bytes, place: Place) -> None:
        knock = self._run.read_of_any_release(blob)
        if knock is None or knock[0] != Kind.KNOCK:
            return
        _, nonce, body = knock
        heard = body.get("ticket") == self._ticket
        if heard:
            self._hear(str(body.get("said"))[:_TEXT_MOST])
        answer = self._run.write(Kind.HEARD, nonce, {"heard": heard, "ticket": self._ticket})
        with suppress(OSError):  # the process has gone
            self._at.sendto(answer, place)


class Knocker:
    """The side of a process that looks for rank 0.

    Parameters
    ----------
    run : Run
        The job.
    nonce : bytes
        Of the process.
    host : str, optional
        Rank 0's; None: this one, and what is not this user's is not heard.
    """

    def __init__(self, run: Run, nonce: bytes, host: str | None) -> None:
        self._run = run
        self._nonce = nonce
        self._host = host
        self._sockets: dict[int, socket.socket] = {}  # by family
        self._said: dict[int, tuple[str, str]] = {}  # by port: what is said there, and the ticket for it

    def close(self) -> None:
        """Close the sockets."""
        for each in self._sockets.values():
            each.close()

    def knock(self, port: int, said: str) -> None:
        """Say at a port what its endpoint and this process speak."""
        ticket = self._said[port][1] if port in self._said else ""
        self._said[port] = said, ticket
        blob = self._run.write(Kind.KNOCK, self._nonce, {"said": said[:_TEXT_MOST], "ticket": ticket})
        for family, place in self._places(port):
            with suppress(OSError):  # nobody is there, or no way leads there
                self._socket(family).sendto(blob, place)

    def heard_at(self) -> int | None:
        """The port where rank 0 of this job has heard what was said; None: no answer has come yet."""
        for at in list(self._sockets.values()):
            for blob, place in _received(at):
                port = self._port_of(at, place)
                answer = self._run.read_of_any_release(blob)
                if answer is None or answer[:2] != (Kind.HEARD, self._nonce) or port not in self._said:
                    continue
                if answer[2].get("heard") is True:
                    return port
                self._said[port] = self._said[port][0], str(answer[2].get("ticket"))
                self.knock(port, self._said[port][0])
        return None

    def _places(self, port: int) -> list[tuple[int, Place]]:
        if self._host is None:
            return [(socket.AF_UNIX, _local_name(port))]
        try:
            found = socket.getaddrinfo(self._host, port, type=socket.SOCK_DGRAM)
        except OSError:
            return []
        return [(family, place) for family, *_, place in found]

    def _socket(self, family: int) -> socket.socket:
        if family not in self._sockets:
            local = family == socket.AF_UNIX
            # Without a name of its own nobody could answer it: the kernel finds one.
            self._sockets[family] = _open_local("") if local else socket.socket(family, socket.SOCK_DGRAM)
        return self._sockets[family]

    @staticmethod
    def _port_of(at: socket.socket, place: Place) -> int | None:
        if at.family != socket.AF_UNIX:
            return int(place[1])
        name = bytes(place or b"").decode(errors="replace")
        last = name.rpartition("/")[2]
        return int(last) if last.isdecimal() and name == _local_name(int(last)) else None
