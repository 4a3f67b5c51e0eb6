# SPDX-License-Identifier: BSD-3-Clause
"""Datagrams of libfabric's ``udp``: anybody may send packets to such an endpoint, of any length and at any time."""

import asyncio
import socket
import time
from collections.abc import Iterator

import pytest
from conftest import open_on_loopback, raw_address

import ofipy

TIMEOUT = 20


@pytest.fixture
def endpoint() -> Iterator[ofipy.Endpoint]:
    opened = open_on_loopback("ofi:udp", ep_type="dgram")
    yield opened
    opened.fabric.close()


@pytest.fixture
def stranger(endpoint: ofipy.Endpoint) -> Iterator[socket.socket]:
    """A plain socket that sends to the endpoint."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
        plain.connect(("127.0.0.1", port_of(endpoint)))
        yield plain


def port_of(endpoint: ofipy.Endpoint) -> int:
    return int.from_bytes(raw_address(endpoint)[2:4], "big")


def await_drops(endpoint: ofipy.Endpoint, count: int) -> None:
    deadline = time.monotonic() + TIMEOUT
    while endpoint.stats().messages_dropped < count:
        assert time.monotonic() < deadline, endpoint.stats()
        time.sleep(0.01)


def test_packets_of_any_length(endpoint: ofipy.Endpoint, stranger: socket.socket) -> None:
    limit = endpoint.info.max_msg_size
    for size in 0, 1, limit - 1, limit:
        receive = endpoint.recv()
        stranger.send(bytes(size))
        message = receive.wait(timeout=TIMEOUT)
        assert (message.length, message.source, bytes(message.data)) == (size, None, bytes(size))


def test_packets_that_are_too_long_are_dropped(endpoint: ofipy.Endpoint, stranger: socket.socket) -> None:
    limit, room = endpoint.info.max_msg_size, bytearray(65507)
    receive = endpoint.recv_into(room)
    for number, size in enumerate((limit + 1, limit + 2, 65507), 1):
        stranger.send(b"\xff" * size)
        await_drops(endpoint, number)
    stranger.send(b"whole")
    assert receive.wait(timeout=TIMEOUT).length == 5
    assert room == b"whole" + bytes(65502)


def test_the_address_of_a_packet_is_its_source(endpoint: ofipy.Endpoint, stranger: socket.socket) -> None:
    where = stranger.getsockname()
    address = (
        socket.AF_INET.to_bytes(2, "little")
        + where[1].to_bytes(2, "big")
        + socket.inet_aton(where[0])
        + bytes(8)
    )
    unknown = endpoint.recv()
    stranger.send(b"before")
    assert unknown.wait(timeout=TIMEOUT).source is None
    peer = endpoint.insert(address)
    known = endpoint.recv(peer)
    stranger.send(b"after")
    assert known.wait(timeout=TIMEOUT).source == peer
    # It can be answered, and removed, and is nobody again.
    endpoint.send(b"answer", peer).wait(timeout=TIMEOUT)
    stranger.settimeout(TIMEOUT)
    assert stranger.recv(100) == b"answer"
    endpoint.av.remove(peer)
    removed = endpoint.recv()
    stranger.send(b"removed")
    assert removed.wait(timeout=TIMEOUT).source is None
    assert len(endpoint.av) == 0


def test_a_burst_beyond_what_is_posted(endpoint: ofipy.Endpoint, stranger: socket.socket) -> None:
    # The kernel keeps as much as its buffer takes; what it has taken arrives, in order over the loopback interface.
    for number in range(10):
        for part in range(100):
            stranger.send((number * 100 + part).to_bytes(4, "big"))
        for part in range(100):
            message = endpoint.recv().wait(timeout=TIMEOUT)
            assert int.from_bytes(message.data, "big") == number * 100 + part
    assert endpoint.stats().messages_dropped == 0


def test_sleeping_until_a_packet_comes(endpoint: ofipy.Endpoint, stranger: socket.socket) -> None:
    async def main() -> bytes:
        receive = endpoint.recv()
        asyncio.get_running_loop().call_later(0.2, stranger.send, b"late")
        return bytes((await asyncio.wait_for(receive, TIMEOUT)).data)

    assert asyncio.run(main()) == b"late"


def test_nobody_listens() -> None:
    endpoint = open_on_loopback("ofi:udp", ep_type="dgram")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as gone:
        gone.bind(("127.0.0.1", 0))
        port = gone.getsockname()[1]
    peer = endpoint.insert(
        socket.AF_INET.to_bytes(2, "little")
        + port.to_bytes(2, "big")
        + socket.inet_aton("127.0.0.1")
        + bytes(8)
    )
    for _ in range(10):
        endpoint.send(b"is anybody there", peer, complete="transmit").wait(timeout=TIMEOUT)
    endpoint.fabric.close()


def test_closing_while_packets_come(stranger: socket.socket, endpoint: ofipy.Endpoint) -> None:
    for _ in range(20):
        opened = open_on_loopback("ofi:udp", ep_type="dgram")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
            for size in range(0, 1500, 10):
                plain.sendto(bytes(size), ("127.0.0.1", port_of(opened)))
            opened.recv()
            opened.fabric.close()
    stranger.send(b"still here")
    assert endpoint.recv().wait(timeout=TIMEOUT).length == 10


def test_a_service_is_a_port() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    info = next(
        each
        for each in ofipy.getinfo(provider="ofi:udp", ep_type="dgram", domain="lo")
        if each.address_format is ofipy.AddressFormat.IPV4
    )
    with ofipy.Fabric(info) as fabric:
        served = fabric.domain(progress="auto").endpoint(service=str(port)).enable()
        assert port_of(served) == port
        caller = fabric.domain(progress="auto").endpoint().enable()
        receive = served.recv()
        caller.send(b"hello", caller.insert(f"127.0.0.1:{port}")).wait(timeout=TIMEOUT)
        assert receive.wait(timeout=TIMEOUT).data == b"hello"


def test_what_the_core_adds(endpoint: ofipy.Endpoint, stranger: socket.socket) -> None:
    stranger.send(b"looked at")
    deadline = time.monotonic() + TIMEOUT
    while (found := endpoint.probe(tagged=False)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert found.length == 9
    assert endpoint.recv().wait(timeout=TIMEOUT).data == b"looked at"
    messages = endpoint.recv_many(bytearray(4096))
    for size in 3, 1000, 5:
        stranger.send(bytes(size))
        assert next(messages).length == size


def test_a_shared_receive_context(endpoint: ofipy.Endpoint) -> None:
    domain = endpoint.domain
    context = domain.receive_context()
    shared = [domain.endpoint(rx=context).enable() for _ in range(2)]
    receives = [context.recv() for _ in shared]
    for number, each in enumerate(shared):
        endpoint.send(bytes([number]), endpoint.insert(each.address)).wait(timeout=TIMEOUT)
    assert {bytes(receive.wait(timeout=TIMEOUT).data) for receive in receives} == {b"\0", b"\1"}
    for each in shared:
        each.close()
