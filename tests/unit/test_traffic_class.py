# SPDX-License-Identifier: BSD-3-Clause
"""``traffic_class``: which sockets have it, who refuses it. What the network sees is in tests/network."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress

import pytest

import ofipy

EXPEDITED = 0xB8  # code point 46 (RFC 3246)


def sockets() -> Iterator[socket.socket]:
    """This process's sockets of TCP."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
        except OSError:
            continue  # the descriptor of the listing itself
        with socket.socket(fileno=os.dup(int(name))) as each:
            if each.family in (socket.AF_INET, socket.AF_INET6) and each.type == socket.SOCK_STREAM:
                yield each


def classes_of(ports: set[int]) -> set[int]:
    """The traffic classes of sockets at these local ports, connected or listening."""
    found = set()
    for each in sockets():
        if each.getsockname()[1] in ports:
            found.add(each.getsockopt(socket.IPPROTO_IP, socket.IP_TOS))
            if each.family == socket.AF_INET6:
                found.add(each.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS))
    return found


def port_of(address: object) -> int:
    return int(str(address).rpartition(":")[2])


def connected_to(port: int) -> set[int]:
    """Local ports of the connections to a port."""
    found = set()
    for each in sockets():
        with suppress(OSError):
            if each.getpeername()[1] == port:
                found.add(each.getsockname()[1])
    return found


@pytest.mark.parametrize("node", ["127.0.0.1", "::1"])
def test_every_socket_of_an_endpoint(node: str) -> None:
    with (
        ofipy.open(provider="tcp", node=node, traffic_class=EXPEDITED) as a,
        ofipy.open(provider="tcp", node=node) as b,
    ):
        a.tsend(b"there", a.insert(b.address), tag=1)
        assert b.trecv(tag=1).wait(timeout=20).data == b"there"
        here, there = port_of(a.address), port_of(b.address)
        assert classes_of({here, *connected_to(there)}) == {EXPEDITED}
        assert classes_of({there}) == {0}


def test_what_is_accepted_has_that_of_its_endpoint() -> None:
    with (
        ofipy.open(provider="tcp", node="127.0.0.1", traffic_class=0x20) as a,
        ofipy.open(provider="tcp", node="127.0.0.1", traffic_class=0x48) as b,
    ):
        a.tsend(b"there", a.insert(b.address), tag=1)
        assert b.trecv(tag=1).wait(timeout=20).data == b"there"
        assert classes_of({port_of(b.address)}) == {0x48}
        assert classes_of(connected_to(port_of(b.address))) == {0x20}


def test_connections() -> None:
    with (
        ofipy.listen(provider="tcp", node="127.0.0.1") as listener,
        ofipy.open(provider="tcp", node="127.0.0.1", ep_type="msg", traffic_class=0x20) as a,
    ):
        connecting = a.connect(listener.address)
        with listener.wait(timeout=20).accept(traffic_class=EXPEDITED) as b:
            connecting.wait(timeout=20)
            b.tsend(b"there", tag=1)
            assert a.trecv(tag=1).wait(timeout=20).data == b"there"
            port = port_of(listener.address)
            assert classes_of(connected_to(port)) == {0x20}
            assert classes_of({port}) == {
                0,
                EXPEDITED,
            }  # the listener, and the connection that it has accepted


def test_link_has_it_on_its_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_INTERFACE", "lo")
    with ofipy.open(provider="link", traffic_class=EXPEDITED) as ep:
        assert classes_of({port_of(ep.address)}) == {EXPEDITED}


def test_zero_is_a_class() -> None:
    with ofipy.open(provider="tcp", node="127.0.0.1", traffic_class=0) as ep:
        assert classes_of({port_of(ep.address)}) == {0}


@pytest.mark.parametrize("provider", ["shm", "fake"])
def test_providers_without_packets(provider: str) -> None:
    if provider not in {each.provider for each in ofipy.getinfo(explain=True)}:
        pytest.skip("the fake provider is not installed")
    with pytest.raises(ofipy.NotSupported, match=f"endpoints of {provider} cannot choose the traffic class"):
        ofipy.open(provider=provider, traffic_class=EXPEDITED)


@pytest.mark.parametrize("wrong", [-1, 256, 1.5, "high"])
def test_what_is_no_class(wrong: object) -> None:
    with pytest.raises(ofipy.InvalidArgument, match="traffic_class"):
        ofipy.open(provider="tcp", traffic_class=wrong)  # type: ignore[arg-type]
