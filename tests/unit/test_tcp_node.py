# SPDX-License-Identifier: BSD-3-Clause
"""At which address of this host tcp listens, and which addresses it takes for peers."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import ofipy
from ofipy.cli.key import new_key
from tests.ports import free_port

TIMEOUT = 20


@contextmanager
def endpoint_of(info: ofipy.Info) -> Iterator[ofipy.Endpoint]:
    with ofipy.Fabric(info) as fabric, fabric.domain(progress="auto") as domain:
        yield domain.endpoint().enable()


def endpoint_at(domain: str) -> AbstractContextManager[ofipy.Endpoint]:
    infos = ofipy.getinfo(provider="tcp", ep_type="rdm", domain=domain)
    if not infos:
        pytest.skip(f"there is no {domain} here")
    return endpoint_of(infos[0])


def answers(host: str, port: int) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection((host, port), timeout=TIMEOUT).close()
    except OSError:
        return False
    return True


def other_addresses() -> list[str]:
    """Of this host, beside the loopback one."""
    hosts = []
    for info in ofipy.getinfo(provider="tcp", ep_type="rdm"):
        with endpoint_of(info) as ep:
            hosts.append(str(ep.address)[len("tcp://") :].rpartition(":")[0].strip("[]"))
    return [host for host in hosts if host not in ("127.0.0.1", "::1")]


@pytest.mark.parametrize("how", [ofipy.open, ofipy.listen])
@pytest.mark.parametrize("node", ["127.0.0.1", "127.0.0.2", "localhost"])
def test_it_listens_there_and_nowhere_else(how: Callable[..., Any], node: str) -> None:
    with how(provider="tcp", node=node) as here:
        host, _, port = str(here.address)[len("tcp://") :].rpartition(":")
        assert host == ("127.0.0.1" if node == "localhost" else node)
        assert answers(host, int(port))
        elsewhere = [*other_addresses(), "127.0.0.1" if host == "127.0.0.2" else "127.0.0.2"]
        assert not [other for other in elsewhere if answers(other, int(port))]


@pytest.mark.parametrize("node", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("first", ["server", "client"])
@pytest.mark.parametrize("key", [False, True])
def test_localhost_finds_an_endpoint_of_the_loopback_interface(
    node: str, first: str, key: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name stands for the address of the client's interface, where nobody listens."""
    if key:
        new_key(tmp_path / "key")
        monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", str(tmp_path / "key"))
    service = str(free_port())
    with ExitStack() as opened:

        def open_named() -> ofipy.Endpoint:
            return opened.enter_context(ofipy.open(provider="tcp", node=node, service=service))

        named = open_named() if first == "server" else None
        client = opened.enter_context(ofipy.open(provider="tcp"))
        there = client.insert(f"localhost:{service}")
        sent = client.tsend(b"to localhost", there, tag=1)
        if named is None:
            # The first attempts meet nobody.
            with pytest.raises(ofipy.TimedOut):
                sent.wait(timeout=0.1)
            named = open_named()
        answer = client.trecv(there, tag=2)
        message = named.trecv(tag=1).wait(timeout=TIMEOUT)
        assert message.data == b"to localhost"
        named.tsend(b"from there", message.source, tag=2).wait(timeout=TIMEOUT)
        assert answer.wait(timeout=TIMEOUT).data == b"from there"
        sent.wait(timeout=TIMEOUT)


