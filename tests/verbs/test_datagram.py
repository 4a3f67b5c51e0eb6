# SPDX-License-Identifier: BSD-3-Clause
"""Datagram endpoints over a device: one packet each, that comes or not: see docs/explanation/verbs.md."""

from collections.abc import Callable, Iterator

import pytest

import ofipy

TIMEOUT = 30

Open = Callable[..., ofipy.Endpoint]


@pytest.fixture
def open_datagram() -> Iterator[Open]:
    """Opens endpoints, each in a domain of its own; closes them at the end."""
    made: list[ofipy.Endpoint] = []

    def open_one(**options: object) -> ofipy.Endpoint:
        made.append(ofipy.open(provider="verbs", ep_type="dgram", caps="msg", progress="auto", **options))
        return made[-1]

    yield open_one
    for endpoint in made:
        endpoint.fabric.close()


def test_what_there_is(open_datagram: Open) -> None:
    endpoint = open_datagram()
    info = endpoint.info
    assert info.ep_type is ofipy.EndpointType.DGRAM
    assert info.max_msg_size in (256, 512, 1024, 2048, 4096)
    assert info.address_format is ofipy.AddressFormat.OPAQUE
    assert not info.caps & (ofipy.Cap.RMA | ofipy.Cap.TAGGED)


def test_more_than_the_device_has_rooms(open_datagram: Open) -> None:
    here, there = open_datagram(), open_datagram()
    peer, got = here.insert(there.address), 0
    for number in range(1000):
        room = bytearray(4)
        receive = there.recv_into(room)
        here.send(number.to_bytes(4, "little"), peer).wait(timeout=TIMEOUT)
        receive.wait(timeout=TIMEOUT)
        got += int.from_bytes(room, "little") == number
    assert got == 1000


def test_addresses_as_text(open_datagram: Open) -> None:
    here, there = open_datagram(), open_datagram()
    text = str(there.address)
    assert text.startswith("verbs://203.0.113.1:qp"), text
    peer = here.insert(text)
    assert here.insert(bytes(there.address)) == peer
    receive = there.recv()
    here.send(b"by text", peer).wait(timeout=TIMEOUT)
    assert receive.wait(timeout=TIMEOUT).data == b"by text"
    for wrong in ("verbs://203.0.113.1:qp0", "verbs://203.0.113.1:qp5.x", "verbs://203.0.113.1:7471"):
        with pytest.raises(ofipy.FabricError, match="no address of a datagram endpoint"):
            here.insert(wrong)
    with pytest.raises(ofipy.FabricError, match="numbers datagram endpoints itself"):
        open_datagram(service=7471)


def test_addresses_of_the_other_kind(open_datagram: Open) -> None:
    datagram = open_datagram()
    info = ofipy.getinfo(provider="verbs", ep_type="msg")[0]
    with ofipy.Fabric(info) as fabric:
        domain = fabric.domain(progress="auto")
        listener, client = domain.passive_endpoint(), domain.endpoint().enable()
        listener.listen()
        with pytest.raises(ofipy.FabricError, match="a connected"):
            datagram.insert(listener.address)
        with pytest.raises(ofipy.FabricError, match="a datagram"):
            client.connect(datagram.address)


@pytest.mark.parametrize("kind", ["xrc", "uc", "raw"])
def test_kinds_that_there_are_not(kind: str) -> None:
    with pytest.raises(ofipy.InvalidArgument, match="msg, rdm, dgram"):
        ofipy.open(provider="verbs", ep_type=kind, caps="msg")
