# SPDX-License-Identifier: BSD-3-Clause
"""The server: it reads its counters before and after, and is the other side of each measurement."""

import contextlib
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ofipy
from ofipy._discovery.av import Peer
from ofipy.doctor.document import describe_finding
from ofipy.doctor.examine import examine_host
from ofipy.doctor.host import Moment, read_host, read_moment
from ofipy.doctor.machine import pack_machine
from ofipy.doctor.peer.interface import find_path
from ofipy.doctor.peer.queue_pair import accept_pair, lend, listen_pair, take, write_for
from ofipy.doctor.peer.sockets import (
    PATIENCE,
    TOKEN,
    accept_stream,
    listen_stream,
    probe_socket,
    read_info,
    receive_for,
    send_for,
    send_probes,
)
from ofipy.doctor.peer.streams import receive_messages, send_messages
from ofipy.doctor.peer.wire import (
    ARCHIVE,
    ASK,
    SERVICE,
    pack,
    parse,
    read_number,
    read_numbers,
    read_region,
    read_text,
)
from ofipy.host.tree import Tree
from ofipy.ping.server import Server
from ofipy.ping.wire import LARGEST, WireError

__all__ = ["LONGEST", "DoctorServer"]

LONGEST = 10.0
"""Seconds of one measurement at most, whatever the client asks for."""
_IDLE = 60.0  # seconds after which another client may have the server
_PROBES = 0.5  # seconds in which probes arrive that were sent before the question


@dataclass(slots=True)
class Session:
    """One client, from its first question to its last."""

    peer: int
    before: Moment
    began: float
    heard: float
    """When it last asked."""
    token: bytes = field(default_factory=lambda: secrets.token_bytes(TOKEN))
    probing: socket.socket | None = None
    caller: tuple[str, int] | None = None
    """Where probes came from."""
    result: dict[str, Any] = field(default_factory=dict)
    """Of the last measurement."""

    def close(self) -> None:
        """Close what is open."""
        if self.probing is not None:
            self.probing.close()


