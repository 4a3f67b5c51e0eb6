# SPDX-License-Identifier: BSD-3-Clause
"""The two sides of a conformance test: two worker processes, or two threads for a provider within one process.

A test names a function for each side. Both get a :class:`Side` with an open endpoint that has met the other one, and
run at the same time. Workers are reused by the next test; after a failure they are replaced.
"""

import faulthandler
import importlib.util
import os
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import Any

import ofipy
from ofipy._base.binding import lib
from ofipy.pingpong.leftovers import remove_leftovers

sys.path.insert(0, str(Path(__file__).parent))  # a worker is a program of its own
sys.path.append(str(Path(__file__).resolve().parents[2]))
from hosts import part_hosts, ways_between_hosts
from protection import check_protection, count_protection, requires_encryption, watch_endpoints

from tests.ports import free_port

# Behind the name of a provider over several ways: no two domains share memory.
REMOTE = "-remote"

TAG_SYNC = 2**63 - 1
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Target:
    """What is tested: one info of one provider."""

    provider: str
    domain: str
    in_process: bool
    """Its endpoints meet within one process only."""
    kind: str = "rdm"
    """Type of its endpoints: ``rdm``, ``msg`` or ``dgram``."""
    other: "Target | None" = None
    """What the second side is, where that is of another provider: a pair."""
    remote: bool = False
    """Each domain is on a host of its own, as far as OFIPY_HOST_ID goes."""

    def __str__(self) -> str:
        if self.other is not None:
            return f"{self.provider},{self.other.provider}"
        if self.remote:
            return f"{self.provider}{REMOTE}/{self.domain}"
        name = self.provider if self.domain in (self.provider, "") else f"{self.provider}/{self.domain}"
        return name if self.kind == "rdm" else f"{name}/{self.kind}"

    def side(self, number: int) -> "Target":
        """What a side is: 0 the first, 1 the second."""
        return replace(self, other=None) if number == 0 or self.other is None else self.other

    @property
    def over_several_ways(self) -> bool:
        """Its endpoints are over several others, and which way a message takes can be asked."""
        return self.provider.partition(":")[0] == "link"

    @property
    def network(self) -> str:
        """The provider by which its endpoints reach other hosts."""
        named = self.provider.partition("+")[2]
        return named or ("verbs" if self.domain.count("+") == 2 else "tcp")

    @property
    def interface(self) -> str:
        """Where its network is, as OFIPY_INTERFACE names it; empty where it is none of the system's."""
        return "" if self.in_process else self.domain.rpartition("+")[2].removesuffix("-ipv6")

    def info(self) -> ofipy.Info:
        return ofipy.getinfo(provider=self.provider, domain=self.domain, ep_type=self.kind)[0]

    def connected(self) -> "Target | None":
        """The same with endpoints of type ``msg``, if there are any."""
        if self.other or not ofipy.getinfo(provider=self.provider, domain=self.domain, ep_type="msg"):
            return None
        return replace(self, kind="msg")

    def free_service(self) -> str:
        """A service that nobody uses."""
        return str(free_port())

    def open_domain(self, *, threading: Any = "safe", progress: Any = "manual") -> ofipy.Domain:
        """A domain; closing its fabric closes all."""
        fabric = ofipy.Fabric(self.info())
        try:
            return fabric.domain(threading=threading, progress=progress)
        except BaseException:
            fabric.close(linger=0)
            raise

    def open(self, *, threading: Any = "safe", progress: Any = "manual", **options: Any) -> ofipy.Endpoint:
        """An endpoint with everything it needs; closing its fabric closes all."""
        domain = self.open_domain(threading=threading, progress=progress)
        try:
            return domain.endpoint(**options).enable()
        except BaseException:
            domain.fabric.close(linger=0)
            raise

    def listen(self, *, threading: Any = "safe", progress: Any = "manual") -> ofipy.PassiveEndpoint:
        """A listener with everything it needs; closing its fabric closes all."""
        domain = self.open_domain(threading=threading, progress=progress)
        try:
            listener = domain.passive_endpoint()
            listener.listen()
        except BaseException:
            domain.fabric.close(linger=0)
            raise
        return listener


def take_each_other_s_addresses(target: Target, patch: Callable[..., None] = setattr) -> None:
    """Have both providers of a pair accept what the other one calls its address: on the wire it is the same."""
    names, raw = {str(target.side(number).provider) for number in (0, 1)}, ofipy.Address._raw_of

    def raw_of_either(address: ofipy.Address, provider: str) -> list[bytes]:
        name = address.entries[0][0]
        return raw(address, name if {name, provider} <= names else provider)

    if target.other is not None:
        patch(ofipy.Address, "_raw_of", raw_of_either)


