# SPDX-License-Identifier: BSD-3-Clause
"""Which interface and which port an endpoint takes, on a host with two interfaces."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

import pytest
from hosts import Host, Network, Wire
from nodes import Node, RemoteError

Start = Callable[..., Node]


def host_with_two(network: Network) -> tuple[Host, list[Wire]]:
    host = network.host()
    return host, [network.wire(host, f"eth{number}", switch=number) for number in range(2)]


def say_hello(one: Node, address: str, other: Node, other_address: str) -> None:
    receive = other.begin("receive", address=None, tag=1)
    one.send(address=other_address, tag=1, text="hello")
    assert receive.result() == {"text": "hello", "source": address}


@pytest.mark.parametrize("preferred", [0, 1])
def test_the_interface_that_leads_to_the_world_comes_first(
    network: Network, start: Start, preferred: int
) -> None:
    host, wires = host_with_two(network)
    far = network.host()
    router = network.wire(far, switch=preferred)
    host.ip(f"route add default via {router.v4} dev eth{preferred}")
    host.ip(f"route add default via {router.v6} dev eth{preferred}")
    node, other = start(host), start(far)
    domains = node.domains()
    assert domains[:2] == [f"eth{preferred}", f"eth{1 - preferred}"]
    assert sorted(domains) == ["eth0", "eth0-ipv6", "eth1", "eth1-ipv6", "lo", "lo-ipv6"]
    # Loopback addresses are the last resort.
    assert set(domains[4:]) == {"lo", "lo-ipv6"}
    address, other_address = node.open(), other.open()
    assert address.startswith(f"tcp://{wires[preferred].v4}:")
    say_hello(node, address, other, other_address)


@pytest.mark.parametrize("by", ["name", "v4", "v6"])
def test_an_interface_that_is_asked_for(network: Network, start: Start, by: str) -> None:
    host, wires = host_with_two(network)
    far = network.host()
    # On the second interface's side only, while the world is behind the first one.
    network.wire(far, switch=1)
    host.ip(f"route add default via {wires[0].v4.rpartition('.')[0]}.254 dev eth0")
    node = start(host, TCP_INTERFACE=getattr(wires[1], by))
    assert node.domains() == {"name": ["eth1", "eth1-ipv6"], "v4": ["eth1"], "v6": ["eth1-ipv6"]}[by]
    other = start(far)
    family = "-ipv6" if by == "v6" else ""
    address, other_address = node.open(), other.open(domain=f"eth0{family}")
    assert address.startswith(f"tcp://[{wires[1].v6}]:" if family else f"tcp://{wires[1].v4}:")
    say_hello(node, address, other, other_address)
    say_hello(other, other_address, node, address)


def test_every_interface(network: Network, start: Start) -> None:
    host, wires = host_with_two(network)
    node = start(host, INTERFACE="any")
    assert node.domains() == ["any"]
    port = node.open().rpartition(":")[2]
    for number, wire in enumerate(wires):
        far = network.host()
        network.wire(far, switch=number)
        for family in ("", "-ipv6"):
            other = start(far)
            address = f"tcp://[{ip_address(wire.v6)}]:{port}" if family else f"tcp://{wire.v4}:{port}"
            other_address = other.open(domain=f"eth0{family}")
            say_hello(other, other_address, node, address)
            # It answers from the address that the other one knows it by.
            say_hello(node, address, other, other_address)


def test_an_interface_that_is_not_there(network: Network, start: Start) -> None:
    host, wires = host_with_two(network)
    for wanted in ("eth7", "192.0.2.1"):
        node = start(host, TCP_INTERFACE=wanted)
        assert node.domains() == []
        assert wanted in node.why_not()
    node = start(host, TCP_INTERFACE="eth1")
    wires[1].down()
    assert node.domains() == []
    wires[1].up()
    assert node.domains() == ["eth1", "eth1-ipv6"]


def test_a_range_of_ports(network: Network, start: Start) -> None:
    host, wires = host_with_two(network)
    # Nobody else is in these namespaces, so the ports are free.
    nodes = [start(host, TCP_PORT_LOW=7000, TCP_PORT_HIGH=7001) for _ in range(3)]
    addresses = [node.open(domain="eth0") for node in nodes[:2]]
    assert sorted(addresses) == [f"tcp://{wires[0].v4}:{port}" for port in (7000, 7001)]
    with pytest.raises(RemoteError, match=r"AddressInUse.*no port from 7000 to 7001 is free"):
        nodes[2].open(domain="eth0")
    # They are taken on that interface only, and a port that is asked for need not be among them.
    assert nodes[2].open(domain="eth1").rpartition(":")[2] in ("7000", "7001")
    nodes[2].close()
    assert nodes[2].open(domain="eth0", service=7100) == f"tcp://{wires[0].v4}:7100"
    nodes[0].close()
    nodes[2].close()
    assert nodes[2].open(domain="eth0") == addresses[0]
    say_hello(nodes[1], addresses[1], nodes[2], addresses[0])


@pytest.mark.parametrize("how", ["open", "listen"])
def test_who_listens_to_the_world_without_a_key_is_warned_once(
    network: Network, start: Start, how: str
) -> None:
    host, _ = host_with_two(network)
    node = start(host)
    for domain in ("lo", "lo-ipv6"):
        getattr(node, how)(domain=domain)
    assert node.warnings() == []
    address = getattr(node, how)(domain="eth0")
    for domain in ("eth0", "eth1", "eth1-ipv6"):
        getattr(node, how)(domain=domain)
    (warning,) = node.warnings()
    assert address in warning or address.removeprefix("tcp://") in warning
    assert "OFIPY_AUTH_KEY_FILE" in warning


@pytest.mark.parametrize("how", ["open", "listen"])
def test_who_listens_to_the_world_with_a_key_is_not_warned(
    network: Network, start: Start, how: str, tmp_path: Path
) -> None:
    host, _ = host_with_two(network)
    key = tmp_path / "key"
    key.write_text("a key that is long enough")
    key.chmod(0o600)
    node = start(host, AUTH_KEY_FILE=key)
    getattr(node, how)(domain="eth0")
    assert node.warnings() == []
