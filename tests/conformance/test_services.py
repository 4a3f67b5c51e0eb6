# SPDX-License-Identifier: BSD-3-Clause
"""Services by name: one leads to the same endpoint over every provider, and two of one port are told."""

import secrets
from collections.abc import Callable

import pytest
from connected import OpenDomain

import ofipy

TIMEOUT = 30
PORTS = range(61000, 65536)


def port_of(name: str) -> int:
    """What a name stands for, here and in every other version of ofipy: FNV-1a."""
    number = 2166136261
    for byte in name.encode():
        number = (number ^ byte) * 16777619 % 2**32
    return PORTS[number % len(PORTS)]


def free_name() -> str:
    return f"s-{secrets.token_hex(6)}"


def of_the_same_port(name: str) -> str:
    return next(other for other in map("other{}".format, range(10**6)) if port_of(other) == port_of(name))


@pytest.mark.needs("tagged")
def test_meeting_by_name(open_endpoint: Callable[..., ofipy.Endpoint]) -> None:
    name = free_name()
    server, client = open_endpoint(service=name), open_endpoint()
    client.tsend(b"found", client.insert(f"localhost:{name}"), tag=1)
    assert server.trecv(tag=1).wait(timeout=TIMEOUT).data == b"found"
    # What another version, or a provider of another wire, knows it by.
    client.tsend(b"as well", client.insert(f"localhost:{port_of(name)}"), tag=2)
    assert server.trecv(tag=2).wait(timeout=TIMEOUT).data == b"as well"


@pytest.mark.needs("tagged")
def test_the_text_of_the_address_leads_there(open_endpoint: Callable[..., ofipy.Endpoint]) -> None:
    for service in (None, free_name()):
        server, client = open_endpoint(service=service), open_endpoint()
        client.tsend(b"found", client.insert(str(server.address)), tag=1)
        assert server.trecv(tag=1).wait(timeout=TIMEOUT).data == b"found"


def test_two_names_of_one_port(open_endpoint: Callable[..., ofipy.Endpoint]) -> None:
    name = free_name()
    other = of_the_same_port(name)
    open_endpoint(service=name)
    for taken in (name, other):
        with pytest.raises(
            ofipy.AddressInUse, match=f"service {taken}, which is port {port_of(name)}: .*choose another"
        ):
            open_endpoint(service=taken)


@pytest.mark.parametrize("wrong", ["a b", "a/b", "a:b", "~1", "qp17", "-1", "", "ä", "a" * 64])
def test_what_is_no_name(open_endpoint: Callable[..., ofipy.Endpoint], wrong: str) -> None:
    with pytest.raises(ofipy.InvalidArgument, match="a port number is meant, 0 to 65535, or a name"):
        open_endpoint(service=wrong)


@pytest.mark.parametrize("wrong", ["0", "65536", "99999", "-1", "80x"])
def test_what_is_no_port_of_a_peer(open_endpoint: Callable[..., ofipy.Endpoint], wrong: str) -> None:
    endpoint = open_endpoint()
    for host in ("localhost", "127.0.0.1"):
        with pytest.raises(
            ofipy.InvalidArgument, match=f"service {wrong}: the port of a peer is a number, 1 to 65535"
        ):
            endpoint.insert(f"{host}:{wrong}")
        with pytest.raises(ofipy.InvalidArgument, match=f"service {wrong}: "):
            endpoint.insert(f"{str(endpoint.address).partition('://')[0]}://{host}:{wrong}")


@pytest.mark.needs("connections")
def test_a_listener_by_name(open_domain: OpenDomain) -> None:
    name = free_name()
    listener = open_domain().passive_endpoint(service=name)
    listener.listen()
    client = open_domain().endpoint().enable()
    connecting = client.connect(f"localhost:{name}")
    server = listener.wait(timeout=TIMEOUT).accept()
    connecting.wait(timeout=TIMEOUT)
    server.close()
    with pytest.raises(ofipy.AddressInUse, match=f"service {name}, which is port"):
        open_domain().passive_endpoint(service=name)