def split_options(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the domain takes, and what the endpoint takes."""
    names = {"threading", "progress"}
    return (
        {name: value for name, value in options.items() if name in names},
        {name: value for name, value in options.items() if name not in names},
    )


@dataclass(slots=True)
class Side:
    """One side of a test."""

    target: Target
    first: bool
    ep: ofipy.Endpoint
    peer: ofipy.Peer

    def sync(self, timeout: float = 20) -> None:
        """Return when the other side is here too, which takes some seconds at most."""
        receive = self.receive(bytearray(1), tag=TAG_SYNC)
        self.send(b"s", tag=TAG_SYNC).wait(timeout=timeout)
        receive.wait(timeout=timeout)

    def send(self, data: Any, *, tag: int) -> ofipy.Request:  # without tags the order stands in
        tagged = self.ep.info.caps & ofipy.Cap.TAGGED
        return self.ep.tsend(data, self.peer, tag=tag) if tagged else self.ep.send(data, self.peer)

    def receive(self, room: Any, *, tag: int) -> ofipy.Request:
        tagged = self.ep.info.caps & ofipy.Cap.TAGGED
        return self.ep.trecv_into(room, self.peer, tag=tag) if tagged else self.ep.recv_into(room, self.peer)


class SideFailed(AssertionError):
    """One side raised, died or did not come back; the text holds its traceback."""


Function = Callable[..., Any]


class Sides:
    """Runs a function on each side."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.hooked_operations = 0
        """Operations that hooks have seen in other processes."""
        self.ways: Counter[str] = Counter()
        """How often the sides went to each other by which way."""
        self.protection: Counter[str] = Counter()
        """How many peers over tcp were encrypted, and how many plain; counted where encryption is required."""

    def run(
        self, first: Function, second: Function, *arguments: Any, timeout: float = 60.0, **options: Any
    ) -> tuple[Any, Any]:
        """Run both at the same time on fresh endpoints.

        Parameters
        ----------
        first, second : function of a test module
            Called with a Side and the arguments.
        timeout : float
            Seconds for both.
        **options
            Of the endpoints.
        """
        raise NotImplementedError

    def close(self) -> None:
        """End what serves the sides."""


class Threads(Sides):
    """Both sides in this process."""

    def run(
        self, first: Function, second: Function, *arguments: Any, timeout: float = 60.0, **options: Any
    ) -> tuple[Any, Any]:
        endpoints = self._open(options)
        results: list[Any] = [None, None]
        failures: list[str] = []

        def serve(number: int, function: Function) -> None:
            mine, other = endpoints[number], endpoints[1 - number]
            try:
                peer = mine.peer if self._target.kind == "msg" else mine.insert(bytes(other.address))
                side = Side(self._target, number == 0, mine, peer)
                results[number] = function(side, *arguments)
            except BaseException:
                failures.append(f"side {number}:\n{traceback.format_exc()}")

        threads = [
            threading.Thread(target=serve, args=pair, daemon=True) for pair in enumerate((first, second))
        ]
        try:
            for thread in threads:
                thread.start()
            deadline = time.monotonic() + timeout
            while any(thread.is_alive() for thread in threads) and not failures:
                if time.monotonic() > deadline:
                    faulthandler.dump_traceback()
                    raise SideFailed(f"not finished within {timeout:g} s")
                for thread in threads:
                    thread.join(0.01)
        finally:
            for endpoint in endpoints:
                endpoint.fabric.close(linger=0)
        if failures:
            raise SideFailed("\n".join(failures))
        return results[0], results[1]

    def _open(self, options: dict[str, Any]) -> list[ofipy.Endpoint]:
        if self._target.kind != "msg":
            return [self._target.open(**options) for _ in range(2)]
        for_domain, rest = split_options(options)
        listener = self._target.listen(**for_domain)
        second = self._target.open(**options)
        connection = second.connect(listener.address)
        first = listener.wait(timeout=START_SECONDS).accept(**rest)
        connection.wait(timeout=START_SECONDS)
        return [first, second]


class Workers(Sides):
    """Both sides in processes of their own."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._connections: list[Connection] = []

    @property
    def processes(self) -> list[subprocess.Popen[bytes]]:
        """The workers, the first side's first."""
        return self._processes

    def _ensure(self) -> None:
        if self._processes and all(process.poll() is None for process in self._processes):
            return
        self.kill()
        for _ in range(2):
            here, there = socket.socketpair()
            with there:
                self._processes.append(
                    subprocess.Popen(
                        [sys.executable, __file__, str(there.fileno())],
                        pass_fds=[there.fileno()],
                        stdin=subprocess.DEVNULL,
                    )
                )
            self._connections.append(Connection(here.detach()))
        self._call([("meet", self._target)] * 2, START_SECONDS)

    def run(
        self, first: Function, second: Function, *arguments: Any, timeout: float = 60.0, **options: Any
    ) -> tuple[Any, Any]:
        self._ensure()
        try:
            if self._target.kind == "msg":
                # The first listens, the second is told where.
                address = self._call(
                    [("listen", self._target, options), ("open", self._target, options)], START_SECONDS
                )[0]
                self._call([("accept",), ("connect", address)], START_SECONDS)
                addresses = [None, None]
            else:
                addresses = self._call(
                    [("open", self._target.side(number), options) for number in (0, 1)], START_SECONDS
                )
            if self._target.kind == "dgram":
                # Who sends the first datagram may be faster, and a sender that is not in the vector then stays unknown.
                self._call([("insert", addresses[1 - number]) for number in (0, 1)], START_SECONDS)
            calls = [
                (
                    "run",
                    number == 0,
                    addresses[1 - number],
                    function.__code__.co_filename,
                    function.__name__,
                    arguments,
                )
                for number, function in enumerate((first, second))
            ]
            results = self._call(calls, timeout)
            for operations, ways, protection in self._call([("close",)] * 2, START_SECONDS):
                self.hooked_operations += operations
                self.ways += ways
                if requires_encryption():
                    self.protection += protection
                    check_protection(protection)
        except BaseException:
            self.kill()
            raise
        return results[0], results[1]

    def _call(self, calls: list[tuple[Any, ...]], timeout: float) -> list[Any]:
        for connection, call in zip(self._connections, calls, strict=True):
            connection.send(call)
        deadline = time.monotonic() + timeout
        results: dict[int, Any] = {}
        while missing := [number for number in (0, 1) if number not in results]:
            ready = wait(
                [self._connections[number] for number in missing], max(0.0, deadline - time.monotonic())
            )
            if not ready:
                raise SideFailed(f"side {missing} not finished within {timeout:g} s{self._stacks(missing)}")
            for number in missing:
                if self._connections[number] not in ready:
                    continue
                try:
                    good, result = self._connections[number].recv()
                except (EOFError, OSError):
                    status = self._processes[number].wait()
                    raise SideFailed(f"side {number} died with status {status}") from None
                if not good:
                    raise SideFailed(f"side {number}:\n{result}")
                results[number] = result
        return [results[0], results[1]]

    def _stacks(self, numbers: list[int]) -> str:
        """Have the hanging workers print where they are, on their standard error."""
        for number in numbers:
            self._processes[number].send_signal(6)
        for number in numbers:
            self._processes[number].wait()
        return ": their stacks are in the captured standard error"

    def close(self) -> None:
        for connection in self._connections:
            try:
                connection.send(("stop",))
            except OSError:
                continue
        for process in self._processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                break
        self.kill()

    def kill(self) -> None:
        """End the workers at once."""
        for process in self._processes:
            process.kill()
            process.wait()
        remove_leftovers(process.pid for process in self._processes)
        for connection in self._connections:
            connection.close()
        self._processes, self._connections = [], []


def make_sides(target: Target) -> Sides:
    """The kind of sides that a provider needs."""
    return Threads(target) if target.in_process else Workers(target)


# --------------------------------------------------------------------------------------------------- in the worker


def _load(path: str, modules: dict[str, ModuleType]) -> ModuleType:
    """The test module at a path, imported once."""
    if path not in modules:
        spec = importlib.util.spec_from_file_location(Path(path).stem, path)
        assert spec is not None
        assert spec.loader is not None
        modules[path] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(modules[path])
    return modules[path]


def _serve(connection: Connection) -> None:
    modules: dict[str, ModuleType] = {}
    target: Target | None = None
    endpoint: ofipy.Endpoint | None = None
    listener: ofipy.PassiveEndpoint | None = None
    options: dict[str, Any] = {}
    told, watched = 0, watch_endpoints(setattr)
    while (call := connection.recv())[0] != "stop":
        result: Any = None
        try:
            if call[0] == "meet":
                take_each_other_s_addresses(call[1])
                part_hosts(call[1])
            elif call[0] == "open":
                target = call[1]
                endpoint = target.open(**call[2])
                result = bytes(endpoint.address)
            elif call[0] == "listen":
                target = call[1]
                for_domain, options = split_options(call[2])
                listener = target.listen(**for_domain)
                result = bytes(listener.address)
            elif call[0] == "accept":
                assert listener is not None
                endpoint = listener.wait(timeout=START_SECONDS).accept(**options)
                listener.close()
                listener = None
            elif call[0] == "connect":
                assert endpoint is not None
                endpoint.connect(call[1]).wait(timeout=START_SECONDS)
            elif call[0] == "insert":
                assert endpoint is not None
                endpoint.insert(call[1])
            elif call[0] == "run":
                _, first, address, path, name, arguments = call
                assert endpoint is not None
                assert target is not None
                peer = endpoint.peer if address is None else endpoint.insert(address)
                side = Side(target, first, endpoint, peer)
                result = getattr(_load(path, modules), name)(side, *arguments)
            else:
                assert endpoint is not None
                assert target is not None
                ways = ways_between_hosts(target, [endpoint])
                protection = count_protection(endpoint) + watched
                endpoint.fabric.close(linger=0)
                watched.clear()
                side = endpoint = None
                seen = lib.ofp_hooks_operations()
                result, told = (seen - told, ways, protection), seen
        except BaseException:
            connection.send((False, traceback.format_exc()))
        else:
            connection.send((True, result))


def main() -> None:
    """Serve until told to stop, or until the test process is gone."""
    faulthandler.enable()
    sys.modules["sides"] = sys.modules["__main__"]
    connection = Connection(int(sys.argv[1]))
    try:
        _serve(connection)
    except (EOFError, BrokenPipeError):
        os._exit(1)


if __name__ == "__main__":
    main()