class DoctorServer(Server):
    """Answers pings, and questions of one client at a time.

    Parameters
    ----------
    endpoint : Endpoint
        Of :func:`ofipy.ping.server.open_server`.
    address : str
        Where sockets of measurements are; empty: at all addresses.
    tree : Tree
        This host.
    """

    def __init__(self, endpoint: ofipy.Endpoint[ofipy.Domain], address: str, tree: Tree) -> None:
        super().__init__(endpoint, ("ping", SERVICE))
        self._address = address
        self._tree = tree
        self._is_guest = read_host(tree).is_guest
        self._has_replied = False
        self._session: Session | None = None
        self._does: dict[str, Callable[[Peer, dict[str, Any]], None]] = {
            "begin": self._begin,
            "machine": self._tell_machine,
            "clock": self._tell_clock,
            "probe": self._open_probe,
            "probed": self._tell_probes,
            "probe_back": self._probe_back,
            "raw_up": self._receive_raw,
            "raw_down": self._send_raw,
            "pair_up": self._receive_pair,
            "pair_down": self._send_pair,
            "stream_up": self._receive_stream,
            "stream_down": self._send_stream,
            "result": self._tell_result,
            "end": self._end,
        }

    def answer_other(self, peer: Peer, asked: bytes) -> bool:
        """Answer a question."""
        if asked[:1] != ASK:
            return False
        try:
            said = parse(asked)
        except WireError:
            return False
        question = read_text(said, "do")
        action = self._does.get(question)
        if action is None:
            self._reply(peer, {"error": f"this server does not know the question {question!r}"})
            return True
        if self._is_busy(peer, question):
            self._reply(peer, {"error": "the server measures with another client; try again in a minute"})
            return True
        if self._session is not None:
            self._session.heard = time.monotonic()
        self._has_replied = False
        try:
            action(peer, said)
        except (OSError, WireError) as error:  # ofipy.FabricError is an OSError
            if not self._has_replied:
                self._reply(peer, {"error": str(error)})
            elif self._session is not None:
                self._session.result = {"error": str(error)}
        return True

    def _is_busy(self, peer: Peer, question: str) -> bool:
        """Whether somebody else has the server, or this peer has not begun."""
        session = self._session
        if question in ("begin", "machine"):
            return (
                session is not None and session.peer != int(peer) and time.monotonic() - session.heard < _IDLE
            )
        return session is None or session.peer != int(peer)

    def _reply(self, peer: Peer, said: dict[str, Any]) -> None:
        self._has_replied = True
        self._send(peer, pack(said))

    @property
    def _now(self) -> Session:
        assert self._session is not None
        return self._session

    # Questions that are answered at once.

    def _begin(self, peer: Peer, said: dict[str, Any]) -> None:
        if self._session is not None:
            self._session.close()
        now = time.monotonic()
        self._session = Session(int(peer), read_moment(self._tree), now, now)
        self._reply(
            peer,
            {
                "host": self._tree.line("proc/sys/kernel/hostname") or socket.gethostname(),
                "providers": [name for name, _ in self.endpoint.address.entries],
                "token": self._session.token.hex(),
            },
        )

    def _tell_machine(self, peer: Peer, said: dict[str, Any]) -> None:
        packed = ARCHIVE + pack_machine(self._tree.root)
        if len(packed) > LARGEST:
            self._reply(peer, {"error": f"the counters of this host are {len(packed)} bytes, too many"})
        else:
            self._send(peer, packed)

    def _tell_clock(self, peer: Peer, said: dict[str, Any]) -> None:
        self._reply(peer, {"time": time.time()})

    def _tell_result(self, peer: Peer, said: dict[str, Any]) -> None:
        self._reply(peer, self._now.result)
        self._now.result = {}

    def _end(self, peer: Peer, said: dict[str, Any]) -> None:
        session = self._now
        if said.get("is_brief") is True:
            self._reply(peer, {})
        else:
            host = read_host(self._tree, session.before, time.monotonic() - session.began)
            self._reply(peer, {"findings": [describe_finding(each) for each in examine_host(host)]})
        session.close()
        self._session = None

    # The MTU.

    def _open_probe(self, peer: Peer, said: dict[str, Any]) -> None:
        session = self._now
        session.close()
        family = socket.AF_INET6 if ":" in read_text(said, "address") else socket.AF_INET
        session.probing = probe_socket(family, self._address if self._fits(family) else "")
        session.caller = None
        self._reply(peer, {"port": session.probing.getsockname()[1]})

    def _fits(self, family: socket.AddressFamily) -> bool:
        return bool(self._address) and (":" in self._address) == (family == socket.AF_INET6)

    def _tell_probes(self, peer: Peer, said: dict[str, Any]) -> None:
        session = self._now
        arrived: set[int] = set()
        wanted = read_numbers(said, "sizes")
        probing = session.probing
        until = time.monotonic() + _PROBES
        while probing is not None and not arrived.issuperset(wanted) and time.monotonic() < until:
            probing.settimeout(max(0.001, until - time.monotonic()))
            with contextlib.suppress(OSError):
                data, caller = probing.recvfrom(1 << 16)
                if data[:TOKEN] == session.token:
                    arrived.add(len(data))
                    session.caller = caller
        path = None
        if session.caller is not None:
            path = find_path(self._tree, session.caller[0], is_guest=self._is_guest)
        self._reply(peer, {"arrived": sorted(arrived), "path": path.as_dict() if path is not None else None})

    def _probe_back(self, peer: Peer, said: dict[str, Any]) -> None:
        session = self._now
        refused: list[int] = []
        if session.probing is not None and session.caller is not None:
            sizes = [size for size in read_numbers(said, "sizes")[:16] if TOKEN <= size < 1 << 16]
            refused = send_probes(session.probing, session.caller, session.token, sizes)
        self._reply(peer, {"refused": refused})

    # Measurements: the answer says that this side is ready, `result` what came of it.

    def _seconds(self, said: dict[str, Any]) -> float:
        return min(max(read_number(said, "seconds") or 0.0, 0.0), LONGEST)

    def _receive_raw(self, peer: Peer, said: dict[str, Any]) -> None:
        with listen_stream(self._address) as listener:
            self._reply(peer, {"port": listener.getsockname()[1]})
            with accept_stream(listener, self._now.token) as connection:
                received = receive_for(connection, LONGEST + PATIENCE)
        self._now.result = {"bytes": received}

    def _send_raw(self, peer: Peer, said: dict[str, Any]) -> None:
        with listen_stream(self._address) as listener:
            self._reply(peer, {"port": listener.getsockname()[1]})
            with accept_stream(listener, self._now.token) as connection:
                sent, seconds = send_for(connection, self._seconds(said))
                info = read_info(connection)
        self._now.result = {
            "bytes": sent,
            "seconds": seconds,
            "segment": info.segment,
            "segments": info.segments,
            "repeated": info.repeated,
            "delivered": info.delivered,
            "marked": info.marked,
        }

    def _receive_pair(self, peer: Peer, said: dict[str, Any]) -> None:
        with (
            listen_pair(self.endpoint.way(peer), read_text(said, "node")) as listener,
            lend(listener.domain) as remote,
        ):
            self._reply(peer, {"address": str(listener.address), "region": bytes(remote).hex()})
            with accept_pair(listener, self._now.token) as pair:
                take(pair, LONGEST + PATIENCE)
        self._now.result = {}

    def _send_pair(self, peer: Peer, said: dict[str, Any]) -> None:
        remote = read_region(said)
        with listen_pair(self.endpoint.way(peer), read_text(said, "node")) as listener:
            self._reply(peer, {"address": str(listener.address)})
            with accept_pair(listener, self._now.token) as pair:
                sent, seconds = write_for(pair, remote, self._seconds(said))
        self._now.result = {"bytes": sent, "seconds": seconds}

    def _receive_stream(self, peer: Peer, said: dict[str, Any]) -> None:
        self._reply(peer, {})
        self._now.result = {"bytes": receive_messages(self.endpoint, peer, LONGEST + PATIENCE)}

    def _send_stream(self, peer: Peer, said: dict[str, Any]) -> None:
        self._reply(peer, {})
        self._now.result = {"bytes": send_messages(self.endpoint, peer, self._seconds(said))}

    def _forget(self, peer: int) -> None:
        if self._session is not None and self._session.peer == int(peer):
            self._session.close()
            self._session = None
        super()._forget(peer)