@pytest.mark.parametrize("how", [ofipy.open, ofipy.listen])
def test_what_is_no_address_of_this_host_is_refused(
    how: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for node in ("203.0.113.9", "2001:db8::9", "no.such.host.invalid", "nonsense host", ""):
        with pytest.raises(ofipy.Unreachable) as caught:
            how(provider="tcp", node=node)
        assert node in str(caught.value)
    # Of this host, but not of what the configuration leaves.
    monkeypatch.setenv("OFIPY_TCP_INTERFACE", "127.0.0.1")
    with pytest.raises(ofipy.Unreachable, match="::1"):
        how(provider="tcp", node="::1")


def families() -> list[str]:
    """What stands for every address, as far as this host has any."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return ["0.0.0.0"]
    return ["0.0.0.0", "::"]


@pytest.mark.parametrize("how", [ofipy.open, ofipy.listen])
@pytest.mark.parametrize("node", families())
def test_it_listens_everywhere(how: Callable[..., Any], node: str) -> None:
    with how(provider="tcp", node=node) as here:
        host, _, port = str(here.address)[len("tcp://") :].rpartition(":")
        # Known by an address that others can use.
        assert host.strip("[]") not in ("0.0.0.0", "::")
        everywhere = ["127.0.0.1", "127.0.0.2", *other_addresses()]
        assert all(answers(other, int(port)) for other in everywhere if ":" not in other or node == "::")


@pytest.mark.parametrize("value", ["any", "lo", "127.0.0.1"])
@pytest.mark.parametrize("name", ["OFIPY_INTERFACE", "OFIPY_TCP_INTERFACE"])
def test_the_interface_is_a_parameter(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    infos = ofipy.getinfo(provider="tcp", ep_type="rdm")
    assert {info.domain for info in infos} <= ({"any"} if value == "any" else {"lo", "lo-ipv6"})
    with ofipy.open(provider="tcp") as ep:
        host, _, port = str(ep.address)[len("tcp://") :].rpartition(":")
        # A host without another interface has this address alone.
        assert (host == "127.0.0.1") == (value != "any" or not other_addresses())
        assert answers("127.0.0.1", int(port))
        # What is left can be narrowed further.
        with ofipy.open(provider="tcp", node="127.0.0.1") as near:
            assert str(near.address).startswith("tcp://127.0.0.1:")


def test_connections_from_everywhere() -> None:
    """One socket takes both families, and connects to either."""
    anywhere = families()[-1]
    for node in ("127.0.0.1", "::1") if anywhere == "::" else ("127.0.0.1",):
        with (
            ofipy.listen(provider="tcp", node=node) as listener,
            ofipy.open(provider="tcp", ep_type="msg", node=anywhere) as client,
        ):
            connection = client.connect(listener.address)
            with listener.wait(timeout=TIMEOUT).accept() as server:
                connection.wait(timeout=TIMEOUT)
                server.send(b"x")
                assert client.recv().wait(timeout=TIMEOUT).data == b"x"


def test_the_parameter_of_tcp_goes_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_INTERFACE", "nosuch0")
    with pytest.raises(ofipy.ProviderUnavailable, match="OFIPY_INTERFACE=nosuch0"):
        ofipy.open(provider="tcp")
    monkeypatch.setenv("OFIPY_TCP_INTERFACE", "lo")
    ofipy.open(provider="tcp").close()


def test_fabtests_take_the_source_address() -> None:
    program = [sys.executable, "-P", "-m", "fabtests", "rdm_tagged_pingpong"]
    ended = subprocess.run(
        [*program, "-p", "tcp", "-s", "203.0.113.9"], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode != 0
    assert "203.0.113.9 is not an address of this host" in ended.stderr


@pytest.mark.parametrize("domain", ["lo", "lo-ipv6"])
def test_names_mean_what_they_mean_in_that_domain(domain: str) -> None:
    with endpoint_at(domain) as server, endpoint_at(domain) as client:
        host, _, port = str(server.address).rpartition(":")
        for text in (f"localhost:{port}", f"{host}:{port}", f"{host[len('tcp://') :]}:{port}"):
            peer = client.insert(text)
            assert peer.address == server.address
            client.tsend(b"x", peer, tag=1, complete="delivery").wait(timeout=TIMEOUT)
            assert server.trecv(tag=1).wait(timeout=TIMEOUT).data == b"x"
        # One address, one peer.
        assert len(client.av) == 1


def test_what_cannot_be_reached_is_refused_when_it_is_inserted() -> None:
    with endpoint_at("lo") as v4, endpoint_at("lo-ipv6") as v6:
        for ep, wrong, family in ((v4, v6, "IPv6"), (v6, v4, "IPv4")):
            raw = wrong.address.raw("tcp")
            for where in (wrong.address, bytes(wrong.address), str(wrong.address), raw):
                with pytest.raises(ofipy.Unreachable, match=family):
                    ep.insert(where)
        for ep, far in ((v4, "203.0.113.9:7471"), (v6, "[2001:db8::9]:7471")):
            with pytest.raises(ofipy.Unreachable, match="reach nothing else"):
                ep.insert(far)
            assert len(ep.av) == 0
    with (
        ofipy.listen(provider="tcp", node="::1") as listener,
        ofipy.open(provider="tcp", ep_type="msg", node="127.0.0.1") as ep,
        pytest.raises(ofipy.Unreachable, match="IPv6"),
    ):
        ep.connect(listener.address)


def test_loopback_and_other_addresses_of_this_host_meet() -> None:
    hosts = [host for host in other_addresses() if ":" not in host]
    if not hosts:
        pytest.skip("there is no other interface here")
    with (
        ofipy.open(provider="tcp", node="127.0.0.1") as inner,
        ofipy.open(provider="tcp", node=hosts[0]) as outer,
    ):
        for one, other in ((inner, outer), (outer, inner)):
            one.tsend(b"x", one.insert(other.address), tag=1, complete="delivery").wait(timeout=TIMEOUT)
            message = other.trecv(tag=1).wait(timeout=TIMEOUT)
            assert message.source.address == one.address
