# SPDX-License-Identifier: BSD-3-Clause
"""The client: it leads the measurements, from what decides the others to what depends on them."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ofipy
from ofipy.doctor.finding import Finding
from ofipy.doctor.peer.interface import find_path, read_path
from ofipy.doctor.peer.ladder import judge_measured
from ofipy.doctor.peer.measured import Flow, Measured, Probes
from ofipy.doctor.peer.programs import watch_programs
from ofipy.doctor.peer.queue_pair import connect_pair, lend, open_pair, take, write_for
from ofipy.doctor.peer.sockets import (
    PATIENCE,
    TOKEN,
    connect_stream,
    probe_socket,
    read_info,
    receive_for,
    resolve,
    send_for,
    send_probes,
)
from ofipy.doctor.peer.streams import receive_messages, send_messages
from ofipy.doctor.peer.wire import (
    pack,
    parse,
    read_findings,
    read_number,
    read_numbers,
    read_region,
    read_text,
)
from ofipy.host.tree import Tree
from ofipy.ping.lane import Lane, NoServer
from ofipy.ping.wire import WireError

__all__ = ["Client", "Refused"]

_TRIPS = 200
_CLOCKS = 9
_ANSWER = 20.0  # seconds: a server that reads many counters takes its time
_HEADERS = {socket.AF_INET: 28, socket.AF_INET6: 48}  # bytes of IP and UDP
_USUAL = (1500, 1280)  # bytes: an Ethernet frame, and what every path of IPv6 carries
_CONNECT = 4.0
_QUIET = 1.0  # seconds in which programs are watched


class Refused(Exception):
    """The server does not answer the question."""


@contextlib.contextmanager
def only_this_fails() -> Iterator[None]:
    """Let an error of a connection of its own not be taken for one of the lane."""
    try:
        yield
    except ofipy.FabricError as error:
        raise OSError(error.message) from error


class Client:
    """A measurement with one server.

    Parameters
    ----------
    lane : Lane
        That has met the server; the caller closes it.
    tree : Tree
        This host.
    seconds : float
        Of each stream.
    is_guest : bool
        Whether this host is a virtual machine.
    providers : sequence of str, optional
        What this host could use. Default: what the lane's endpoint has.
    """

    def __init__(
        self,
        lane: Lane,
        tree: Tree,
        *,
        seconds: float,
        is_guest: bool,
        providers: Sequence[str] | None = None,
    ) -> None:
        self._lane = lane
        self._tree = tree
        self._seconds = seconds
        self._is_guest = is_guest
        own = [name for name, _ in lane.endpoint.address.entries] if providers is None else providers
        self._providers = list(own)
        self._token = b""
        self.measured = Measured(peer=str(lane.place))

    def run(self, tell: Callable[[str], None]) -> None:
        """Measure; what fails becomes part of :attr:`measured`, and ends it if nothing else can follow.

        Raises
        ------
        Refused
            When the server has another client, or cannot do this.
        """
        steps = (
            ("programs", self._watch_programs),
            ("round trips", self._measure_trips),
            ("clock", self._measure_clock),
            ("MTU", self._measure_mtu),
            ("bare connections", self._measure_raw),
            ("messages", self._measure_provider),
            ("other providers", self._try_others),
        )
        self._begin()
        for name, step in steps:
            tell(name)
            try:
                step()
            except ofipy.FabricError as error:
                self.measured.lost = f"the server was lost while measuring {name}: {error.message}"
                return

    def finish(self) -> list[Finding]:
        """What the server has found on its host, and what was measured between both."""
        found: list[Finding] = []
        if not self.measured.lost:
            try:
                # A long answer would not arrive where large packets do not.
                found = read_findings(self._ask("end", is_brief=self._is_narrow()), self.measured.peer)
            except ofipy.FabricError as error:
                self.measured.lost = f"the server was lost at the end: {error.message}"
        return [*found, *judge_measured(self.measured)]

    def _ask(self, question: str, patience: float = _ANSWER, **more: Any) -> dict[str, Any]:
        answer = parse(self._lane.ask(pack({"do": question, **more}), patience))
        if error := read_text(answer, "error"):
            raise Refused(error)
        return answer

    def _begin(self) -> None:
        answer = self._ask("begin")
        measured = self.measured
        measured.peer = read_text(answer, "host") or measured.peer
        measured.way = self._lane.name
        try:
            self._token = bytes.fromhex(read_text(answer, "token"))
        except ValueError:
            self._token = b""
        if len(self._token) != TOKEN:
            raise WireError("the server's token is none")
        theirs = answer.get("providers")
        measured.peer_providers = [str(each)[:64] for each in theirs[:64]] if isinstance(theirs, list) else []
        measured.own_providers = self._providers
        measured.path = find_path(self._tree, self._lane.place.host, is_guest=self._is_guest)

    def _watch_programs(self) -> None:
        """Before anything else needs the network."""
        if self.measured.way != "shm":
            self.measured.programs = watch_programs(self._lane.place.host, _QUIET)

    def _measure_trips(self) -> None:
        for _ in range(_TRIPS):
            self._lane.ping(1.0)
        self.measured.round_trips = self._lane.tally.summarize()

    def _measure_clock(self) -> None:
        """The exchange with the shortest round trip knows the clock best."""
        best: tuple[float, float] | None = None
        for _ in range(_CLOCKS):
            begin, wall = time.monotonic(), time.time()
            theirs = read_number(self._ask("clock"), "time")
            taken = time.monotonic() - begin
            if theirs is not None and (best is None or taken / 2 < best[1]):
                best = (theirs - wall - taken / 2, taken / 2)
        self.measured.clock = best

    def _measure_mtu(self) -> None:
        path = self.measured.path
        if path is None or self.measured.way == "shm":
            return
        family, (address, _) = resolve(self._lane.place.host, socket.SOCK_DGRAM)
        headers = _HEADERS[family]
        packets = sorted({path.mtu, *(each for each in _USUAL if each < path.mtu)}, reverse=True)
        sizes = [min(each, 65_535) - headers for each in packets]
        port = int(read_number(self._ask("probe", address=address), "port") or 0)
        with probe_socket(family, "") as probing:
            send_probes(probing, (address, port), self._token, sizes)
            answer = self._ask("probed", sizes=sizes)
            arrived = read_numbers(answer, "arrived")
            self.measured.peer_path = read_path(answer, "path")
            self._ask("probe_back", sizes=sizes)
            returned = self._drain(probing, sizes)
        self.measured.probes = Probes(
            sizes=[each + headers for each in sizes],
            arrived=[each + headers for each in arrived if each in sizes],
            returned=[each + headers for each in returned if each in sizes],
        )

    def _drain(self, probing: socket.socket, sizes: list[int]) -> set[int]:
        """Sizes of the probes that come back."""
        found: set[int] = set()
        until = time.monotonic() + 0.5
        while not found.issuperset(sizes) and time.monotonic() < until:
            probing.settimeout(max(0.001, until - time.monotonic()))
            with contextlib.suppress(OSError):
                data = probing.recv(1 << 16)
                if data[:TOKEN] == self._token:
                    found.add(len(data))
        return found

    def _is_narrow(self) -> bool:
        """Whether large packets do not arrive, so that streams would stand still."""
        probes = self.measured.probes
        if probes is None or not probes.arrived or not probes.returned:
            return False
        return min(max(probes.arrived), max(probes.returned)) < max(probes.sizes)

    def _measure_raw(self) -> None:
        if self.measured.way == "shm" or self._is_narrow():
            return
        pairs = self.measured.raw_is_pair
        self.measured.raw["to"] = self._run_flow(self._send_pair if pairs else self._send_raw)
        self.measured.raw["from"] = self._run_flow(self._receive_pair if pairs else self._receive_raw)

    def _measure_provider(self) -> None:
        if self._is_narrow():
            return
        self.measured.provider["to"] = self._run_flow(self._send_stream)
        self.measured.provider["from"] = self._run_flow(self._receive_stream)

    def _run_flow(self, step: Callable[[], Flow]) -> Flow:
        """A failure of the step is its result, unless the server is lost."""
        try:
            return step()
        except ofipy.TimedOut as error:
            return Flow(error=f"nothing moved for {PATIENCE:g} s ({error.message})")
        except ofipy.FabricError:
            raise
        except (OSError, Refused) as error:
            return Flow(error=str(error))

    def _result(self) -> dict[str, Any]:
        """Of the server, which waits for as long as it has patience before it answers."""
        return self._ask("result", 3 * PATIENCE)

    def _send_raw(self) -> Flow:
        port = int(read_number(self._ask("raw_up"), "port") or 0)
        with connect_stream(self._lane.place.host, port, self._token) as connection:
            sent, seconds = send_for(connection, self._seconds)
            info = read_info(connection)
        self._result()
        return Flow(sent, seconds, "", info.segments, info.repeated, info.delivered, info.marked)

    def _receive_raw(self) -> Flow:
        port = int(read_number(self._ask("raw_down", seconds=self._seconds), "port") or 0)
        with connect_stream(self._lane.place.host, port, self._token) as connection:
            receive_for(connection, self._seconds + 2 * PATIENCE)
        said = self._result()
        received, segments, repeated, delivered, marked = (
            int(read_number(said, name) or 0)
            for name in ("bytes", "segments", "repeated", "delivered", "marked")
        )
        seconds = read_number(said, "seconds") or 0.0
        return Flow(received, seconds, "", segments, repeated, delivered, marked)

    def _send_pair(self) -> Flow:
        said = self._ask("pair_up", node=self._lane.place.host)
        with only_this_fails(), open_pair(self.measured.way, self._own_address()) as pair:
            connect_pair(pair, read_text(said, "address"), self._token)
            sent, seconds = write_for(pair, read_region(said), self._seconds)
        self._result()
        return Flow(sent, seconds)

    def _receive_pair(self) -> Flow:
        with (
            only_this_fails(),
            open_pair(self.measured.way, self._own_address()) as pair,
            lend(pair.domain) as remote,
        ):
            region, node = bytes(remote).hex(), self._lane.place.host
            said = self._ask("pair_down", node=node, seconds=self._seconds, region=region)
            connect_pair(pair, read_text(said, "address"), self._token)
            take(pair, self._seconds + 2 * PATIENCE)
        said = self._result()
        return Flow(int(read_number(said, "bytes") or 0), read_number(said, "seconds") or 0.0)

    def _own_address(self) -> str:
        return self.measured.path.address if self.measured.path is not None else ""

    def _send_stream(self) -> Flow:
        self._ask("stream_up")
        begin = time.perf_counter()
        sent = send_messages(self._lane.endpoint, self._lane.peer, self._seconds)
        received = int(read_number(self._result(), "bytes") or 0)
        seconds = time.perf_counter() - begin
        return Flow(sent, seconds, "" if received == sent else f"{sent} bytes were sent, {received} arrived")

    def _receive_stream(self) -> Flow:
        begin = time.perf_counter()
        self._ask("stream_down", seconds=self._seconds)
        received = receive_messages(self._lane.endpoint, self._lane.peer, self._seconds + 2 * PATIENCE)
        seconds = time.perf_counter() - begin
        sent = int(read_number(self._result(), "bytes") or 0)
        return Flow(
            received, seconds, "" if received == sent else f"{sent} bytes were sent, {received} arrived"
        )

    def _try_others(self) -> None:
        """Providers that both hosts have, and that the endpoint did not choose."""
        measured = self.measured
        for name in ("verbs", "tcp"):
            both = name in measured.own_providers and name in measured.peer_providers
            if not both or name == measured.way or measured.way == "shm":
                continue
            try:
                with Lane(self._lane.place, provider=name) as other:
                    other.meet(_CONNECT)
            except (ofipy.FabricError, NoServer, WireError) as error:
                measured.unreached[name] = str(error)
